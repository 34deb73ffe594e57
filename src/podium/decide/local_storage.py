"""What a pod keeps on its node, and loses when it is moved.

The typed readings leave the sources of such volumes out, for no placement depends on them; so the wire form is asked.
"""

from __future__ import annotations

from podium.api.meta import Raw

SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
"""Annotation of a pod: the names of its volumes that it can do without, with commas between them."""


def has_empty_dir(pod: Raw) -> bool:
    """Whether the pod has an emptyDir volume of any medium (kubectl pkg/drain/filters.go, hasLocalStorage)."""
    return any(volume.get("emptyDir") is not None for volume in _volumes(pod))


def has_local_storage(pod: Raw) -> bool:
    """Whether data on the node's disk would be lost: a hostPath, or an emptyDir that is not in memory.

    Volumes that the pod says it can do without do not count.

    Source: autoscaler cluster-autoscaler/simulator/drainability/rules/localstorage.
    """
    annotations = pod.get("metadata", {}).get("annotations") or {}
    safe = str(annotations.get(SAFE_LOCAL_VOLUMES, "")).split(",")
    return any(_is_local(volume) and volume.get("name") not in safe for volume in _volumes(pod))


def _is_local(volume: Raw) -> bool:
    empty_dir = volume.get("emptyDir")
    return volume.get("hostPath") is not None or (empty_dir is not None and empty_dir.get("medium") != "Memory")


def _volumes(pod: Raw) -> list[Raw]:
    volumes: list[Raw] = pod.get("spec", {}).get("volumes", [])
    return volumes
