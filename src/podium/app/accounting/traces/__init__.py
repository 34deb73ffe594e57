"""What disruptions have left in a cluster that nobody kept account of: in its objects, and in its Events."""
