"""An API server and the components around it, in one process."""
