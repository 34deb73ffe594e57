"""What policies keep of a cluster: sums by row and places of pods, brought up to date as these change."""
