"""Scenarios: settings, steps, and their parsing."""
