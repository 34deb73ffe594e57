"""The scheduler: queue, attempts, binding cycles, and carrying out preemptions."""
