"""The API server's HTTP."""
