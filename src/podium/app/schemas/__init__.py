"""`podium schema`: the JSON Schemas of what Podium answers and of what people write for it."""
