"""What people meet: explanations, plans, reports and the command line."""
