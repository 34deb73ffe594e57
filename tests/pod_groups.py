"""Gangs with settings of preemption, and their member pods."""

from __future__ import annotations

from msgspec.structs import replace

from podium.api.pod import Pod, PodSchedulingGroup
from podium.api.pod_group import PodGroup
from tests.builders import pod_group


def gang(
    name: str, least: int = 1, *, namespace: str = "default", whole: bool = False, priority: int | None = None
) -> PodGroup:
    """Return a gang; with ``whole`` its pods are disrupted together."""
    made = pod_group(name, least, together=whole)
    return replace(
        made, metadata=replace(made.metadata, namespace=namespace), spec=replace(made.spec, priority=priority)
    )


def of_gang(pod: Pod, name: str) -> Pod:
    """Return a pod of a group in its namespace."""
    return replace(pod, spec=replace(pod.spec, scheduling_group=PodSchedulingGroup(pod_group_name=name)))
