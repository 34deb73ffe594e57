"""`podium snapshot`: a file with what explanations and simulations read of a cluster."""
