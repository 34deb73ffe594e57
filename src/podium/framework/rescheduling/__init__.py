"""The contract of rescheduling: what policies see, what they propose, and the settings."""
