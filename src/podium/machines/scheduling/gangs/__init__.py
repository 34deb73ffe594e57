"""Pods of a PodGroup: one attempt for all, bindings together, and what becomes of a gang that cannot be whole."""
