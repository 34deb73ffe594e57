"""Budgets, drains and avoid lists: who may be disrupted, and how it is done."""
