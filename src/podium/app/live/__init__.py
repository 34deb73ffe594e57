"""`podium scheduler`: the scheduler of a cluster."""
