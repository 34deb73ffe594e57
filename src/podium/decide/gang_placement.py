"""Placement of a group's pods together, one after the other, and the PostFilter plugins' proposals for a group.

Source: pkg/scheduler/schedule_one_podgroup.go (podGroupSchedulingDefaultAlgorithm, runWorkloadAwarePreemption);
pkg/scheduler/framework/plugins/topologyaware/topology_placement.go. Upstream, groups with a topology do not preempt;
here they preempt within one domain. The order of domains is Podium's own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import Struct

from podium.api.pod_group import PodGroup
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement, place, rejecting_plugins
from podium.decide.post_filter import answer_of, checked
from podium.decide.preempting.gang.gang import AssumedMembers, Gang, GangTransaction, gang_domains, gang_priority
from podium.framework.plugin import is_own
from podium.framework.pre_filters import EVERYWHERE, Domain, GroupDemand, GroupPostFilterPlugin, GroupPostFilterResult
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Calling, PluginError, Status, unschedulable

WAITING = "waiting for minCount pods from a gang to be scheduled"
UNSCHEDULABLE = "pod group is unschedulable"

_MILLIONTHS = 1_000_000

Alike = Callable[[PodRecord], Hashable | None]
"""Returns an equal value for pods with the same result of an attempt; None for a pod that is like no other."""


def unlike(_pod: PodRecord) -> None:
    """Return None: each pod is tried by itself."""


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """The pods of a group that are to be placed together.

    ``members`` are pending, in their order; ``needed`` of them have to fit, besides those that are ``placed`` already.
    With a ``topology_key`` all have to be in one of its domains. ``seed`` and ``detailed`` are as in
    `podium.decide.placement.place`. If too few fit, another arrangement is searched within ``most_steps``, 0 for none.
    """

    members: Sequence[PodRecord]
    needed: int
    topology_key: str = ""
    placed: Sequence[PodRecord] = ()
    seed: int = 0
    alike: Alike = unlike
    detailed: bool = False
    most_steps: int = 0

    @classmethod
    def of(cls, group: PodGroup, members: Sequence[PodRecord], placed: Sequence[PodRecord]) -> GroupTrial:
        """Return the trial of a group's pending pods, besides those that have a node."""
        return cls(tuple(members), max(group.min_count - len(placed), 0), group.topology_key, tuple(placed))


class MemberPlacement(Struct, frozen=True):
    """The node of one pod, "" for none; ``reserved`` may then say which plugin refused it.

    ``placement`` is the result of its attempt, beside the members before it.
    """

    pod: PodRecord
    placement: Placement
    node_name: str = ""
    reserved: Status = SUCCESS

    @property
    def fits(self) -> bool:
        """Return whether it gets a node."""
        return bool(self.node_name)


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """The nodes of a group's members, in the order in which they are tried.

    ``needed`` of them have to fit, or none is placed. ``domain`` is the chosen topology domain, or the first one if
    none will do, out of ``domains``, 0 without a topology. ``node_count`` is the number of nodes to choose from,
    ``rejected_by`` the plugins that rejected some member in some domain. ``problem`` says why no member was tried.
    ``is_arranged``: they do not fit one after the other where each prefers to be, but in another way; ``is_cut``: not
    all ways could be tried.
    """

    members: tuple[MemberPlacement, ...]
    needed: int
    node_count: int
    rejected_by: tuple[str, ...] = ()
    domain: str = ""
    domains: int = 0
    cursor: int = 0
    problem: str = ""
    is_arranged: bool = False
    is_cut: bool = False

    @property
    def fitting(self) -> int:
        """The number of members that get a node."""
        return sum(member.fits for member in self.members)

    def shortfall(self, placed: int) -> str:
        """Return how many members are missing, besides those that are ``placed``, where upstream gives up."""
        scheduled, least = placed, placed + self.needed
        remaining = len(self.members)
        for member in self.members:
            remaining -= 1
            scheduled += member.fits
            if scheduled + remaining < least:
                break
        return f"minCount ({least}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"

    @property
    def is_enough(self) -> bool:
        """Return whether enough members fit to start the group."""
        return not self.problem and self.fitting >= max(self.needed, 1)

    @property
    def message(self) -> str:
        """Why the group is not placed, as in its condition."""
        if self.problem:
            return self.problem
        if self.domains:
            return f"0/{self.domains} placements are available, first placement status: {UNSCHEDULABLE}"
        return UNSCHEDULABLE


