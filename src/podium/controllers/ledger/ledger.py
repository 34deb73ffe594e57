"""The ledger of disruptions: it observes pods and the requests of components, and records each disruption.

It makes no decisions, so that simulations, control planes and live programs share it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from podium.api.pod import Pod
from podium.api.quantity import CPU
from podium.api.resource_requests import effective_spec, pod_requests
from podium.api.times import time_of
from podium.cluster.pods import TEMPLATE_HASH, top_owner
from podium.controllers.actions import DESCHEDULED, Action, Record
from podium.controllers.disruption.budget import controller_uid
from podium.controllers.ledger.causes import (
    DISRUPTING,
    Attribution,
    DisruptionRequest,
    DisruptionRequests,
    ObjectLookup,
    is_disrupted,
    is_ended_by_kubelet,
    is_wanted,
    why,
)
from podium.controllers.ledger.disruption import Alternatives, Beneficiary, Disruption, EarlierRecords, Loss, seconds
from podium.controllers.ledger.outcomes import ConditionTime, OpenDisruptions, RecordSink, placed
from podium.controllers.observations import Changed, Gone, Observation
from podium.decide.lost_work import unsaved_ns

_POD = "Pod"
_TELLING = frozenset((Record, *DISRUPTING))


class DisruptionLedger:
    """The disruptions of a cluster. ``keep`` receives each record when it is created and whenever it changes.

    ``find`` returns an object or None. Times are relative to ``start_ns``. Numbers follow ``last_id``. Deletions by
    clients count as disruptions, those by the pod's workload do not. With ``hears_requests`` all outside requests are
    passed to `wanted`, and count unless the pod's owner would delete it; without, a deletion counts if its owner still
    wants the pod.
    """

    watches = frozenset((_POD,))

    def __init__(
        self, keep: RecordSink, find: ObjectLookup, *, start_ns: int = 0, hears_requests: bool = True, last_id: int = 0
    ) -> None:
        self._find = find
        self._start_ns = start_ns
        self._hears_requests = hears_requests
        self._last_id = last_id
        self._announced = DisruptionRequests()
        self.announced = self._announced.put
        self.refused = self._announced.refused
        self.answered = self._announced.answered
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

    def asked(self, action: Action, by: str) -> None:
        """Record an action before it is carried out; ``by`` requests it."""
        # Most actions are no disruptions.
        if type(action) not in _TELLING:
            return
        if isinstance(action, Record):
            if action.reason == DESCHEDULED and action.uid in self._open_disruptions:
                # The rescheduler reports why it has evicted a pod.
                self._open_disruptions.explained(action.uid, action.message)
        elif isinstance(action, DISRUPTING):
            self._announced.asked(action, by)

    def wanted(self, uid: str, by: str, component: str = "") -> None:
        """Record that an outside client deletes a pod, or evicts it as a component."""
        self.announced(uid, DisruptionRequest(by, component, is_outsider=True))

    def benefits(self, uid: str, beneficiary: str, room: str) -> None:
        """Record the pod (key) for which a pod was preempted, and its node ("": the victim's)."""
        if uid in self._open_disruptions:
            self._open_disruptions.benefits(
                uid, self._beneficiary_of(beneficiary, room or self._open_disruptions.node_of(uid))
            )

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

    def handle(self, observation: Observation, now: int) -> None:
        """Handle an observation of a pod; others have no effect."""
        if isinstance(observation, Changed) and isinstance(observation.object, Pod):
            self.changed(observation.object, now)
        elif isinstance(observation, Gone) and isinstance(observation.object, Pod):
            self.gone(observation.object, now)

    def changed(self, pod: Pod, now: int, *, is_added: bool | None = None) -> None:
        """Handle an added or changed pod; ``is_added`` None: unknown which."""
        meta = pod.metadata
        may_end = meta.deletion_timestamp is not None or pod.status.phase == "Failed"
        if may_end and meta.uid not in self._ending and pod.spec.node_name and is_disrupted(pod):
            self._ending.add(meta.uid)
            if self._begin(pod, now) and is_ended_by_kubelet(pod):
                self._open_disruptions.ended(meta.uid, now)
        self._open_disruptions.changed(pod, now, is_added=is_added)

    def gone(self, pod: Pod, now: int) -> None:
        """Handle the deletion of a pod; ``pod`` is its last state."""
        uid = pod.metadata.uid
        if uid in self._ending:
            self._ending.discard(uid)
        elif pod.spec.node_name and not pod.is_terminal:
            self._begin(pod, now)
        self._announced.take(uid)
        self._open_disruptions.gone(pod, now)

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
        pod = self._find(_POD, key)
        if not isinstance(pod, Pod):
            return Beneficiary(pod=key, room=room, outcome="gone")
        beneficiary = Beneficiary(
            pod=pod.key, uid=pod.metadata.uid, owner=owner_of(pod), priority=pod.priority, room=room
        )
        return placed(beneficiary, pod.spec.node_name, 0) if pod.spec.node_name else beneficiary


_NODE = "Node"


def owner_of(pod: Pod) -> str:
    """Return the workload of a pod, as in `Deployment default/web`; "" without one."""
    controller = pod.metadata.controller if pod.metadata.owner_references else None
    if controller is None or controller.kind == _NODE:
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
