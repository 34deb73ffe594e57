"""`podium record`: records the changes of a cluster in a file that `podium simulate` replays."""