def place_group(runner: Runner, trial: GroupTrial) -> GroupPlacement:
    """Find nodes for the pending pods of a group, one after the other, each beside those before it.

    The domain where most of them fit is chosen; ties are broken by the least free capacity, then by name. If too few
    fit, other ways to place them are tried, as far as the trial allows. The cluster is unchanged afterwards. Raises
    PluginError if a plugin fails.
    """
    if not trial.topology_key:
        return _arranged(runner, trial, _together(runner, trial, EVERYWHERE[0]))
    domains, problem = domains_of(runner.cluster, trial.topology_key, trial.placed)
    if problem:
        nodes = runner.cluster.nodes
        return GroupPlacement((), trial.needed, len(nodes), cursor=nodes.search_start, problem=problem)
    best: GroupPlacement | None = None
    rejected_by: dict[str, None] = {}
    for domain in domains:
        found = _together(runner, trial, domain)
        rejected_by.update(dict.fromkeys(found.rejected_by))
        if best is None or (found.is_enough and (not best.is_enough or found.fitting > best.fitting)):
            best = found
        if best.is_enough and best.fitting == len(trial.members):
            break
    if best is None:
        raise AssertionError("there is no domain, and no problem with that")
    found = replace(best, domains=len(domains), rejected_by=tuple(rejected_by))
    return _arranged(runner, trial, found, domains)


def order_of(pod: PodRecord, first_attempt_ns: int) -> tuple[int, int, str, str]:
    """Return a member's place in the order of attempts: priority, first attempt, key, uid."""
    return -pod.priority, first_attempt_ns, pod.key, pod.uid


def _together(runner: Runner, trial: GroupTrial, domain: Domain) -> GroupPlacement:
    """Try the members in one domain."""
    found: list[MemberPlacement] = []
    cursor = runner.cluster.nodes.search_start
    # The failed attempts of alike pods since a member last took room.
    failed: dict[Hashable, Placement] = {}
    with AssumedMembers(runner) as assumed:
        for pod in trial.members:
            likeness = trial.alike(pod)
            known = None if likeness is None else failed.get(likeness)
            if known is not None:
                found.append(MemberPlacement(pod, known))
                continue
            placement = place(runner, pod, trial.seed, cursor=cursor, detailed=trial.detailed, among=domain.rows)
            cursor = placement.cursor
            if placement.error:
                raise PluginError(placement.error)
            found.append(_reserved(runner, assumed, placement))
            if placement.row is not None:
                failed.clear()
            elif likeness is not None:
                failed[likeness] = placement
    rejected = {id(member.placement): member.placement for member in found if not member.fits}.values()
    rejecting = [name for placement in rejected for name in rejecting_plugins(placement)]
    rejecting += [member.reserved.plugin for member in found if member.reserved.plugin]
    return GroupPlacement(
        tuple(found),
        trial.needed,
        len(runner.cluster.nodes if domain.rows is None else domain.rows),
        tuple(dict.fromkeys(rejecting)),
        domain=domain.name,
        cursor=cursor,
    )


def _arranged(
    runner: Runner, trial: GroupTrial, found: GroupPlacement, domains: tuple[Domain, ...] = EVERYWHERE
) -> GroupPlacement:
    """Return the placement ``found``, or another one in which enough pods fit, in one of the domains.

    Groups with extenders are left as they are: extenders may reject what this assumes. Raises PluginError if a plugin
    fails.
    """
    from podium.decide.preempting.gang.packing import MemberShapes, first_packing  # noqa: PLC0415 - few groups need it

    needed = max(trial.needed, 1)
    may_fit = not found.is_enough and needed <= len(trial.members)
    if not may_fit or not trial.most_steps or any(runner.extenders_of(pod) is not None for pod in trial.members):
        return found
    members = tuple(trial.members)
    gang = Gang("", members, needed, domains, priority=gang_priority(members))
    # Room that is kept for one member rejects other members if they are tried one by one.
    are_nominated = any(runner.cluster.nominations.node_of(pod.uid) for pod in members)
    with GangTransaction(runner, gang) as transaction:
        shapes = MemberShapes(transaction, gang)
        if shapes.any_place_will_do and not are_nominated:
            return found
        chosen, placements, is_cut = first_packing(shapes, gang_domains(runner.cluster, gang), trial.most_steps)
    if chosen is None:
        return replace(found, is_cut=is_cut)
    among = next(domain.rows for domain in domains if domain.name == chosen.name)
    placed = _placed(runner, trial, {member.uid: row for member, row in placements}, among)
    return found if placed is None else replace(found, members=placed, domain=chosen.name, is_arranged=True)


