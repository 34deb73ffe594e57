"""DefaultPreemption: make room for a pod without a feasible node by deleting less important pods.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import Meta

from podium.api.policy import NEVER_PREEMPTS
from podium.api.reading import Duration, Interval
from podium.api.versions.gates import Gate
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import EqualPriorityOrder
from podium.decide.cap import is_capped
from podium.decide.preempting import criteria, eligibility, reprieve
from podium.decide.preempting.fair_shares import FairTrials, Owners, OwnersBy
from podium.decide.preempting.gang.gang import Gang, gang_priority, members_bound_first
from podium.decide.preempting.preemption import PreemptionOptions, held_back_by_budgets, plan_exchange, plan_preemption
from podium.decide.preempting.preemption_plan import GangPlan, Plan, PreemptionPlan
from podium.decide.preempting.trials import Trials
from podium.framework.events import ActionType, EventResource, EventToRegister
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import PluginContext, PostFilterResult
from podium.framework.pre_filters import GroupDemand, GroupHandle, GroupPostFilterResult
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.framework.verdicts import Code, Outcome, Status, unschedulable

if TYPE_CHECKING:
    from podium.decide.preempting.wide.wide_search import WideTrials


UPSTREAM_MINIMUM = (10, 100)
"""kube-scheduler's defaults of ``minCandidateNodesPercentage`` and ``minCandidateNodesAbsolute``."""


class DefaultPreemptionArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    ``minCandidateNodesPercentage`` and ``minCandidateNodesAbsolute``: how many candidates suffice; without either,
    every node is examined, unless the profile has a ``percentageOfNodesToScore``: then both have kube-scheduler's
    defaults, as has one of them if only the other is given. ``equalPriorityOrder``:
    whether pods of equal priority are ranked by start time, as in kube-scheduler, or by QoS class first, as in the
    preemption design. ``equalPriorityPreemption``: whether pods may preempt others of equal priority if that is fair
    (`podium.decide.preempting.fair_shares`). ``equalPriorityOwners``: between what it must be fair: controllers, as in
    the design; topmost `Workload`s; `Service`s; or the values of the `Label` named by ``equalPriorityOwnerLabel``.
    ``spareMirrorPods``: whether mirror pods are never victims; kube-scheduler does not exclude them, though deleting
    one frees nothing. ``victimCost``: how victims are compared, `Upstream` or a list of criteria
    (`podium.decide.preempting.criteria`). ``budgets``: `Count` counts violations, as kube-scheduler does; `Require`
    allows none, and evicts victims so that budgets are charged. ``minimumRunningTime``: how long pods must have run to
    be victims. ``disruptionMemory``: how long the disruption of a workload counts for the criterion `DisruptedLately`.
    ``acrossNodes``: whether pods on other nodes may be victims if that makes the pod fit. ``keepAffinityPartners``:
    whether to spare pods that the preemptor's affinity requires, if possible. ``includeDependents``: whether pods whose
    required affinity only victims satisfied become victims. ``wholeGroups``: whether the pods of a PodGroup with the
    disruption mode PodGroup are victims together or not at all; they always are if a group preempts, or with the
    feature gate WorkloadAwarePreemption.
    ``maxSearchSteps``: the limit of the search for such victims, and for a group's (`podium.decide.preempting.wide`,
    `podium.decide.preempting.gang`). ``bindFirst``: whether the pod is bound as soon as its victims terminate; a
    kubelet that waits for victims holds it until they are gone.
    """

    min_candidate_nodes_percentage: Annotated[int, Meta(ge=0, le=100)] | None = None
    min_candidate_nodes_absolute: Annotated[int, Meta(ge=0)] | None = None
    equal_priority_order: EqualPriorityOrder = "StartTime"
    equal_priority_preemption: bool = False
    equal_priority_owners: OwnersBy = "Controller"
    equal_priority_owner_label: str = ""
    spare_mirror_pods: bool = False
    victim_cost: Literal["Upstream"] | tuple[criteria.CriterionName, ...] = "Upstream"
    budgets: Literal["Count", "Require"] = "Count"
    minimum_running_time_ns: Duration = 0
    disruption_memory_ns: Interval = 3_600 * 10**9
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
        if (self.equal_priority_owners == "Label") != bool(self.equal_priority_owner_label):
            raise ValueError("equalPriorityOwnerLabel names a label if equalPriorityOwners is Label, and only then")
        try:
            self.cost()
        except ValueError as error:
            raise ValueError(f"victimCost: {error}") from None

    def cost(self) -> criteria.VictimCost | None:
        """Return how victims are compared, None as in kube-scheduler. Raises ValueError for invalid criteria."""
        return None if self.victim_cost == "Upstream" else criteria.VictimCost.of_names(self.victim_cost)

    @property
    def minimum_candidates(self) -> tuple[int, int] | None:
        """Return the percentage and number of nodes that suffice; None for all (SetDefaults_DefaultPreemptionArgs)."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if percentage is None and absolute is None:
            return None
        least, fewest = UPSTREAM_MINIMUM
        return least if percentage is None else percentage, fewest if absolute is None else absolute

    def wide_trials(self, cluster: Cluster, trials: Trials) -> WideTrials | None:
        """Return the trials with victims beyond the pod's node; None if no argument or feature gate asks for them."""
        across, keeps_partners = self.across_nodes, self.keep_affinity_partners
        whole_groups = self.whole_groups or cluster.release.enabled(Gate.GROUP_VICTIMS)
        if not (across or keeps_partners or self.include_dependents or whole_groups):
            return None
        from podium.decide.preempting.wide.wide_search import WideSettings, WideTrials  # noqa: PLC0415 - few need it

        settings = WideSettings(across, keeps_partners, self.include_dependents, whole_groups, self.max_search_steps)
        return WideTrials(cluster, trials, settings)


