"""The schemas of all kinds as OpenAPI v3, for kubectl to explain, create and apply by."""
