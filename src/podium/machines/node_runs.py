"""The pods of one node, and what its kubelet knows of the node itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.api.node import Node
from podium.api.requests import node_allocatable
from podium.api.resources import MEMORY
from podium.decide.kubelet_admission import Refusal, refusals
from podium.decide.pressure import MemoryUse
from podium.machines.actions import ReportNodeCondition
from podium.machines.pod_run import PodRun


@dataclass(slots=True, eq=False)
class NodeRuns:
    """``node`` is None while the API shows no such node; ``runs`` are by uid, in order of arrival.

    ``has_pressure`` is what was reported of the node's memory. ``short_ns`` is when it was last short,
    ``next_cycle_ns`` when a pod may be evicted again.
    """

    node: Node | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)
    runs: dict[str, PodRun] = field(default_factory=dict)
    has_pressure: bool = False
    short_ns: int = 0
    next_cycle_ns: int = 0
    wanted: ReportNodeCondition | None = None

    def read(self, node: Node) -> None:
        """Take in a newer reading of the node."""
        self.node = node
        self.allocatable = node_allocatable(node.status)

    def refusals(self, run: PodRun, others: Iterable[PodRun]) -> list[Refusal]:
        """Why a pod may not run here beside some others."""
        if self.node is None:
            raise ValueError(f"pod {run.pod.key}: its node is not known")
        beside = [other.holding for other in others if other is not run]
        return refusals(run.pod, run.holding, self.node, self.allocatable, beside)

    def holders(self) -> list[PodRun]:
        """The pods that hold resources, those included that only wait for them."""
        return [run for run in self.runs.values() if run.is_admitted]

    def staying(self) -> list[PodRun]:
        """The holders that are not about to end."""
        return [run for run in self.holders() if run.stopped_ns is None]

    def waiting(self) -> list[PodRun]:
        """The pods that wait for others to leave, by priority, then arrival."""
        return sorted((run for run in self.runs.values() if run.is_waiting), key=lambda run: -run.pod.priority)

    def available_bytes(self) -> int:
        """The memory that running pods leave, negative where they use more than there is."""
        return self.allocatable.get(MEMORY, 0) - sum(run.memory_used for run in self.runs.values() if run.is_running)

    def memory_uses(self) -> list[MemoryUse]:
        """What running pods that are not about to end use."""
        return [
            MemoryUse(run.pod, run.memory_used, run.holding.amounts.get(MEMORY, 0))
            for run in self.staying()
            if run.is_running
        ]
