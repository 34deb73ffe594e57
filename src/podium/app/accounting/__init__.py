"""`podium ledger`: the disruptions of pods, with beneficiaries, causes, costs and outcomes."""
