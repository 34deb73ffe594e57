"""The content of a KubeSchedulerConfiguration, and the profiles that are built from it."""
