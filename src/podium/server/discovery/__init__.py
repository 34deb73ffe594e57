"""Which groups, versions and kinds an API server serves, as documents for clients."""
