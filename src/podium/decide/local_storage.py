"""What a pod keeps on its node, and loses when it is moved.

The typed readings leave the sources of such volumes out, for no placement depends on them; so the wire form is asked.
"""

from __future__ import annotations

from podium.api.meta import Raw


def has_empty_dir(pod: Raw) -> bool:
    """Whether the pod has an emptyDir volume of any medium (kubectl pkg/drain/filters.go, hasLocalStorage)."""
    return any(volume.get("emptyDir") is not None for volume in _volumes(pod))


def has_local_storage(pod: Raw) -> bool:
    """Whether data on the node's disk would be lost: a hostPath, or an emptyDir that is not in memory.

    Source: autoscaler cluster-autoscaler/simulator/drainability/rules/localstorage.
    """
    return any(
        volume.get("hostPath") is not None
        or (volume.get("emptyDir") is not None and volume["emptyDir"].get("medium") != "Memory")
        for volume in _volumes(pod)
    )


def _volumes(pod: Raw) -> list[Raw]:
    volumes: list[Raw] = pod.get("spec", {}).get("volumes", [])
    return volumes
