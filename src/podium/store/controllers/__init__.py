"""What follows from deletions: garbage, and namespaces that are emptied."""
