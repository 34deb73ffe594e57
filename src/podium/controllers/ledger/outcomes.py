"""The outcomes of disruptions: of the victim, its beneficiary, and its replacement."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.api.times import SECOND, seconds, time_of
from podium.controllers.actions import Rationale
from podium.controllers.disruption.budget import controller_uid, is_healthy
from podium.controllers.indexes import MultiMap
from podium.controllers.ledger import disruption

MOST_OPEN = 10_000
"""The maximum number of disruptions that are followed; the oldest are dropped."""

FOLLOWED_NS = 24 * 3_600 * 10**9
"""The maximum time for which a disruption is followed."""

RecordSink = Callable[[disruption.Disruption, disruption.FollowUp | None], None]
"""Receives a new or changed record, and the data to continue it; None if it is complete."""


ConditionTime = Callable[[Pod, str], int | None]
"""Returns since when a condition of a pod is true, or None."""


class _Open(Struct):
    """An incomplete disruption. ``rationale`` is shared by the victims of one plan."""

    record: disruption.Disruption
    trail: disruption.FollowUp
    rationale: Rationale | None = None


class OpenDisruptions:
    """The incomplete disruptions, and what they wait for."""

    def __init__(self, keep: RecordSink) -> None:
        self._keep = keep
        # By the victim's uid, the oldest first.
        self._open: OrderedDict[str, _Open] = OrderedDict()
        # By the beneficiary's key, its victims; by the replacement's uid, its victim.
        self._victims_for: MultiMap[str, str] = MultiMap()
        self._replaces: dict[str, str] = {}
        self._awaited = AwaitedReplacements()
        self.open = self._open.keys()
        """The uids of the victims; a live view."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._open

    def begin(self, record: disruption.Disruption, controller: str, rationale: Rationale | None, now: int) -> None:
        """Add a record; ``controller`` is the uid of the victim's controller, "" for none."""
        found = _Open(
            record, disruption.FollowUp(began_ns=now, controller=controller, is_followed=bool(controller)), rationale
        )
        if record.beneficiary is not None:
            self._needs_more(record.beneficiary, rationale)
        self._take_up(found)
        self._keep(record, found.trail)
        while True:
            uid, oldest = next(iter(self._open.items()))
            if len(self._open) <= MOST_OPEN and now - oldest.trail.began_ns <= FOLLOWED_NS:
                break
            self._let_go(uid)

    def record(self, uid: str) -> disruption.Disruption | None:
        """Return the incomplete record of a victim, or None."""
        return self._open[uid].record if uid in self._open else None

    def explained(self, record: disruption.Disruption, rule: str) -> None:
        self._put(record.uid, replace(record, rule=rule))

    def benefits(self, record: disruption.Disruption, beneficiary: disruption.Beneficiary) -> None:
        if beneficiary.outcome == "waiting":
            self._victims_for.add(beneficiary.pod, record.uid)
        self._put(record.uid, replace(record, beneficiary=beneficiary))

    def on_update(self, pod: Pod, now: int, *, is_added: bool | None) -> None:
        """Handle an added or changed pod; ``is_added`` None: unknown which."""
        if not self._open:
            return
        if self._victims_for and pod.spec.node_name and pod.key in self._victims_for:
            self._settle_for(pod.key, pod, now)
        if pod.metadata.uid in self._replaces:
            self._follow(pod, now, now)
        elif self._awaited and (victim := self._awaited.take(pod, is_added=is_added)):
            self._on_replacement(victim, pod)
            if pod.spec.node_name:
                self._follow(pod, now, now)

    def on_delete(self, pod: Pod, now: int) -> None:
        if not self._open:
            return
        uid = pod.metadata.uid
        if uid in self._open:
            self.on_end(uid, now)
        if pod.key in self._victims_for:
            self._settle_for(pod.key, None, now)
        if uid in self._replaces:
            self._on_replacement_end(uid, has_had_node=bool(pod.spec.node_name))
        if self._awaited and pod.metadata.owner_references:
            self._awaited.on_delete(controller_uid(pod), uid)

    def on_end(self, uid: str, now: int) -> None:
        """Record that a victim has left its node."""
        found = self._open.get(uid)
        if found is not None and not _has_ended(found.record):
            after = seconds(max(now - found.trail.began_ns, 0))
            self._put(uid, replace(found.record, loss=replace(found.record.loss, ended_after=after)))

    def resume(self, earlier: disruption.EarlierRecords, pods: Iterable[Pod], since: ConditionTime, now: int) -> None:
        """Continue the records of an earlier instance; ``pods`` are all that exist.

        Missed changes are dated by the pods' conditions, or now.
        """
        self._take_up_earlier(earlier, now)
        if not self._open:
            return

        def began(pod: Pod, condition: str) -> int:
            found = since(pod, condition)
            return now if found is None else min(found, now)

        by_uid = {pod.metadata.uid: pod for pod in pods}
        by_key = {pod.key: pod for pod in by_uid.values()}
        for uid in tuple(self._open):
            if uid not in by_uid:
                self.on_end(uid, now)
        for key in tuple(self._victims_for):
            pod = by_key.get(key)
            self._settle_for(key, pod, now if pod is None else began(pod, "PodScheduled"))
        for uid in tuple(self._replaces):
            if uid in by_uid:
                self._follow(by_uid[uid], began(by_uid[uid], "PodScheduled"), began(by_uid[uid], "Ready"))
            else:
                replacement = self._open[self._replaces[uid]].record.replacement
                self._on_replacement_end(uid, has_had_node=replacement is not None and replacement.node is not None)
        if self._awaited:
            for pod in self._take_unobserved(earlier, by_uid):
                self._follow(pod, began(pod, "PodScheduled"), began(pod, "Ready"))

    def _take_up_earlier(self, earlier: disruption.EarlierRecords, now: int) -> None:
        for record, trail in earlier.followed:
            if now - trail.began_ns > FOLLOWED_NS:
                self._keep(record, None)
            elif record.uid not in self._open:
                self._take_up(_Open(record, trail))

    def _take_unobserved(self, earlier: disruption.EarlierRecords, by_uid: dict[str, Pod]) -> Iterator[Pod]:
        """Yield the replacements that came unobserved."""
        for uid in sorted(earlier.replacements & by_uid.keys()):
            self._awaited.add_replacement(controller_uid(by_uid[uid]), uid)
        for pod in sorted(by_uid.values(), key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key)):
            if victim := self._awaited.take(pod, is_added=None, came_meanwhile=True):
                self._on_replacement(victim, pod)
                yield pod

    def _take_up(self, found: _Open) -> None:
        record = found.record
        uid, beneficiary, replacement = record.uid, record.beneficiary, record.replacement
        self._open[uid] = found
        if beneficiary is not None and beneficiary.outcome == "waiting":
            self._victims_for.add(beneficiary.pod, uid)
        if replacement is not None and found.trail.is_followed:
            self._replaces[replacement.uid] = uid
        elif found.trail.is_followed:
            self._awaited.put(found)

    def _needs_more(self, beneficiary: disruption.Beneficiary, rationale: Rationale | None) -> None:
        """Mark victims of earlier plans for a pod as in vain, because a new plan has further victims."""
        for uid in tuple(self._victims_for.get(beneficiary.pod, ())):
            found = self._open[uid]
            before = found.record.beneficiary
            is_done = before is not None and before.outcome == "waiting" and before.uid == beneficiary.uid
            if before is not None and is_done and found.rationale is not rationale and _has_ended(found.record):
                self._put(uid, replace(found.record, beneficiary=replace(before, outcome="again")))

    def _settle_for(self, key: str, pod: Pod | None, placed_ns: int) -> None:
        """Record the outcome of a beneficiary that was bound at a time, or is gone (None); nothing while it waits."""
        for uid in tuple(self._victims_for[key]):
            found = self._open[uid]
            beneficiary = found.record.beneficiary
            if beneficiary is None or beneficiary.outcome != "waiting":
                continue
            if pod is None or (beneficiary.uid and beneficiary.uid != pod.metadata.uid):
                self._put(uid, replace(found.record, beneficiary=replace(beneficiary, outcome="gone")))
            elif pod.spec.node_name:
                settled = placed(beneficiary, pod.spec.node_name, placed_ns - found.trail.began_ns)
                self._put(uid, replace(found.record, beneficiary=settled))
        if pod is None or pod.spec.node_name:
            self._victims_for.pop(key, None)

    def _on_replacement(self, victim: str, pod: Pod) -> None:
        self._replaces[pod.metadata.uid] = victim
        record = self._open[victim].record
        self._put(victim, replace(record, replacement=disruption.ReplacementPod(pod=pod.key, uid=pod.metadata.uid)))

    def _follow(self, pod: Pod, placed_ns: int, ready_ns: int) -> None:
        """Update a replacement that may be bound or ready."""
        victim = self._replaces[pod.metadata.uid]
        found = self._open[victim]
        known = replacement = found.record.replacement
        if replacement is None:
            raise ValueError(f"disruption {found.record.id} has no replacement, and pod {pod.key} is it")
        began_ns = found.trail.began_ns
        if pod.spec.node_name and replacement.node is None:
            replacement = replace(
                replacement, node=pod.spec.node_name, placed_after=seconds(max(placed_ns - began_ns, 0))
            )
        if is_healthy(pod):
            replacement = replace(replacement, ready_after=seconds(max(ready_ns - began_ns, 0)))
            del self._replaces[pod.metadata.uid]
            found.trail = replace(found.trail, is_followed=False)
        if replacement is not known:
            self._put(victim, replace(found.record, replacement=replacement))

    def _on_replacement_end(self, uid: str, *, has_had_node: bool) -> None:
        """Handle a replacement that is gone before it was ready; if it had no node, the next one counts."""
        victim = self._replaces.pop(uid)
        found = self._open[victim]
        if has_had_node:
            found.trail = replace(found.trail, is_followed=False)
            self._put(victim, found.record)
        else:
            self._awaited.put(found, first=True)
            self._put(victim, replace(found.record, replacement=None))

    def _put(self, uid: str, record: disruption.Disruption) -> None:
        """Keep a changed record; drop it if it is complete."""
        found = self._open[uid]
        found.record = record
        beneficiary = record.beneficiary
        has_settled = _has_ended(record) and (beneficiary is None or beneficiary.outcome != "waiting")
        if has_settled and not found.trail.is_followed:
            self._let_go(uid)
        else:
            self._keep(record, found.trail)

    def _let_go(self, uid: str) -> None:
        found = self._open.pop(uid)
        self._keep(found.record, None)
        replacement, beneficiary = found.record.replacement, found.record.beneficiary
        if replacement is None:
            self._awaited.drop(found.trail.controller, uid)
        else:
            self._replaces.pop(replacement.uid, None)
        if beneficiary is not None:
            self._victims_for.discard(beneficiary.pod, uid)


