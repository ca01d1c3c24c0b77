"""What an evaluation asks: conditions, the lines they give, and the gates on their measures."""
