"""Pods of a PodGroup: which of them fit together, and in which topology domain."""
