"""Periodic components of the study: a probe that records the state, and descheduler by its rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium.controllers.actions import Action, Evict
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import Observation, Tick
from podium.store.store import Store
from tools.rescheduling_study.cluster_state import LARGE_GPUS, ClusterState
from tools.rescheduling_study.descheduler_rules import (
    LoadedNode,
    RunningPod,
    high_node_utilization,
    low_node_utilization,
)

SECOND = 10**9
LOW, HIGH = {"cpu": 20.0, "memory": 20.0, "pods": 20.0}, {"cpu": 50.0, "memory": 50.0, "pods": 50.0}
"""The thresholds of descheduler's documentation."""

Rule = Callable[[Sequence[LoadedNode]], list[RunningPod]]
RULES: dict[str, Rule] = {
    "LowNodeUtilization": lambda nodes: low_node_utilization(nodes, LOW, HIGH),
    "HighNodeUtilization": lambda nodes: high_node_utilization(nodes, LOW),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The state ``elapsed_seconds`` after the start.

    ``places`` is how many pods with 8 GPUs could be placed, ``would_evict`` how many pods each rule would evict.
    """

    elapsed_seconds: int
    gpus_held: float
    gpus_free: int
    places: int
    nodes_in_use: int
    waiting: int
    would_evict: dict[str, int]


class OnceInAWhile:
    """Acts every ``interval_ns`` on the state of the store; it watches nothing."""

    watches: frozenset[str] = frozenset()

    def __init__(self, interval_ns: int) -> None:
        self.store: Store | None = None
        self._interval_ns = interval_ns
        self._begin_ns: int | None = None
        self._next_ns = 0

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Act if it is due."""
        if not isinstance(observation, Tick) or self.store is None:
            return []
        if self._begin_ns is None:
            self._begin_ns = now
        self._next_ns = now + self._interval_ns
        return self.act(ClusterState(self.store), (now - self._begin_ns) // SECOND)

    def deadline(self) -> Deadline:
        """Return the next time, which does not keep a simulation running."""
        return Deadline(self._next_ns, False)

    def act(self, state: ClusterState, elapsed_seconds: int) -> list[Action]:
        """Return the actions for the present state."""
        raise NotImplementedError


class Probe(OnceInAWhile):
    """Records the state."""

    def __init__(self, interval_ns: int) -> None:
        super().__init__(interval_ns)
        self.samples: list[Sample] = []

    def act(self, state: ClusterState, elapsed_seconds: int) -> list[Action]:
        nodes = state.nodes()
        self.samples.append(
            Sample(
                elapsed_seconds,
                sum(gpus.held_milli for gpus in state.gpus.values()) / 1000,
                sum(gpus.free for gpus in state.gpus.values() if gpus.count >= LARGE_GPUS),
                state.places(),
                state.in_use(),
                len(state.waiting),
                {name: len(rule(nodes)) for name, rule in RULES.items()},
            )
        )
        return []


class Descheduler(OnceInAWhile):
    """Evicts the pods of a rule every five minutes, as its documentation recommends for a Deployment."""

    def __init__(self, rule: Rule, interval_ns: int = 300 * SECOND) -> None:
        super().__init__(interval_ns)
        self._rule = rule

    def act(self, state: ClusterState, elapsed_seconds: int) -> list[Action]:
        return [Evict(pod.key, pod.uid, "descheduler", "descheduler") for pod in self._rule(state.nodes())]
