"""The API over HTTP: connections, requests and responses, watches, and authentication."""
