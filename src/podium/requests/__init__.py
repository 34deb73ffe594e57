"""Requests to the API server: what they are, who answers them, and which of them the actions of machines are."""
