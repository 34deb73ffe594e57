"""The cluster autoscaler."""
