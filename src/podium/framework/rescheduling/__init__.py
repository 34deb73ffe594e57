"""The contract of rescheduling: what policies look at, what they propose, and what a person may set."""
