"""Futile preemptions: the victims left, and pods that are not more important took their place.

Schedulers do not see one another's nominations: one preempts, and another places the victim's replacement there. So a
pod waits longer before each further preemption after several futile ones. They are counted by the pod's owner, because
a kubelet may reject the preemptor, whose replacement continues. A PodGroup counts as one. The count is stored in an
annotation of the preemptor, so that it survives a restart. Source: pod-preemption.md, "Race condition in
multi-scheduler clusters"; kubernetes/kubernetes#130429.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from podium.api.pod import Pod
from podium.api.pod_group import group_of_pod
from podium.api.times import MAX_TIME_NS, format_duration, format_time
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import PatchObject, Record
from podium.controllers.deadlines import Deadlines
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS
from podium.decide.placement import fits_without
from podium.decide.preempting.gang.gang import Gang, GangTransaction, placements_hold
from podium.decide.preempting.wide.victim_domains import blocking_pods_elsewhere
from podium.framework.handle import CycleState
from podium.framework.runner import Runner

ANNOTATION = "podium.dev/futile-preemptions"
"""The annotation; JSON of a `FutilityNote`."""


class PreemptionRound(msgspec.Struct, frozen=True, rename="camel"):
    """A preemption for a node: its start, the uids of its victims and of the pods that were present.

    Present pods are those on the node, and those elsewhere that excluded the pod.
    """

    node_name: str
    victims: frozenset[str]
    present: frozenset[str]
    began_ns: int


class FutilityNote(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The futile preemptions of the owner in a row, until when it waits, and the pod's own last preemption.

    ``judged_ns`` is the start of the last judged one; failed pods may carry older ones. ``round`` is not judged yet.
    """

    futile: int = 0
    until_ns: int = 0
    judged_ns: int = 0
    round: PreemptionRound | None = None


def note_of(pod: Pod) -> FutilityNote | None:
    """Return the annotation of a pod; None without one, or if no scheduler wrote it."""
    text = pod.metadata.annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        note = msgspec.json.decode(text, type=FutilityNote)
    except msgspec.DecodeError:
        return None
    return note if note.futile >= 0 and 0 <= note.until_ns <= MAX_TIME_NS else None


_Taken = tuple[PreemptionRound, list[str]]
"""A futile preemption, and the keys of the pods that took its capacity."""

_FIRST_WAIT_NS = 60 * SECOND_NS
_LONGEST_WAIT_NS = 3_600 * SECOND_NS
_DOUBLINGS = 6
_MOST_NAMES = 3


