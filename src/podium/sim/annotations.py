"""What may stand in the annotations of the objects that a simulation plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.errors import InputError, field_path
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.api.workloads import Deployment, Job, ReplicaSet
from podium.machines.pod_annotations import (
    DURATION,
    MEMORY_USAGE,
    READY_AFTER,
    TERMINATION,
    duration_ns,
    memory_usage,
)

_Annotations = Mapping[str, str]
_READERS: Mapping[str, Callable[[_Annotations], object]] = {
    DURATION: lambda annotations: duration_ns(annotations, DURATION),
    TERMINATION: lambda annotations: duration_ns(annotations, TERMINATION),
    READY_AFTER: lambda annotations: duration_ns(annotations, READY_AFTER),
    MEMORY_USAGE: memory_usage,
}


def check_annotations(object_: Kubernetes) -> None:
    """Raise InputError where a pod, or a workload's pod template, has an annotation that cannot be read."""
    for metadata, path in _pod_metadata(object_):
        for name, read in _READERS.items():
            try:
                read(metadata.annotations)
            except ValueError as error:
                raise InputError(str(error), path=field_path(f"{path}.annotations", name)) from None


def _pod_metadata(object_: Kubernetes) -> list[tuple[ObjectMeta, str]]:
    if isinstance(object_, Pod):
        return [(object_.metadata, ".metadata")]
    if isinstance(object_, Deployment | ReplicaSet | Job):
        return [(object_.spec.template.metadata, ".spec.template.metadata")]
    return []
