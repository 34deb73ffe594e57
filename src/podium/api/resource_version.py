"""Versions of objects, and which of two was written first.

Of versions of one resource that are decimal numbers the greater is the later one. Kubernetes says so of all that it
serves since v1.35 (KEP-5504), and etcd has numbered them so before; of others nobody knows more than whether they are
the same. Source: apimachinery (pkg/util/resourceversion).
"""

from __future__ import annotations


def is_comparable(version: str) -> bool:
    """Whether it can be told of a version which others were written before it: a number without leading zeros."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def is_older(version: str, other: str) -> bool:
    """Whether a version is known to have been written before the other; none at all ("") is older than any."""
    if not is_comparable(other):
        return False
    if not version:
        return True
    # They may be longer than the numbers that are read from text, and of equal length they compare as they stand.
    return is_comparable(version) and (len(version), version) < (len(other), other)
