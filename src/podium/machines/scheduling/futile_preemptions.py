"""Preemptions that came to nothing: the victims went, and pods that are not more important took their room.

Schedulers do not know of one another's nominations: one preempts, and another puts the victim's replacement into the
room, for ever. So a pod whose preemptions were futile several times waits before it preempts again, longer each time.
They are counted for the pod's owner, since a kubelet may also turn the preemptor away in favour of a pod that was
quicker, and then it is the preemptor's replacement that goes on. Pods of a group that are placed together preempt by
one plan, and are counted as one.

Source: pod-preemption.md, "Race condition in multi-scheduler clusters"; kubernetes/kubernetes#130429.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.api.pod import Pod
from podium.api.pod_group import group_of_pod
from podium.api.times import format_duration, format_time
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner
from podium.machines.actions import PatchObject, Record
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.futile_history import History
from podium.machines.scheduling.futile_notes import ANNOTATION, Note, Round, written
from podium.machines.scheduling.futile_takers import FutileTakers
from podium.machines.scheduling.gangs.futile_plans import would_fit
from podium.machines.scheduling.queue.queued_pod import SECOND_NS

_FIRST_WAIT_NS = 60 * SECOND_NS
_LONGEST_WAIT_NS = 3_600 * SECOND_NS
_DOUBLINGS = 6
_MOST_NAMES = 3


class FutilePreemptions:
    """Counts them by owner, and says who must wait. ``most`` in a row are borne; with 0 nobody ever waits.

    A preemption is futile if all its victims are gone and the pod, which fits nowhere, would fit its node but for
    other owners' pods that came since and are not more important: to the node itself, or to others where they are in
    the way, as by anti-affinity over the node's rack. So a room that a more important pod has taken, or a node that is
    gone or has changed, does not count.

    What is known stands in the pods as well (`futile_notes`), and is taken up from there by whoever begins anew.
    """

    def __init__(self, cluster: Cluster, most: int) -> None:
        self._cluster = cluster
        self._most = most
        self._takers = FutileTakers(cluster)
        self._histories: dict[str, History] = {}
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
        return bool(self._histories) and self._takers.owner(pod) in self._histories

    def begin(
        self,
        runner: Runner,
        state: CycleState,
        pod: PodRecord,
        node_name: str,
        victims: Iterable[PodRecord],
        now: int,
    ) -> None:
        """Victims are being deleted for a pod; whatever was begun for it before is not judged any more.

        ``state`` is that of the attempt at the pod.
        """
        if not self._most:
            return
        uids = frozenset([victim.uid for victim in victims])
        row = self._cluster.nodes.row_of.get(node_name)
        if uids and row is not None:
            self._begin(pod, Round(node_name, uids, _uids(self._takers.present(runner, state, pod, row, now)), now))

    def begin_plan(self, steps: Iterable[tuple[PodRecord, str]], victims: Iterable[PodRecord], now: int) -> None:
        """Victims are being deleted for pods of one group, each of which is to go to a node."""
        victims_on: dict[str, set[str]] = {}
        for victim in victims:
            victims_on.setdefault(victim.node_name, set()).add(victim.uid)
        if not victims_on or not self._most:
            return
        theirs = [(pod, node_name, victims_on.pop(node_name, set())) for pod, node_name in steps]
        # Those who go where no member comes are waited for as well.
        theirs[0][2].update(uid for uids in victims_on.values() for uid in uids)
        for pod, node_name, uids in theirs:
            row = self._cluster.nodes.row_of.get(node_name)
            if row is not None:
                self._begin(pod, Round(node_name, frozenset(uids), _uids(self._cluster.pods_on(row)), now))

    def judge(self, runner: Runner, pod: PodRecord, now: int) -> list[Record]:
        """Judge what was begun for a pod that fits nowhere; says so if that is why it must wait from now on."""
        history = self._history_of(pod)
        if history is None:
            return []
        rounds = [*history.take_lost(), *history.take_ended(self._cluster, [pod]).values()]
        taken = [(each, takers) for each in rounds if (takers := self._takers.of(runner, pod, each))]
        return self._count(history, pod, rounds, taken, now)

    def judge_plan(self, runner: Runner, gang: Gang, now: int) -> list[Record]:
        """The same for the members of a group of which too few fit: what was begun for them at once counts once."""
        first = gang.members[0]
        history = self._histories.get(self._takers.owner(first))
        if history is None:
            return []
        lost, ended = history.take_lost(), history.take_ended(self._cluster, gang.members)
        taken = {each.began_ns: (each, takers) for each in lost if (takers := self._takers.of(runner, first, each))}
        for began_ns in sorted({each.began_ns for each in ended.values()}):
            theirs = {uid: each for uid, each in ended.items() if each.began_ns == began_ns}
            others = self._takers.on_nodes(first, theirs.values(), gang.priority)
            if others and would_fit(runner, gang, theirs, others):
                round_on = {each.node_name: each for each in theirs.values()}
                taken[began_ns] = round_on[others[0].node_name], [other.key for other in others]
        return self._count(history, first, [*lost, *ended.values()], list(taken.values()), now)

    def _history_of(self, pod: PodRecord) -> History | None:
        """What is known of a pod's owner; most often there is nothing to look for."""
        return self._histories.get(self._takers.owner(pod)) if self._histories else None

    def _begin(self, pod: PodRecord, begun: Round) -> None:
        self._has_begun = True
        history = self._histories.setdefault(self._takers.owner(pod), History())
        history.rounds[pod.uid] = begun
        history.is_noted = False

    def _count(
        self,
        history: History,
        pod: PodRecord,
        rounds: Sequence[Round],
        taken: Sequence[tuple[Round, list[str]]],
        now: int,
    ) -> list[Record]:
        """Count those of some rounds that were futile, with who took their room."""
        history.judged_ns = max((history.judged_ns, *(ended.began_ns for ended in rounds)))
        history.futile += len(taken)
        history.is_noted = history.is_noted and not rounds
        if not taken or history.futile < self._most:
            return []
        wait_ns = min(_FIRST_WAIT_NS << min(history.futile - self._most, _DOUBLINGS), _LONGEST_WAIT_NS)
        history.until_ns = now + wait_ns
        ended, takers = taken[-1]
        message = (
            f"{history.futile} preemptions were futile: other pods took the room, last on node {ended.node_name} "
            f"{_some(takers)}; no further preemption for {format_duration(wait_ns)}"
        )
        return [Record(pod.key, pod.uid, "Warning", "PreemptionBackoff", message, ended.node_name)]

    def note_all(self, pods: Sequence[PodRecord]) -> list[PatchObject]:
        """What is to be noted in the pods of one group after their attempt: in each what it waits for."""
        history = self._histories.get(self._takers.owner(pods[0])) if self._histories else None
        if history is None or history.is_noted:
            return []
        found: list[PatchObject] = []
        for pod in pods:
            if pod.uid in history.rounds and (pod is pods[0] or history.rounds[pod.uid] is not None):
                history.is_noted = False
                found += self.note(pod)
        return found

    def note(self, pod: PodRecord) -> list[PatchObject]:
        """What is to be noted in a pod after its attempt: nothing where it says so already."""
        history = self._history_of(pod)
        if history is None or history.is_noted or pod.uid not in history.rounds:
            return []
        history.is_noted = True
        history.noted[pod.uid] = pod
        known = Note(futile=history.futile, until_ns=history.until_ns, judged_ns=history.judged_ns)
        return [_annotate(pod, written(known, history.rounds[pod.uid]))]

    def wait(self, pod: PodRecord, now: int) -> str:
        """Why a pod may not preempt now, "" where it may. One that may not is handed out when it may again."""
        history = self._history_of(pod)
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
            history = self._taken_up(self._takers.owner(pod), note)
            history.rounds.setdefault(pod.uid, note.round)
            history.noted[pod.uid] = pod

    def restore_lost(self, pod: Pod, note: Note, now: int) -> None:
        """A pod has failed before it was seen here: if its kubelet turned it away, its replacement will tell why."""
        lost = note.round
        if self._most and lost is not None:
            meta, controller = pod.metadata, pod.metadata.controller
            group = group_of_pod(meta.namespace, meta.labels, pod.spec)
            owner = self._takers.owner_of(group, meta.uid if controller is None else controller.uid)
            self._taken_up(owner, note).taken_up.append(lost)
            self._expiries.set(owner, now + _LONGEST_WAIT_NS)

    def _taken_up(self, owner_uid: str, note: Note) -> History:
        self._has_begun = True
        history = self._histories.setdefault(owner_uid, History())
        history.futile = max(history.futile, note.futile)
        history.until_ns = max(history.until_ns, note.until_ns)
        history.judged_ns = max(history.judged_ns, note.judged_ns)
        return history

    def runs(self, pod: PodRecord, now: int) -> list[PatchObject]:
        """A pod runs on its node: if it is one of those concerned, its owner begins anew.

        Returns what takes the notes off the owner's pods.
        """
        history = self._history_of(pod)
        if history is None or pod.uid not in history.rounds:
            return []
        del history.rounds[pod.uid]
        if history.until_ns:
            for uid in history.rounds:
                self._waiting.set(uid, now)
        cleared = [_annotate(noted, None) for _, noted in sorted(history.noted.items())]
        history.lost, history.taken_up, history.noted, history.futile, history.until_ns = [], [], {}, 0, 0
        self._tidy(self._takers.owner(pod))
        return cleared

    def rejected(self, pod: PodRecord, node_name: str, now: int) -> None:
        """A pod has failed on a node before it ran: its kubelet turned it away, and its replacement will tell why.

        Unless there is none: then the loss is forgotten after a while.
        """
        history = self._history_of(pod)
        last = None if history is None else history.rounds.get(pod.uid)
        if history is not None and last is not None and last.node_name == node_name:
            history.lost.append(last)
            self._expiries.set(self._takers.owner(pod), now + _LONGEST_WAIT_NS)

    def forget(self, pod: PodRecord) -> None:
        """A pod is gone."""
        if not self._has_begun:
            return
        if self._waiting.times:
            self._waiting.set(pod.uid, None)
        history = self._history_of(pod)
        if history is not None:
            history.rounds.pop(pod.uid, None)
            history.noted.pop(pod.uid, None)
            self._tidy(self._takers.owner(pod))

    def _tidy(self, owner: str) -> None:
        history = self._histories[owner]
        if not history.rounds and not history.lost and not history.taken_up:
            del self._histories[owner]
            self._expiries.set(owner, None)


def _annotate(pod: PodRecord, text: str | None) -> PatchObject:
    """Note something in a pod, or nothing any more."""
    return PatchObject("Pod", pod.key, pod.uid, {"metadata": {"annotations": {ANNOTATION: text}}}, pod.scheduler_name)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def _uids(pods: Iterable[PodRecord]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)
