"""Disruption budgets, drains and avoid lists."""
