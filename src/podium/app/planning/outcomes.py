"""The outcomes that a plan may have by chance, sampled by running it again.

kube-scheduler breaks ties at random, and searches for nodes of a large cluster begin anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from podium.api.times import SECOND, format_duration
from podium.app.console import cells
from podium.app.console.cells import Name, Part, counted, listed
from podium.app.console.page import Section
from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.outcomes import MAX_OUTCOMES, TieOutcome, grouped
from podium.app.planning.constants import MAX_SAMPLES
from podium.app.planning.deciding.attempts import preemption_of
from podium.cluster.arrays import stable_hash
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.decide.gang_placement import GroupPlacement
from podium.decide.placement import Placement, full_outcome, lot, nodes_to_find, place
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError

_MAX_SEEDS = 10_000
_MAX_ROWS = 12
_MAX_NAMES = 3


@dataclass(frozen=True)
class Tie:
    """A decision between equal nodes, and its possible outcomes by preempted workloads."""

    time_ns: int
    pod: str
    uid: str
    outcomes: tuple[TieOutcome, ...]

    def node_by(self, seed: int) -> str:
        """Return the node that the pod gets with a seed."""
        return self._order[lot(self.uid, seed) % len(self._order)]

    def is_seen(self, outcome: TieOutcome, targets: Set[tuple[str, str]]) -> bool:
        """Return whether the pod went to a node of the outcome; ``targets`` has pods with their nodes."""
        return any((self.pod, node) in targets for node, _ in outcome.victims)

    @cached_property
    def _order(self) -> list[str]:
        """The nodes in the order of lots (`podium.decide.placement`)."""
        return sorted((node for outcome in self.outcomes for node, _ in outcome.victims), key=stable_hash)


class TieBreaks(msgspec.Struct):
    """A record of ties: all are counted, and the first hundred that decide which workloads lose pods are named.

    ``is_limited``: a search for a node may have ended before all were examined.
    """

    seed: int
    number: int = 0
    deciding: int = 0
    is_limited: bool = False
    named: list[Tie] = []

    def on_attempt(self, queued: QueuedPod, runner: Runner) -> None:
        """Record the attempt that a scheduler is about to make. A gang's pod does not preempt by itself."""
        pod = queued.record
        self.record(runner, pod, preempts=not (pod.pod_class.pod_group and gang_plugin(runner)))

    def record(self, runner: Runner, pod: PodRecord, *, preempts: bool = True) -> None:
        """Decide about a pod as its scheduler will, and record the equal nodes."""
        number, profile = len(runner.cluster.nodes), runner.profile
        if profile.is_sampling:
            self.is_limited |= nodes_to_find(profile.percentage_of_nodes_to_score, number) < number
        plugin = preemption_of(runner)
        try:
            placement = place(runner, pod, self.seed)
            if placement.row is not None:
                self._record(runner, pod, _equal_nodes(runner, placement))
            elif plugin is not None and preempts and not placement.error:
                plan = plugin.plan(placement.state, pod, runner, full_outcome(runner.cluster, placement), detailed=True)
                selected = (name for name in plan.selected if name in plan.candidates)
                self._record(runner, pod, {name: plan.candidates[name].victims for name in selected})
        except PluginError:
            return

    def record_group(self, runner: Runner, placement: GroupPlacement) -> None:
        """Record the equal nodes of a group's pods, beside those before; its victims do not depend on chance."""
        for member in placement.members if placement.is_enough else ():
            if member.fits:
                self._record(runner, member.pod, _equal_nodes(runner, member.placement))

    def _record(self, runner: Runner, pod: PodRecord, choices: Mapping[str, tuple[PodRecord, ...]]) -> None:
        if len(choices) < 2:
            return
        self.number += 1
        outcomes = grouped(choices)
        self.deciding += len(outcomes) > 1
        if len(outcomes) > 1 and len(self.named) < MAX_OUTCOMES:
            self.named.append(Tie(runner.cluster.now, pod.key, pod.uid, outcomes))


def _equal_nodes(runner: Runner, placement: Placement) -> Mapping[str, tuple[PodRecord, ...]]:
    totals, nodes = placement.totals, runner.cluster.nodes
    if totals is None:
        return {}
    return dict.fromkeys((nodes.name(int(row)) for row in placement.feasible[totals == np.max(totals)]), ())


class WorkloadLoss(msgspec.Struct, frozen=True, order=True):
    """The numbers of a workload's pods that a run disrupts, and that are missing at its end."""

    workload: str
    disrupted: int
    missing: int

    def __str__(self) -> str:
        numbers = ((self.disrupted, "disrupted"), (self.missing, "missing"))
        return f"{self.workload}: {' and '.join(f'{number:,} {what}' for number, what in numbers if number)}"


class SampledRun(msgspec.Struct, frozen=True):
    """One run of a plan: its losses, and the nodes that pods went to or made room on."""

    losses: tuple[WorkloadLoss, ...]
    targets: frozenset[tuple[str, str]]


