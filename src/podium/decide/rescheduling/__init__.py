"""Which running pods are moved to better places, and which are left alone."""
