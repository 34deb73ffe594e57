"""The exact plan: the optional solver, and what is told of how far from the best a plan is."""
