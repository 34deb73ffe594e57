"""The rules of each write operation."""
