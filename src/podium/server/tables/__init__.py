"""Lists as tables, as `kubectl get` shows them."""
