"""Lists as tables: what `kubectl get` shows."""
