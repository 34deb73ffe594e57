"""Recordings of clusters as playable scenarios, and their comparison with simulations."""
