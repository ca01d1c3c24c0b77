"""Two schema-constrained stages: cited facts, then one joint answer for all lanes. Paper: §4.2."""
