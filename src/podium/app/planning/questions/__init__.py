"""The questions of `podium plan`, a module for each."""
