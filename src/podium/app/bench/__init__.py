"""`podium bench`: what decisions, simulations and the loading of dumps cost on this machine."""
