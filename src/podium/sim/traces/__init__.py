"""Recorded workloads."""
