"""The scheduling queue: where pending pods are, and what moves them."""
