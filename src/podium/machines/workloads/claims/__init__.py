"""The controller of claims for devices."""
