"""A result directory, checked and derived again from what it holds."""
