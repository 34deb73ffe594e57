"""The queue of schedulers after a failure: in which order pods are tried, and what wakes them.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, backoff_queue.go).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush

from msgspec.structs import replace

from podium.app.planning.deciding.attempts import FailedAttempts, PodKind, kind_of
from podium.app.planning.deciding.decisions import AGAIN, Decisions, replacement
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.queued_pod import QueueSettings
from podium.controllers.workloads.workload_controller import CreationWaits

LATER_NS = 1 << 62
"""The time of the failure: what comes after it is younger than all else."""

# Further attempts do not lengthen a pod's backoff.
_MOST_ATTEMPTS = 5
_FLUSH_NS = QueueSettings().unschedulable_flush_ns


class FailureQueue:
    """The pods that wait for a node, tried at one time after another.

    Preemptors are nominated: their victims leave at once, with replacements, and they are tried again when no other pod
    is active, like pods that have failed at the same time. Backoffs of earlier times have expired. A workload whose new
    pod is preempted at once creates the next one later (`podium.controllers.workloads.workload_controller`).
    """

    def __init__(
        self, decisions: Decisions, failed: FailedAttempts, waiting: Iterable[PodRecord], taints: Iterable[int]
    ) -> None:
        """``taints`` are the times at which nodes get taints, which wake all pods; the first is 0."""
        self.waiting = list(waiting)
        self.victims = 0
        """The number of preempted pods."""
        self._decisions = decisions
        self._failed = failed
        self._taints = sorted(taints)
        self._attempts = Counter({pod.uid: 1 for pod in self.waiting})
        # By uid, the time of the last attempt, and the number of pods that had found a node before.
        self._tried = {pod.uid: (-1, 0) for pod in self.waiting}
        self._placed = 0
        self._now_ns = 0
        # Active pods come before those that back off, which come by their number of attempts.
        self._heap: list[tuple[int, tuple[object, ...], PodRecord]] = []
        self._rejected: list[PodRecord] = []
        # The kinds of pods whose attempts have failed since the last pod was woken.
        self._hopeless: set[PodKind] = set()
        self.later: list[PodRecord] = []
        """The pods that are created later."""
        # The uids of the pods that were created now.
        self._new: set[str] = set()
        self._waits = CreationWaits()

    def pass_time(self, until_ns: int | None) -> None:
        """Try pods again before ``until_ns``, or as long as they may find a node."""
        while (next_ns := self._next_ns()) is not None and (until_ns is None or next_ns < until_ns):
            self.try_pods((), next_ns)

    def try_pods(self, created: Iterable[PodRecord], now_ns: int) -> None:
        """Try the pods that are created now, and the waiting ones that a taint, a preemption or their time wakes.

        Each is tried again five minutes after its last attempt.
        """
        self._now_ns = now_ns
        self._new.clear()
        self._hopeless.clear()
        later, self.later = self.later, []
        self._create((*created, *later))
        waits = [(self._waits_ns(pod) % _FLUSH_NS, pod) for pod in self.waiting]
        self._activate(pod for left_ns, pod in waits if not left_ns)
        asleep = [pod for left_ns, pod in waits if left_ns]
        while self._heap:
            *_, pod = heappop(self._heap)
            if pod.uid in self._decisions.cluster.placed:
                # With its gang.
                continue
            self._count_attempts(pod)
            attempt = partial(self._decisions.attempt, pod, failed=self._failed, nominates=True)
            found = () if kind_of(pod) in self._hopeless else self._failed.attempt(pod, attempt)
            if not found:
                self._reject(pod)
                continue
            self._placed += 1
            for each in found:
                if each.victims:
                    self._failed.leave(each.victims)
                    self.victims += len(each.victims)
                    self._create(replacement(pod) for pod in each.victims if pod.controller and not pod.is_mirror)
                    self._activate(asleep)
                    asleep = []
                if each.pod.uid in self._decisions.cluster.nominations:
                    self._back_off(each.pod)
            self._wake()
        waiting = (*asleep, *self._rejected)
        self.waiting = [pod for pod in waiting if pod.uid not in self._decisions.cluster.placed]
        self._rejected = []

    def _next_ns(self) -> int | None:
        """Return when pods are next created, or tried again after others have found a node; None for never."""
        times = [pod.created_ns - LATER_NS for pod in self.later if not self._waits.is_mere_retry(pod.owner_uid)]
        upcoming = self._taints[bisect_right(self._taints, self._now_ns) :][:1]
        for pod in self.waiting:
            if self._tried[pod.uid][1] < self._placed:
                flush_ns = self._now_ns + _FLUSH_NS - self._waits_ns(pod) % _FLUSH_NS
                times.append(min([flush_ns, *upcoming]))
        return min(times, default=None)

    def _waits_ns(self, pod: PodRecord) -> int:
        """Return how long ago the pod was tried, or woken by a taint."""
        woken_ns = self._taints[bisect_right(self._taints, self._now_ns) - 1]
        return self._now_ns - max(self._tried[pod.uid][0], woken_ns)

    def _count_attempts(self, pod: PodRecord) -> None:
        """Count an attempt now, and those that have failed since the last one: at each taint and after five minutes."""
        tried_ns, _ = self._tried.setdefault(pod.uid, (self._now_ns, 0))
        woken = self._taints[bisect_right(self._taints, tried_ns) : bisect_left(self._taints, self._now_ns)]
        self._attempts[pod.uid] += 1 + len(woken) + max(self._waits_ns(pod) - 1, 0) // _FLUSH_NS
        self._tried[pod.uid] = self._now_ns, self._placed

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
                self._activate([created])

    def _reject(self, pod: PodRecord) -> None:
        """Let a pod wait until something wakes it. Others may take the room for which it was nominated."""
        if self._decisions.end_nomination(pod):
            self._wake()
        self._hopeless.add(kind_of(pod))
        # Pods that are tried at one time are equally old from then on.
        self._rejected.append(replace(pod, created_ns=LATER_NS + self._now_ns))

    def _wake(self) -> None:
        """Let rejected pods be tried again when none is active, those with the fewest attempts first."""
        self._hopeless.clear()
        while self._rejected:
            self._back_off(self._rejected.pop())

    def _back_off(self, pod: PodRecord) -> None:
        heappush(self._heap, (min(self._attempts[pod.uid], _MOST_ATTEMPTS), self._decisions.order_of(pod), pod))

    def _activate(self, pods: Iterable[PodRecord]) -> None:
        for pod in pods:
            self._decisions.scratch.join_group(pod)
            # Among equally important pods, the one that has started last is the first victim.
            started = replace(pod, start_ns=LATER_NS + self._now_ns)
            heappush(self._heap, (0, self._decisions.order_of(pod), started))
