"""What may stand in the annotations of the objects that a simulation plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args

from podium.api.errors import InputError, field_path
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.workloads import CronJob, DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.kubelets.node_trouble import PROBLEMS, TROUBLE
from podium.machines.kubelets.pod_annotations import (
    CPU_USAGE,
    CRASH_AFTER,
    DURATION,
    MEMORY_USAGE,
    READY_AFTER,
    TERMINATION,
    cpu_usage,
    duration_ns,
    memory_usage,
    termination_ns,
)

Workload = Deployment | ReplicaSet | ReplicationController | StatefulSet | DaemonSet
"""What keeps its pods for ever: one that has ended is replaced."""

_REPLACING = frozenset(get_args(Workload))
_Templated = Workload | Job
_Annotations = Mapping[str, str]
_READERS: Mapping[str, Callable[[_Annotations], object]] = {
    DURATION: lambda annotations: duration_ns(annotations, DURATION),
    CRASH_AFTER: lambda annotations: duration_ns(annotations, CRASH_AFTER),
    TERMINATION: termination_ns,
    READY_AFTER: lambda annotations: duration_ns(annotations, READY_AFTER),
    MEMORY_USAGE: memory_usage,
    CPU_USAGE: cpu_usage,
}
FAILING = "containers that crash are started again"
"""Why a simulation with containers that fail again and again has no end."""

# What never comes to rest.
_ENDLESS = {
    DURATION: "pods that end are replaced",
    MEMORY_USAGE: "pods that may be evicted are replaced",
    CRASH_AFTER: FAILING,
}


def check_annotations(object_: Kubernetes) -> None:
    """Raise InputError where a pod, a workload's pod template or a node has an annotation that cannot be read."""
    for metadata, path in _pod_metadata(object_):
        annotations = metadata.annotations
        for name in [name for name in _READERS if name in annotations]:
            try:
                _READERS[name](annotations)
            except ValueError as error:
                raise InputError(str(error), path=_path(path, name)) from None
    if isinstance(object_, Node):
        for name, problem_of in PROBLEMS.items():
            problem = problem_of(object_.metadata.annotations)
            if problem:
                raise InputError(problem, path=_path(".metadata", name))


def check_end(object_: Kubernetes) -> None:
    """Raise InputError for an object whose pods keep a simulation without an end going for ever."""
    if isinstance(object_, Node) and TROUBLE in object_.metadata.annotations:
        raise InputError(f"{FAILING} for ever; say when to stop with `until`", path=_path(".metadata", TROUBLE))
    for metadata, path in _pod_metadata(object_):
        for name, which in _ENDLESS.items():
            if name in metadata.annotations and (name == CRASH_AFTER or type(object_) in _REPLACING):
                raise InputError(f"{which} for ever; say when to stop with `until`", path=_path(path, name))


def _path(metadata: str, name: str) -> str:
    return field_path(f"{metadata}.annotations", name)


def _pod_metadata(object_: Kubernetes) -> list[tuple[ObjectMeta, str]]:
    if isinstance(object_, Pod):
        return [(object_.metadata, ".metadata")]
    if isinstance(object_, CronJob):
        return [(object_.spec.job_template.spec.template.metadata, ".spec.jobTemplate.spec.template.metadata")]
    if isinstance(object_, _Templated):
        return [(object_.spec.template.metadata, ".spec.template.metadata")]
    return []
