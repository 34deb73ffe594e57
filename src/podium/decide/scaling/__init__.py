"""Which nodes an autoscaler adds and removes."""
