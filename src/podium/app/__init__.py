"""The applications: explanations, plans, reports and the command line."""
