"""What Kubernetes says of the fields of each kind: as text, what reads it, and what is made of it."""
