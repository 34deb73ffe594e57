"""Structural schemas of custom kinds (apiextensions/v1): what they say, and what they make of objects."""
