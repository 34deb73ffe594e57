"""Whether whoever a pod belongs to wants it still: what workloads do with their own pods disrupts nobody.

Source: pkg/controller/replicaset/replica_set.go (manageReplicas), pkg/controller/statefulset/stateful_set_control.go
(updateStatefulSet), pkg/controller/job/job_controller.go (manageJob).
"""

from __future__ import annotations

from collections.abc import Callable

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.workloads import Job, ReplicaSet, ReplicationController, StatefulSet
from podium.machines.workloads.template_revisions import REVISION_LABEL

Find = Callable[[str, str], Kubernetes | None]
"""The object of a kind and key as it is known, None where there is none."""

_ENDED = frozenset(("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"))


def is_wanted(pod: Pod, find: Find) -> bool | None:
    """Whether the pod's namespace stays, and its controller would make the pod again; None where nobody can tell.

    A controller that has changed since the pod did may have ended it: then nobody can tell.
    """
    namespace = find("Namespace", pod.metadata.namespace)
    if namespace is not None and namespace.metadata.deletion_timestamp is not None:
        return False
    controller = pod.metadata.controller if pod.metadata.owner_references else None
    if controller is None:
        return True
    owner = find(controller.kind, f"{pod.metadata.namespace}/{controller.name}")
    if owner is None or owner.metadata.uid != controller.uid:
        return None
    if owner.metadata.deletion_timestamp is not None:
        return False
    is_wanted = _wants(owner, pod)
    return None if is_wanted and _is_newer(owner, pod) else is_wanted


def _is_newer(owner: Kubernetes, pod: Pod) -> bool:
    """Whether the owner was written after the pod; versions that are no numbers say nothing."""
    versions = (owner.metadata.resource_version, pod.metadata.resource_version)
    if not all(version.isascii() and version.isdigit() and len(version) < 20 for version in versions):
        return False
    return int(versions[0]) > int(versions[1])


def _wants(owner: Kubernetes, pod: Pod) -> bool | None:
    match owner:
        case ReplicaSet():
            return 0 < owner.spec.replicas >= owner.status.replicas
        case ReplicationController():
            return None if owner.spec.replicas else False
        case StatefulSet():
            return _wants_numbered(owner, pod)
        case Job():
            is_over = any(found.type in _ENDED and found.status == "True" for found in owner.status.conditions)
            return not (owner.spec.suspend or is_over or owner.spec.parallelism == 0)
    return None


def _wants_numbered(owner: StatefulSet, pod: Pod) -> bool:
    """Pods beyond the number are let go, and so are those of an old template, but for those that keep it."""
    _, _, text = pod.metadata.name.rpartition("-")
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        return False
    number, spec = int(text), owner.spec
    if not spec.ordinals.start <= number < spec.ordinals.start + spec.replicas:
        return False
    updated = owner.status.update_revision
    keeps_old = spec.update_strategy.type == "OnDelete" or number < spec.update_strategy.rolling_update.partition
    return keeps_old or not updated or pod.metadata.labels.get(REVISION_LABEL, updated) == updated