class DefaultPreemption:
    """Plans preemption. Subclass it and override `may_disrupt` to change which pods can be victims."""

    name = "DefaultPreemption"

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, DefaultPreemptionArgs, self.name)
        self._minimum = args.minimum_candidates or (UPSTREAM_MINIMUM if context.is_sampling else None)
        self._trials = Trials(context.cluster, args.equal_priority_order, spare_mirrors=args.spare_mirror_pods)
        self._exchanges: FairTrials | None = None
        if args.equal_priority_preemption:
            owners = Owners(context.cluster, args.equal_priority_owners, args.equal_priority_owner_label)
            self._exchanges = FairTrials(context.cluster, self._trials, owners)
        self._wide = args.wide_trials(context.cluster, self._trials)
        self._most_steps = args.max_search_steps
        if args.across_nodes:
            # Otherwise the victims' replacements could take their places again.
            context.cluster.nominations.reach_domains = True
        if "DisruptedLately" in args.victim_cost:
            context.cluster.disrupted.remember(args.disruption_memory_ns)
        self._seed = context.seed
        self._binds_first = args.bind_first
        self._cost = args.cost()
        self._is_overridden = type(self).may_disrupt is not DefaultPreemption.may_disrupt
        self._protection = eligibility.VictimProtection(
            args.minimum_running_time_ns or None, required=args.budgets == "Require"
        )

    @property
    def plans(self) -> bool:
        """Return whether `plan` reports what `post_filter` proposes, which only a subclass can change."""
        return type(self).post_filter is DefaultPreemption.post_filter

    @property
    def takes_from_equals(self) -> bool:
        """Return whether pods may preempt others of equal priority."""
        return self._exchanges is not None

    def plain_trials(self, cluster: Cluster) -> Trials | None:
        """Return the trials if these alone decide whether there is a candidate; None if settings or caps count, too."""
        is_plain = not self.looks_beyond_nodes and self._cost is None and not is_capped(cluster)
        return self._trials if is_plain and self._may_be_victims(cluster) is None else None

    @property
    def looks_beyond_nodes(self) -> bool:
        """Return whether a preemption affects the possible victims on other nodes, or has victims there."""
        return self._protection.required or self.takes_from_equals or self._wide is not None

    def may_take(self, pod: PodRecord, cluster: Cluster) -> Int64s:
        """Return the slots of all pods that ``pod`` may preempt, regardless of budgets."""
        if pod.preemption_policy in NEVER_PREEMPTS:
            return np.empty(0, dtype=np.int64)
        return eligibility.victim_pool(cluster, self._trials.ranking, pod, self._may_be_victims(cluster)).slots

    def post_filter(
        self, state: CycleState, pod: PodRecord, handle: Handle, cluster: Cluster, outcome: Outcome
    ) -> PostFilterResult:
        """Nominate the node of the best candidate; clear the nomination if there is none."""
        plan = self.plan(state, pod, handle, outcome)
        if early := self.binds_early(plan, state, pod, handle):
            status = Status(reasons=(f"preemption: it is bound to {early} before its victims are gone",))
            return PostFilterResult(status, plan=plan, binds_to=early)
        if not plan.eligible:
            return PostFilterResult(unschedulable(f"preemption: {plan.reason}"), plan=plan)
        if plan.error:
            return PostFilterResult(Status(Code.ERROR, (f"preemption: {plan.error}",)), plan=plan)
        if plan.chosen is None:
            nominated_node = None if plan.keeps_nomination else ""
            return PostFilterResult(
                unschedulable(plan.message),
                nominated_node,
                plan=plan,
                retry_ns=self._retry_ns(plan, cluster, pod),
                waits_for=(self.name,) if plan.held_back is not None else (),
            )
        evicts = self._protection.required
        return PostFilterResult(
            Status(plugin=self.name),
            plan.chosen.node_name,
            plan.chosen.victims,
            plan,
            evicts=evicts,
            binds_first=self._binds_first and not plan.chosen.elsewhere,
        )

    def binds_early(self, plan: PreemptionPlan, state: CycleState, pod: PodRecord, handle: Handle) -> str:
        """Return the node to bind the pod to before its victims are gone; "" if it is not bound yet.

        With ``bindFirst`` that is the node on which all its victims terminate already, for whatever reason.
        """
        if not self._binds_first:
            return ""
        node_name = pod.nominated_node_name if plan.chosen is None else plan.chosen.node_name
        if plan.chosen is not None:
            if plan.chosen.elsewhere or not all(victim.terminating for victim in plan.chosen.victims):
                return ""
        elif plan.eligible:
            return ""
        row = handle.cluster.nodes.row_of.get(node_name)
        leaving = [] if row is None else [each for each in handle.cluster.pods_on(row) if each.terminating]
        return node_name if leaving and handle.fits_without(state, pod, node_name, leaving) else ""

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
        """Return the plan of `post_filter`, in detail for every node if wanted; ``seed`` (or our own) breaks ties."""
        row = handle.cluster.nodes.row_of.get(pod.nominated_node_name)
        nominated = outcome.status(row) if row is not None else None
        evicts = self._protection.required
        if reason := eligibility.ineligible_reason(handle.cluster, pod, nominated, evicts):
            return PreemptionPlan(False, reason)
        wide, exchanges, preemptor = self._wide, self._exchanges, reprieve.Preemptor(handle, state, pod)
        if wide is not None and eligibility.may_still_fit(nominated) and wide.awaits_victims(preemptor, evicts=evicts):
            return PreemptionPlan(False, eligibility.NOT_ELIGIBLE_TERMINATING_ELSEWHERE)
        if exchanges is not None and eligibility.waits_for_victims(handle.cluster, pod, nominated, pod.priority):
            return PreemptionPlan(False, eligibility.NOT_ELIGIBLE_TERMINATING)
        options = self._options(handle.cluster, self._seed if seed is None else seed)
        plan = plan_preemption(preemptor, outcome, self._trials, options, detailed)
        if plan.chosen is not None or plan.put_off is not None or plan.error or plan.keeps_nomination:
            return plan
        if exchanges is not None:
            exchange = plan_exchange(preemptor, outcome, exchanges, options, detailed=detailed)
            if exchange is not None:
                return exchange
        elif not self._protection.required:
            return plan
        held = held_back_by_budgets(preemptor, outcome, self._trials, exchanges, options)
        return plan if held is None else plan.held_back_by(held)

    def group_post_filter(self, demand: GroupDemand, handle: GroupHandle, cluster: Cluster) -> GroupPostFilterResult:
        """Nominate nodes for enough members and determine all victims for that; or nominate none."""
        if demand.needed > len(demand.members):
            return GroupPostFilterResult(unschedulable("preemption: there are too few members"))
        plan = self.plan_group(demand, handle)
        if not plan.eligible:
            nominated = {member.uid: member.nominated_node_name for member in demand.members}
            # Only terminating victims may be in the way of members that are bound early.
            may_bind = self._binds_first and plan.reason == eligibility.NOT_ELIGIBLE_TERMINATING
            bound = self._bound_early(plan, demand, handle, nominated) if may_bind else None
            if bound is not None:
                return bound
            status = unschedulable(f"preemption: {plan.reason}")
            return GroupPostFilterResult(
                status, plan=plan, keeps_nominations=plan.reason in eligibility.NOT_ELIGIBLE_YET
            )
        if plan.chosen is None:
            most_important = max(demand.members, key=lambda member: member.priority)
            return GroupPostFilterResult(
                unschedulable(plan.message),
                plan=plan,
                retry_ns=self._retry_ns(plan, cluster, most_important),
                waits_for=(self.name,) if plan.held_back is not None else (),
            )
        chosen = plan.chosen
        binds_first = self._binds_first and chosen.victims_by_node.keys() <= {name for _, name in chosen.placements}
        # An arrangement without victims, which placing one by one has missed: no victim's end would wake the members.
        if not chosen.victims or (binds_first and all(victim.terminating for victim in chosen.victims)):
            placed = {member.uid: node_name for member, node_name in chosen.placements}
            if (bound := self._bound_early(plan, demand, handle, placed)) is not None:
                return bound
        victims = ", ".join(victim.key for victim in chosen.victims) or "none"
        where = f" in {chosen.domain}" if chosen.domain else ""
        reason = f"preemption: {len(chosen.placements)} members are nominated{where}; victims: {victims}"
        return GroupPostFilterResult(
            Status(reasons=(reason,)),
            chosen.placements,
            chosen.victims,
            plan,
            evicts=self._protection.required,
            binds_first=binds_first,
        )

    @staticmethod
    def _bound_early(
        plan: GangPlan, demand: GroupDemand, handle: GroupHandle, node_of: Mapping[str, str]
    ) -> GroupPostFilterResult | None:
        """Return the result that binds members before their victims are gone, if any; None if that is not possible.

        ``node_of`` has their nodes by uid. It is possible if only terminating pods are in their way.
        """
        bound = members_bound_first(handle, _gang(demand, handle.cluster), node_of)
        if not bound:
            return None
        placements = tuple((member, node_name) for member, node_name, _ in bound)
        is_free = plan.chosen is not None and not plan.chosen.victims
        how = "as they fit without victims" if is_free else "before their victims are gone"
        status = Status(reasons=(f"preemption: the members are bound {how}",))
        return GroupPostFilterResult(status, placements, plan=plan, states=tuple(state for _, _, state in bound))

    def plan_group(self, demand: GroupDemand, handle: GroupHandle) -> GangPlan:
        """Return the plan of `group_post_filter`; there is none if extenders are asked about members."""
        cluster = handle.cluster
        if any(handle.extenders_of(member) is not None for member in demand.members):
            # Extenders might reject members after the victims are gone.
            return GangPlan(False, "not eligible since extenders are asked about its pods.")
        gang, options = _gang(demand, cluster), self._options(cluster, self._seed)
        from podium.decide.preempting.gang.gang_search import plan_gang  # noqa: PLC0415 - few clusters have gangs

        return plan_gang(handle, gang, self._trials, options, most_steps=self._most_steps)

    def may_disrupt(self, pod: PodRecord, victim: PodRecord) -> bool:
        """Return whether ``pod`` may preempt ``victim``, which is not more important; override to restrict that."""
        return True

    def events_to_register(self) -> Sequence[EventToRegister]:
        # Those after which budgets may allow more. The scheduler itself retries once the victims have been deleted.
        if not self._protection.required and self._exchanges is None:
            return ()
        changes = ActionType.UPDATE_OTHER | ActionType.DELETE
        return (
            EventToRegister(EventResource.POD_DISRUPTION_BUDGET, changes),
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL),
            # Disruptions of unhealthy pods take no token of a rate.
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.UPDATE_POD_OTHER,
                lambda pod, event: event.old is not None and event.old.is_healthy and not event.new.is_healthy,
            ),
        )

    def _options(self, cluster: Cluster, seed: int) -> PreemptionOptions:
        required = self._protection.required
        victims = self._may_be_victims(cluster)
        return PreemptionOptions(self._minimum, victims, seed, self._cost, self._wide, requires_budgets=required)

    def _retry_ns(self, plan: Plan, cluster: Cluster, pod: PodRecord) -> int | None:
        """Return when time alone may allow the preemption; None if it cannot."""
        if plan.put_off is not None:
            return plan.put_off.next_ns
        times = (self._protection.next_ns(cluster, pod), plan.held_back.next_ns if plan.held_back else None)
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def _may_be_victims(self, cluster: Cluster) -> eligibility.VictimFilter | None:
        """Return the filter of victims, None for all pods of lower priority."""
        allowed = partial(self._each_may_be_disrupted, cluster) if self._is_overridden else None
        return eligibility.below_their_groups(cluster, self._protection.on(cluster, allowed))

    def _each_may_be_disrupted(self, cluster: Cluster, pod: PodRecord, slots: Int64s) -> Bools:
        verdicts = (self.may_disrupt(pod, cluster.pods.record(int(slot))) for slot in slots)
        return np.fromiter(verdicts, dtype=np.bool_, count=len(slots))


def _gang(demand: GroupDemand, cluster: Cluster) -> Gang:
    """Return the gang of a demand, with its group's priority."""
    group, pods = cluster.pod_groups.by_key.get(demand.key), cluster.pods
    running = pods.slots_of(each for each in pods.of_class if cluster.classes[each].pod_group == demand.key)
    return Gang(
        demand.key,
        demand.members,
        demand.needed,
        demand.domains,
        priority=gang_priority(demand.members, None if group is None else group.spec.priority),
        running=frozenset(pods.record(slot).uid for slot in running.tolist()),
    )
