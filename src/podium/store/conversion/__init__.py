"""Objects in the versions in which they are served, beside the one that is stored."""
