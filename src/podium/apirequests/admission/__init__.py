"""Admission by policies and webhooks that users configure."""
