"""What can be asked: a module for each question."""
