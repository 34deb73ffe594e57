"""The controllers of nodes, and of pods on failed nodes."""
