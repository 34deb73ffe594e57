"""Scenarios: what stands in them, and the steps that they consist of."""
