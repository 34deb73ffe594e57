"""How much a plan may ask for."""

from __future__ import annotations

MOST_ADDED = 10_000
"""How many nodes a plan adds at most."""

MOST_PLACED = 20_000
"""How many pods are placed one after another at most, to see how many fit."""

MOST_STORIES = 100
"""So often a plan is told at most, with other draws."""
