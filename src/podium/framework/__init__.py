"""The scheduler's plugin contract, and the runner that implements it."""
