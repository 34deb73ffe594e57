"""The kubelets of all nodes."""
