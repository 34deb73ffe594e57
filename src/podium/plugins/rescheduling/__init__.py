"""Policies of rescheduling: one idea of what a good placement is a file. What they are made of has rooms of its own."""
