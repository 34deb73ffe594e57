"""Podium: who runs, who waits and who is disrupted in a Kubernetes cluster."""
