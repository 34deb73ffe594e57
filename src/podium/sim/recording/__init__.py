"""What happened in a cluster, as a scenario that can be played again, and beside it what was made of it there."""
