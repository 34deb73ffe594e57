"""What objects must be like so that anything can be done with them, kind by kind."""
