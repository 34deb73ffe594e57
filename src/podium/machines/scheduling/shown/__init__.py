"""What the API shows a scheduler, and what follows from it for the cluster and the queue."""
