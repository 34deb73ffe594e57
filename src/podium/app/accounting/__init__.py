"""`podium ledger`: who was disrupted, for whom, by what, at what cost, and what became of it."""
