"""Kubernetes versions: their feature gates, and the behaviors that differ from one to another."""
