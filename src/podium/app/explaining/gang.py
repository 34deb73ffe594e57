"""What becomes of the whole group of a pod: who would go where, how many lack, and what is proposed for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from podium.api.pod_group import PodGroup
from podium.app.explaining.gang_plan import gang_plan_values
from podium.cluster.pods import PodRecord
from podium.decide.gangs.assumed import AssumedPods
from podium.decide.gangs.group_placement import GroupPlacement, MemberPlacement
from podium.decide.gangs.group_trial import Alike, GroupTrial, unlike
from podium.decide.gangs.placing import order_of, place_group
from podium.decide.gangs.ways_out import ask_group_post_filter
from podium.decide.preempting.gang.gang_plan import GangPlan
from podium.framework.group_plugin import GroupPostFilterResult
from podium.framework.runner import Runner
from podium.plugins.gang_scheduling import GangScheduling


@dataclass(frozen=True, slots=True)
class GangDecision:
    """The decision about a pod's group.

    ``key`` is the group's, ``least`` how many of its pods are placed together or not at all, ``placed`` how many have a
    node, and ``there`` how many there are, these included. ``placement`` is what was found for those that wait;
    ``way_out`` what is proposed where too few of them fit, None where enough do.
    """

    key: str
    least: int
    there: int
    placed: int
    placement: GroupPlacement
    way_out: GroupPostFilterResult | None = None

    @property
    def is_enough(self) -> bool:
        """Whether pods of the group would go now."""
        return self.placement.is_enough

    @property
    def plan(self) -> GangPlan | None:
        """The plan behind what is proposed; None where there is none, or it is a plugin's own."""
        plan = None if self.way_out is None else self.way_out.plan
        return plan if isinstance(plan, GangPlan) else None

    @property
    def lacking(self) -> int:
        """How many more pods would have to fit."""
        return 0 if self.is_enough else max(self.placement.needed, 1) - self.placement.fitting

    def member(self, uid: str) -> MemberPlacement | None:
        """What was found for a pod; None for one that was not tried."""
        return next((member for member in self.placement.members if member.pod.uid == uid), None)

    def node_of(self, uid: str) -> str:
        """Where a pod would go: now, or once those who have to make room are gone; "" for nowhere."""
        member = self.member(uid)
        if self.is_enough:
            return "" if member is None else member.node_name
        placements = () if self.way_out is None else self.way_out.placements
        return next((node_name for pod, node_name in placements if pod.uid == uid), "")

    @property
    def headline(self) -> str:
        """What becomes of the group, in words that follow its name."""
        if self.is_enough:
            return "goes"
        if self.way_out is not None and self.way_out.states:
            return "is bound before its victims are gone"
        if self.way_out is not None and self.way_out.placements:
            number = len(self.way_out.victims)
            return f"preempts by one plan: {number:,} victim{'' if number == 1 else 's'}"
        if self.placement.problem:
            return f"waits: {self.placement.problem}"
        return f"waits: {self.placement.fitting:,} of the {max(self.placement.needed, 1):,} that it needs would fit"

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain values."""
        found: dict[str, Any] = {
            "group": self.key,
            "minCount": self.least,
            "pods": self.there,
            "placed": self.placed,
            "needed": self.placement.needed,
            "fitting": self.placement.fitting,
            "isEnough": self.is_enough,
            "members": {member.pod.key: self.node_of(member.pod.uid) for member in self.placement.members},
        }
        if self.placement.domains:
            found["domain"] = self.placement.domain
            found["domains"] = self.placement.domains
        if self.placement.is_arranged:
            found["isArranged"] = True
        if self.placement.problem:
            found["problem"] = self.placement.problem
        if self.way_out is not None:
            found["victims"] = [victim.key for victim in self.way_out.victims]
            if self.way_out.status.message:
                found["preemption"] = self.way_out.status.message
            if self.plan is not None:
                found["plan"] = gang_plan_values(self.plan)
        return found


def gang_plugin(runner: Runner) -> GangScheduling | None:
    """What places pods of groups together in a scheduler's profile; None where nothing does."""
    return next((each for each in runner.profile.pre_enqueue if isinstance(each, GangScheduling)), None)


def decide_gang(
    runner: Runner,
    pod: PodRecord,
    *,
    preempts: bool = True,
    alike: Alike = unlike,
    seed: int = 0,
    detailed: bool = False,
) -> GangDecision | None:
    """Decide about the group of a pending pod; None where its profile does not place it with others.

    The pods of the group that are not gated are tried in the order of a scheduler to which all came as they were made.
    Unless it ``preempts`` nobody is asked for a way out; of pods that are ``alike`` one is tried. ``seed`` and
    ``detailed`` are as in `podium.decide.placement.place`. Raises PluginError where a plugin fails.
    """
    group = runner.cluster.pod_groups.of(pod)
    plugin = gang_plugin(runner)
    if group is None or plugin is None:
        return None
    trial = replace(
        _trial(runner, group, pod),
        alike=alike,
        seed=seed,
        detailed=detailed,
        most_steps=plugin.most_arrangement_steps,
    )
    placement = place_group(runner, trial)
    way_out = None
    if preempts and not placement.is_enough and plugin.preempts and not placement.problem:
        way_out = ask_group_post_filter(runner, group.key, trial)
    there = len(trial.placed) + len(trial.members)
    return GangDecision(group.key, group.min_count, there, len(trial.placed), placement, way_out)


@contextmanager
def beside_those_before(runner: Runner, decision: GangDecision, pod: PodRecord) -> Iterator[None]:
    """The cluster as a pod finds it when its group is tried: those before it are on their nodes."""
    with AssumedPods(runner) as assumed:
        for member in decision.placement.members:
            if member.pod.uid == pod.uid:
                break
            if member.fits:
                assumed.put(member.pod, member.placement.state, member.node_name)
        yield


def _trial(runner: Runner, group: PodGroup, pod: PodRecord) -> GroupTrial:
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
    waiting.sort(key=lambda each: order_of(each, each.created_ns))
    return GroupTrial.of(group, waiting, placed)
