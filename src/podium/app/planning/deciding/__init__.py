"""Decisions about many pods, and changes that are verified by deciding again."""
