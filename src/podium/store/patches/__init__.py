"""The three ways to patch an object."""
