"""Requests to the API server: their form, the router that answers them, and the requests of each action."""
