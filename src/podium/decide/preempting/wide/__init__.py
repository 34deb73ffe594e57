"""Preemption with victims on several nodes: blocking pods elsewhere, dependents, and sets of victims that suffice."""
