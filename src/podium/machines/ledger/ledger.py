"""Keeps account of disruptions: shown what happens to pods, and what components ask for, it makes a record of each.

It decides nothing and asks for nothing, so that a simulation, a control plane and a program at a cluster have the same
account: each shows it the pods that it sees, and the actions that it carries out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from podium.api.pod import Pod
from podium.machines.actions import Action, Record
from podium.machines.disruption.covered_pods import is_healthy
from podium.machines.grounds import Grounds
from podium.machines.ledger.announced import Announced, Announcement
from podium.machines.ledger.awaited import Awaited
from podium.machines.ledger.causes import Why, is_disrupted, is_ended_by_kubelet, why
from podium.machines.ledger.disruption import (
    Alternatives,
    Beneficiary,
    Disruption,
    Outcome,
    Replacement,
    seconds,
)
from podium.machines.ledger.losses import loss_of
from podium.machines.ledger.owners import owner_of
from podium.machines.observations import Changed, Gone, Observation, Problem
from podium.machines.rescheduling.names import DESCHEDULED

MOST_OPEN = 10_000
"""Of so many disruptions at a time it is followed what becomes of them; of the oldest beyond that nothing more is
learnt."""

FOLLOWED_NS = 24 * 3_600 * 10**9
"""For so long it is followed what becomes of a disruption, where something is yet to come."""


@dataclass(slots=True)
class _Open:
    """A disruption of which something is yet to come. ``victim`` is the pod as it was when that began.

    ``grounds`` are shared by the victims of one plan. ``is_followed``: what comes in its place is yet
    to come, or to be ready.
    """

    record: Disruption
    victim: Pod
    began_ns: int
    grounds: Grounds | None = None
    is_followed: bool = True


class DisruptionLedger:
    """The account of a cluster. ``keep`` is given each record when it is begun, and again whenever it has changed.

    ``find`` gives the pod of a key as it is, None where there is none. Times are told from ``start_ns`` on. With
    ``counts_deletions`` what people and programs delete is a disruption too; what workloads do with their own pods
    never is. Numbers begin after ``last_id``.
    """

    watches = frozenset(("Pod",))

    def __init__(
        self,
        keep: Callable[[Disruption], None],
        find: Callable[[str], Pod | None],
        *,
        start_ns: int = 0,
        counts_deletions: bool = False,
        last_id: int = 0,
    ) -> None:
        self._keep = keep
        self._find = find
        self._start_ns = start_ns
        self._counts_deletions = counts_deletions
        self._last_id = last_id
        self._announced = Announced()
        # By the victim's uid, the oldest first.
        self._open: OrderedDict[str, _Open] = OrderedDict()
        # The uids of pods that are known to end, until they are gone.
        self._ending: set[str] = set()
        # By the key of a pod that waits, the victims that went for it; by the uid of a replacement, its victim.
        self._victims_for: dict[str, list[str]] = {}
        self._replaces: dict[str, str] = {}
        self._awaited = Awaited()

    def asked(self, action: Action, by: str) -> None:
        """An action is about to be carried out; ``by`` is who asks for it."""
        if isinstance(action, Record):
            if action.reason == DESCHEDULED and action.uid in self._open:
                self._explained(action)
        else:
            self._announced.asked(action, by)

    def wanted(self, uid: str, by: str, component: str = "") -> None:
        """Somebody who is no component of the cluster is about to have a pod deleted, or evicted as a component."""
        self._announced.put(uid, Announcement(by, component))

    def answered(self, action: Action, problem: Problem | None) -> None:
        """How that ended."""
        if problem is not None:
            self._announced.answered(action, problem)

    def known(self, pod: Pod) -> None:
        """A pod was there before the account began: whether it ends already is nothing that happens."""
        if is_disrupted(pod):
            self._ending.add(pod.metadata.uid)

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
        if not self._open:
            return
        if self._victims_for and pod.spec.node_name and pod.key in self._victims_for:
            self._settle_for(pod, now, is_gone=False)
        if meta.uid in self._replaces:
            self._follow(pod, now)
        elif self._awaited and (victim := self._awaited.take(pod, is_added=is_added)):
            self._came(victim, pod, now)

    def gone(self, pod: Pod, now: int) -> None:
        """A pod is no more; ``pod`` is how it was."""
        uid = pod.metadata.uid
        if uid in self._ending:
            self._ending.discard(uid)
        elif pod.spec.node_name and not pod.is_terminal:
            self._begin(pod, now)
        self._announced.forget(uid)
        if not self._open:
            return
        if uid in self._open and not _has_ended(self._open[uid].record):
            self._end(uid, now)
        if pod.key in self._victims_for:
            self._settle_for(pod, now, is_gone=True)
        if uid in self._replaces:
            self._left(pod, now)

    def _may_begin(self, pod: Pod, now: int) -> None:
        if pod.spec.node_name and is_disrupted(pod):
            self._ending.add(pod.metadata.uid)
            if self._begin(pod, now) and is_ended_by_kubelet(pod):
                self._end(pod.metadata.uid, now)

    def _begin(self, pod: Pod, now: int) -> bool:
        """Begin the record of a pod that ends, if that is a disruption; whether it is."""
        uid = pod.metadata.uid
        announced = self._announced.take(uid)
        reason = why(pod, announced, counts_deletions=self._counts_deletions)
        if reason is None:
            return False
        self._last_id += 1
        record = self._recorded(pod, reason, announced, now)
        grounds = None if announced is None else announced.grounds
        self._open[uid] = _Open(record, pod, now, grounds, is_followed=pod.metadata.controller is not None)
        if record.beneficiary is not None:
            self._needs_more(record.beneficiary, grounds)
            self._victims_for.setdefault(record.beneficiary.pod, []).append(uid)
        self._awaited.put(pod, now)
        self._keep(record)
        self._forget_old(now)
        return True

    def _forget_old(self, now: int) -> None:
        """Follow no more what is too old, or too much."""
        while True:
            uid, oldest = next(iter(self._open.items()))
            if len(self._open) <= MOST_OPEN and now - oldest.began_ns <= FOLLOWED_NS:
                break
            self._forget(uid)

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
        room = announced.grounds.room if announced.grounds is not None else node_name
        pod = self._find(announced.whom)
        if pod is None:
            return Beneficiary(pod=announced.whom, room=room, outcome="gone")
        whom = Beneficiary(
            pod=pod.key, uid=pod.metadata.uid, owner=owner_of(pod), priority=pod.priority, room=room or node_name
        )
        return _placed(whom, pod.spec.node_name, 0) if pod.spec.node_name else whom

    def _needs_more(self, whom: Beneficiary, grounds: Grounds | None) -> None:
        """A plan takes victims for a pod. Those of plans before that are gone already have gone in vain."""
        for uid in tuple(self._victims_for.get(whom.pod, ())):
            found = self._open[uid]
            before = found.record.beneficiary
            is_done = before is not None and before.outcome == "waiting" and before.uid == whom.uid
            if before is not None and is_done and found.grounds is not grounds and _has_ended(found.record):
                self._put(uid, replace(found.record, beneficiary=replace(before, outcome="again")))

    def _explained(self, action: Record) -> None:
        """The rescheduler says why it moves a pod that it has evicted."""
        found = self._open[action.uid]
        self._put(action.uid, replace(found.record, rule=action.message))

    def _end(self, uid: str, now: int) -> None:
        """The victim has left its node."""
        found = self._open.get(uid)
        if found is not None:
            after = seconds(max(now - found.began_ns, 0))
            self._put(uid, replace(found.record, loss=replace(found.record.loss, ended_after=after)))

    def _settle_for(self, pod: Pod, now: int, *, is_gone: bool) -> None:
        """A pod for whom others went has a node, or is gone without."""
        for uid in self._victims_for.pop(pod.key):
            found = self._open[uid]
            whom = found.record.beneficiary
            if whom is None or whom.outcome != "waiting":
                continue
            if is_gone or (whom.uid and whom.uid != pod.metadata.uid):
                settled = replace(whom, outcome="gone")
            else:
                settled = _placed(whom, pod.spec.node_name, now - found.began_ns)
            self._put(uid, replace(found.record, beneficiary=settled))

    def _came(self, victim: str, pod: Pod, now: int) -> None:
        """A pod has come in place of a victim."""
        self._replaces[pod.metadata.uid] = victim
        found = self._open[victim]
        self._put(victim, replace(found.record, replacement=Replacement(pod=pod.key, uid=pod.metadata.uid)))
        if pod.spec.node_name:
            self._follow(pod, now)

    def _follow(self, pod: Pod, now: int) -> None:
        """A replacement has changed: it may have a node, and be ready."""
        victim = self._replaces[pod.metadata.uid]
        found = self._open[victim]
        known = came = found.record.replacement
        if came is None:
            raise ValueError(f"disruption {found.record.id} has no replacement, and pod {pod.key} is it")
        after = seconds(max(now - found.began_ns, 0))
        if pod.spec.node_name and came.node is None:
            came = replace(came, node=pod.spec.node_name, placed_after=after)
        if is_healthy(pod):
            came = replace(came, ready_after=after)
            del self._replaces[pod.metadata.uid]
            found.is_followed = False
        if came is not known:
            self._put(victim, replace(found.record, replacement=came))

    def _left(self, pod: Pod, now: int) -> None:
        """A replacement is gone before it was ready; where it never had a node, the next one counts instead."""
        victim = self._replaces.pop(pod.metadata.uid)
        found = self._open[victim]
        if pod.spec.node_name:
            found.is_followed = False
            self._put(victim, found.record)
        else:
            self._awaited.put(found.victim, now, first=True)
            self._put(victim, replace(found.record, replacement=None))

    def _put(self, uid: str, record: Disruption) -> None:
        """Keep a record that has changed; one of which nothing is to come any more is let go."""
        self._open[uid].record = record
        self._keep(record)
        whom = record.beneficiary
        has_settled = _has_ended(record) and (whom is None or whom.outcome != "waiting")
        if has_settled and not self._open[uid].is_followed:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        found = self._open.pop(uid)
        self._awaited.drop(found.victim)
        came, whom = found.record.replacement, found.record.beneficiary
        if came is not None:
            self._replaces.pop(came.uid, None)
        if whom is not None and whom.pod in self._victims_for:
            left = [victim for victim in self._victims_for[whom.pod] if victim != uid]
            if left:
                self._victims_for[whom.pod] = left
            else:
                del self._victims_for[whom.pod]


def _has_ended(record: Disruption) -> bool:
    return record.loss.ended_after is not None


def _placed(whom: Beneficiary, node_name: str, after_ns: int) -> Beneficiary:
    """A beneficiary that has a node."""
    outcome: Outcome = "placed" if node_name == whom.room else "elsewhere"
    return replace(whom, outcome=outcome, node=node_name, placed_after=seconds(max(after_ns, 0)))
