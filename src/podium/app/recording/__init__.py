"""`podium record`: what happens in a cluster, in a file that `podium simulate` plays."""
