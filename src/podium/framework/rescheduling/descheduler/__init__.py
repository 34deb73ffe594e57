"""Policies of kubernetes-sigs/descheduler, read as configurations of a rescheduler."""
