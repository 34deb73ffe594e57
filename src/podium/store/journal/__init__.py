"""The store beyond the process, in a file."""
