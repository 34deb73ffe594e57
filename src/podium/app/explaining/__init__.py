"""`podium explain`: a decision, its reasons, and what would have to change."""
