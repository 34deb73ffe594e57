"""DefaultPreemption: when no node fits, make room by removing pods of lower priority.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from podium.api.policy import NEVER_PREEMPTS
from podium.api.times import parse_duration
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import EqualPriorityOrder
from podium.cluster.worlds import Worlds
from podium.decide.preempting.costs.criteria import CriterionName
from podium.decide.preempting.costs.protection import Protection
from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.eligibility import (
    NOT_ELIGIBLE_TERMINATING,
    NOT_ELIGIBLE_TERMINATING_ELSEWHERE,
    NOT_ELIGIBLE_YET,
    ineligible_reason,
    is_hopeful,
    waits_for_victims,
)
from podium.decide.preempting.fair_trials import FairTrials
from podium.decide.preempting.gang.bind_first import bound_first
from podium.decide.preempting.gang.gang import Gang, gang_priority
from podium.decide.preempting.gang.gang_plan import GangPlan
from podium.decide.preempting.gang.gang_planner import plan_gang
from podium.decide.preempting.group_priorities import below_their_groups
from podium.decide.preempting.preemption import PreemptionOptions, plan_exchange, plan_preemption
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.decide.preempting.trials import Trials, VictimFilter
from podium.decide.preempting.whole_groups import running_members
from podium.decide.preempting.wide.potential import takeable
from podium.decide.preempting.wide.wide_settings import WideSettings
from podium.decide.preempting.wide.wide_trials import WideTrials
from podium.framework.cycle_state import CycleState
from podium.framework.events import EventToRegister
from podium.framework.group_plugin import GroupDemand, GroupHandle, GroupPostFilterResult
from podium.framework.handle import Handle
from podium.framework.plugin import PluginContext, PostFilterResult
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.status import Code, Status, unschedulable
from podium.framework.verdicts import Outcome


class DefaultPreemptionArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    ``minCandidateNodesPercentage`` and ``minCandidateNodesAbsolute``: how many candidates are enough; without either,
    every node is examined, and where one is given the other has kube-scheduler's default. ``equalPriorityOrder``:
    whether pods of equal priority are spared by start time, as kube-scheduler does, or by QoS class first, as the
    preemption design has it. ``equalPriorityPreemption``: whether pods may take room from others of equal priority
    where that is fair (see `podium.decide.preempting.fair_shares`). ``spareMirrorPods``: whether mirror pods are never
    victims; kube-scheduler makes no difference, though deleting one frees nothing. ``victimCost``: how victims are
    compared, `Upstream` or criteria in their order (`podium.decide.preempting.costs.criteria`). ``budgets``: `Count`
    counts victims that budgets would spare, as kube-scheduler does; with `Require` there are none, and victims are
    evicted, so that budgets are charged. ``minimumRunningTime``: pods are no victims before they have run for so long.
    ``acrossNodes``: whether pods on other nodes may be victims, where that makes the pod fit. ``keepAffinityPartners``:
    whether pods that the preemptor requires to be near are spared while there is another choice. ``includeDependents``:
    whether pods whose required affinity victims alone satisfied are victims too. ``wholeGroups``: whether the pods of a
    PodGroup with the disruption mode PodGroup are victims together or not at all; where a group preempts they are in
    any case. ``maxSearchSteps``: after how many steps the search for such victims, and for a group's, ends (see
    `podium.decide.preempting.wide` and `podium.decide.preempting.gang`). ``bindFirst``: whether the pod is
    bound as soon as its victims terminate; a kubelet that waits for victims holds it until they are gone.
    """

    min_candidate_nodes_percentage: Annotated[int, Meta(ge=0, le=100)] | None = None
    min_candidate_nodes_absolute: Annotated[int, Meta(ge=0)] | None = None
    equal_priority_order: EqualPriorityOrder = "StartTime"
    equal_priority_preemption: bool = False
    spare_mirror_pods: bool = False
    victim_cost: Literal["Upstream"] | tuple[CriterionName, ...] = "Upstream"
    budgets: Literal["Count", "Require"] = "Count"
    minimum_running_time: str = "0s"
    bind_first: bool = False
    across_nodes: bool = False
    keep_affinity_partners: bool = False
    include_dependents: bool = False
    whole_groups: bool = False
    max_search_steps: Annotated[int, Meta(ge=1, le=100_000_000)] = 100_000

    def __post_init__(self) -> None:
        if self.minimum_candidates == (0, 0):
            raise ValueError(
                "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be 0; "
                "leave both out to examine every node"
            )
        if parse_duration(self.minimum_running_time) < 0:
            raise ValueError(f"minimumRunningTime is {self.minimum_running_time}; it must be 0s or more")
        try:
            self.cost()
        except ValueError as error:
            raise ValueError(f"victimCost: {error}") from None

    @property
    def minimum_running_ns(self) -> int | None:
        """How long pods must have run to be victims, in nanoseconds; None for no time at all."""
        return parse_duration(self.minimum_running_time) or None

    def cost(self) -> VictimCost | None:
        """How victims are compared; None as kube-scheduler does. Raises ValueError for no criterion, or one twice."""
        return None if self.victim_cost == "Upstream" else VictimCost.stated(self.victim_cost)

    @property
    def minimum_candidates(self) -> tuple[int, int] | None:
        """The percentage and the number of nodes that are enough; None for all (SetDefaults_DefaultPreemptionArgs)."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if percentage is None and absolute is None:
            return None
        return 10 if percentage is None else percentage, 100 if absolute is None else absolute

    @property
    def wide(self) -> WideSettings:
        """Where victims are looked for beyond the pod's node."""
        return WideSettings(
            self.across_nodes,
            self.keep_affinity_partners,
            self.include_dependents,
            self.whole_groups,
            self.max_search_steps,
        )


