"""Final rates: what people decided, beside what screens said, in every row and gate of Table 3."""
