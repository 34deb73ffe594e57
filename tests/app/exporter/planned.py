"""What `podium plan fail` says about many failures of one small cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import podium
from podium.app.planning import question
from podium.app.planning.impact import PREEMPTION, WorkloadImpact
from podium.app.simulating.simulation_result import SimulationResult, play_shown
from podium.sim.run_options import RunOptions

_REPLACED = ("ReplicaSet ", "ReplicationController ", "Job ")


class PlannedFailures:
    """The failures of a cluster as `podium plan fail --termination 0s` plays them.

    The runs without a failure that last equally long are one run.
    """

    def __init__(self, cluster: podium.Cluster) -> None:
        self._cluster = cluster
        self._without: list[tuple[RunOptions, SimulationResult]] = []
        self._impacts: dict[tuple[tuple[str, ...], int], tuple[WorkloadImpact, ...]] = {}

    def impact(self, nodes: Sequence[str], seed: int = 0) -> tuple[WorkloadImpact, ...]:
        """Return the impact of a failure, with ties broken by a seed."""
        asked = tuple(nodes), seed
        if asked not in self._impacts:
            self._impacts[asked] = self._played(nodes, seed)
        return self._impacts[asked]

    def _played(self, nodes: Sequence[str], seed: int) -> tuple[WorkloadImpact, ...]:
        def play(found: Any, options: RunOptions, *others: Any) -> SimulationResult:
            if found is not self._cluster.read:
                return play_shown(found, options, *others)
            for known, result in self._without:
                if known == options:
                    return result
            self._without.append((options, play_shown(found, options, *others)))
            return self._without[-1][1]

        with patch.object(question, "play_shown", play), patch.object(question, "free_cycles"):
            return self._cluster.plan(seed=seed, termination="0s").fail(*nodes).impact


def unplaced(impacts: Sequence[WorkloadImpact]) -> dict[str, int]:
    """Return by workload how many more pods wait for a node at the end than without the failure.

    The pods of nodes that are never evicted get no replacements that could wait: they are missing.
    """
    waiting = {each.workload: max(each.pending, each.missing * each.workload.startswith(_REPLACED)) for each in impacts}
    return {workload: number for workload, number in waiting.items() if number}


def preempts(impacts: Sequence[WorkloadImpact]) -> bool:
    """Return whether the failure let pods preempt others."""
    return any(each.disruptions.get(PREEMPTION) for each in impacts)
