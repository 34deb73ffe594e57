"""Preemption: the pods that may be victims, trials on nodes, and the order of candidates."""
