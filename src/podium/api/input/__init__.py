"""Input files, folders and dumps, and the objects in them."""
