"""The plugin contract of the scheduler, and the runner that keeps it."""
