"""How a run is watched: its numbers, their pace, and the bar, boards, status and plot of them."""
