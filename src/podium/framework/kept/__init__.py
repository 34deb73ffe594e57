"""What is kept of the classes of pods that were asked about last: verdicts, scores, and rankings of nodes."""
