"""The control plane: an API server and the components around it, in one process."""
