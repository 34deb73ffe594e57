"""Many runs of a simulation: settings against one another, over seeds and inputs, side by side."""
