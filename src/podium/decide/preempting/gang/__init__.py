"""Preemption for gangs: one plan over all members, so that no pod is evicted for a gang that cannot start."""
