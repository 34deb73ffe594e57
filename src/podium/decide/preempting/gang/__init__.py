"""Preemption for gangs: one plan over all members, so that nobody goes for a gang that cannot be completed."""
