"""The causes of disruptions, from the pods' conditions and the requests of components.

Source: pkg/apis/core/types.go (PodReasonPreemptionByScheduler and others), KEP-3329.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.api.avoid_list import EVICTED
from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodCondition
from podium.api.workloads import Job, ReplicaSet, ReplicationController, StatefulSet
from podium.cluster.pods import PREEMPTED
from podium.controllers.actions import GANG_RELEASE, Action, DeleteObject, Evict, Rationale, ReportStatus
from podium.controllers.ledger.disruption import Cause
from podium.controllers.observations import Problem
from podium.controllers.workloads.stateful_sets import ordinal_of
from podium.controllers.workloads.template_revisions import REVISION_LABEL

_KUBELET = "TerminationByKubelet"
_BY_REASON: Mapping[str, tuple[Cause, str]] = {
    PREEMPTED: ("preemption", "scheduler"),
    EVICTED: ("eviction", ""),
    _KUBELET: ("pressure", "kubelet"),
    "DeletionByTaintManager": ("taint", "taint-eviction-controller"),
    "DeletionByPodGC": ("node-gone", "pod-garbage-collector"),
}
_BY_COMPONENT: Mapping[str, Cause] = {
    "drain": "drain",
    "autoscaler": "autoscaler",
    "rescheduler": "rescheduler",
    GANG_RELEASE: "gang-release",
}
_RULES: Mapping[Cause, str] = {"drain": "its node is drained", "autoscaler": "its node is to be removed"}


class Attribution(NamedTuple):
    """The cause of a disruption, the responsible component or client, and the message."""

    cause: Cause
    by: str
    message: str


def is_disrupted(pod: Pod) -> bool:
    """Return whether a pod ends, or has ended, for another reason than its own."""
    if pod.metadata.deletion_timestamp is not None:
        return pod.status.phase != "Succeeded" and (pod.status.phase != "Failed" or is_ended_by_kubelet(pod))
    return is_ended_by_kubelet(pod)


def is_ended_by_kubelet(pod: Pod) -> bool:
    """Return whether a kubelet has ended the pod, which it does not delete."""
    if pod.status.phase != "Failed":
        return False
    target = _target(pod)
    return target is not None and target.reason == _KUBELET


def why(pod: Pod, announced: DisruptionRequest | None) -> Attribution | None:
    """Return why a pod ends, from its condition and the request; None for a deletion without either."""
    target = _target(pod)
    by = "" if announced is None else announced.by
    component = "" if announced is None else announced.component or announced.by
    if target is not None and target.reason in _BY_REASON:
        cause, usual = _BY_REASON[target.reason]
        if cause == "preemption" or (announced is not None and announced.beneficiary):
            # The message names the scheduler, as in `default-scheduler: preempting to ...`.
            name, colon, _ = target.message.partition(": preempting to ")
            return Attribution("preemption", (name if colon else "") or by or usual, target.message)
        if cause == "eviction":
            # The API server's message is the same for all evictions.
            cause = _BY_COMPONENT.get(component, cause)
            return Attribution(cause, by, _RULES.get(cause, ""))
        return Attribution(cause, by or usual, target.message)
    if component in _BY_COMPONENT:
        cause = _BY_COMPONENT[component]
        return Attribution(cause, by, _RULES.get(cause, ""))
    if announced is not None and announced.beneficiary:
        return Attribution("preemption", by, "")
    return None


def _target(pod: Pod) -> PodCondition | None:
    target = pod.status.condition("DisruptionTarget") if pod.status.conditions else None
    return target if target is not None and target.status == "True" else None


# A lastingly refused request stays until its pod is gone; the oldest are dropped.
_MOST = 10_000


DISRUPTING = (DeleteObject, Evict, ReportStatus)
"""The actions that may end pods."""


@dataclass(frozen=True, slots=True)
class DisruptionRequest:
    """Who requests a pod's end, as which component, for which pod (key), and why; "" if unknown.

    ``is_outsider``: a client that is no component of the cluster.
    """

    by: str
    component: str = ""
    beneficiary: str = ""
    rationale: Rationale | None = None
    is_outsider: bool = False


class DisruptionRequests:
    """The requests by the uid of the victim."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, DisruptionRequest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def asked(self, action: DeleteObject | Evict | ReportStatus, by: str) -> None:
        """Record an action before it is carried out; ``by`` requests it if the action names no cause."""
        if isinstance(action, ReportStatus):
            marks = [condition.type for condition in action.conditions if condition.status == "True"]
            if action.kind == "Pod" and "DisruptionTarget" in marks:
                self._put(action.uid, action.cause or by, "", by, action.rationale)
        elif isinstance(action, Evict):
            self._put(action.uid, action.cause or by, action.component, by, action.rationale)
        elif action.kind == "Pod" and action.grace_seconds != 0 and action.uid not in self._found:
            # The first request; deletions by which kubelets end deletions do not count.
            self._put(action.uid, action.cause or by, "", by, None)

    def answered(self, action: Action, problem: Problem | None) -> None:
        """Drop a refused eviction."""
        if problem is not None and problem.code and isinstance(action, Evict):
            self._found.pop(action.uid, None)

    def refused(self, uid: str) -> None:
        """Drop the refused request of an outside client."""
        found = self._found.get(uid)
        if found is not None and found.is_outsider:
            del self._found[uid]

    def take(self, uid: str) -> DisruptionRequest | None:
        """Remove and return the request for a pod's end, or None."""
        return self._found.pop(uid, None) if self._found else None

    def put(self, uid: str, announcement: DisruptionRequest) -> None:
        self._found[uid] = announcement
        self._found.move_to_end(uid)
        if len(self._found) > _MOST:
            self._found.popitem(last=False)

    def _put(self, uid: str, cause: str, component: str, by: str, rationale: Rationale | None) -> None:
        # A preemptor is named by its key, a workload with its kind.
        is_pod = "/" in cause and " " not in cause and component in ("", SCHEDULER)
        who = (by if by != cause else "") or SCHEDULER
        if cause == GANG_RELEASE:
            self.put(uid, DisruptionRequest(who, GANG_RELEASE, "", rationale))
            return
        self.put(uid, DisruptionRequest(who if is_pod else cause, component, cause if is_pod else "", rationale))


