"""The rescheduler: it evicts pods that would be better placed elsewhere."""
