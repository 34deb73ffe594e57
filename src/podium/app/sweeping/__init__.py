"""Many runs of a simulation: combinations of settings, seeds and inputs, in parallel."""
