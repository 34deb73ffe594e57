"""Caches of recently used pod classes: verdicts, scores, and rankings of nodes."""
