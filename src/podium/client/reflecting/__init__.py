"""How somebody far away knows all objects of a kind."""
