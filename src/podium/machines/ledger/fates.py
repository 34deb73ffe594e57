"""What becomes of disruptions: of the victim, of whoever the room was for, and of what comes in the victim's place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from podium.api.pod import Pod
from podium.machines.disruption.covered_pods import controller_uid, is_healthy
from podium.machines.grounds import Grounds
from podium.machines.ledger.awaited import Awaited, Vacancy
from podium.machines.ledger.disruption import Beneficiary, Disruption, Earlier, Outcome, Replacement, Trail, seconds

MOST_OPEN = 10_000
"""Of so many disruptions at a time it is followed what becomes of them; of the oldest beyond that nothing more is
learnt."""

FOLLOWED_NS = 24 * 3_600 * 10**9
"""For so long it is followed what becomes of a disruption, where something is yet to come."""

Keep = Callable[[Disruption, Trail | None], None]
"""Is given a record that has come or has changed, and what is needed to go on with it; None: nothing is to come."""


Since = Callable[[Pod, str], int | None]
"""Since when a condition of a pod is true, None where nobody says."""


@dataclass(frozen=True, slots=True)
class _Times:
    """When something happened while nobody looked: as a condition says, or by now."""

    since: Since
    now: int

    def placed_ns(self, pod: Pod) -> int:
        """When the pod got its node."""
        return self._of(pod, "PodScheduled")

    def ready_ns(self, pod: Pod) -> int:
        """When it was ready."""
        return self._of(pod, "Ready")

    def _of(self, pod: Pod, condition: str) -> int:
        found = self.since(pod, condition)
        return self.now if found is None else min(found, self.now)


@dataclass(slots=True)
class _Open:
    """A disruption of which something is yet to come. ``grounds`` are shared by the victims of one plan."""

    record: Disruption
    trail: Trail
    grounds: Grounds | None = None

    @property
    def vacancy(self) -> Vacancy:
        """The place that the victim leaves with its controller."""
        record = self.record
        return Vacancy(self.trail.controller, record.uid, record.pod.rpartition("/")[2], self.trail.began_ns)


class Fates:
    """The disruptions of which something is yet to come, and what they wait for."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        # By the victim's uid, the oldest first.
        self._open: OrderedDict[str, _Open] = OrderedDict()
        # By the key of a pod that waits, the victims that went for it; by the uid of a replacement, its victim.
        self._victims_for: dict[str, list[str]] = {}
        self._replaces: dict[str, str] = {}
        self._awaited = Awaited()
        self.open = self._open.keys()
        """The uids of the victims; it follows what happens."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._open

    def begin(self, record: Disruption, controller: str, grounds: Grounds | None, now: int) -> None:
        """A pod begins to end; ``controller`` is the uid of its own, "" for none."""
        found = _Open(record, Trail(began_ns=now, controller=controller, is_followed=bool(controller)), grounds)
        if record.beneficiary is not None:
            self._needs_more(record.beneficiary, grounds)
        self._take_up(found)
        self._keep(record, found.trail)
        while True:
            uid, oldest = next(iter(self._open.items()))
            if len(self._open) <= MOST_OPEN and now - oldest.trail.began_ns <= FOLLOWED_NS:
                break
            self._let_go(uid)

    def explained(self, uid: str, rule: str) -> None:
        """Whoever has evicted a pod says why."""
        self._put(uid, replace(self._open[uid].record, rule=rule))

    def node_of(self, uid: str) -> str:
        """The node from which a victim went."""
        return self._open[uid].record.node

    def benefits(self, uid: str, whom: Beneficiary) -> None:
        """It has become known for whom a victim went."""
        found = self._open.get(uid)
        if found is None or found.record.beneficiary is not None:
            return
        if whom.outcome == "waiting":
            self._victims_for.setdefault(whom.pod, []).append(uid)
        self._put(uid, replace(found.record, beneficiary=whom))

    def changed(self, pod: Pod, now: int, *, is_added: bool | None) -> None:
        """A pod was made or has changed; ``is_added`` None: it is not known which."""
        if not self._open:
            return
        if self._victims_for and pod.spec.node_name and pod.key in self._victims_for:
            self._settle_for(pod, now, is_gone=False)
        if pod.metadata.uid in self._replaces:
            self._follow(pod, now, now)
        elif self._awaited and (victim := self._awaited.take(pod, is_added=is_added)):
            self._came(victim, pod)
            if pod.spec.node_name:
                self._follow(pod, now, now)

    def gone(self, pod: Pod, now: int) -> None:
        """A pod is no more."""
        if not self._open:
            return
        uid = pod.metadata.uid
        if uid in self._open:
            self.ended(uid, now)
        if pod.key in self._victims_for:
            self._settle_for(pod, now, is_gone=True)
        if uid in self._replaces:
            self._left(uid, has_had_node=bool(pod.spec.node_name))
        if self._awaited and pod.metadata.owner_references:
            self._awaited.gone(controller_uid(pod), uid)

    def ended(self, uid: str, now: int) -> None:
        """A victim has left its node."""
        found = self._open.get(uid)
        if found is not None and not _has_ended(found.record):
            after = seconds(max(now - found.trail.began_ns, 0))
            self._put(uid, replace(found.record, loss=replace(found.record.loss, ended_after=after)))

    def resume(self, earlier: Earlier, pods: Iterable[Pod], since: Since, now: int) -> None:
        """Go on with the records of an earlier life; ``pods`` are all that there are.

        What happened meanwhile is told by the pods' own conditions, and else as of now.
        """
        self._take_up_earlier(earlier, now)
        if not self._open:
            return
        times = _Times(since, now)
        by_uid = {pod.metadata.uid: pod for pod in pods}
        by_key = {pod.key: pod for pod in by_uid.values()}
        for uid in tuple(self._open):
            if uid not in by_uid:
                self.ended(uid, now)
        for key in tuple(self._victims_for):
            self._catch_up_for(key, by_key.get(key), times)
        for uid in tuple(self._replaces):
            if uid in by_uid:
                self._catch_up(by_uid[uid], times)
            else:
                came = self._open[self._replaces[uid]].record.replacement
                self._left(uid, has_had_node=came is not None and came.node is not None)
        if self._awaited:
            self._catch_up_awaited(earlier, by_uid, times)

    def _take_up_earlier(self, earlier: Earlier, now: int) -> None:
        for record, trail in earlier.followed:
            if now - trail.began_ns > FOLLOWED_NS:
                self._keep(record, None)
            elif record.uid not in self._open:
                self._take_up(_Open(record, trail))

    def _catch_up_awaited(self, earlier: Earlier, by_uid: dict[str, Pod], times: _Times) -> None:
        """Which pods came in victims' places while nobody looked."""
        for uid in sorted(earlier.replacements & by_uid.keys()):
            self._awaited.came(controller_uid(by_uid[uid]), uid)
        for pod in sorted(by_uid.values(), key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key)):
            if victim := self._awaited.take(pod, is_added=None, came_meanwhile=True):
                self._came(victim, pod)
                self._catch_up(pod, times)

    def _catch_up_for(self, key: str, pod: Pod | None, times: _Times) -> None:
        """What became of the pod for whom others went, while nobody looked."""
        for uid in tuple(self._victims_for[key]):
            found = self._open[uid]
            whom = found.record.beneficiary
            if whom is None or whom.outcome != "waiting":
                continue
            if pod is None or (whom.uid and whom.uid != pod.metadata.uid):
                self._put(uid, replace(found.record, beneficiary=replace(whom, outcome="gone")))
            elif pod.spec.node_name:
                after_ns = times.placed_ns(pod) - found.trail.began_ns
                settled = placed(whom, pod.spec.node_name, after_ns)
                self._put(uid, replace(found.record, beneficiary=settled))

    def _catch_up(self, pod: Pod, times: _Times) -> None:
        """How far a replacement came while nobody looked."""
        self._follow(pod, times.placed_ns(pod), times.ready_ns(pod))

    def _take_up(self, found: _Open) -> None:
        """Follow a record from where it is."""
        record = found.record
        uid, whom, came = record.uid, record.beneficiary, record.replacement
        self._open[uid] = found
        if whom is not None and whom.outcome == "waiting":
            self._victims_for.setdefault(whom.pod, []).append(uid)
        if came is not None and found.trail.is_followed:
            self._replaces[came.uid] = uid
        elif found.trail.is_followed:
            self._awaited.put(found.vacancy)

    def _needs_more(self, whom: Beneficiary, grounds: Grounds | None) -> None:
        """A plan takes victims for a pod. Those of plans before that are gone already have gone in vain."""
        for uid in tuple(self._victims_for.get(whom.pod, ())):
            found = self._open[uid]
            before = found.record.beneficiary
            is_done = before is not None and before.outcome == "waiting" and before.uid == whom.uid
            if before is not None and is_done and found.grounds is not grounds and _has_ended(found.record):
                self._put(uid, replace(found.record, beneficiary=replace(before, outcome="again")))

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
                settled = placed(whom, pod.spec.node_name, now - found.trail.began_ns)
            self._put(uid, replace(found.record, beneficiary=settled))

    def _came(self, victim: str, pod: Pod) -> None:
        """A pod has come in place of a victim."""
        self._replaces[pod.metadata.uid] = victim
        record = self._open[victim].record
        self._put(victim, replace(record, replacement=Replacement(pod=pod.key, uid=pod.metadata.uid)))

    def _follow(self, pod: Pod, placed_ns: int, ready_ns: int) -> None:
        """A replacement has changed: it may have a node, and be ready."""
        victim = self._replaces[pod.metadata.uid]
        found = self._open[victim]
        known = came = found.record.replacement
        if came is None:
            raise ValueError(f"disruption {found.record.id} has no replacement, and pod {pod.key} is it")
        began_ns = found.trail.began_ns
        if pod.spec.node_name and came.node is None:
            came = replace(came, node=pod.spec.node_name, placed_after=seconds(max(placed_ns - began_ns, 0)))
        if is_healthy(pod):
            came = replace(came, ready_after=seconds(max(ready_ns - began_ns, 0)))
            del self._replaces[pod.metadata.uid]
            found.trail = replace(found.trail, is_followed=False)
        if came is not known:
            self._put(victim, replace(found.record, replacement=came))

    def _left(self, uid: str, *, has_had_node: bool) -> None:
        """A replacement is gone before it was ready; where it never had a node, the next one counts instead."""
        victim = self._replaces.pop(uid)
        found = self._open[victim]
        if has_had_node:
            found.trail = replace(found.trail, is_followed=False)
            self._put(victim, found.record)
        else:
            self._awaited.put(found.vacancy, first=True)
            self._put(victim, replace(found.record, replacement=None))

    def _put(self, uid: str, record: Disruption) -> None:
        """Keep a record that has changed; one of which nothing is to come any more is let go."""
        found = self._open[uid]
        found.record = record
        whom = record.beneficiary
        has_settled = _has_ended(record) and (whom is None or whom.outcome != "waiting")
        if has_settled and not found.trail.is_followed:
            self._let_go(uid)
        else:
            self._keep(record, found.trail)

    def _let_go(self, uid: str) -> None:
        """Nothing more is learnt of a disruption."""
        found = self._open.pop(uid)
        self._keep(found.record, None)
        came, whom = found.record.replacement, found.record.beneficiary
        if came is None:
            self._awaited.drop(found.trail.controller, uid)
        else:
            self._replaces.pop(came.uid, None)
        if whom is not None and whom.pod in self._victims_for:
            left = [victim for victim in self._victims_for[whom.pod] if victim != uid]
            if left:
                self._victims_for[whom.pod] = left
            else:
                del self._victims_for[whom.pod]


def placed(whom: Beneficiary, node_name: str, after_ns: int) -> Beneficiary:
    """A beneficiary that has a node."""
    outcome: Outcome = "placed" if node_name == whom.room else "elsewhere"
    return replace(whom, outcome=outcome, node=node_name, placed_after=seconds(max(after_ns, 0)))


def _has_ended(record: Disruption) -> bool:
    return record.loss.ended_after is not None
