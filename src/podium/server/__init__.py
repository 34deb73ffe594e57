"""The API server over HTTP."""
