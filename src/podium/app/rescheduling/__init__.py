"""`podium reschedule`."""
