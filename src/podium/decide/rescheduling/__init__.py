"""Decisions of the rescheduler: which running pods to move to better nodes, and which to leave alone."""
