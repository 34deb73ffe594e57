"""The web page: the live cluster, its objects, explanations of placements, and plans."""
