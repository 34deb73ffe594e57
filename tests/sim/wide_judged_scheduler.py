"""A scheduler with preemption across nodes whose every decision is judged by what it had observed."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_fields

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import NEVER_PREEMPTED, NEVER_PREEMPTS
from podium.cluster.pods import PodRecord
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.handle import CycleState
from podium.framework.plugin import PostFilterResult
from podium.framework.settings.arguments import read_arguments
from podium.framework.settings.configuration import Configuration
from podium.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from tests.builders import cluster_of, plain_runner
from tests.sim.judged_scheduler import JudgedScheduler
from tests.sim.oracle import Sight, group_of, on, policy_of
from tests.twins.plain import UNSCHEDULABLE
from tests.twins.stated_costs import StatedCost
from tests.twins.victims import Preemption, started
from tests.twins.wide_victims import Rules, WidePreemption, importance

MOST_TAKEABLE = 7
"""Of more pods that might be victims, not every set is tried."""


class WideJudgedScheduler(JudgedScheduler):
    """Judges plans whose victims may be on any nodes. ``wide_plans`` is how many of them had some elsewhere."""

    wide_plans = 0
    """Of all of them, in all their lives."""
    plans_compared = 0
    """How many were held against every other that could be reached."""

    def __init__(self, configuration: Configuration | None = None, *, seed: int = 0) -> None:
        super().__init__(configuration, seed=seed)
        profiles = () if configuration is None else configuration.profiles
        given = [
            found.args for each in profiles for found in each.plugin_config if found.name == DefaultPreemption.name
        ]
        self.args = read_arguments(given[0] if given else {}, DefaultPreemptionArgs, DefaultPreemption.name)

    def sight(self, besides: str = "") -> Sight:
        return replace(super().sight(besides), reach=self.cluster.nominations.reach_domains)

    def _judge_binding(self, before: Sight, pod: Pod, node: str) -> None:
        """Judge a binding; with binding first a pod may fit only after the node's terminating pods have ended."""
        ending = [one.metadata.uid for one in before.on_node(node) if one.is_terminating]
        if self.args.bind_first and ending and not before.fits(pod, node):
            if pod.spec.topology_spread_constraints:
                # What is ending and not counted is taken off all the same, as where it is a victim.
                return
            assert before.fits(pod, node, without=ending), (pod.key, node, before.verdict(pod, node, without=ending))
            return
        super()._judge_binding(before, pod, node)

    def _judge_plan(self, before: Sight, pod: Pod, was_nominated: str, planned: PostFilterResult) -> None:
        """No victim without need, none that may not be one, and enough of them."""
        if pod.spec.volumes or pod.spec.resource_claims:
            return
        # E4
        assert not before.feasible(pod), pod.key
        victims, node = planned.victims, planned.nominated_node
        # E1
        assert not victims or policy_of(pod) not in NEVER_PREEMPTS
        assert all(before.holds_by(before.placed[victim.uid]) < pod.priority for victim in victims)
        assert all(policy_of(before.placed[victim.uid]) not in NEVER_PREEMPTED for victim in victims)
        if not node:
            return
        self._judge_protection(before, victims)
        gone = {victim.uid for victim in victims}
        if any(before.placed[uid].is_terminating for uid in gone):
            # As in its base: what is ending and not counted is taken off on the node all the same.
            return
        WideJudgedScheduler.wide_plans += any(before.placed[uid].spec.node_name != node for uid in gone)
        # E2
        assert before.fits(pod, node, without=gone), (pod.key, node, gone)
        # E3: without any one of them the pod does not fit, or else it is one that goes along with others.
        rules = Rules(dependents=self.args.include_dependents, together=self._together(before))
        twin = WidePreemption([*before.nodes.values(), *before.placed.values()], pod, (), rules)
        for uid in gone:
            left = twin.closed(one for one in twin.placed if one.metadata.uid in gone - {uid})
            still = None if left is None else {one.metadata.uid for one in left}
            is_dependent = still is not None and uid in still
            fits = still is not None and before.fits(pod, node, without=still)
            assert is_dependent or not fits, (pod.key, node, before.placed[uid].key)
        if isinstance(planned.plan, PreemptionPlan):
            self._judge_cost(before, pod, planned.plan)

    def _judge_protection(self, before: Sight, victims: Sequence[PodRecord]) -> None:
        """Check that no victim is protected by a required budget or by its short run time."""
        least = self.args.minimum_running_time_ns or None
        assert least is None or all(before.now - victim.start_ns >= least for victim in victims)
        if self.args.budgets == "Require":
            twin = Preemption([*before.budgets], on(before.placed[victims[0].uid], ""), ())
            twin.now = before.now
            placed = sorted((before.placed[victim.uid] for victim in victims), key=importance)
            assert not twin.violating(placed), [victim.key for victim in victims]

    def _judge_cost(self, before: Sight, pod: Pod, plan: PreemptionPlan) -> None:
        """By the stated criteria no other way out is cheaper, where all of them could be looked at."""
        takeable = [one for one in before.placed.values() if before.holds_by(one) < pod.priority]
        if plan.search is None or not plan.search.is_complete or len(takeable) > MOST_TAKEABLE:
            return
        if before.caps:
            return
        twin = self._twin(before, pod, takeable)
        hopeful = [name for name in before.nodes if before.verdict(pod, name).status == UNSCHEDULABLE]
        best = twin.best(hopeful)
        assert plan.chosen is not None
        assert plan.chosen.node_name in best, (pod.key, plan.chosen, best)
        uids = {victim.uid for victim in plan.chosen.victims}
        chosen = [one for one in twin.placed if one.metadata.uid in uids]
        cost = twin.cost(chosen, plan.chosen.node_name)
        assert cost == best[plan.chosen.node_name], (pod.key, plan.chosen, cost, best)
        WideJudgedScheduler.plans_compared += 1

    def _together(self, before: Sight) -> list[set[str]]:
        """Return the pods (names) of each group that goes as a whole."""
        if not self.args.whole_groups:
            return []
        groups = [one for one in self.seen.get("PodGroup", {}).values() if isinstance(one, PodGroup)]
        return [
            {pod.metadata.name for pod in before.placed.values() if group_of(pod) == group.key}
            for group in groups
            if group.is_one_victim
        ]

    def _twin(self, before: Sight, pod: Pod, takeable: Sequence[Pod]) -> WidePreemption:
        args, least = self.args, self.args.minimum_running_time_ns or None
        objects: list[Kubernetes] = [*before.nodes.values(), *before.placed.values(), *before.budgets]
        for waiting, node in before.nominated:
            status = replace_fields(waiting.status, nominated_node_name=node)
            # It keeps its place by its group's priority where that is higher.
            spec = replace_fields(waiting.spec, priority=before.holds_by(waiting))
            objects.append(replace_fields(waiting, spec=spec, status=status))
        spared = {
            one.metadata.uid
            for one in before.placed.values()
            if policy_of(one) in NEVER_PREEMPTED
            or before.holds_by(one) >= pod.priority
            or (least is not None and before.now - started(one) < least)
        }
        cost = None if args.victim_cost == "Upstream" else StatedCost(objects, pod, args.victim_cost, before.now)
        rules = Rules(
            dependents=args.include_dependents,
            keeps_partners=args.keep_affinity_partners,
            across=args.across_nodes,
            cost=cost,
            requires_budgets=args.budgets == "Require",
            spared=spared,
            now=before.now,
            together=self._together(before),
        )
        cluster, state = cluster_of(*objects), CycleState()
        plain_runner(cluster).pre_filter(state, cluster.read(pod))
        return WidePreemption(objects, pod, state.skip_filter, rules)
