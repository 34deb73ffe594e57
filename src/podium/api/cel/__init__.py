"""The Common Expression Language, as Kubernetes uses it to select devices."""

MAX_LENGTH = 10 * 1024
"""The maximum length of an expression (resource.k8s.io CELSelectorExpressionMaxLength)."""
