"""The API over HTTP: connections, requests and replies, watches, and who is let in."""
