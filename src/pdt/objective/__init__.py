"""The learning objective (§5): one loss a file, and the weighted sum of Eq. 9.

Every loss is a mean inside a document and then a mean over documents, so a batch of B documents and
B accumulated batches of one give the same gradient.
"""
