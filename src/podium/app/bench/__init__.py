"""`podium bench`: the costs of decisions, simulations and the loading of dumps on this machine."""
