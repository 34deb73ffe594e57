"""`podium snapshot`: what explanations and simulations read of a cluster, in a file."""
