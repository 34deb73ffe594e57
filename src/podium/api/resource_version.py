"""The order of resource versions.

Of two versions of one resource that are decimal numbers, the greater is the later one. Kubernetes guarantees that since
v1.35 (KEP-5504), and etcd has always numbered versions so; other versions can only be compared for equality. Source:
apimachinery (pkg/util/resourceversion).
"""

from __future__ import annotations


def is_comparable(version: str) -> bool:
    """Return whether a version can be ordered: it is a number without leading zeros."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def is_older(version: str, other: str) -> bool:
    """Return whether a version is known to be older than the other; an absent one ("") is older than any."""
    if not is_comparable(other):
        return False
    if not version:
        return True
    # They may exceed the length limit of int(); of equal length, they compare as strings.
    return is_comparable(version) and (len(version), version) < (len(other), other)
