"""From a raw revision to the article that a model may see. Paper: §4.1."""
