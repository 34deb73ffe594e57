"""Evicts pods of a node that is short of memory.

Source: pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from podium.decide.pressure import EvictionOrder, eviction_message, memory_ranking
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.node_memory import NodeMemory
from podium.machines.kubelets.node_runs import NodeRuns
from podium.machines.kubelets.pod_workers import PodWorkers

# How long a pod gets to end when a threshold is crossed that leaves no time (immediateEvictionGracePeriodSeconds).
_GRACE_SECONDS = 1


class EvictionManager:
    """Looks at the memory of one node; ``due_ns`` is when it has to look again, though nothing changes."""

    def __init__(self, memory: NodeMemory, there: NodeRuns, workers: PodWorkers, order: EvictionOrder) -> None:
        self._memory = memory
        self._there = there
        self._workers = workers
        self._order = order
        self.due_ns: int | None = None

    def synchronize(self, now: int) -> bool:
        """Evict the next pod if it is time; whether what the node says has changed."""
        memory, available = self._memory, self._there.available_bytes()
        if memory.is_at_rest and available >= memory.threshold_bytes:
            self.due_ns = None
            return False
        has_changed = memory.look(available, now)
        if memory.may_evict(available, now):
            self._evict(available, now)
        self.due_ns = memory.due_ns(available, now)
        return has_changed

    def _evict(self, available: int, now: int) -> None:
        ranking = memory_ranking(self._there.memory_uses(), self._order)
        if not ranking:
            return
        self._memory.evict(now)
        run = self._there.runs[ranking[0].pod.metadata.uid]
        message = eviction_message(ranking[0], self._memory.threshold_bytes, max(0, available))
        run.outcome = reports.evicted(run, message)
        self._workers.stop(run, now, _GRACE_SECONDS)
