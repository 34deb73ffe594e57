"""`kubectl podium delete`: deletes pods through eviction by default."""
