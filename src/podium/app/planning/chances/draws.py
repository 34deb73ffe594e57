"""Decisions in which equals are chosen from by chance, noted as they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.outcomes import MOST_OUTCOMES, Outcome, grouped
from podium.cluster.arrays import stable_hash
from podium.cluster.pods import PodRecord
from podium.decide.gangs.group_placement import GroupPlacement
from podium.decide.placement import Placement, full_outcome, place
from podium.decide.ties import lot
from podium.framework.errors import PluginError
from podium.framework.runner import Runner
from podium.machines.scheduling.queue.queued_pod import QueuedPod
from podium.plugins.default_preemption import DefaultPreemption

_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class Draw:
    """A decision about a pod at a time, and the ways in which it could come out: by who suffers, on which nodes."""

    time_ns: int
    pod: str
    uid: str
    outcomes: tuple[Outcome, ...]

    @property
    def decides(self) -> bool:
        """Whether it decides who suffers; otherwise nodes alone are chosen from."""
        return len(self.outcomes) > 1

    def seed_for(self, outcome: Outcome) -> int | None:
        """A seed with which the pod draws one of the outcome's nodes; None where none of the first ones is."""
        wanted = {node for node, _ in outcome.victims}
        return next((seed for seed in range(1, _MOST_SEEDS + 1) if self.drawn(seed) in wanted), None)

    def drawn(self, seed: int) -> str:
        """The node that the pod draws with a seed."""
        return self._order[lot(self.uid, seed) % len(self._order)]

    def to_dict(self, start_ns: int, followed: Mapping[Outcome, bool]) -> dict[str, Any]:
        """The draw as JSON shows it, with whether some story follows each of its outcomes."""
        outcomes = [{**outcome.to_dict(), "followed": followed[outcome]} for outcome in self.outcomes[:MOST_OUTCOMES]]
        further = max(0, len(self.outcomes) - MOST_OUTCOMES)
        time = (self.time_ns - start_ns) / 10**9
        return {"time": time, "pod": self.pod, "outcomes": outcomes, "furtherOutcomes": further}

    @cached_property
    def _order(self) -> list[str]:
        """The nodes in the order in which lots count them (`podium.decide.ties`)."""
        return sorted((node for outcome in self.outcomes for node, _ in outcome.victims), key=stable_hash)


class Draws:
    """Notes draws: all are counted, and the first hundred that decide who suffers are named."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.number = 0
        self.deciding = 0
        self.named: list[Draw] = []

    def attempted(self, queued: QueuedPod, runner: Runner) -> None:
        """A scheduler is about to decide about a pod. One of a gang preempts nobody by itself."""
        pod = queued.record
        self.note(runner, pod, preempts=not (pod.pod_class.pod_group and gang_plugin(runner)))

    def note(self, runner: Runner, pod: PodRecord, *, preempts: bool = True) -> None:
        """Decide about a pod as its scheduler will, and note what equals it has to choose from."""
        try:
            ways = _ways(runner, pod, self._seed, preempts=preempts)
        except PluginError:
            return
        self._note(runner, pod, ways)

    def note_group(self, runner: Runner, placement: GroupPlacement) -> None:
        """Note what equals the pods of a group have to choose from that go together, each beside those before it.

        Whom a group preempts is not left to chance.
        """
        for member in placement.members if placement.is_enough else ():
            if member.fits:
                self._note(runner, member.pod, _equals(runner, member.placement))

    def _note(self, runner: Runner, pod: PodRecord, ways: Mapping[str, tuple[PodRecord, ...]]) -> None:
        if len(ways) < 2:
            return
        self.number += 1
        outcomes = grouped(ways)
        self.deciding += len(outcomes) > 1
        if len(outcomes) > 1 and len(self.named) < MOST_OUTCOMES:
            self.named.append(Draw(runner.cluster.now, pod.key, pod.uid, outcomes))


def _ways(runner: Runner, pod: PodRecord, seed: int, *, preempts: bool) -> Mapping[str, tuple[PodRecord, ...]]:
    """The nodes that are equal to the one that is chosen, and whom each would cost; fewer than two for no choice."""
    placement = place(runner, pod, seed)
    if placement.row is not None:
        return _equals(runner, placement)
    plugin = next((each for each in runner.profile.post_filter if isinstance(each, DefaultPreemption)), None)
    if plugin is None or placement.error or not preempts:
        return {}
    plan = plugin.plan(placement.state, pod, runner, full_outcome(runner.cluster, placement), detailed=True)
    return {name: plan.candidates[name].victims for name in plan.selected if name in plan.candidates}


def _equals(runner: Runner, placement: Placement) -> Mapping[str, tuple[PodRecord, ...]]:
    """The nodes that are equal to the one that a pod gets, none of which costs anybody."""
    totals, nodes = placement.totals, runner.cluster.nodes
    if totals is None:
        return {}
    return dict.fromkeys((nodes.name(int(row)) for row in placement.feasible[totals == np.max(totals)]), ())
