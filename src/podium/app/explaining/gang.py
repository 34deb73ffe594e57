"""The decision about the whole group of a pod: its members' nodes, how many are missing, and its preemption."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from msgspec import Struct

from podium.api.basis import Caveat
from podium.app.answers import filled
from podium.app.console.cells import counted
from podium.cluster.pods import PodRecord
from podium.decide import gang_placement
from podium.decide.preempting.gang.gang import AssumedMembers
from podium.decide.preempting.preemption_plan import GangCandidate, GangPlan, SearchEffort
from podium.framework.pre_filters import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.plugins.gang_scheduling import GangScheduling


class GangDecision(Struct, frozen=True):
    """The decision about a pod's group.

    ``key`` is the group's, ``least`` its minCount, ``placed`` the number of its pods with a node, and ``there`` that of
    all its pods. ``placement`` is the result for the waiting ones; ``way_out`` the proposed preemption if too few of
    them fit, otherwise None.
    """

    key: str
    least: int
    there: int
    placed: int
    placement: gang_placement.GroupPlacement
    way_out: GroupPostFilterResult | None = None

    @property
    def plan(self) -> GangPlan | None:
        """The plan behind the proposal; None without one, or if it is another plugin's."""
        plan = None if self.way_out is None else self.way_out.plan
        return plan if isinstance(plan, GangPlan) else None

    def member(self, uid: str) -> gang_placement.MemberPlacement | None:
        """Return the result for a pod; None for one that was not tried."""
        return next((member for member in self.placement.members if member.pod.uid == uid), None)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod gets now, or after the victims have left; "" for none."""
        member = self.member(uid)
        if self.placement.is_enough:
            return "" if member is None else member.node_name
        placements = () if self.way_out is None else self.way_out.placements
        return next((node_name for pod, node_name in placements if pod.uid == uid), "")

    @property
    def headline(self) -> str:
        """The outcome for the group, as a predicate to its name."""
        if self.placement.is_enough:
            return "fits"
        if self.way_out is not None and self.way_out.states:
            return "is bound before its victims are gone"
        if self.way_out is not None and self.way_out.placements:
            return f"preempts by one plan: {counted(len(self.way_out.victims), 'victim')}"
        if self.placement.problem:
            return f"waits: {self.placement.problem}"
        return f"waits: {self.placement.fitting:,} of the {max(self.placement.needed, 1):,} that it needs would fit"

    def caveats(self) -> Iterator[Caveat]:
        """Yield the caveats that not all arrangements of the group, and not all sets of victims, were tried."""
        if self.placement.is_cut:
            message = "the search for another arrangement of a gang was cut at maxArrangementSteps"
            yield Caveat("search-cut", message, 1)
        plan = self.plan
        search = None if plan is None or (plan.chosen is None and not plan.message) else plan.search
        if search is not None and not search.is_complete:
            is_cut = search.steps >= search.most_steps
            cut = f"the search for a gang's victims was cut at maxSearchSteps, {search.most_steps:,}"
            what = f"{search.left_out:,} domains were not examined" if search.left_out else "there may be cheaper ones"
            message = f"{cut if is_cut else 'not all sets of victims of a gang were tried'}: {what}"
            yield Caveat("search-cut", message, search.left_out)

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "group": self.key,
            "minCount": self.least,
            "pods": self.there,
            "placed": self.placed,
            "needed": self.placement.needed,
            "fitting": self.placement.fitting,
            "isEnough": self.placement.is_enough,
            "members": {member.pod.key: self.node_of(member.pod.uid) for member in self.placement.members},
        }
        if self.placement.domains:
            found |= {"domain": self.placement.domain, "domains": self.placement.domains}
        found |= filled(isArranged=self.placement.is_arranged, problem=self.placement.problem)
        if self.way_out is not None:
            found["victims"] = [victim.key for victim in self.way_out.victims]
            plan = None if self.plan is None else _plan_dict(self.plan)
            found |= filled(preemption=self.way_out.status.message, plan=plan)
        return found


def gang_plugin(runner: Runner) -> GangScheduling | None:
    """Return the GangScheduling plugin of a profile, if it has one."""
    return next((each for each in runner.profile.pre_enqueue if isinstance(each, GangScheduling)), None)


def decide_gang(
    runner: Runner,
    pod: PodRecord,
    *,
    preempts: bool = True,
    alike: gang_placement.Alike = gang_placement.unlike,
    seed: int = 0,
    detailed: bool = False,
) -> GangDecision | None:
    """Decide about the group of a pending pod; None if its profile does not place it with others.

    The pods of the group that are not gated are tried in the order of their creation. Preemption is planned only with
    ``preempts``; of pods that are ``alike`` one is tried. ``seed`` and ``detailed`` are as in
    `podium.decide.placement.place`. Raises PluginError if a plugin fails.
    """
    group = runner.cluster.pod_groups.of(pod)
    plugin = gang_plugin(runner)
    if group is None or plugin is None:
        return None
    cluster = runner.cluster
    members = {**cluster.pod_groups.members(group.key), pod.uid: pod}
    placed = [cluster.placed[uid] for uid, each in members.items() if uid in cluster.placed and not each.terminating]
    waiting = [
        each
        for uid, each in members.items()
        if uid not in cluster.placed
        and not each.terminating
        and each.scheduler_name == pod.scheduler_name
        and runner.pre_enqueue(each).is_success
    ]
    waiting.sort(key=lambda each: gang_placement.order_of(each, each.created_ns))
    trial = replace(
        gang_placement.GroupTrial.of(group, waiting, placed),
        alike=alike,
        seed=seed,
        detailed=detailed,
        most_steps=plugin.most_arrangement_steps,
    )
    placement = gang_placement.place_group(runner, trial)
    way_out = None
    if preempts and not placement.is_enough and plugin.preempts and not placement.problem:
        way_out = gang_placement.ask_group_post_filter(runner, group.key, trial)
    there = len(trial.placed) + len(trial.members)
    return GangDecision(group.key, group.min_count, there, len(trial.placed), placement, way_out)


@contextmanager
def beside_those_before(runner: Runner, decision: GangDecision, pod: PodRecord) -> Iterator[None]:
    """Place the members before a pod on their nodes inside the context, as the scheduler does for a group."""
    with AssumedMembers(runner) as assumed:
        for member in decision.placement.members:
            if member.pod.uid == pod.uid:
                break
            if member.fits:
                assumed.put(member.pod, member.placement.state, member.node_name)
        yield


def _plan_dict(plan: GangPlan) -> dict[str, Any]:
    """Return the plan as plain values; ``ways`` begins with the chosen one."""
    ways = () if plan.chosen is None else (plan.chosen, *plan.alternatives)
    return {"eligible": plan.eligible, "ways": [_way(plan, way) for way in ways]} | filled(
        decidedBy=plan.criterion,
        reason=plan.reason,
        putOff=plan.put_off and plan.put_off.to_dict(),
        heldBack=plan.held_back and plan.held_back.to_dict(),
        search=plan.search and search_dict(plan.search, "domainsLeftOut"),
    )


def search_dict(search: SearchEffort, left_out: str) -> dict[str, Any]:
    """Return the JSON form of a search for victims; ``left_out`` is the key for what it did not look at."""
    return {
        "steps": search.steps,
        "maxSteps": search.most_steps,
        left_out: search.left_out,
        "isComplete": search.is_complete,
    }


def _way(plan: GangPlan, way: GangCandidate) -> dict[str, Any]:
    depends = {victim.key: way.depends_on[victim.uid] for victim in way.victims if victim.uid in way.depends_on}
    costs = zip(plan.criteria, way.cost, strict=True) if plan.criteria and way.cost else ()
    return {
        "members": {member.key: node_name for member, node_name in way.placements},
        "victims": {name: [victim.key for victim in pods] for name, pods in way.victims_by_node.items()},
        "pdbViolations": way.budget_violations,
        **filled(
            domain=way.domain,
            dependsOn=depends,
            costs={criterion.name: criterion.shown(value) for criterion, value in costs},
        ),
    }
