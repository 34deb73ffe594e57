"""What a scheduler knows of a cluster: columns over nodes, classes of pods, counters of matching pods."""
