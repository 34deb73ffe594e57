"""The Common Expression Language (CEL), as Kubernetes uses it."""

MAX_LENGTH = 10 * 1024
"""The maximum length of an expression (resource.k8s.io CELSelectorExpressionMaxLength)."""
