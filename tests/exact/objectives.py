"""The objectives of Podium's own policies as linear forms, written apart from the bounds that they check."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import Policy
from podium.plugins.rescheduling.demand_kinds import NodeDemands
from podium.plugins.rescheduling.demand_policies import OwnerDemand
from podium.plugins.rescheduling.demands import MICRO, Demand, DemandPolicy
from podium.plugins.rescheduling.freed_nodes import FreedNodes
from podium.plugins.rescheduling.move_to_underused_nodes import MoveToUnderusedNodes, _too_many
from podium.plugins.rescheduling.node_use import guests_on
from podium.plugins.rescheduling.registry import _ROOM, Consolidate
from tests.exact.linear_forms import Contents, Cost, Curve, LinearForm, Movables, Pair, ResourceUse, sum_of_forms


@runtime_checkable
class LinearObjective(Protocol):
    """A policy of a test that states its own linear form."""

    def linear(self, movables: Movables) -> LinearForm:
        """Return the objective as a function of the placement of these pods; all other pods keep their places."""


def linear_form(policy: Policy, movables: Movables) -> LinearForm | None:
    """Return the objective of a policy as a function of the placement of these pods; None if it has no linear form."""
    match policy:
        case LinearObjective():
            return policy.linear(movables)
        case Consolidate():
            form = of_freed_nodes(policy._freed, movables)
            return replace(form, left_out=(_ROOM,)) if policy._wanted_room(movables.picture) else form
        case MoveToUnderusedNodes():
            return of_loads(policy, movables)
        case DemandPolicy():
            policy._demands.follow(movables.picture)
            return sum_of_forms([of_demand(demand, movables) for demand in policy._demands.all])
        case _:
            return None


def of_freed_nodes(policy: FreedNodes, movables: Movables) -> LinearForm:
    """Return a price for each node in use, whichever pods use it."""
    if not policy._threshold:
        return LinearForm()
    picture = movables.picture
    cluster, count = picture.cluster, picture.cluster.nodes.count
    guests = {pod.uid for row in range(count) for pod in guests_on(cluster, row)}
    kept = {pod.row for pod in movables.staying() if pod.uid in guests}
    pairs: defaultdict[int, list[Pair]] = defaultdict(list)
    for pod, row in movables.pairs():
        if pod.uid in guests and row not in kept and picture.targets[row]:
            pairs[row].append((pod.uid, row))
    base = policy._worth * sum(bool(picture.targets[row]) for row in kept)
    return LinearForm(base, uses=tuple(ResourceUse(pairs[row], policy._worth) for row in sorted(pairs)))


def of_demand(demand: Demand, movables: Movables) -> LinearForm:
    """Return what would be missing, in pods; the form of other demands leaves them out."""
    match demand:
        case NodeDemands():
            return of_node_demands(demand, movables)
        case OwnerDemand():
            return of_owner(demand, movables)
        case _:
            return LinearForm(left_out=(demand.name,))


def of_node_demands(demand: NodeDemands, movables: Movables) -> LinearForm:
    """Return a price for each pod in each row."""
    concerned = [pod for pod in movables.pods if pod.pod_class.id in demand._of_class]
    prices = {
        (pod.uid, row): demand._of_class[pod.pod_class.id].misses.item(row) / MICRO
        for pod, row in movables.pairs(concerned)
    }
    return LinearForm(demand.missing / MICRO - sum(prices[pod.uid, pod.row] for pod in concerned), prices)


def of_owner(demand: OwnerDemand, movables: Movables) -> LinearForm:
    """Return for each node the pods beyond its share; nothing if pods that do not count now could come to count."""
    pods = [pod for pod in movables.pods if pod.pod_class.id in demand._rows_of_class]
    if any(not demand._rows[row] for _, row in movables.pairs(pods)):
        return LinearForm(left_out=("owners with pods on nodes that accept no pods",))
    part, own = demand._part(), Counter(pod.row for pod in pods)
    curve = Curve(lambda number: max(number - part, 0.0), lambda number: float(number > part), (part, part + 1.0))
    added: defaultdict[int, dict[Pair, float]] = defaultdict(dict)
    for pod, row in movables.pairs(pods):
        added[row][pod.uid, row] = 1.0
    rows = sorted({*added, *demand._pods})
    costs = [Cost(curve, added[row], float(demand._pods.get(row, 0) - own[row])) for row in rows]
    return LinearForm(costs=costs)


def of_loads(policy: MoveToUnderusedNodes, movables: Movables) -> LinearForm:
    """Return a table for each node of the pods that can be on it."""
    picture, loads = movables.picture, policy._loads
    situation = policy._situation(picture)
    high, counted = situation.high[:, None], picture.targets
    slots = np.array([pod.slot for pod in movables.pods], dtype=np.int64)
    parts = loads.parts_of(picture, slots).T.tolist()
    of_pod = {pod.uid: tuple(amounts) for pod, amounts in zip(movables.pods, parts, strict=True)}
    size = len(loads.resources)

    def contents_of(row: int, pods: Sequence[PodRecord]) -> Contents:
        """Return the table of a row where some pods are or may be; pods that add the same are of one kind."""
        kinds = {pod.uid: of_pod[pod.uid] for pod in pods}
        order = sorted(set(kinds.values()))
        each, now = np.array(order, dtype=np.int64).T, loads.parts_on(np.array([row]))[:, 0]
        held = now - sum((np.array(kinds[pod.uid]) for pod in pods if pod.row == row), np.zeros_like(now))
        # What is there already fits, however much it is; roots have no limit.
        fits = np.maximum(loads.allocatable[:, row], now[:size])

        def added(counts: tuple[int, ...]) -> Int64s:
            return np.asarray(held + each @ np.array(counts, dtype=np.int64))

        def cost(counts: tuple[int, ...]) -> float:
            shares, pods = loads.as_shares(np.array([row]), added(counts)[:, None])
            return float(_too_many(pods, shares, high)[0]) if counted[row] and (shares > high).any() else 0.0

        return Contents(row, kinds, order, cost, lambda counts: bool((added(counts)[:size] <= fits).all()))

    on_row: dict[int, list[PodRecord]] = {}
    for pod, row in movables.pairs():
        on_row.setdefault(row, []).append(pod)
    contents = tuple(contents_of(row, pods) for row, pods in sorted(on_row.items()))
    base = float(situation.excess.sum()) - sum(situation.excess[table.row] for table in contents)
    return LinearForm(base, contents=contents)
