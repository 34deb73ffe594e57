"""What a rescheduler goes by, for whoever has to name it without bringing it along."""

from __future__ import annotations

RESCHEDULER = "rescheduler"
"""Whose cap on disruptions counts, and the cause of evictions."""

DESCHEDULED = "Descheduled"
"""The reason of the event that tells of an eviction, as people know it from the descheduler."""
