"""Documents as their corpus never wrote them: the same facts, in another source or request."""
