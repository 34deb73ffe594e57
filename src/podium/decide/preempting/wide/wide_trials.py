"""What preempting for each node comes to, where victims may be on other nodes, or depend on one another.

Source: pod-preemption.md, "Supporting Cross Node Preemption?" and "Supporting Inter-Pod Affinity on lower priority
Pods?", which leave both out for what they would cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.trial_table import TrialTable
from podium.decide.preempting.trials import Trials
from podium.decide.preempting.whole_groups import WholeGroups
from podium.decide.preempting.wide.awaited import awaits_others
from podium.decide.preempting.wide.dependents import Dependents, have_dependents
from podium.decide.preempting.wide.potential import Potential, Takeable, takeable
from podium.decide.preempting.wide.reasons import reasons
from podium.decide.preempting.wide.sets import Asking
from podium.decide.preempting.wide.wide_search import Search, WideSearch
from podium.decide.preempting.wide.wide_settings import Wanted, WideSettings
from podium.framework.cycle_state import CycleState
from podium.framework.handle import Handle


class WideTrials:
    """Tries preemption as its settings want it. Nothing is kept: each trial depends on the pods of many nodes."""

    def __init__(self, cluster: Cluster, trials: Trials, settings: WideSettings) -> None:
        self._cluster = cluster
        self._trials = trials
        self.settings = settings

    def concern(self, runner: Handle, state: CycleState, pod: PodRecord) -> bool:
        """Whether the victims for a pod may be others than those that are looked for on each node by itself."""
        settings = self.settings
        if not runner.is_row_local(state):
            reaches = runner.reaches(state, pod)
            stay = any(reach.effect == "Stay" for reach in reaches.found)
            if settings.across and (reaches.found or not reaches.is_known):
                return True
            if settings.keeps_partners and stay:
                return True
        if settings.with_dependents and have_dependents(self._cluster):
            return True
        return settings.whole_groups and bool(WholeGroups(self._cluster))

    def awaits_victims(self, runner: Handle, state: CycleState, pod: PodRecord, *, evicts: bool = False) -> bool:
        """Whether pods on other nodes that were preempted still terminate, and keep a nominated pod off its node.

        With ``evicts`` they are not marked as victims.
        """
        row = self._cluster.nodes.row_of.get(pod.nominated_node_name)
        if row is None or not self.settings.across or runner.is_row_local(state):
            return False
        return awaits_others(self._cluster, pod, row, runner.reaches(state, pod), evicts=evicts)

    def reasons(
        self, runner: Handle, state: CycleState, pod: PodRecord, row: int, victims: Sequence[PodRecord]
    ) -> dict[str, str]:
        """By uid, why victims have to go for a pod that comes to a row, where more than that row tells."""
        dependents = None
        if self.settings.with_dependents or self.settings.whole_groups:
            take = takeable(self._cluster, self._trials.ranking, pod, None)
            dependents = self._dependents(take, pod), take
        return reasons(self._cluster, runner.reaches(state, pod), row, victims, dependents)

    def on(
        self,
        runner: Handle,
        state: CycleState,
        pod: PodRecord,
        rows: Int64s,
        wanted: Wanted,
    ) -> tuple[TrialTable, Search]:
        """The trials on ``rows``, ascending."""
        take = takeable(self._cluster, self._trials.ranking, pod, wanted.may_disrupt)
        reaches = runner.reaches(state, pod)
        kept = [reach for reach in reaches.found if reach.effect == "Stay"] if self.settings.keeps_partners else None
        asking = Asking(runner, state, pod, take, kept, cost=wanted.cost, requires_budgets=wanted.requires_budgets)
        potential = Potential(self._cluster, take, reaches, across=self.settings.across)
        search = WideSearch(asking, potential, self._dependents(take, pod) or None, reaches, rows, self.settings)
        search.run(detailed=wanted.is_detailed)
        return search.table(), search.search

    def _dependents(self, take: Takeable, pod: PodRecord) -> Dependents:
        """Who goes along with victims of a pod."""
        wholes = WholeGroups(self._cluster) if self.settings.whole_groups else None
        return Dependents(
            self._cluster, take, by_affinity=self.settings.with_dependents, wholes=wholes, priority=pod.priority
        )
