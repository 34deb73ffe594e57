"""The same pods decided about again with other draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podium.app.planning.chances.draws import Draws
from podium.app.planning.chances.stories import Outcomes, Story, Suffering, outcomes_of
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled
from podium.cluster.pods import PodRecord


def settled_again(
    decisions: Decisions,
    pods: Sequence[PodRecord],
    stories: int,
    *,
    preempts: bool = True,
    comes_back: bool = False,
) -> Outcomes | None:
    """How it may come out for pods, found out by deciding so often; None where that is not asked for."""
    if not stories:
        return None

    def tell(seed: int, draws: Draws | None = None) -> Story:
        with decisions.supposing(), decisions.drawing(seed, draws):
            return _story(decisions, decisions.settle(pods, preempts=preempts, comes_back=comes_back))

    draws = Draws(0)
    return outcomes_of(tell(0, draws), draws, tell, stories, decisions.cluster.now)


def _story(decisions: Decisions, settled: Settled) -> Story:
    disrupted = Counter(decisions.workloads.of(victim) for fate in settled.fates for victim in fate.victims)
    missing = Counter(map(decisions.workloads.of, settled.waiting))
    whose = sorted({*disrupted, *missing})
    suffering = tuple(Suffering(workload, disrupted[workload], missing[workload]) for workload in whose)
    return Story(suffering, frozenset((fate.pod.key, fate.node) for fate in settled.fates))
