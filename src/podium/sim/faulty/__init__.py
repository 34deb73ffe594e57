"""Faults, and what components see of the API under them."""