ObjectLookup = Callable[[str, str], Kubernetes | None]
"""Returns the object of a kind and key, or None."""

_ENDED = frozenset(("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"))


def is_wanted(pod: Pod, find: ObjectLookup) -> bool | None:
    """Return whether the pod's controller would replace it in a namespace that stays; None if unknown.

    It is unknown if the controller has changed since the pod did.
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
    versions = (owner.metadata.resource_version, pod.metadata.resource_version)
    are_numbers = all(version.isascii() and version.isdigit() and len(version) < 20 for version in versions)
    is_newer = are_numbers and int(versions[0]) > int(versions[1])
    is_wanted = _wants(owner, pod)
    return None if is_wanted and is_newer else is_wanted


def _wants(owner: Kubernetes, pod: Pod) -> bool | None:
    match owner:
        case ReplicaSet():
            return 0 < owner.spec.replicas >= owner.status.replicas
        case ReplicationController():
            return None if owner.spec.replicas else False
        case StatefulSet(spec=spec):
            # It keeps the pod if its ordinal is wanted, and so is its template.
            number = ordinal_of(owner.metadata.name, pod.metadata.name)
            if number is None or not spec.ordinals.start <= number < spec.ordinals.start + spec.replicas:
                return False
            strategy, updated = spec.update_strategy, owner.status.update_revision
            keeps_old = strategy.type == "OnDelete" or number < strategy.rolling_update.partition
            return keeps_old or not updated or pod.metadata.labels.get(REVISION_LABEL, updated) == updated
        case Job():
            is_over = any(found.type in _ENDED and found.status == "True" for found in owner.status.conditions)
            return not (owner.spec.suspend or is_over or owner.spec.parallelism == 0)
    return None
