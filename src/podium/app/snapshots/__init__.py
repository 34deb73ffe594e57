"""`podium snapshot`: a file with the data that explanations and simulations need of a cluster."""
