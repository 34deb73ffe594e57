"""The contract of rescheduling: the inputs and proposals of policies, and the settings."""
