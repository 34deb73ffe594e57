"""A gang that wants room, and temporary changes to the live cluster that try its members.

A gang is a set of pods of one PodGroup that start together or not at all. Filters answer about the cluster with members
on their nodes and victims gone, whatever they look at.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain), which changes its snapshot in
the same way, and has plugins reserve what a member needs; pkg/scheduler/schedule_one_podgroup.go (assumeAndReserve,
unreserveAndForget).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from msgspec import Struct

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_TERMINATING
from podium.decide.transaction import RollbackLog
from podium.framework.handle import CycleState, Reach
from podium.framework.plugin import ReservePlugin
from podium.framework.pre_filters import GroupDemand, GroupHandle
from podium.framework.verdicts import SUCCESS, Calling, Outcome, PluginError, Status


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Gang(GroupDemand):
    """A demand with the priority of its group: victims have a lower one. ``running`` are members (uids) with nodes."""

    priority: int
    running: frozenset[str] = frozenset()

    @property
    def own(self) -> frozenset[str]:
        """The members (uids), which are no victims of one another."""
        return self.running.union(member.uid for member in self.members)

    def __post_init__(self) -> None:
        if not 0 < self.needed <= len(self.members):
            raise ValueError(f"gang {self.key} needs {self.needed} of {len(self.members)} members")


def gang_priority(members: Iterable[PodRecord], stated: int | None = None) -> int:
    """Return the priority of a gang: its group's if stated, otherwise its most important member's, and at least 0.

    Source: pkg/scheduler/framework/preemption/types.go (newPodGroupPreemptor), which took the highest of the pods' and
    0 before groups had a priority.
    """
    return max((0, *(member.priority for member in members))) if stated is None else stated


def gang_ineligible_reason(cluster: Cluster, gang: Gang) -> str:
    """Return why a gang may not preempt now; "" if it may.

    It may not if one of its members never preempts, or while less important preempted pods still terminate on nodes
    that members are nominated to, or victims of members do.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (preemptorEligibleToPreemptOthers).
    """
    for member in gang.members:
        if member.preemption_policy in NEVER_PREEMPTS:
            return f"not eligible due to preemptionPolicy={member.preemption_policy}."
    for member in gang.members:
        awaited = [cluster.placed.get(uid) for uid in cluster.nominations.victims_of(member.uid)]
        row = cluster.nodes.row_of.get(member.nominated_node_name)
        others = [] if row is None else cluster.pods_on(row)
        if any(victim is not None and cluster.is_ending(victim) for victim in awaited) or any(
            other.priority < gang.priority and cluster.is_ending_victim(other) for other in others
        ):
            return NOT_ELIGIBLE_TERMINATING
    return ""


class GangDomain(Struct, frozen=True, eq=False):
    """The rows where members may go together, ``[rows]``: all of them, or those of one topology domain."""

    allowed: Bools
    name: str = ""


def gang_domains(cluster: Cluster, gang: Gang) -> list[GangDomain]:
    """Return the domains in which members may be, by name; the whole cluster if they may be anywhere."""
    every = np.arange(cluster.nodes.count)
    return [
        GangDomain(np.isin(every, every if rows is None else rows), name)
        for name, rows in sorted(gang.domains, key=lambda domain: domain.name)
    ]


LEAST_STEPS = 50
"""A call of the filters counts one step for each node, and at least this many: calls have a fixed cost."""

_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)

MemberRow = tuple[PodRecord, int]
"""A member, and its row."""


class AssumedMembers(RollbackLog):
    """Puts pods on nodes while a decision about a group lasts, so that later members see their room as taken.

    Plugins reserve what each pod needs besides room, such as volumes and devices, and release it in the same way.
    """

    def __init__(self, handle: GroupHandle) -> None:
        super().__init__()
        self.handle = handle
        self.cluster = handle.cluster

    def put(self, pod: PodRecord, state: CycleState, node_name: str) -> Status:
        """Put a pending pod on a node; return success, or why a plugin refuses it, and then nothing has changed."""
        savepoint = self.savepoint()
        self.end_nominations([pod])
        self.cluster.add_pod(pod.on_node(node_name))
        self._undo.append(partial(self.cluster.remove_pod, pod.uid))
        for plugin in self.handle.reserving:
            if _has_nothing_for(plugin, state):
                continue
            self._undo.append(partial(_unreserve, plugin, state, pod, node_name))
            with Calling(plugin.name, "Reserve", pod):
                status = plugin.reserve(state, pod, node_name)
            if not status.is_success:
                self.roll_back(savepoint)
                return status.by(plugin.name)
        return SUCCESS

    def end_nominations(self, pods: Iterable[PodRecord]) -> None:
        nominations = self.cluster.nominations
        for pod in pods:
            if name := nominations.node_of(pod.uid):
                nominated = next(other for other in nominations.on(name) if other.uid == pod.uid)
                self._undo.append(partial(nominations.put, nominated, name, nominations.victims_of(pod.uid)))
                nominations.remove(pod.uid)


class GangTransaction(AssumedMembers):
    """Tries where members of a gang fit. Their nominations do not count meanwhile. ``steps`` counts the calls."""

    def __init__(self, handle: GroupHandle, gang: Gang) -> None:
        super().__init__(handle)
        self.steps = 0
        self.base = 0
        self._gang = gang

    def __enter__(self) -> Self:
        self.end_nominations(self._gang.members)
        self.base = self.savepoint()
        return self

    def remove(self, victims: Iterable[PodRecord]) -> None:
        """Remove victims from their nodes; those that are gone already are skipped."""
        for victim in victims:
            if victim.uid in self.cluster.placed:
                self._undo.append(partial(self.cluster.add_pod, self.cluster.remove_pod(victim.uid)))

    def pre_filtered(self, pod: PodRecord) -> tuple[CycleState, Int64s | None]:
        """Return the state that PreFilters prepare for a pod, and the rows that they leave; None for all."""
        state = CycleState()
        found = self.handle.pre_filter(state, pod)
        return state, found.rows if found.status.is_success else _NO_ROWS

    def fitting(self, pod: PodRecord, rows: Int64s | None = None) -> tuple[CycleState, Int64s]:
        """Return the rows, out of ``rows`` (ascending) or of all, that accept the pod now; ascending."""
        state, left = self.pre_filtered(pod)
        if left is not None:
            rows = left if rows is None else np.intersect1d(rows, left)
            if not len(rows):
                return state, _NO_ROWS
        outcome: Outcome = self.handle.filter(state, pod, rows)
        self.count(len(outcome.refused))
        feasible = outcome.feasible
        return state, feasible if rows is None else rows[feasible]

    def try_member(self, member: PodRecord, row: int) -> bool:
        state, rows = self.fitting(member, np.array([row], dtype=np.int64))
        return bool(len(rows)) and self.put_member(state, member, row)

    def put_member(self, state: CycleState, member: PodRecord, row: int) -> bool:
        """Put a member on a row that it fits by the filters; return False if a plugin reserves nothing for it."""
        return self.put(member, state, self.cluster.nodes.name(row)).is_success

    def reserves(self, members: Iterable[PodRecord]) -> bool:
        """Return whether plugins reserve something for some members besides their room."""
        for member in members:
            state, _ = self.pre_filtered(member)
            if not all(_has_nothing_for(plugin, state) for plugin in self.handle.reserving):
                return True
        return False

    def are_row_local(self, members: Iterable[PodRecord]) -> bool:
        """Return whether filters answer for each row by that row alone, for all of these members."""
        return all(self.handle.is_row_local(self.pre_filtered(member)[0]) for member in members)

    def count(self, rows: int) -> None:
        """Count a call of the filters about a number of rows."""
        self.steps += max(rows, LEAST_STEPS)


def placements_hold(
    transaction: GangTransaction, units: Iterable[Sequence[PodRecord]], placements: Sequence[MemberRow]
) -> bool:
    """Return whether members fit their rows one after the other without some units of victims.

    Earlier changes are rolled back first.
    """
    transaction.roll_back(transaction.base)
    for unit in units:
        transaction.remove(unit)
    return all(transaction.try_member(member, row) for member, row in placements)


def members_bound_first(
    handle: GroupHandle, gang: Gang, node_of: Mapping[str, str]
) -> list[tuple[PodRecord, str, CycleState]]:
    """Return the members that have a node, if only terminating pods keep them off; [] otherwise.

    Each comes with its node and the state that plugins have prepared. Their kubelets hold them until the victims are
    gone. ``node_of`` has their nodes by uid, "" for none. A kubelet waits for pods on its own node alone, so that those
    on others count as present. At least as many members as are needed must have a node.
    """
    row_of = handle.cluster.nodes.row_of
    rows = {uid: row_of[node_name] for uid, node_name in node_of.items() if node_name in row_of}
    is_one_domain = any(domain is None or set(rows.values()) <= set(domain.tolist()) for _, domain in gang.domains)
    if len(rows) < gang.needed or not is_one_domain:
        return []
    found: list[tuple[PodRecord, str, CycleState]] = []
    with GangTransaction(handle, gang) as transaction:
        for member in gang.members:
            row = rows.get(member.uid)
            if row is None:
                continue
            savepoint = transaction.savepoint()
            transaction.remove([other for other in transaction.cluster.pods_on(row) if other.terminating])
            state, fitting = transaction.fitting(member, np.array([row], dtype=np.int64))
            transaction.roll_back(savepoint)
            if not len(fitting) or not transaction.put_member(state, member, row):
                return []
            found.append((member, transaction.cluster.nodes.name(row), state))
    return found


class _RequiredPods(Struct, frozen=True, eq=False):
    """Pods that members require nearby: how many there were in each domain (``codes`` are the rows')."""

    reach: Reach
    codes: Int32s | Int64s
    before: Int64s


class AffinityPartners:
    """The pods that members require nearby, in the cluster before members came or victims left.

    A member is alone if none of these is left around it and no other member has come in their place. Filters accept it
    if its own terms select it, as the first of its group; but if others were there before, they were victims.
    """

    def __init__(self, transaction: GangTransaction, gang: Gang, *, are_kept: bool) -> None:
        """Find the pods that the members require nearby; none unless they ``are_kept``."""
        self._transaction = transaction
        self._required: dict[int, list[_RequiredPods]] = {}
        cluster = transaction.cluster
        for member in gang.members if are_kept else ():
            if member.pod_class.id in self._required:
                continue
            found = self._required[member.pod_class.id] = []
            state, _ = transaction.pre_filtered(member)
            for reach in transaction.handle.reaches(state, member).found:
                if reach.effect == "Stay":
                    before = cluster.domain_counts(reach.predicate, reach.key).copy()
                    if before[1:].any():
                        found.append(_RequiredPods(reach, cluster.nodes.labels(reach.key).codes, before))

    def __bool__(self) -> bool:
        return any(self._required.values())

    def leave_alone(self, member: PodRecord, row: int) -> bool:
        """Return whether a member would be alone on a row now."""
        count = self._transaction.cluster.domain_counts
        return any(
            not count(required.reach.predicate, required.reach.key)[required.codes[row]]
            for required in self._required.get(member.pod_class.id, ())
        )

    def include(self, pod: PodRecord) -> bool:
        """Return whether some member requires pods like this one near its node."""
        matcher = self._transaction.cluster.matcher
        return any(
            required.before[required.codes[pod.row]] > 0
            and pod.pod_class.id in matcher(required.reach.predicate).classes
            for found in self._required.values()
            for required in found
        )


def _unreserve(plugin: ReservePlugin, state: CycleState, pod: PodRecord, node_name: str) -> None:
    """Let a plugin release what it reserved; if it fails, the others still do."""
    with suppress(PluginError), Calling(plugin.name, "Unreserve", pod):
        plugin.unreserve(state, pod, node_name)


def _has_nothing_for(plugin: ReservePlugin, state: CycleState) -> bool:
    """Return whether a plugin need not be called for a pod, since it has left nothing in the state."""
    return bool(vars(type(plugin)).get("needs_state")) and state.get(plugin.name) is None