class FutilePreemptions:
    """Counts futile preemptions by owner; after ``most`` in a row the owner's pods must wait (0: never).

    A preemption is futile if all victims are gone and the pod, which fits nowhere, would fit its node without other
    owners' pods that came since and are not more important: on the node itself, or elsewhere if they exclude the pod,
    as by anti-affinity over the node's rack.
    """

    def __init__(self, cluster: Cluster, most: int) -> None:
        self._cluster = cluster
        self._most = most
        self._histories: dict[str, PreemptionHistory] = {}
        self._waiting: Deadlines[str] = Deadlines()
        self.next_deadline = self._waiting.next_time
        self.waiting = self._waiting.times.keys()
        """The uids of pods that wait until they may preempt again; a live view."""
        # By owner, when lost rounds expire that none of its pods has judged.
        self._expiries: Deadlines[str] = Deadlines()

    def __len__(self) -> int:
        return len(self._histories)

    def knows(self, pod: PodRecord) -> bool:
        """Return whether preemptions for the pod's owner are tracked."""
        return self._history_of(pod) is not None

    def begin(
        self, runner: Runner, state: CycleState, pod: PodRecord, node_name: str, victims: Iterable[PodRecord], now: int
    ) -> None:
        """Track a preemption for a pod, in place of any earlier one; ``state`` is that of its attempt."""
        if not self._most:
            return
        uids = _uids(victims)
        row = self._cluster.nodes.row_of.get(node_name)
        if uids and row is not None:
            present = _uids(self._present(runner, state, pod, row, now))
            self._begin(pod, PreemptionRound(node_name, uids, present, now))

    def begin_plan(self, steps: Iterable[tuple[PodRecord, str]], victims: Iterable[PodRecord], now: int) -> None:
        """Track a preemption for pods of a group, each with its node."""
        victims_on: dict[str, set[str]] = {}
        for victim in victims:
            victims_on.setdefault(victim.node_name, set()).add(victim.uid)
        if not victims_on or not self._most:
            return
        theirs = [(pod, node_name, victims_on.pop(node_name, set())) for pod, node_name in steps]
        # The first pod also waits for victims on nodes without a member.
        theirs[0][2].update(uid for uids in victims_on.values() for uid in uids)
        for pod, node_name, uids in theirs:
            if (row := self._cluster.nodes.row_of.get(node_name)) is not None:
                self._begin(pod, PreemptionRound(node_name, frozenset(uids), _uids(self._cluster.pods_on(row)), now))

    def judge(self, runner: Runner, pod: PodRecord, now: int) -> list[Record]:
        """Judge the preemptions for a pod that fits nowhere; return the event about a new wait."""
        history = self._history_of(pod)
        if history is None:
            return []
        rounds = [*history.take_lost(), *history.take_ended(self._cluster, [pod]).values()]
        found = map(partial(self._takers_of, runner, pod), rounds)
        taken = [(each, takers) for each, takers in zip(rounds, found, strict=True) if takers]
        return self._count(history, pod, rounds, taken, now)

    def judge_plan(self, runner: Runner, gang: Gang, now: int) -> list[Record]:
        """Judge the preemptions for a group if too few of its pods fit; those of one plan count once."""
        first = gang.members[0]
        history = self._history_of(first)
        if history is None:
            return []
        lost, ended = history.take_lost(), history.take_ended(self._cluster, gang.members)
        taken = {each.began_ns: (each, takers) for each in lost if (takers := self._takers_of(runner, first, each))}
        for began_ns in sorted({each.began_ns for each in ended.values()}):
            theirs = {uid: each for uid, each in ended.items() if each.began_ns == began_ns}
            others = self._come_to_nodes(first, theirs.values(), gang.priority)
            row_of = self._cluster.nodes.row_of
            members = [member for member in gang.members if member.uid in theirs]
            if not others or not all(theirs[member.uid].node_name in row_of for member in members):
                continue
            steps = [(member, row_of[theirs[member.uid].node_name]) for member in members]
            with GangTransaction(runner, gang) as transaction:
                would_fit = placements_hold(transaction, [tuple(others)], steps)
            if would_fit:
                round_on = {each.node_name: each for each in theirs.values()}
                taken[began_ns] = round_on[others[0].node_name], [other.key for other in others]
        return self._count(history, first, [*lost, *ended.values()], list(taken.values()), now)

    def _history_of(self, pod: PodRecord) -> PreemptionHistory | None:
        return self._histories.get(self._owner(pod)) if self._histories else None

    def _begin(self, pod: PodRecord, started: PreemptionRound) -> None:
        history = self._histories.setdefault(self._owner(pod), PreemptionHistory())
        history.rounds[pod.uid] = started
        history.is_noted = False

    def _count(
        self, history: PreemptionHistory, pod: PodRecord, rounds: list[PreemptionRound], taken: list[_Taken], now: int
    ) -> list[Record]:
        """Count the futile rounds, given the pods that took their capacity."""
        history.judged_ns = max((history.judged_ns, *(ended.began_ns for ended in rounds)))
        history.futile += len(taken)
        history.is_noted = history.is_noted and not rounds
        if not taken or history.futile < self._most:
            return []
        wait_ns = min(_FIRST_WAIT_NS << min(history.futile - self._most, _DOUBLINGS), _LONGEST_WAIT_NS)
        history.until_ns = now + wait_ns
        ended, takers = taken[-1]
        names = ", ".join(takers[:_MOST_NAMES])
        if len(takers) > _MOST_NAMES:
            names += f" and {len(takers) - _MOST_NAMES} more"
        message = (
            f"{history.futile} preemptions were futile: other pods took the room, last on node {ended.node_name} "
            f"{names}; no further preemption for {format_duration(wait_ns)}"
        )
        return [Record(pod.key, pod.uid, "Warning", "PreemptionBackoff", message, ended.node_name)]

    def note(self, first: PodRecord, *others: PodRecord) -> list[PatchObject]:
        """Return the annotations for a pod, or the pods of a group, after their attempt; none if they are unchanged."""
        history = self._history_of(first)
        found: list[PatchObject] = []
        if history is None or history.is_noted:
            return found
        for pod in (first, *others):
            last = history.rounds.get(pod.uid)
            if last is not None or (pod is first and pod.uid in history.rounds):
                history.is_noted = True
                history.noted[pod.uid] = pod
                counts = {"futile": history.futile, "until_ns": history.until_ns, "judged_ns": history.judged_ns}
                note = msgspec.json.encode(FutilityNote(round=last, **counts), order="deterministic")
                found.append(_annotate(pod, note.decode()))
        return found

    def wait(self, pod: PodRecord, now: int) -> str:
        """Return why a pod must not preempt now, "" if it may; it is retried when it may again."""
        history = self._history_of(pod)
        if history is None or history.until_ns <= now:
            return ""
        self._waiting.set(pod.uid, history.until_ns)
        until = format_time(history.until_ns)
        return f"{history.futile} preemptions were futile, as other pods took the room; the next is tried at {until}"

    def take_due(self, now: int) -> str | None:
        """Return the uid of a pod whose wait is over; None if there is none."""
        if not (self._histories or self._waiting.times):
            return None
        while (owner := self._expiries.take_due(now)) is not None:
            if (history := self._histories.get(owner)) is not None:
                history.lost, history.taken_up = [], []
                self._forget_if_empty(owner)
        return self._waiting.take_due(now)

    def restore(self, pod: PodRecord, shown: Pod) -> None:
        """Continue from the annotation of a pod that is observed for the first time."""
        note = note_of(shown) if self._most else None
        if note is not None:
            history = self._taken_up(self._owner(pod), note)
            history.rounds.setdefault(pod.uid, note.round)
            history.noted[pod.uid] = pod

    def restore_lost(self, pod: Pod, now: int) -> None:
        """Track the preemption of a pod that failed before it was first observed."""
        note = note_of(pod) if self._most and pod.status.phase == "Failed" else None
        lost = None if note is None else note.round
        if note is not None and lost is not None and pod.spec.node_name == lost.node_name:
            meta, controller = pod.metadata, pod.metadata.controller
            group = group_of_pod(meta.namespace, meta.labels, pod.spec)
            owner = self._owner_of(group, meta.uid if controller is None else controller.uid)
            self._taken_up(owner, note).taken_up.append(lost)
            self._expiries.set(owner, now + _LONGEST_WAIT_NS)

    def _taken_up(self, owner_uid: str, note: FutilityNote) -> PreemptionHistory:
        history = self._histories.setdefault(owner_uid, PreemptionHistory())
        history.futile = max(history.futile, note.futile)
        history.until_ns = max(history.until_ns, note.until_ns)
        history.judged_ns = max(history.judged_ns, note.judged_ns)
        return history

    def on_running(self, pod: PodRecord, now: int) -> list[PatchObject]:
        """Reset the count of a tracked pod's owner, and return the removal of its annotations."""
        history = self._history_of(pod)
        if history is None or pod.uid not in history.rounds:
            return []
        del history.rounds[pod.uid]
        if history.until_ns:
            for uid in history.rounds:
                self._waiting.set(uid, now)
        cleared = [_annotate(noted, None) for _, noted in sorted(history.noted.items())]
        history.lost, history.taken_up, history.noted, history.futile, history.until_ns = [], [], {}, 0, 0
        self._forget_if_empty(self._owner(pod))
        return cleared

    def on_rejected(self, pod: PodRecord, node_name: str, now: int) -> None:
        """Keep the preemption of a pod that its kubelet rejected, for its replacement; it expires."""
        history = self._history_of(pod)
        last = None if history is None else history.rounds.get(pod.uid)
        if history is not None and last is not None and last.node_name == node_name:
            history.lost.append(last)
            self._expiries.set(self._owner(pod), now + _LONGEST_WAIT_NS)

    def forget(self, pod: PodRecord) -> None:
        if not (self._histories or self._waiting.times):
            return
        self._waiting.set(pod.uid, None)
        if (history := self._history_of(pod)) is not None:
            history.rounds.pop(pod.uid, None)
            history.noted.pop(pod.uid, None)
            self._forget_if_empty(self._owner(pod))

    def _forget_if_empty(self, owner: str) -> None:
        history = self._histories[owner]
        if not history.rounds and not history.lost and not history.taken_up:
            del self._histories[owner]
            self._expiries.set(owner, None)

    # The pods that took the capacity

    def _owner(self, pod: PodRecord) -> str:
        """Return the key under which a pod's preemptions count: its scheduled group, or its owner."""
        return self._owner_of(pod.pod_class.pod_group, pod.owner_uid)

    def _owner_of(self, group: str, owner_uid: str) -> str:
        """Return the same for the key of a group ("" for none) and the uid of an owner."""
        return f"PodGroup/{group}" if group and self._cluster.pod_groups.are_scheduled else owner_uid

    def _present(self, runner: Runner, state: CycleState, pod: PodRecord, row: int, now: int) -> list[PodRecord]:
        """Return the pods on a row, and those elsewhere that exclude ``pod`` from it and started at ``now`` or later.

        Start times are in whole seconds.
        """
        found = self._cluster.pods_on(row)
        if runner.is_row_local(state):
            return found
        second_ns = now - now % SECOND_NS
        elsewhere = blocking_pods_elsewhere(self._cluster, runner.reaches(state, pod), row)
        return [*found, *(other for other in elsewhere if other.start_ns >= second_ns)]

    def _takers_of(self, runner: Runner, pod: PodRecord, ended: PreemptionRound) -> list[str]:
        """Return the keys of the pods that took the capacity freed for ``pod``; empty if they did not."""
        row = self._cluster.nodes.row_of.get(ended.node_name)
        state = CycleState()
        if row is None or not runner.pre_filter(state, pod).status.is_success:
            return []
        come = self._present(runner, state, pod, row, ended.began_ns)
        takers = self._others(pod, come, ended.present, pod.priority)
        return [other.key for other in takers] if takers and fits_without(runner, pod, row, takers) else []

    def _come_to_nodes(self, pod: PodRecord, rounds: Iterable[PreemptionRound], priority: int) -> list[PodRecord]:
        """Return other owners' pods that came to the nodes of some rounds, up to a priority."""
        present: dict[str, frozenset[str]] = {}
        for each in rounds:
            present[each.node_name] = present.get(each.node_name, frozenset()) | each.present
        rows = self._cluster.nodes.row_of
        names = (name for name in sorted(present) if name in rows)
        found = (self._others(pod, self._cluster.pods_on(rows[name]), present[name], priority) for name in names)
        return [other for others in found for other in others]

    def _others(self, pod: PodRecord, come: list[PodRecord], there: frozenset[str], priority: int) -> list[PodRecord]:
        owner = self._owner(pod)
        return [one for one in come if one.uid not in there and one.priority <= priority and self._owner(one) != owner]


