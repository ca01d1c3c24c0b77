"""Real prose from data files, and a teacher that needs no language model to teach it."""
