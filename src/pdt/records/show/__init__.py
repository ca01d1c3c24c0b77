"""A document to look at: in the terminal, or as one self-contained page."""
