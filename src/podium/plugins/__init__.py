"""The plugins of kube-scheduler's default profile: one scheduling idea a file, named as Kubernetes names it."""
