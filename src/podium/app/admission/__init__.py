"""`podium admission`: a validating webhook that warns of what the pods of a request would meet."""
