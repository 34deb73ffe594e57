"""Plans: a question about a cluster, played out and answered by what it does to each workload."""
