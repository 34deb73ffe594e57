"""The page for browsers: the cluster as it changes, its objects, why pods are where they are, and what would happen."""
