"""Files, folders and dumps, and the objects in them."""
