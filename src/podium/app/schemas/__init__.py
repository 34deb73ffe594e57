"""`podium schema`: the JSON Schemas of Podium's answers and of Scenario files."""
