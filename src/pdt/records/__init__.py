"""From a taught document to a tokenized training record. Paper: §4.3."""
