"""What Consolidate is made of: nodes that are to be freed, and room that is wanted, with what is in its way."""
