"""What a KubeSchedulerConfiguration says, and the profiles that are built from it."""
