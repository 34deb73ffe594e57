"""The statefulset controller."""
