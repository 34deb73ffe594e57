"""An account of every disruption: who went, for whom, why, at what cost, and what became of it."""
