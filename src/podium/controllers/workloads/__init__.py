"""The controllers of workloads, and of the claims of pods."""
