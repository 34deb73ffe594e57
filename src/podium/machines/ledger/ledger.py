"""Keeps account of disruptions: shown what happens to pods, and what components ask for, it makes a record of each.

It decides nothing and asks for nothing, so that a simulation, a control plane and a program at a cluster have the same
account: each shows it the pods that it sees, and the actions that it carries out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from podium.api.pod import Pod
from podium.machines.actions import Action, Record
from podium.machines.disruption.covered_pods import controller_uid
from podium.machines.ledger.announced import DISRUPTING, Announced, Announcement
from podium.machines.ledger.causes import Why, is_disrupted, is_ended_by_kubelet, why
from podium.machines.ledger.disruption import Alternatives, Beneficiary, Disruption, Earlier, seconds
from podium.machines.ledger.fates import Fates, Keep, Since, placed
from podium.machines.ledger.losses import loss_of
from podium.machines.ledger.owners import owner_of
from podium.machines.ledger.wishes import Find, is_wanted
from podium.machines.observations import Changed, Gone, Observation, Problem
from podium.machines.rescheduling.names import DESCHEDULED

_POD = "Pod"
_TELLING = frozenset((Record, *DISRUPTING))


class DisruptionLedger:
    """The account of a cluster. ``keep`` is given each record when it is begun, and again whenever it has changed.

    ``find`` gives an object as it is, None where there is none. Times are told from ``start_ns`` on. Numbers begin
    after ``last_id``.

    What people and programs delete is a disruption too, and what workloads do with their own pods never is. With
    ``hears_requests`` all that is asked from outside is told to `wanted`, and counts unless the pod's owner would have
    it go; without, nobody knows who deletes, and what counts is the deletion of a pod that its owner wants still.
    """

    watches = frozenset((_POD,))

    def __init__(
        self, keep: Keep, find: Find, *, start_ns: int = 0, hears_requests: bool = True, last_id: int = 0
    ) -> None:
        self._find = find
        self._start_ns = start_ns
        self._hears_requests = hears_requests
        self._last_id = last_id
        self._announced = Announced()
        self._fates = Fates(keep)
        # The uids of pods that are known to end, until they are gone.
        self._ending: set[str] = set()

    @property
    def open(self) -> Collection[str]:
        """The uids of those of whose disruption something is yet to come; it follows what happens.

        While there are none, nothing is learnt from a pod that is written and neither ends nor has failed.
        """
        return self._fates.open

    @property
    def expects_ends(self) -> bool:
        """Whether a component has asked for a pod to go, and this is yet to be seen."""
        return bool(self._announced)

    def asked(self, action: Action, by: str) -> None:
        """An action is about to be carried out; ``by`` is who asks for it."""
        # Most of what is asked for is no disruption.
        if type(action) not in _TELLING:
            return
        if isinstance(action, Record):
            if action.reason == DESCHEDULED and action.uid in self._fates:
                # The rescheduler says why it moves a pod that it has evicted.
                self._fates.explained(action.uid, action.message)
        else:
            self._announced.asked(action, by)

    def wanted(self, uid: str, by: str, component: str = "") -> None:
        """Somebody who is no component of the cluster is about to have a pod deleted, or evicted as a component."""
        self.announced(uid, Announcement(by, component, is_outsider=True))

    def announced(self, uid: str, announcement: Announcement) -> None:
        """It is known who is about to have a pod go, and why."""
        self._announced.put(uid, announcement)

    def benefits(self, uid: str, whom: str, room: str) -> None:
        """A scheduler tells for which pod (its key) it has preempted another, to run on which node ("" for its own)."""
        if uid in self._fates:
            self._fates.benefits(uid, self._beneficiary_of(whom, room or self._fates.node_of(uid)))

    def refused(self, uid: str) -> None:
        """They were refused it."""
        self._announced.refused(uid)

    def answered(self, action: Action, problem: Problem | None) -> None:
        """How an action ended."""
        if problem is not None:
            self._announced.answered(action, problem)

    def known(self, pod: Pod) -> None:
        """A pod was there before the account began: whether it ends already is nothing that happens."""
        if is_disrupted(pod):
            self._ending.add(pod.metadata.uid)

    def resume(self, earlier: Earlier, pods: Iterable[Pod], since: Since, now: int) -> None:
        """Go on with what an earlier life has left; ``pods`` are all that there are. To be called once, if at all."""
        self._fates.resume(earlier, pods, since, now)

    def catch_up(self, pods: Iterable[Pod], since: Since, now: int) -> None:
        """More happened than was shown; ``pods`` are all that there are now. Who came to end meanwhile is not told."""
        there = {pod.metadata.uid: pod for pod in pods}
        self._ending.intersection_update(there)
        for pod in there.values():
            self.known(pod)
        self._fates.resume(Earlier(), there.values(), since, now)

    def handle(self, observation: Observation, now: int) -> None:
        """Take in what is seen of pods; all else is passed over."""
        if isinstance(observation, Changed) and isinstance(observation.object, Pod):
            self.changed(observation.object, now)
        elif isinstance(observation, Gone) and isinstance(observation.object, Pod):
            self.gone(observation.object, now)

    def changed(self, pod: Pod, now: int, *, is_added: bool | None = None) -> None:
        """A pod was made or has changed; ``is_added`` None: it is not known which."""
        meta = pod.metadata
        if (meta.deletion_timestamp is not None or pod.status.phase == "Failed") and meta.uid not in self._ending:
            self._may_begin(pod, now)
        self._fates.changed(pod, now, is_added=is_added)

    def gone(self, pod: Pod, now: int) -> None:
        """A pod is no more; ``pod`` is how it was."""
        uid = pod.metadata.uid
        if uid in self._ending:
            self._ending.discard(uid)
        elif pod.spec.node_name and not pod.is_terminal:
            self._begin(pod, now)
        self._announced.forget(uid)
        self._fates.gone(pod, now)

    def _may_begin(self, pod: Pod, now: int) -> None:
        if pod.spec.node_name and is_disrupted(pod):
            self._ending.add(pod.metadata.uid)
            if self._begin(pod, now) and is_ended_by_kubelet(pod):
                self._fates.ended(pod.metadata.uid, now)

    def _begin(self, pod: Pod, now: int) -> bool:
        """Begin the record of a pod that ends, if that is a disruption; whether it is."""
        uid = pod.metadata.uid
        announced = self._announced.take(uid)
        reason = why(pod, announced) or self._deletion(pod, announced)
        if reason is None or uid in self._fates:
            return False
        self._last_id += 1
        grounds = None if announced is None else announced.grounds
        self._fates.begin(self._recorded(pod, reason, announced, now), controller_uid(pod), grounds, now)
        return True

    def _deletion(self, pod: Pod, announced: Announcement | None) -> Why | None:
        """That somebody has deleted the pod, where that is a disruption."""
        if announced is not None:
            is_one = announced.is_outsider and is_wanted(pod, self._find) is not False
            return Why("deletion", announced.by, "") if is_one else None
        # A pod that is gone at once may as well have passed out of sight.
        if self._hears_requests or pod.metadata.deletion_timestamp is None:
            return None
        return Why("deletion", "", "") if is_wanted(pod, self._find) else None

    def _recorded(self, pod: Pod, reason: Why, announced: Announcement | None, now: int) -> Disruption:
        grounds = None if announced is None else announced.grounds
        alternatives = None
        if grounds is not None and grounds.candidates:
            alternatives = Alternatives(candidates=grounds.candidates, equals=grounds.equals)
        node_name = pod.spec.node_name
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
            rule=reason.message if grounds is None else grounds.rule,
            plan="" if grounds is None else grounds.plan,
            alternatives=alternatives,
            beneficiary=self._beneficiary(announced, node_name),
            loss=loss_of(pod, now),
        )

    def _beneficiary(self, announced: Announcement | None, node_name: str) -> Beneficiary | None:
        """For whom a pod goes, as far as that is known."""
        if announced is None or not announced.whom:
            return None
        room = announced.grounds.room if announced.grounds is not None else ""
        return self._beneficiary_of(announced.whom, room or node_name)

    def _beneficiary_of(self, key: str, room: str) -> Beneficiary:
        """The pod for whom others go, as it stands, that is to run on a node."""
        pod = self._find(_POD, key)
        if not isinstance(pod, Pod):
            return Beneficiary(pod=key, room=room, outcome="gone")
        whom = Beneficiary(pod=pod.key, uid=pod.metadata.uid, owner=owner_of(pod), priority=pod.priority, room=room)
        return placed(whom, pod.spec.node_name, 0) if pod.spec.node_name else whom
