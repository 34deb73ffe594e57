"""How the steps of a scenario are carried out."""
