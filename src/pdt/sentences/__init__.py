"""Plain prose as sentences: where they end, what they say, which source sentence bears them out."""
