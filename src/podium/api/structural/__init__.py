"""Structural schemas of custom kinds (apiextensions/v1): parsing, defaults, pruning and validation."""