class SampledOutcomes(msgspec.Struct, frozen=True):
    """The outcomes of a plan's runs.

    ``counts`` has the number of runs by their losses: those of the plan itself first, then the most frequent.
    ``start_ns`` is when the ``runs`` begin. Of the plan itself, ``ties`` counts the decisions between equal nodes,
    ``deciding`` those that decide which workloads lose pods, and ``named`` has the first of these, each with whether
    some run had each of its outcomes. ``is_limited``: searches for nodes do not examine all.
    """

    counts: Mapping[tuple[WorkloadLoss, ...], int]
    runs: int
    ties: int
    deciding: int
    named: tuple[tuple[Tie, Mapping[TieOutcome, bool]], ...]
    start_ns: int
    is_limited: bool = False

    def sections(self) -> tuple[Section, ...]:
        """Return the answer's sections: how often which workloads lose pods, and the ties that decide it."""
        shown = list(self.counts.items())[:MAX_OUTCOMES]
        data = {
            "samples": self.runs,
            "outcomes": [{"losses": msgspec.to_builtins(losses), "samples": number} for losses, number in shown],
            "furtherOutcomes": len(self.counts) - len(shown),
        }
        if not self.ties and not self.is_limited:
            return (Section("outcomes", "Outcomes", (("one: no decision depends on chance",),), data=data),)
        rows: list[tuple[Part, ...]] = []
        for index, (losses, number) in enumerate(shown[:_MAX_ROWS]):
            lost = listed([str(each) for each in losses], _MAX_NAMES) if losses else "no losses"
            rows.append((f"{number:,} of {self.runs:,}", lost + ("" if index else " (this plan)")))
        if len(self.counts) > _MAX_ROWS:
            rows.append(("", f"and {len(self.counts) - _MAX_ROWS:,} more"))
        runs = "in the only run" if self.runs == 1 else f"in {self.runs:,} runs with other tie-breaks"
        chance = "breaks ties at random" + (", and begins searches at any node" if self.is_limited else "")
        rest = f"losses by workload {runs}; kube-scheduler {chance}"
        section = Section("outcomes", "Outcomes", tuple(rows), rest=rest, data=data)
        return (section, self._ties_section()) if self.ties else (section,)

    def _ties_section(self) -> Section:
        rows: list[tuple[Part, ...]] = []
        for tie, seen in self.named[:_MAX_ROWS]:
            after = format_duration((tie.time_ns - self.start_ns) // SECOND * SECOND)
            rows.append((f"+{after}", Name(tie.pod, cells.PODS), f"preempts {_alternatives(tie, seen)}"))
        left = self.deciding - len(rows)
        if left > 0:
            rows.append(("", "", f"and {counted(left, 'further decision')}"))
        others = self.ties - self.deciding
        if others:
            noun = "further decision" if rows else "decision"
            rows.append(("", "", f"{counted(others, noun)} between equal nodes, without victims"))
        not_sampled = sum(not is_seen for _, seen in self.named for is_seen in seen.values())
        rest = "in this plan" + (f"; {counted(not_sampled, 'outcome')} in no run" if not_sampled else "")
        data = {
            "decisions": self.ties,
            "deciding": self.deciding,
            "named": [
                {
                    "time": (tie.time_ns - self.start_ns) / SECOND,
                    "pod": tie.pod,
                    "outcomes": [{**each.to_dict(), "sampled": seen[each]} for each in tie.outcomes[:MAX_OUTCOMES]],
                    "furtherOutcomes": max(0, len(tie.outcomes) - MAX_OUTCOMES),
                }
                for tie, seen in self.named
            ],
            "notSampled": not_sampled,
        }
        return Section("ties", "Ties", tuple(rows), rest=rest, data=data)


def _alternatives(tie: Tie, seen: Mapping[TieOutcome, bool]) -> str:
    shown = []
    for outcome in tie.outcomes[:_MAX_NAMES]:
        victims = listed([f"{pods:,} of {workload}" for workload, pods in outcome.losses], _MAX_NAMES)
        nodes = listed([node for node, _ in outcome.victims], _MAX_NAMES)
        shown.append(f"{victims} (on {nodes}{'' if seen[outcome] else '; in no run'})")
    if len(tie.outcomes) > _MAX_NAMES:
        shown.append(f"{len(tie.outcomes) - _MAX_NAMES:,} others")
    return " or ".join(shown)


def sampled(
    first: SampledRun, ties: TieBreaks, run: Callable[[int], SampledRun], samples: int, start_ns: int
) -> SampledOutcomes:
    """Run a plan again with other seeds, ``samples`` times in all; once if no decision depends on chance.

    Seeds that lead to outcomes of the ties which no run had yet come first, then any.
    """
    runs, targets = [first], set(first.targets)
    tried: set[int] = {0}
    aimed: set[tuple[int, TieOutcome]] = set()
    while (ties.number or ties.is_limited) and len(runs) < min(samples, MAX_SAMPLES):
        seed = next(_leading_seeds(ties.named, targets, tried, aimed), None)
        if seed is None:
            seed = next(number for number in range(1, len(tried) + 2) if number not in tried)
        tried.add(seed)
        runs.append(run(seed))
        targets |= runs[-1].targets
    named = tuple((tie, {each: tie.is_seen(each, targets) for each in tie.outcomes}) for tie in ties.named)
    counts = Counter(each.losses for each in runs)
    order = sorted(counts, key=lambda losses: (losses != first.losses, -counts[losses], losses))
    by_losses = {losses: counts[losses] for losses in order}
    return SampledOutcomes(by_losses, len(runs), ties.number, ties.deciding, named, start_ns, ties.is_limited)


def _leading_seeds(
    ties: Sequence[Tie], targets: Set[tuple[str, str]], tried: set[int], aimed: set[tuple[int, TieOutcome]]
) -> Iterator[int]:
    """Yield untried seeds that may lead to outcomes which no run had; each outcome is aimed at once."""
    for index, tie in enumerate(ties):
        for outcome in tie.outcomes:
            if (index, outcome) not in aimed and not tie.is_seen(outcome, targets):
                aimed.add((index, outcome))
                wanted = {node for node, _ in outcome.victims}
                seed = next((seed for seed in range(1, _MAX_SEEDS + 1) if tie.node_by(seed) in wanted), None)
                if seed is not None and seed not in tried:
                    yield seed
