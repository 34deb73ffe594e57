"""What a rescheduler knows of its cluster."""
