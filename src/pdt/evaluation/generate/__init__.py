"""The half that needs a model: texts and likelihoods of held-out documents by condition."""
