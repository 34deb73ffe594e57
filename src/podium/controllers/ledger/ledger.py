"""The ledger of disruptions: it observes pods and the requests of components, and records disruptions and their causes.

It makes no decisions, so that simulations, control planes and live programs share it. Source of the causes:
pkg/apis/core/types.go (PodReasonPreemptionByScheduler and others), KEP-3329.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from podium.api.avoid_list import EVICTED
from podium.api.disruption_policy import SCHEDULER
from podium.api.meta import Kubernetes
from podium.api.pod import Pod, PodCondition
from podium.api.quantity import CPU
from podium.api.resource_requests import effective_spec, pod_requests
from podium.api.times import seconds, time_of
from podium.api.workloads import Job, ReplicaSet, ReplicationController, StatefulSet
from podium.cluster.pods import PREEMPTED, TEMPLATE_HASH, top_owner
from podium.controllers import actions
from podium.controllers.disruption.budget import controller_uid
from podium.controllers.ledger.disruption import Alternatives, Beneficiary, Cause, Disruption, EarlierRecords, Loss
from podium.controllers.ledger.outcomes import ConditionTime, OpenDisruptions, RecordSink, placed
from podium.controllers.observations import Problem
from podium.controllers.workloads.stateful_sets import ordinal_of
from podium.controllers.workloads.template_revisions import REVISION_LABEL
from podium.decide.evictions import unsaved_ns

_FAILED_FIRST = ("TerminationByKubelet", "DeletionByPodGC")
_BY_REASON: Mapping[str, tuple[Cause, str]] = {
    PREEMPTED: ("preemption", "scheduler"),
    EVICTED: ("eviction", ""),
    "TerminationByKubelet": ("pressure", "kubelet"),
    "DeletionByTaintManager": ("taint", "taint-eviction-controller"),
    "DeletionByDeviceTaintManager": ("taint", "device-taint-eviction-controller"),
    "DeletionByPodGC": ("node-gone", "pod-garbage-collector"),
}
_BY_COMPONENT: Mapping[str, Cause] = {
    "drain": "drain",
    "autoscaler": "autoscaler",
    "rescheduler": "rescheduler",
    actions.GANG_RELEASE: "gang-release",
}
_RULES: Mapping[Cause, str] = {"drain": "its node is drained", "autoscaler": "its node is to be removed"}


class Attribution(NamedTuple):
    """The cause of a disruption, the responsible component or client, and the message."""

    cause: Cause
    by: str
    message: str


def is_disrupted(pod: Pod) -> bool:
    """Return whether a pod ends, or has ended, for another reason than its own."""
    if pod.status.phase == "Failed":
        # A component has let it fail, as kubelets and the garbage collector do before a deletion.
        target = disruption_target(pod)
        return target is not None and target.reason in _FAILED_FIRST
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def why(pod: Pod, announced: DisruptionRequest | None) -> Attribution | None:
    """Return why a pod ends, from its condition and the request; None for a deletion without either."""
    target = disruption_target(pod)
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


def disruption_target(pod: Pod) -> PodCondition | None:
    """Return the condition that says why the pod is disrupted, or None."""
    target = pod.status.condition("DisruptionTarget") if pod.status.conditions else None
    return target if target is not None and target.status == "True" else None


# A lastingly refused request stays until its pod is gone; the oldest are dropped.
_MOST = 10_000


DISRUPTING = (actions.DeleteObject, actions.Evict, actions.ReportStatus)
"""The actions that may end pods."""


class DisruptionRequest(Struct, frozen=True):
    """A request to end a pod: its user, component, beneficiary (a pod's key) and reason; "" if unknown.

    ``is_outsider``: a client that is no component of the cluster.
    """

    by: str
    component: str = ""
    beneficiary: str = ""
    rationale: actions.Rationale | None = None
    is_outsider: bool = False


class DisruptionRequests:
    """The requests by the uid of the victim."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, DisruptionRequest] = OrderedDict()

    def on_action(self, action: actions.DeleteObject | actions.Evict | actions.ReportStatus, by: str) -> None:
        """Record an action before it is carried out; ``by`` requests it if the action names no cause."""
        if isinstance(action, actions.ReportStatus):
            marks = [condition.type for condition in action.conditions if condition.status == "True"]
            if action.kind == "Pod" and "DisruptionTarget" in marks:
                self._put(action.uid, action.cause or by, "", by, action.rationale)
        elif isinstance(action, actions.Evict):
            self._put(action.uid, action.cause or by, action.component, by, action.rationale)
        elif action.kind == "Pod" and action.grace_seconds != 0 and action.uid not in self._found:
            # The first request; deletions by which kubelets end deletions do not count.
            self._put(action.uid, action.cause or by, "", by, None)

    def on_result(self, action: actions.Action, problem: Problem | None) -> None:
        """Drop a refused eviction."""
        if problem is not None and problem.code and isinstance(action, actions.Evict):
            self._found.pop(action.uid, None)

    def on_refused(self, uid: str) -> None:
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

    def _put(self, uid: str, cause: str, component: str, by: str, rationale: actions.Rationale | None) -> None:
        # A preemptor is named by its key, a workload with its kind.
        is_pod = "/" in cause and " " not in cause and component in ("", SCHEDULER)
        component_name = (by if by != cause else "") or SCHEDULER
        if cause == actions.GANG_RELEASE:
            self.put(uid, DisruptionRequest(component_name, actions.GANG_RELEASE, "", rationale))
            return
        self.put(
            uid, DisruptionRequest(component_name if is_pod else cause, component, cause if is_pod else "", rationale)
        )


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


_TELLING = frozenset((actions.Record, *DISRUPTING))


class DisruptionLedger:
    """The disruptions of a cluster. ``keep`` receives each record when it is created and whenever it changes.

    ``find`` returns an object or None. Times are relative to ``start_ns``. Numbers follow ``last_id``. Deletions by
    clients count as disruptions, those by the pod's workload do not. With ``hears_requests`` all outside requests are
    passed to `wanted`, and count unless the pod's owner would delete it; without, a deletion counts if its owner still
    wants the pod.
    """

    def __init__(
        self, keep: RecordSink, find: ObjectLookup, *, start_ns: int = 0, hears_requests: bool = True, last_id: int = 0
    ) -> None:
        self._find = find
        self._start_ns = start_ns
        self._hears_requests = hears_requests
        self._last_id = last_id
        self._announced = DisruptionRequests()
        self.announced = self._announced.put
        self.on_refused = self._announced.on_refused
        self.on_result = self._announced.on_result
        self._open_disruptions = OpenDisruptions(keep)
        self.resume = self._open_disruptions.resume
        self.open: Collection[str] = self._open_disruptions.open
        """The uids of victims with incomplete records; a live view.

        Without any, only pods that end or have failed have an effect.
        """
        # The uids of ending pods, until they are gone.
        self._ending: set[str] = set()

    @property
    def expects_ends(self) -> bool:
        """Return whether a component's request was not observed yet."""
        return bool(self._announced)

    def on_action(self, action: actions.Action, by: str) -> None:
        """Record an action before it is carried out; ``by`` requests it."""
        # Most actions are no disruptions.
        if type(action) not in _TELLING:
            return
        if isinstance(action, actions.Record):
            record = self._open_disruptions.record(action.uid) if action.reason == actions.DESCHEDULED else None
            if record is not None:
                # The rescheduler reports why it has evicted a pod.
                self._open_disruptions.explained(record, action.message)
        elif isinstance(action, DISRUPTING):
            self._announced.on_action(action, by)

    def on_client_request(self, uid: str, by: str, component: str = "") -> None:
        """Record that an outside client deletes a pod, or evicts it as a component."""
        self.announced(uid, DisruptionRequest(by, component, is_outsider=True))

    def benefits(self, uid: str, beneficiary: str, room: str) -> None:
        """Record the pod (key) for which a pod was preempted, and its node ("": the victim's)."""
        record = self._open_disruptions.record(uid)
        if record is not None and record.beneficiary is None:
            self._open_disruptions.benefits(record, self._beneficiary_of(beneficiary, room or record.node))

    def known(self, pod: Pod) -> None:
        """Take in a pod that existed before the ledger; its end is no new disruption."""
        if is_disrupted(pod):
            self._ending.add(pod.metadata.uid)

    def catch_up(self, pods: Iterable[Pod], since: ConditionTime, now: int) -> None:
        """Continue after missed changes; ``pods`` are all that exist. Disruptions since then are not recorded."""
        there = {pod.metadata.uid: pod for pod in pods}
        self._ending.intersection_update(there)
        for pod in there.values():
            self.known(pod)
        self._open_disruptions.resume(EarlierRecords(), there.values(), since, now)

    def on_update(self, pod: Pod, now: int, *, is_added: bool | None = None) -> None:
        """Handle an added or changed pod; ``is_added`` None: unknown which."""
        meta = pod.metadata
        may_end = meta.deletion_timestamp is not None or pod.status.phase == "Failed"
        if may_end and meta.uid not in self._ending and pod.spec.node_name and is_disrupted(pod):
            self._ending.add(meta.uid)
            if self._begin(pod, now) and pod.status.phase == "Failed":
                self._open_disruptions.on_end(meta.uid, now)
        self._open_disruptions.on_update(pod, now, is_added=is_added)

    def on_delete(self, pod: Pod, now: int) -> None:
        """Handle the deletion of a pod; ``pod`` is its last state."""
        uid = pod.metadata.uid
        if uid in self._ending:
            self._ending.discard(uid)
        elif pod.spec.node_name and not pod.is_terminal:
            self._begin(pod, now)
        self._announced.take(uid)
        self._open_disruptions.on_delete(pod, now)

    def _begin(self, pod: Pod, now: int) -> bool:
        """Create the record of an ending pod, if that is a disruption; return whether it is."""
        uid = pod.metadata.uid
        announced = self._announced.take(uid)
        reason = why(pod, announced) or self._deletion(pod, announced)
        if reason is None or uid in self._open_disruptions:
            return False
        self._last_id += 1
        rationale = None if announced is None else announced.rationale
        self._open_disruptions.begin(self._recorded(pod, reason, announced, now), controller_uid(pod), rationale, now)
        return True

    def _deletion(self, pod: Pod, announced: DisruptionRequest | None) -> Attribution | None:
        """Return the attribution of a deletion by a client, if that is a disruption."""
        if announced is not None:
            is_one = announced.is_outsider and is_wanted(pod, self._find) is not False
            return Attribution("deletion", announced.by, "") if is_one else None
        # A pod that disappears at once may just be out of sight.
        if self._hears_requests or pod.metadata.deletion_timestamp is None:
            return None
        return Attribution("deletion", "", "") if is_wanted(pod, self._find) else None

    def _recorded(self, pod: Pod, reason: Attribution, announced: DisruptionRequest | None, now: int) -> Disruption:
        rationale = None if announced is None else announced.rationale
        alternatives = None
        if rationale is not None and rationale.candidates:
            alternatives = Alternatives(candidates=rationale.candidates, equals=rationale.equals)
        node_name, beneficiary = pod.spec.node_name, None
        if announced is not None and announced.beneficiary:
            room = rationale.room if rationale is not None else ""
            beneficiary = self._beneficiary_of(announced.beneficiary, room or node_name)
        return Disruption(
            id=self._last_id,
            time=seconds(now - self._start_ns),
            pod=pod.key,
            uid=pod.metadata.uid,
            node=node_name,
            cause=reason.cause,
            priority=pod.priority,
            owner=owner_of(pod),
            by=reason.by,
            rule=reason.message if rationale is None else rationale.rule,
            plan="" if rationale is None else rationale.plan,
            alternatives=alternatives,
            beneficiary=beneficiary,
            loss=loss_of(pod, now),
        )

    def _beneficiary_of(self, key: str, room: str) -> Beneficiary:
        """Return a pod for which others end, to run on a node."""
        pod = self._find("Pod", key)
        if not isinstance(pod, Pod):
            return Beneficiary(pod=key, room=room, outcome="gone")
        found = Beneficiary(pod=pod.key, uid=pod.metadata.uid, owner=owner_of(pod), priority=pod.priority, room=room)
        return placed(found, pod.spec.node_name, 0) if pod.spec.node_name else found


def owner_of(pod: Pod) -> str:
    """Return the workload of a pod, as in `Deployment default/web`; "" without one."""
    controller = pod.metadata.controller if pod.metadata.owner_references else None
    if controller is None or controller.kind == "Node":
        return ""
    kind, name = top_owner(controller, pod.metadata.labels.get(TEMPLATE_HASH, ""))
    return f"{kind} {pod.metadata.namespace}/{name}"


def loss_of(pod: Pod, now: int) -> Loss:
    """Return what a pod that ends now loses: its unsaved running time, times its requests."""
    start_ns = time_of(pod.status.start_time)
    ran_ns = 0 if start_ns is None else max(now - start_ns, 0)
    try:
        unsaved = unsaved_ns(pod.metadata.annotations, start_ns, now)
    except ValueError:
        # Invalid checkpoints: nothing is known to be saved.
        unsaved = None
    lost_ns = ran_ns if unsaved is None else min(unsaved, ran_ns)
    requested = pod_requests(effective_spec(pod)).items()
    requests = {name: _number(amount / 1_000) if name == CPU else amount for name, amount in requested if amount}
    grace = pod.metadata.deletion_grace_period_seconds
    lost = seconds(lost_ns)
    work = {name: _number(round(amount * lost, 3)) for name, amount in requests.items()} if lost_ns else {}
    return Loss(ran=seconds(ran_ns), lost=lost, requests=requests, work=work, grace=grace)


def _number(number: float) -> int | float:
    return int(number) if number == int(number) else number
