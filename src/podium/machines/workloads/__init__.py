"""Controllers of workloads: they make pods, and replace those that end."""
