"""What every page and server of pdt shares: refusals, guards, headers, and one look.

Nothing is taken from another host, no script or style stands inside a page, and every text that
comes from outside is escaped.
"""