def placed(beneficiary: disruption.Beneficiary, node_name: str, after_ns: int) -> disruption.Beneficiary:
    """Return a beneficiary that was bound."""
    outcome: disruption.Outcome = "placed" if node_name == beneficiary.room else "elsewhere"
    return replace(beneficiary, outcome=outcome, node=node_name, placed_after=seconds(max(after_ns, 0)))


def _has_ended(record: disruption.Disruption) -> bool:
    return record.loss.ended_after is not None


_KEEPS_NAMES = frozenset(("StatefulSet",))


class AwaitedReplacements:
    """Victims without replacement by the uid of their controller, the earliest first."""

    def __init__(self) -> None:
        self._places: dict[str, deque[_Open]] = {}
        # By the same controllers, the uids of known replacements; each replaces one victim.
        self._replacements: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def put(self, place: _Open, *, first: bool = False) -> None:
        """Add a victim; one without a controller is not replaced."""
        if not place.trail.controller:
            return
        waiting = self._places.setdefault(place.trail.controller, deque())
        if first:
            waiting.appendleft(place)
        else:
            waiting.append(place)

    def take(self, pod: Pod, *, is_added: bool | None, came_meanwhile: bool = False) -> str:
        """Return the uid of the victim that a pod replaces; "" for none.

        ``is_added`` says whether the pod was just created. If unknown (None), a pod counts that was created in a later
        second than the victim began to end, or in the same one and has no node yet, or ``came_meanwhile`` unobserved.
        """
        controller = pod.metadata.controller if pod.metadata.owner_references else None
        waiting = None if controller is None else self._places.get(controller.uid)
        if controller is None or waiting is None or is_added is False or pod.is_terminating:
            return ""
        replacements = self._replacements.setdefault(controller.uid, set())
        if pod.metadata.uid in replacements:
            return ""
        created_ns, may_be_new = time_of(pod.metadata.creation_timestamp) or 0, came_meanwhile or not pod.spec.node_name
        for place in waiting:
            victim, began_ns = place.record, place.trail.began_ns // SECOND * SECOND
            if controller.kind in _KEEPS_NAMES and victim.pod != pod.key:
                continue
            is_later = created_ns > began_ns or (created_ns == began_ns and may_be_new)
            if victim.uid != pod.metadata.uid and (is_added or is_later):
                replacements.add(pod.metadata.uid)
                waiting.remove(place)
                self._trim(controller.uid)
                return victim.uid
        return ""

    def add_replacement(self, controller: str, uid: str) -> None:
        """Record a known replacement."""
        if controller in self._places:
            self._replacements.setdefault(controller, set()).add(uid)

    def on_delete(self, controller: str, uid: str) -> None:
        if controller in self._replacements:
            self._replacements[controller].discard(uid)

    def drop(self, controller: str, uid: str) -> None:
        """Stop waiting for the replacement of a victim."""
        if (waiting := self._places.get(controller)) is not None:
            self._places[controller] = deque(place for place in waiting if place.record.uid != uid)
            self._trim(controller)

    def _trim(self, controller: str) -> None:
        """Forget a controller without victims."""
        if not self._places[controller]:
            del self._places[controller]
            self._replacements.pop(controller, None)