def _placed(
    runner: Runner, trial: GroupTrial, row_of: Mapping[str, int], among: Int64s | None
) -> tuple[MemberPlacement, ...] | None:
    """Return the members on their rows, and others that fit beside them; None if one does not fit after all."""
    found: dict[str, MemberPlacement] = {}

    def put(pod: PodRecord, rows: Int64s | None) -> bool:
        placement = place(runner, pod, trial.seed, nominated_first=False, detailed=trial.detailed, among=rows)
        if placement.error:
            raise PluginError(placement.error)
        member = found[pod.uid] = _reserved(runner, assumed, placement)
        return member.fits

    with AssumedMembers(runner) as assumed:
        assumed.end_nominations(trial.members)
        for pod in trial.members:
            if pod.uid in row_of and not put(pod, np.array([row_of[pod.uid]], dtype=np.int64)):
                return None
        for pod in trial.members:
            if pod.uid not in row_of:
                put(pod, among)
    return tuple(found[pod.uid] for pod in trial.members)


def _reserved(runner: Runner, assumed: AssumedMembers, placement: Placement) -> MemberPlacement:
    """Return a member on the node found for it, if there is one and plugins reserve what it needs there."""
    if placement.row is None:
        return MemberPlacement(placement.pod, placement)
    node_name = runner.cluster.nodes.name(placement.row)
    reserved = assumed.put(placement.pod, placement.state, node_name)
    return MemberPlacement(placement.pod, placement, node_name if reserved.is_success else "", reserved)


def domains_of(cluster: Cluster, key: str, placed: Sequence[PodRecord] = ()) -> tuple[tuple[Domain, ...], str]:
    """Return the domains for the pods of a group, and why there are none, "" if there are some.

    If the group has pods ``placed``, the others have to join these. The fullest domain comes first, so that large gaps
    are kept: the one with the least free share of CPU and memory, in millionths; then the first by name.
    """
    nodes, rows_of = cluster.nodes, dict[str, list[int]]()
    for row in sorted(nodes.row_of.values()):
        if (value := nodes.node(row).metadata.labels.get(key)) is not None:
            rows_of.setdefault(value, []).append(row)
    if not rows_of:
        return (), f"no node has the label {key}"
    if placed:
        at = (nodes.row_of.get(pod.node_name) for pod in placed)
        taken = {None if row is None else nodes.node(row).metadata.labels.get(key) for row in at}
        if len(taken) > 1:
            return (), f"pods of the group are in several domains of {key} already"
        (name,) = taken
        if name is None or name not in rows_of:
            return (), f"pods of the group are on nodes without the label {key} already"
        rows_of = {name: rows_of[name]}

    def free_share(name: str) -> int:
        both = np.ix_(np.array((CPU, MEMORY)), np.array(rows_of[name], dtype=np.int64))
        sums = (amounts[both].sum(axis=1).tolist() for amounts in (nodes.allocatable, nodes.requested))
        return sum((total - used) * _MILLIONTHS // max(total, 1) for total, used in zip(*sums, strict=True))

    names = sorted(rows_of, key=lambda name: (free_share(name), name))
    return tuple(Domain(name, np.array(rows_of[name], dtype=np.int64)) for name in names), ""


def ask_group_post_filter(runner: Runner, key: str, trial: GroupTrial) -> GroupPostFilterResult:
    """Return the proposal of the first PostFilter plugin that plans for groups.

    Raises PluginError if it fails or proposes something impossible.
    """
    demand = GroupDemand(key, tuple(trial.members), max(trial.needed, 1))
    if trial.topology_key:
        demand = replace(demand, domains=domains_of(runner.cluster, trial.topology_key, trial.placed)[0])
    for plugin in runner.profile.post_filter:
        if isinstance(plugin, GroupPostFilterPlugin) and demand.domains:
            pod = demand.members[0]
            with Calling(plugin.name, "PostFilter", pod):
                found = plugin.group_post_filter(demand, runner, runner.cluster)
            if is_own(plugin):
                return found
            answer = answer_of(plugin, pod)
            return checked(
                found, GroupPostFilterResult, lambda it: [node for _, node in it.placements], runner.cluster, answer
            )
    return GroupPostFilterResult(unschedulable())
