"""`podium simulate` and `podium trace`."""
