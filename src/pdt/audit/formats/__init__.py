"""Tasks out and votes in: a team may judge in its own tool, as blinded as on our pages."""
