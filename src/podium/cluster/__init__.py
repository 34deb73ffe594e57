"""A scheduler's model of a cluster: columns over nodes, classes of pods, counters of matching pods."""
