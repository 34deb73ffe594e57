"""Who of several that run the same leads."""
