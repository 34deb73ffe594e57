"""What pods prefer, kept count of."""
