"""Victims on several nodes: who stands in a pod's way elsewhere, who depends on whom, which sets of them suffice."""
