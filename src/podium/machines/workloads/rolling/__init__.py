"""The deployment and replicaset controllers."""
