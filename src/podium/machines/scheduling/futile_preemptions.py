"""Preemptions that came to nothing: the victims went, and pods that are not more important took their room.

Schedulers do not know of one another's nominations: one preempts, and another puts the victim's replacement into the
room, for ever. So a pod whose preemptions were futile several times waits before it preempts again, longer each time.
They are counted for the pod's owner, since a kubelet may also turn the preemptor away in favour of a pod that was
quicker, and then it is the preemptor's replacement that goes on.

Source: pod-preemption.md, "Race condition in multi-scheduler clusters"; kubernetes/kubernetes#130429.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.api.times import format_duration, format_time
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.fitting import fits_without
from podium.framework.runner import Runner
from podium.machines.actions import PatchObject, Record
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.futile_notes import ANNOTATION, Note, Round, written
from podium.machines.scheduling.queue.queued_pod import SECOND_NS

_FIRST_WAIT_NS = 60 * SECOND_NS
_LONGEST_WAIT_NS = 3_600 * SECOND_NS
_DOUBLINGS = 6
_MOST_NAMES = 3


@dataclass(slots=True)
class _History:
    """The preemptions for an owner's pods since one of them last ran.

    ``rounds`` are by the uid of the preemptor, None where it is judged; ``lost`` are those of pods that their kubelets
    turned away, ``taken_up`` those that such pods carried when they were first seen. Of these somebody may have judged
    some before: ``judged_ns`` is when the last that was judged had begun. ``noted`` are the pods that carry a note,
    ``is_noted`` whether the last one says all there is. No pod of the owner preempts before ``until_ns``.
    """

    rounds: dict[str, Round | None] = field(default_factory=dict)
    lost: list[Round] = field(default_factory=list)
    taken_up: list[Round] = field(default_factory=list)
    judged_ns: int = 0
    noted: dict[str, PodRecord] = field(default_factory=dict)
    is_noted: bool = True
    futile: int = 0
    until_ns: int = 0


class FutilePreemptions:
    """Counts them by owner, and says who must wait. ``most`` in a row are borne; with 0 nobody ever waits.

    A preemption is futile if all its victims are gone and the pod, which fits nowhere, would fit their node but for
    other owners' pods that came there since and are not more important. So a room that a more important pod has taken,
    or a node that is gone or has changed, does not count.

    What is known stands in the pods as well (`futile_notes`), and is taken up from there by whoever begins anew.
    """

    def __init__(self, cluster: Cluster, most: int) -> None:
        self._cluster = cluster
        self._most = most
        self._histories: dict[str, _History] = {}
        self._waiting: Deadlines[str] = Deadlines()
        self.waiting = self._waiting.times.keys()
        """The uids of pods that wait until they may preempt again, as things are."""
        # By owner, when rounds that were lost are forgotten if none of its pods has come to judge them.
        self._expiries: Deadlines[str] = Deadlines()
        # Whether any preemption was ever begun: without, nobody waits.
        self._has_begun = False

    def __len__(self) -> int:
        return len(self._histories)

    def knows(self, pod: PodRecord) -> bool:
        """Whether preemptions for the pod's owner are judged."""
        return bool(self._histories) and pod.owner_uid in self._histories

    def begin(self, pod: PodRecord, node_name: str, victims: Iterable[PodRecord], now: int) -> None:
        """Victims are being deleted for a pod; whatever was begun for it before is not judged any more."""
        uids = frozenset(victim.uid for victim in victims)
        row = self._cluster.nodes.row_of.get(node_name)
        if self._most and uids and row is not None:
            present = self._cluster.pods_on(row)
            self._has_begun = True
            history = self._histories.setdefault(pod.owner_uid, _History())
            history.rounds[pod.uid] = Round(node_name, uids, frozenset(other.uid for other in present), now)
            history.is_noted = False

    def judge(self, runner: Runner, pod: PodRecord, now: int) -> list[Record]:
        """Judge what was begun for a pod that fits nowhere; says so if that is why it must wait from now on."""
        history = self._histories.get(pod.owner_uid)
        if history is None:
            return []
        rounds = history.lost + [each for each in history.taken_up if each.began_ns > history.judged_ns]
        history.lost, history.taken_up = [], []
        last = history.rounds.setdefault(pod.uid, None)
        if last is not None and self._cluster.placed.keys().isdisjoint(last.victims):
            rounds = [*rounds, last]
            history.rounds[pod.uid] = None
        history.judged_ns = max((history.judged_ns, *(ended.began_ns for ended in rounds)))
        taken = [(ended.node_name, takers) for ended in rounds if (takers := self._takers(runner, pod, ended))]
        history.futile += len(taken)
        history.is_noted = history.is_noted and not rounds
        if not taken or history.futile < self._most:
            return []
        wait_ns = min(_FIRST_WAIT_NS << min(history.futile - self._most, _DOUBLINGS), _LONGEST_WAIT_NS)
        history.until_ns = now + wait_ns
        node_name, takers = taken[-1]
        message = (
            f"{history.futile} preemptions were futile: other pods took the room, last on node {node_name} "
            f"{_some(takers)}; no further preemption for {format_duration(wait_ns)}"
        )
        return [Record(pod.key, pod.uid, "Warning", "PreemptionBackoff", message, node_name)]

    def note(self, pod: PodRecord) -> list[PatchObject]:
        """What is to be noted in a pod after its attempt: nothing where it says so already."""
        history = self._histories.get(pod.owner_uid)
        if history is None or history.is_noted or pod.uid not in history.rounds:
            return []
        history.is_noted = True
        history.noted[pod.uid] = pod
        known = Note(futile=history.futile, until_ns=history.until_ns, judged_ns=history.judged_ns)
        return [_annotate(pod, written(known, history.rounds[pod.uid]))]

    def wait(self, pod: PodRecord, now: int) -> str:
        """Why a pod may not preempt now, "" where it may. One that may not is handed out when it may again."""
        history = self._histories.get(pod.owner_uid)
        if history is None or history.until_ns <= now:
            return ""
        self._waiting.set(pod.uid, history.until_ns)
        until = format_time(history.until_ns)
        return f"{history.futile} preemptions were futile, as other pods took the room; the next is tried at {until}"

    def take_due(self, now: int) -> str | None:
        """The uid of a pod whose wait is over; None when there is none."""
        if not self._has_begun:
            return None
        while (owner := self._expiries.take_due(now)) is not None:
            history = self._histories.get(owner)
            if history is not None:
                history.lost, history.taken_up = [], []
                self._tidy(owner)
        return self._waiting.take_due(now)

    def next_deadline(self) -> int | None:
        """When `take_due` next has something; None for never."""
        return self._waiting.next_time()

    def restore(self, pod: PodRecord, note: Note) -> None:
        """A pod is seen for the first time, and carries what was known of its owner: go on from there."""
        if self._most:
            history = self._taken_up(pod.owner_uid, note)
            history.rounds.setdefault(pod.uid, note.round)
            history.noted[pod.uid] = pod

    def restore_lost(self, owner_uid: str, note: Note, now: int) -> None:
        """A pod has failed before it was seen here: if its kubelet turned it away, its replacement will tell why."""
        lost = note.round
        if self._most and lost is not None:
            self._taken_up(owner_uid, note).taken_up.append(lost)
            self._expiries.set(owner_uid, now + _LONGEST_WAIT_NS)

    def _taken_up(self, owner_uid: str, note: Note) -> _History:
        self._has_begun = True
        history = self._histories.setdefault(owner_uid, _History())
        history.futile = max(history.futile, note.futile)
        history.until_ns = max(history.until_ns, note.until_ns)
        history.judged_ns = max(history.judged_ns, note.judged_ns)
        return history

    def runs(self, pod: PodRecord, now: int) -> list[PatchObject]:
        """A pod runs on its node: if it is one of those concerned, its owner begins anew.

        Returns what takes the notes off the owner's pods.
        """
        if not self._histories:
            return []
        history = self._histories.get(pod.owner_uid)
        if history is None or pod.uid not in history.rounds:
            return []
        del history.rounds[pod.uid]
        if history.until_ns:
            for uid in history.rounds:
                self._waiting.set(uid, now)
        cleared = [_annotate(noted, None) for _, noted in sorted(history.noted.items())]
        history.lost, history.taken_up, history.noted, history.futile, history.until_ns = [], [], {}, 0, 0
        self._tidy(pod.owner_uid)
        return cleared

    def rejected(self, pod: PodRecord, node_name: str, now: int) -> None:
        """A pod has failed on a node before it ran: its kubelet turned it away, and its replacement will tell why.

        Unless there is none: then the loss is forgotten after a while.
        """
        history = self._histories.get(pod.owner_uid)
        last = None if history is None else history.rounds.get(pod.uid)
        if history is not None and last is not None and last.node_name == node_name:
            history.lost.append(last)
            self._expiries.set(pod.owner_uid, now + _LONGEST_WAIT_NS)

    def forget(self, pod: PodRecord) -> None:
        """A pod is gone."""
        if self._waiting.times:
            self._waiting.set(pod.uid, None)
        if not self._histories:
            return
        history = self._histories.get(pod.owner_uid)
        if history is not None:
            history.rounds.pop(pod.uid, None)
            history.noted.pop(pod.uid, None)
            self._tidy(pod.owner_uid)

    def _tidy(self, owner: str) -> None:
        history = self._histories[owner]
        if not history.rounds and not history.lost and not history.taken_up:
            del self._histories[owner]
            self._expiries.set(owner, None)

    def _takers(self, runner: Runner, pod: PodRecord, ended: Round) -> list[str]:
        """The keys of the pods that took the room which a preemption had made for ``pod``; none where it is not so."""
        row = self._cluster.nodes.row_of.get(ended.node_name)
        if row is None:
            return []
        takers = [
            other
            for other in self._cluster.pods_on(row)
            if other.uid not in ended.present and other.priority <= pod.priority and other.owner_uid != pod.owner_uid
        ]
        return [other.key for other in takers] if takers and fits_without(runner, pod, row, takers) else []


def _annotate(pod: PodRecord, text: str | None) -> PatchObject:
    """Note something in a pod, or nothing any more."""
    return PatchObject("Pod", pod.key, pod.uid, {"metadata": {"annotations": {ANNOTATION: text}}}, pod.scheduler_name)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown
