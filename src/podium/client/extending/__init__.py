"""Extenders over HTTP."""
