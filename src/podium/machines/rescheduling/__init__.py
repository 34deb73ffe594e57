"""The rescheduler."""
