"""What machines are made from: deadlines, waits, and queues of work."""
