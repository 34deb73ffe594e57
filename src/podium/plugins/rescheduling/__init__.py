"""Policies of rescheduling: one idea of what a good placement is a file."""
