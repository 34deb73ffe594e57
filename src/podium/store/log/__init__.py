"""What happened: the events of all kinds, and of each."""
