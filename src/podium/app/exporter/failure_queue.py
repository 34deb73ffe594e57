"""The queue of schedulers after a failure: in which order pods are tried, and what wakes them.

Source: pkg/scheduler/backend/queue (scheduling_queue.go, backoff_queue.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush

from msgspec.structs import replace

from podium.app.planning.deciding.attempts import FailedAttempts, PodKind, kind_of
from podium.app.planning.deciding.decisions import Decisions, origin_of, replacement
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.queued_pod import QueueSettings

LATER_NS = 1 << 62
"""The time of the failure: what comes after it is younger than all else."""

# Further attempts do not lengthen a pod's backoff.
_MOST_ATTEMPTS = 5
_FLUSH_NS = QueueSettings().unschedulable_flush_ns
# A pod and its replacements preempt at most so often at one time, and then wait for the next: a victim that keeps its
# preemptor off again, by anti-affinity, would be preempted without end.
_MOST_PREEMPTIONS = 8

_Entry = tuple[tuple[object, ...], PodRecord]


class FailureQueue:
    """The pods that wait for a node, tried at one time after another.

    Preemptors are nominated: their victims leave at once, with replacements, and they are tried again when no other pod
    is active, like pods that have failed at the same time. Backoffs of earlier times have expired.
    """

    def __init__(self, decisions: Decisions, failed: FailedAttempts, waiting: Iterable[PodRecord]) -> None:
        self.waiting = list(waiting)
        self.victims = 0
        """The number of preempted pods."""
        self._decisions = decisions
        self._failed = failed
        self._attempts = Counter({pod.uid: 1 for pod in self.waiting})
        self._tried_ns: dict[str, int] = {}
        self._now_ns = 0
        self._active: list[_Entry] = []
        self._backoff: list[_Entry] = []
        self._rejected: list[PodRecord] = []
        # The kinds of pods whose attempts have failed since the last pod was woken.
        self._hopeless: set[PodKind] = set()
        # How often a pod and its replacements have preempted at this time, by the uid of the first.
        self._preemptions = Counter[str]()

    def try_pods(self, created: Iterable[PodRecord], now_ns: int, woken_ns: int) -> None:
        """Try the pods that were created now, and the waiting ones that a preemption wakes.

        All that wait were last woken together at ``woken_ns``. Each is tried again five minutes after its last attempt.
        """
        self._now_ns = now_ns
        self._preemptions.clear()
        self._activate(created)
        waits = [(now_ns - max(self._tried_ns.get(pod.uid, woken_ns), woken_ns), pod) for pod in self.waiting]
        self._activate(pod for wait_ns, pod in waits if wait_ns % _FLUSH_NS == 0)
        asleep, self.waiting = [pod for wait_ns, pod in waits if wait_ns % _FLUSH_NS], []
        has_placed = False
        while self._active or self._backoff or (asleep and has_placed):
            if not self._active and not self._backoff:
                # Some may have required the pods that have been placed.
                self._activate(asleep)
                asleep = []
            _, pod = heappop(self._active or self._backoff)
            if pod.uid in self._decisions.cluster.placed:
                # With its gang.
                continue
            if self._preemptions[origin_of(pod)] >= _MOST_PREEMPTIONS:
                self._decisions.end_nomination(pod)
                self.waiting.append(pod)
                continue
            attempt = partial(self._decisions.attempt, pod, preempts=True, nominates=True)
            found = () if kind_of(pod) in self._hopeless else self._failed.attempt(pod, attempt)
            if not found:
                self._reject(pod)
            has_placed |= bool(found)
            for each in found:
                if each.victims:
                    self._failed.leave(each.victims)
                    self.victims += len(each.victims)
                    self._preemptions[origin_of(each.pod)] += 1
                    owned = filter(self._decisions.is_replaced, each.victims)
                    self._activate([*(replacement(victim, created_ns=LATER_NS + now_ns) for victim in owned), *asleep])
                    asleep = []
                if each.pod.uid in self._decisions.cluster.nominations:
                    self._attempts[each.pod.uid] += 1
                    self._back_off(each.pod)
            if found:
                self._wake()
        waiting = (*self.waiting, *asleep, *self._rejected)
        self.waiting = [pod for pod in waiting if pod.uid not in self._decisions.cluster.placed]
        self._rejected = []

    def _reject(self, pod: PodRecord) -> None:
        """Let a pod wait until something wakes it. The room of a nominated one is open to others."""
        if self._decisions.end_nomination(pod):
            self._wake()
        self._attempts[pod.uid] += 1
        self._tried_ns[pod.uid] = self._now_ns
        self._hopeless.add(kind_of(pod))
        # Pods that are tried at one time are equally old from then on.
        self._rejected.append(replace(pod, created_ns=LATER_NS + self._now_ns))

    def _wake(self) -> None:
        """Let rejected pods be tried again when none is active, those with the fewest attempts first."""
        rejected, self._rejected = self._rejected, []
        self._hopeless.clear()
        for pod in rejected:
            self._back_off(pod)

    def _back_off(self, pod: PodRecord) -> None:
        attempts = min(self._attempts[pod.uid], _MOST_ATTEMPTS)
        heappush(self._backoff, ((attempts, *self._decisions.order_of(pod)), pod))

    def _activate(self, pods: Iterable[PodRecord]) -> None:
        for pod in pods:
            self._decisions.scratch.join_group(pod)
            # Among equally important pods, the one that has started last is the first victim.
            started = replace(pod, start_ns=LATER_NS + self._now_ns)
            heappush(self._active, (self._decisions.order_of(pod), started))
