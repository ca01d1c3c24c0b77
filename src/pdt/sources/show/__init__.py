"""One source for a reviewer: in the terminal, or as one page."""
