"""Lists and watches: which objects are asked for, in pages, at a version, and from one on."""
