"""What the simulation reads from a pod's annotations."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.errors import InputError, field_path
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.api.times import parse_duration
from podium.api.workloads import Deployment, Job, ReplicaSet

DURATION = "podium.dev/duration"
"""How long the pod runs after it started, until its containers exit by themselves."""

TERMINATION = "podium.dev/termination"
"""How long the pod takes to end when it is deleted; its grace period at most."""


def duration_ns(annotations: Mapping[str, str], name: str) -> int | None:
    """The annotation's duration; None where it is not given. Raises ValueError for what is none."""
    text = annotations.get(name)
    if text is None:
        return None
    duration = parse_duration(text)
    if duration < 0:
        raise ValueError(f'"{text}" is negative; a duration is 0s or more')
    return duration


def check_annotations(object_: Kubernetes) -> None:
    """Raise InputError where a pod, or a workload's pod template, has an annotation that cannot be read."""
    for metadata, path in _pod_metadata(object_):
        for name in (DURATION, TERMINATION):
            try:
                duration_ns(metadata.annotations, name)
            except ValueError as error:
                raise InputError(str(error), path=field_path(f"{path}.annotations", name)) from None


def _pod_metadata(object_: Kubernetes) -> list[tuple[ObjectMeta, str]]:
    if isinstance(object_, Pod):
        return [(object_.metadata, ".metadata")]
    if isinstance(object_, Deployment | ReplicaSet | Job):
        return [(object_.spec.template.metadata, ".spec.template.metadata")]
    return []
