"""Speaks to API servers over HTTP."""
