"""`podium simulate`."""
