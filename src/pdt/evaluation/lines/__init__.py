"""The lines of a result directory: what one step of an evaluation hands on to the next."""
