"""Kubernetes' schemas of each kind's fields: as text, their parser, and their uses."""
