"""The queue of schedulers after a failure: in which order pods are tried, and what wakes them.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, backoff_queue.go).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush

from msgspec.structs import replace

from podium.app.planning.deciding.attempts import FailedAttempts, PodKind, kind_of
from podium.app.planning.deciding.decisions import AGAIN, Decisions, PlacedPod, replacement
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import assigned_event, wakes
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueueSettings
from podium.controllers.workloads.workload_controller import CreationWaits
from podium.framework.events import ClusterEvent

LATER_NS = 1 << 62
"""The time of the failure: what comes after it is younger than all else."""

# Further attempts do not lengthen a pod's backoff.
_MOST_ATTEMPTS = 5
_FLUSH_NS = QueueSettings().unschedulable_flush_ns


class FailureQueue:
    """The pods that wait for a node, tried at one time after another.

    Rejected pods wait for an event that one of the plugins that rejected them registered, as in the scheduler's queue.
    Preemptors are nominated: their victims leave at once, with replacements, and they are tried again when no other pod
    is active, like woken pods that have failed at the same time. Backoffs of earlier times have expired. A workload
    whose new pod is preempted at once creates the next one later (`podium.controllers.workloads.workload_controller`).
    """

    def __init__(
        self, decisions: Decisions, failed: FailedAttempts, waiting: Iterable[PodRecord], taints: Iterable[int]
    ) -> None:
        """``taints`` are the times at which nodes get taints, which wake all pods; the first is 0."""
        self.victims = 0
        """The number of preempted pods."""
        self._decisions = decisions
        self._failed = failed
        self._taints = sorted(taints)
        # By uid, pods and their attempts; `queued_ns` is the time of the last one.
        self._known = {pod.uid: QueuedPod(pod, -1, attempts=1) for pod in waiting}
        # The pods that wait, by uid, among those of their kind that the same plugins have rejected.
        self._waiting: defaultdict[tuple[PodKind, tuple[str, ...]], dict[str, QueuedPod]] = defaultdict(dict)
        for uid, queued in self._known.items():
            self._beside(queued)[uid] = queued
        # By uid, the number of pods that had found a node before a pod's last attempt.
        self._placed_before: Counter[str] = Counter()
        self._placed = 0
        self._now_ns = 0
        # Active pods come before those that back off, which come by their number of attempts.
        self._heap: list[tuple[int, tuple[object, ...], QueuedPod]] = []
        # The kinds of pods whose attempts have failed since the last one found a node or left one.
        self._hopeless: set[PodKind] = set()
        self.later: list[PodRecord] = []
        """The pods that are created later."""
        # The uids of the pods that were created now.
        self._new: set[str] = set()
        self._waits = CreationWaits()

    @property
    def waiting(self) -> tuple[PodRecord, ...]:
        """The pods that wait for a node."""
        return tuple(queued.record for queued in self._queued())

    def pass_time(self, until_ns: int | None) -> None:
        """Try pods again before ``until_ns``, or as long as they may find a node."""
        while (next_ns := self._next_ns()) is not None and (until_ns is None or next_ns < until_ns):
            self.try_pods((), next_ns)

    def try_pods(self, created: Iterable[PodRecord], now_ns: int) -> None:
        """Try the pods that are created now, and the waiting ones that a taint, an event or their time wakes.

        Each is tried again five minutes after its last attempt.
        """
        self._now_ns = now_ns
        self._new.clear()
        self._hopeless.clear()
        later, self.later = self.later, []
        self._create((*created, *later))
        self._wake([queued for queued in self._queued() if not self._waits_ns(queued) % _FLUSH_NS])
        while self._heap:
            *_, queued = heappop(self._heap)
            pod = queued.record
            if pod.uid in self._decisions.cluster.placed:
                # With its gang.
                continue
            self._count_attempts(queued)
            attempt = partial(self._decisions.attempt, pod, failed=self._failed, nominates=True)
            found = () if kind_of(pod) in self._hopeless else self._failed.attempt(pod, attempt)
            if all(each.pod.uid != pod.uid for each in found):
                # Others of its gang may have found nodes.
                self._reject(queued)
            for each in found:
                self._place(each)

    def _queued(self) -> list[QueuedPod]:
        return [queued for pods in self._waiting.values() for queued in pods.values()]

    def _beside(self, queued: QueuedPod) -> dict[str, QueuedPod]:
        """Return the waiting pods of the pod's kind that the same plugins have rejected."""
        return self._waiting[kind_of(queued.record), queued.unschedulable_plugins]

    def _next_ns(self) -> int | None:
        """Return when pods are next created, or tried again after others have found a node; None for never."""
        times = [pod.created_ns - LATER_NS for pod in self.later if not self._waits.is_mere_retry(pod.owner_uid)]
        upcoming = self._taints[bisect_right(self._taints, self._now_ns) :][:1]
        fails: dict[PodKind, bool] = {}
        for queued in self._queued():
            if self._placed_before[queued.record.uid] == self._placed:
                continue
            if (kind := kind_of(queued.record)) not in fails:
                fails[kind] = self._failed.fails_again(queued.record)
            if not fails[kind]:
                flush_ns = self._now_ns + _FLUSH_NS - self._waits_ns(queued) % _FLUSH_NS
                times.append(min([flush_ns, *upcoming]))
        return min(times, default=None)

    def _waits_ns(self, queued: QueuedPod) -> int:
        """Return how long ago the pod was tried, or woken by a taint."""
        return self._now_ns - max(queued.queued_ns, self._taints[bisect_right(self._taints, self._now_ns) - 1])

    def _count_attempts(self, queued: QueuedPod) -> None:
        """Count an attempt now, and those that have failed since the last one: at each taint and after five minutes."""
        woken = self._taints[bisect_right(self._taints, queued.queued_ns) : bisect_left(self._taints, self._now_ns)]
        queued.attempts += 1 + len(woken) + max(self._waits_ns(queued) - 1, 0) // _FLUSH_NS
        queued.queued_ns, self._placed_before[queued.record.uid] = self._now_ns, self._placed

    def _create(self, pods: Iterable[PodRecord]) -> None:
        """Let workloads create pods, those after a wait whose new pods were preempted."""
        for pod in pods:
            if pod.uid.removesuffix(AGAIN) in self._new:
                self._waits.ends.fail(pod.owner_uid, self._now_ns)
            until_ns = self._waits.until(pod.owner_uid, self._now_ns)
            created = replace(pod, created_ns=LATER_NS + (until_ns or self._now_ns))
            if until_ns is not None:
                self.later.append(created)
            else:
                self._new.add(pod.uid)
                self._known[pod.uid] = QueuedPod(created, self._now_ns)
                self._activate(self._known[pod.uid])

    def _place(self, found: PlacedPod) -> None:
        """Take in that a pod has got a node, or is nominated to one that its victims have left."""
        self._placed += 1
        self._beside(self._known[found.pod.uid]).pop(found.pod.uid, None)
        self._failed.leave(found.victims)
        self.victims += len(found.victims)
        self._create(replacement(pod) for pod in found.victims if pod.controller and not pod.is_mirror)
        for victim in found.victims:
            self._note(assigned_event(victim, None))
        if found.pod.uid in self._decisions.cluster.nominations:
            self._back_off(self._known[found.pod.uid])
        else:
            self._note(assigned_event(None, found.pod))

    def _reject(self, queued: QueuedPod) -> None:
        """Let a pod wait until something wakes it. Others may take the room for which it was nominated."""
        pod = queued.record
        if self._decisions.end_nomination(pod):
            self._note(assigned_event(pod, None))
        self._hopeless.add(kind := kind_of(pod))
        if kind not in self._failed.plugins:
            self._failed.plugins[kind] = self._decisions.rejecting_plugins(pod)
        queued.unschedulable_plugins = self._failed.plugins[kind]
        # Pods that are tried at one time are equally old from then on.
        queued.record = replace(pod, created_ns=LATER_NS + self._now_ns)
        self._beside(queued)[pod.uid] = queued

    def _note(self, event: ClusterEvent) -> None:
        """Wake the pods for which an event counts."""
        self._hopeless.clear()
        for pods in filter(None, [*self._waiting.values()]):
            first = next(iter(pods.values()))
            if wakes(self._decisions.rejections.of(first, "").hints(event), first.record, event):
                self._wake([*pods.values()])

    def _wake(self, pods: Iterable[QueuedPod]) -> None:
        """Let pods be tried; if they were tried now, when none is active, those with the fewest attempts first."""
        for queued in pods:
            del self._beside(queued)[queued.record.uid]
            if queued.queued_ns == self._now_ns:
                self._back_off(queued)
            else:
                self._activate(queued)

    def _back_off(self, queued: QueuedPod) -> None:
        order = self._decisions.order_of(queued.record)
        heappush(self._heap, (min(queued.attempts, _MOST_ATTEMPTS), order, queued))

    def _activate(self, queued: QueuedPod) -> None:
        self._decisions.scratch.join_group(queued.record)
        # Among equally important pods, the one that has started last is the first victim.
        queued.record = replace(queued.record, start_ns=LATER_NS + self._now_ns)
        heappush(self._heap, (0, self._decisions.order_of(queued.record), queued))
