"""`podium exporter`: metrics and a report on which failures a cluster can take."""