def _annotate(pod: PodRecord, text: str | None) -> PatchObject:
    """Return the write of the annotation, None to remove it."""
    return PatchObject("Pod", pod.key, pod.uid, {"metadata": {"annotations": {ANNOTATION: text}}}, pod.scheduler_name)


def _uids(pods: Iterable[PodRecord]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


class PreemptionHistory(msgspec.Struct):
    """The preemptions for an owner's or a group's pods since one of them last ran.

    ``rounds`` are by preemptor uid, None if judged. ``lost`` are those of rejected pods, ``taken_up`` those from
    annotations of failed pods, of which those up to ``judged_ns`` are judged. ``noted`` are the pods with an
    annotation; ``is_noted``: it is current. No pod of the owner preempts before ``until_ns``.
    """

    rounds: dict[str, PreemptionRound | None] = {}
    lost: list[PreemptionRound] = []
    taken_up: list[PreemptionRound] = []
    judged_ns: int = 0
    noted: dict[str, PodRecord] = {}
    is_noted: bool = True
    futile: int = 0
    until_ns: int = 0

    def take_lost(self) -> list[PreemptionRound]:
        """Return and drop the unjudged rounds of pods that are gone."""
        found = self.lost + [each for each in self.taken_up if each.began_ns > self.judged_ns]
        self.lost, self.taken_up = [], []
        return found

    def take_ended(self, cluster: Cluster, pods: Sequence[PodRecord]) -> dict[str, PreemptionRound]:
        """Return and drop the last rounds of some pods by uid, if all their victims are gone."""
        found = {pod.uid: last for pod in pods if (last := self.rounds.setdefault(pod.uid, None)) is not None}
        if not all(cluster.placed.keys().isdisjoint(last.victims) for last in found.values()):
            return {}
        self.rounds.update(dict.fromkeys(found))
        return found
