"""Volumes: claims are bound to them, and they are made for claims."""
