"""What preemption may be told to count of its victims, in the place of kube-scheduler's criteria."""
