"""The pages on which people judge: a claim and a text, and nothing that says whose it is."""
