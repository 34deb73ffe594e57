"""The names of resources, and what sort of resource a name stands for.

The rules are those of pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

_HUGE_PAGES = "hugepages-"
_BYTES = frozenset((MEMORY, EPHEMERAL_STORAGE, "storage"))
_STANDARD = frozenset((CPU, PODS, *_BYTES))


def is_huge_pages(name: str) -> bool:
    """Whether the resource is huge pages of some size, such as hugepages-2Mi."""
    return name.startswith(_HUGE_PAGES)


def page_size(name: str) -> str:
    """The quantity behind `hugepages-`."""
    return name.removeprefix(_HUGE_PAGES)


def is_bytes(name: str) -> bool:
    """Whether amounts of the resource are bytes."""
    return name in _BYTES or is_huge_pages(name)


def is_standard(name: str) -> bool:
    """Whether the resource is one that Kubernetes knows without a prefix."""
    return name in _STANDARD or is_huge_pages(name)


def is_extended(name: str) -> bool:
    """Whether the resource is one that device plugins add, such as example.com/gpu."""
    prefix, slash, _ = name.partition("/")
    native = prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io")
    return bool(slash) and not native and not name.startswith("requests.")


def is_whole(name: str) -> bool:
    """Whether the resource comes in whole pieces only."""
    return name == PODS or is_huge_pages(name) or is_extended(name)


def is_overcommittable(name: str) -> bool:
    """Whether a container's limit may exceed its request."""
    return not is_huge_pages(name) and not is_extended(name)


def is_pod_level(name: str) -> bool:
    """Whether a pod may request the resource as a whole."""
    return name in (CPU, MEMORY) or is_huge_pages(name)