class DefaultPreemption:
    """Plans preemption. Subclass it and override `may_disrupt` to change who can be a victim."""

    name = "DefaultPreemption"

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, DefaultPreemptionArgs, self.name)
        self._minimum = args.minimum_candidates
        self._trials = Trials(context.cluster, args.equal_priority_order, spare_mirrors=args.spare_mirror_pods)
        self._exchanges = FairTrials(context.cluster, self._trials) if args.equal_priority_preemption else None
        self._wide = WideTrials(context.cluster, self._trials, args.wide) if args.wide else None
        self._most_steps = args.max_search_steps
        if args.across_nodes:
            # Or else the victims' replacements take the place of the victims.
            context.cluster.nominations.reach_domains = True
        self._seed = context.seed
        self._binds_first = args.bind_first
        self._cost = args.cost()
        self._is_overridden = type(self).may_disrupt is not DefaultPreemption.may_disrupt
        self._protection = Protection(args.minimum_running_ns, required=args.budgets == "Require")

    @property
    def takes_from_equals(self) -> bool:
        """Whether pods may take room from others of equal priority."""
        return self._exchanges is not None

    @property
    def looks_beyond_nodes(self) -> bool:
        """Whether one preemption changes who may be a victim on other nodes, or has victims there."""
        return self._protection.required or self.takes_from_equals or self._wide is not None

    def may_take(self, pod: PodRecord, cluster: Cluster) -> Int64s:
        """The slots of all less important pods that ``pod`` may preempt, budgets left aside."""
        if pod.preemption_policy in NEVER_PREEMPTS:
            return np.empty(0, dtype=np.int64)
        return takeable(cluster, self._trials.ranking, pod, self._may_be_victims(cluster)).slots

    def prepare(self) -> None:
        """Rank the pods of all nodes now, so that the first plan need not."""
        self._trials.ranking.refresh()

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        """Nominate the node of the best candidate; clear the nomination where there is none."""
        plan = self.plan(state, pod, handle, outcome)
        if not plan.eligible:
            if self._binds_first and self._fits_when_all_are_gone(state, pod, handle):
                node_name = pod.nominated_node_name
                status = Status(reasons=(f"preemption: it is bound to {node_name} before its victims are gone",))
                return PostFilterResult(status, plan=plan, binds_to=node_name)
            return PostFilterResult(unschedulable(f"preemption: {plan.reason}"), plan=plan)
        if plan.error:
            return PostFilterResult(Status(Code.ERROR, (f"preemption: {plan.error}",)), plan=plan)
        if plan.chosen is None:
            retry_ns = plan.put_off.next_ns if plan.put_off else self._protection.next_ns(cluster, pod)
            nominated_node = None if plan.keeps_nomination else ""
            return PostFilterResult(unschedulable(plan.message), nominated_node, plan=plan, retry_ns=retry_ns)
        victims = ", ".join([victim.key for victim in plan.chosen.victims])
        reason = f"preemption: node {plan.chosen.node_name} is nominated; victims: {victims}"
        status = Status(reasons=(reason,), plugin=self.name)
        evicts = self._protection.required
        return PostFilterResult(
            status,
            plan.chosen.node_name,
            plan.chosen.victims,
            plan,
            evicts=evicts,
            binds_first=self._binds_first and not plan.chosen.elsewhere,
        )

    def plan(
        self,
        state: CycleState,
        pod: PodRecord,
        handle: Handle,
        outcome: Outcome,
        *,
        detailed: bool = False,
        seed: int | None = None,
    ) -> PreemptionPlan:
        """The plan behind `post_filter`; ``detailed`` lists every candidate and every rejected node.

        It draws among equals by ``seed``, by the scheduler's where that is None.
        """
        row = handle.cluster.nodes.row_of.get(pod.nominated_node_name)
        nominated = outcome.status(row) if row is not None else None
        evicts = self._protection.required
        reason = ineligible_reason(handle.cluster, pod, nominated, evicts=evicts)
        if reason:
            return PreemptionPlan(False, reason)
        wide, exchanges = self._wide, self._exchanges
        if wide is not None and is_hopeful(nominated) and wide.awaits_victims(handle, state, pod, evicts=evicts):
            return PreemptionPlan(False, NOT_ELIGIBLE_TERMINATING_ELSEWHERE)
        if exchanges is not None and waits_for_victims(handle.cluster, pod, nominated, pod.priority):
            return PreemptionPlan(False, NOT_ELIGIBLE_TERMINATING)
        options = PreemptionOptions(
            self._minimum,
            self._may_be_victims(handle.cluster),
            self._seed if seed is None else seed,
            self._cost,
            self._wide,
            requires_budgets=self._protection.required,
        )
        plan = plan_preemption(handle, state, pod, outcome, self._trials, options, detailed=detailed)
        if plan.chosen is not None or plan.put_off is not None or exchanges is None:
            return plan
        return plan_exchange(handle, state, pod, outcome, exchanges, options, detailed=detailed) or plan

    def group_post_filter(self, demand: GroupDemand, handle: GroupHandle, cluster: Cluster) -> GroupPostFilterResult:
        """Nominate a node for each of enough members, and name all who have to go for that; or nobody goes."""
        if demand.needed > len(demand.members):
            return GroupPostFilterResult(unschedulable("preemption: there are too few members"))
        plan = self.plan_group(demand, handle)
        if not plan.eligible:
            bound = bound_first(handle, _gang(demand, cluster)) if self._binds_first_now(plan) else ()
            if bound:
                placements = tuple((member, node_name) for member, node_name, _ in bound)
                status = Status(reasons=("preemption: the members are bound before their victims are gone",))
                states = tuple(state for _, _, state in bound)
                return GroupPostFilterResult(status, placements, plan=plan, states=states)
            status = unschedulable(f"preemption: {plan.reason}")
            return GroupPostFilterResult(status, plan=plan, keeps_nominations=plan.reason in NOT_ELIGIBLE_YET)
        if plan.chosen is None:
            most_important = max(demand.members, key=lambda member: member.priority)
            retry_ns = plan.put_off.next_ns if plan.put_off else self._protection.next_ns(cluster, most_important)
            return GroupPostFilterResult(unschedulable(plan.message), plan=plan, retry_ns=retry_ns)
        chosen = plan.chosen
        victims = ", ".join(victim.key for victim in chosen.victims) or "none"
        where = f" in {chosen.domain}" if chosen.domain else ""
        reason = f"preemption: {len(chosen.placements)} members are nominated{where}; victims: {victims}"
        return GroupPostFilterResult(
            Status(reasons=(reason,)),
            chosen.placements,
            chosen.victims,
            chosen.domain,
            plan,
            evicts=self._protection.required,
            binds_first=self._binds_first and chosen.victims_by_node.keys() <= {name for _, name in chosen.placements},
        )

    def plan_group(self, demand: GroupDemand, handle: GroupHandle) -> GangPlan:
        """The plan behind `group_post_filter`. There is none where extenders are asked about some of the members."""
        cluster = handle.cluster
        if any(handle.extenders_of(member) is not None for member in demand.members):
            # They may turn members down that the plan counts on, when its victims are gone.
            return GangPlan(False, "not eligible since extenders are asked about its pods.")
        gang = _gang(demand, cluster)
        options = PreemptionOptions(
            may_disrupt=self._may_be_victims(cluster),
            seed=self._seed,
            cost=self._cost,
            wide=self._wide,
            requires_budgets=self._protection.required,
        )
        return plan_gang(handle, gang, self._trials, options, most_steps=self._most_steps)

    def may_disrupt(self, pod: PodRecord, victim: PodRecord) -> bool:
        """Whether ``pod`` may make ``victim``, which is not more important, give way. Always, unless overridden."""
        return True

    def events_to_register(self) -> Sequence[EventToRegister]:
        """The scheduler itself brings a preemptor back when its victims' deletions are through."""
        return ()

    def _binds_first_now(self, plan: GangPlan) -> bool:
        """Whether members may be bound before the victims that they wait for are gone."""
        return self._binds_first and plan.reason == NOT_ELIGIBLE_TERMINATING

    def _fits_when_all_are_gone(self, state: CycleState, pod: PodRecord, handle: Handle) -> bool:
        """Whether nothing but pods that terminate there keeps a pod off the node that it is nominated to."""
        cluster = handle.cluster
        row = cluster.nodes.row_of.get(pod.nominated_node_name)
        if row is None:
            return False
        leaving = [each.slot for each in cluster.pods_on(row) if each.terminating]
        worlds = Worlds(cluster, np.array([row], dtype=np.int64))
        worlds.remove(np.zeros(len(leaving), dtype=np.int64), np.array(leaving, dtype=np.int64))
        return bool(leaving) and bool(handle.filter_worlds(state, pod, worlds, pod.uid).refused[0] == 0)

    def _may_be_victims(self, cluster: Cluster) -> VictimFilter | None:
        """Who may be a victim, None for everybody of lower priority."""
        allowed = self._allowed(cluster) if self._is_overridden else None
        return below_their_groups(cluster, self._protection.on(cluster, allowed))

    def _allowed(self, cluster: Cluster) -> VictimFilter:
        def allowed(pod: PodRecord, slots: Int64s) -> Bools:
            verdicts = (self.may_disrupt(pod, cluster.pods.record(int(slot))) for slot in slots)
            return np.fromiter(verdicts, dtype=np.bool_, count=len(slots))

        return allowed


def _gang(demand: GroupDemand, cluster: Cluster) -> Gang:
    """The gang that asks for places, with the priority that its group states."""
    group = cluster.pod_groups.by_key.get(demand.key)
    return Gang(
        demand.key,
        demand.members,
        demand.needed,
        gang_priority(demand.members, None if group is None else group.spec.priority),
        demand.domains,
        running_members(cluster, demand.key),
    )
