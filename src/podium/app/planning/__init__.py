"""What-if plans: questions about a cluster, answered by their impact on each workload."""
