"""Certificates of plans: a lower bound on the cost of every placement that evictions can reach.

The bound is a Lagrangean one. Each node ends in one of several states, with a cost and the load that it can then hold;
the loads of all nodes together must hold the pods that may move. Prices of capacity, and of moves that count against
limits, replace these common constraints. For any prices that are not negative, the cheapest state of each node then
gives a lower bound, so that only the quality of the bound depends on how the prices were found.

Source: Geoffrion, Lagrangean relaxation for integer programming (1974); Dantzig and Wolfe, Decomposition principle for
linear programs (1960).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.rescheduling.round_robin import PolicyError, calling_policy
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope, is_own
from podium.framework.rescheduling.bounds import PODS, BoundedObjective, Departures, NodeState, ObjectiveBound
from podium.framework.rescheduling.policy import Float64s, Picture, Policy
from podium.framework.verdicts import PluginError

FIT = "NodeResourcesFit"
# The most resources of which capacity is counted, those with the largest requested share first.
_MOST_RESOURCES = 3
# The steps of an ascent: more where they are cheap, in small clusters.
_STEPS, _MOST_STEPS, _STATES_IN_ALL = 120, 400, 2_000_000
_GOOD_ENOUGH = 1e-4


@dataclass(frozen=True, slots=True)
class MoveLimit:
    """An upper bound on how many of the given pods (uids) move."""

    pods: Collection[str]
    most: int


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """The cost of the placement now, after a plan, and a lower bound on the cost of every placement.

    The cost is the weighted sum of the objectives of ``covered`` policies, plus ``price`` for each moved pod.
    ``uncovered`` are policies without a bound. ``relaxed`` names what the bound ignores, by policy or "" for all.
    """

    now: float
    after: float
    bound: float
    price: float
    moves: int
    covered: tuple[str, ...]
    uncovered: tuple[str, ...]
    relaxed: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def gap(self) -> float:
        """The share of the plan's cost by which a better plan could at most reduce it."""
        return (self.after - self.bound) / self.after if self.after > 0 else 0.0

    @property
    def share(self) -> float:
        """The least share of the possible gain that the plan reaches; 1 if there is none."""
        possible = self.now - self.bound
        return 1.0 if possible <= _GOOD_ENOUGH else (self.now - self.after) / possible


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices, none below 0: ``capacity`` of the resources of each kind of node (`[kinds, resources]`), and ``limits``.

    Capacity counts as shares of what all movable pods request.
    """

    capacity: Float64s
    limits: Float64s


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """The nodes' states, and the constraints that they share.

    States are ordered by row, which begin at ``starts`` (`[rows]`): ``costs`` and ``entries`` (of `Departures`) are
    `[states]`, ``room`` for movable pods `[states, resources]`. ``kinds`` are the kinds of nodes by row. Movable pods
    with the same ``requests`` (`[shapes, resources]`) and possible kinds (``allowed``, `[shapes, kinds]`) are one
    shape; ``numbers`` counts them. At most so many pods of each limit move (``limits``); ``limit_of`` and ``pod_of``
    are the pairs of a limit and a pod (indices) that counts against it.
    """

    departures: Departures
    base: float
    price: float
    starts: Int64s
    costs: Float64s
    entries: Int64s
    room: Float64s
    kinds: Int64s
    requests: Float64s
    allowed: Bools
    numbers: Float64s
    limits: Float64s
    limit_of: Int64s
    pod_of: Int64s

    @property
    def free(self) -> Prices:
        """Prices of 0."""
        return Prices(np.zeros((self.allowed.shape[1], self.room.shape[1])), np.zeros(len(self.limits)))

    def evaluate(self, prices: Prices) -> Evaluation:
        """Return the lower bound by these prices."""
        departures = self.departures
        if len(self.limits):
            moving = departures.least(self._prices_of_pods(prices))
        else:
            moving = np.asarray(self.price * departures.numbers, dtype=np.float64)
        rows = departures.rows[self.entries]
        sold = (prices.capacity[self.kinds[rows]] * self.room).sum(axis=1)
        values = self.costs + moving[self.entries] - sold
        least = np.minimum.reduceat(values, self.starts)
        at = np.flatnonzero(values <= least[rows])
        chosen = at[np.searchsorted(rows[at], np.arange(len(self.starts)))]
        offers = np.where(self.allowed, self.requests @ prices.capacity.T, np.inf)
        homes = offers.argmin(axis=1)
        paid = float((offers[np.arange(len(homes)), homes] * self.numbers).sum())
        value = self.base + float(least.sum()) + paid
        value -= float(prices.limits @ self.limits)
        return Evaluation(prices, value, chosen, homes)

    def slope(self, found: Evaluation) -> Prices:
        """Return by how much the choice of an evaluation exceeds each constraint: a supergradient of the bound."""
        wanted = np.zeros(found.prices.capacity.shape)
        np.add.at(wanted, found.homes, self.requests * self.numbers[:, None])
        held = np.zeros(wanted.shape)
        np.add.at(held, self.kinds, self.room[found.states])
        if not len(self.limits):
            return Prices(wanted - held, self.limits)
        moved = np.bincount(self.limit_of, self.leaving(found)[self.pod_of], len(self.limits))
        return Prices(wanted - held, moved - self.limits)

    def leaving(self, found: Evaluation) -> Bools:
        """Return `[pods]` which pods leave: as many of each row as its state says, those with the lowest prices."""
        departures = self.departures
        of_pod = self._prices_of_pods(found.prices)
        order = np.lexsort((of_pod, departures.pod_rows))
        first = departures.starts[:-1] - np.arange(len(self.starts))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - first[departures.pod_rows[order]]
        return np.asarray(rank < departures.numbers[self.entries[found.states]][departures.pod_rows])

    def _prices_of_pods(self, prices: Prices) -> Float64s:
        further = np.bincount(self.pod_of, prices.limits[self.limit_of], len(self.departures.pods))
        return np.asarray(self.price + further, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The lower bound ``value`` by some prices, and the choice that gives it.

    ``states`` is the chosen state of each row, ``homes`` the kind of node that each shape chooses.
    """

    prices: Prices
    value: float
    states: Int64s
    homes: Int64s


def ascend(relaxation: Relaxation, target: float) -> Evaluation:
    """Return the best evaluation found by an ascent of prices, if no bound can exceed ``target``.

    Prices of capacity rise first, then those of limits with them, from the best common price of all limits.
    """
    free = relaxation.free
    best = _ascent(relaxation, relaxation.evaluate(free), target, rises=0.0)
    if not len(relaxation.limits):
        return best
    common = [0.0, *(2.0**power for power in range(-5, 5))]
    begun = [relaxation.evaluate(Prices(best.prices.capacity, free.limits + price)) for price in common]
    return _ascent(relaxation, max(begun, key=lambda evaluation: evaluation.value), target, rises=1.0)


def _ascent(relaxation: Relaxation, best: Evaluation, target: float, *, rises: float) -> Evaluation:
    """Return the best evaluation of a subgradient ascent with Polyak's steps; prices of limits rise by ``rises``."""
    # Each constraint counts by its size, so that one step suits all prices.
    offered = np.zeros(best.prices.capacity.shape)
    np.add.at(offered, relaxation.kinds, np.maximum.reduceat(relaxation.room, relaxation.starts))
    offered = np.maximum(offered, 1e-6)
    limited = np.maximum(np.bincount(relaxation.limit_of, minlength=len(relaxation.limits)), 1)
    each, scale, stuck = best, 1.0, 0
    steps = min(max(_STATES_IN_ALL // len(relaxation.costs), _STEPS), _MOST_STEPS)
    for _ in range(steps):
        prices, slope = each.prices, relaxation.slope(each)
        # A price of 0 does not fall any further.
        of_capacity = np.where((prices.capacity <= 0) & (slope.capacity < 0), 0.0, slope.capacity / offered)
        of_limits = np.where((prices.limits <= 0) & (slope.limits < 0), 0.0, rises * slope.limits / limited)
        norm = float((of_capacity**2).sum() + (of_limits**2).sum())
        if norm <= 0 or target - each.value <= _GOOD_ENOUGH:
            break
        step = scale * (target - each.value) / norm
        each = relaxation.evaluate(
            Prices(
                np.maximum(prices.capacity + step * of_capacity / offered, 0.0),
                np.maximum(prices.limits + step * of_limits / limited, 0.0),
            )
        )
        stuck += 1
        if each.value > best.value + _GOOD_ENOUGH:
            best, stuck = each, 0
        elif stuck == steps // 20:
            each, scale, stuck = best, scale / 2, 0
    return best


def certify(
    picture: Picture,
    policies: Sequence[tuple[Policy, float]],
    after: Mapping[str, float],
    moves: int,
    price: float,
    *,
    limits: Sequence[MoveLimit] = (),
) -> Certificate:
    """Return the certificate of a plan that makes so many moves and leaves the objectives ``after``, by policy.

    The bound holds for all placements of the pods that may be moved now, and within the ``limits``. Policies that fail
    or state a bound above their objective are left out.
    """
    departures = Departures(picture, frozenset().union(*(limit.pods for limit in limits if limit.most <= 0)))
    covered: list[tuple[Policy, float]] = []
    bounds: list[tuple[ObjectiveBound, float]] = []
    relaxed: list[tuple[str, tuple[str, ...]]] = []
    now = then = 0.0
    for policy, weight in policies:
        if not isinstance(policy, BoundedObjective):
            continue
        try:
            with calling_policy(policy.name, "bound"):
                objective = float(policy.objective(picture))
                bound = policy.bound(departures, price / weight)
                present = _at_present(departures, bound)
        except PolicyError:
            continue
        if not present <= objective + max(1.0, objective) * 1e-6:
            continue
        covered.append((policy, weight))
        bounds.append((bound, weight))
        now += weight * objective
        then += weight * after.get(policy.name, objective)
        if bound.relaxed:
            relaxed.append((policy.name, bound.relaxed))
    names = tuple(policy.name for policy, _ in covered)
    then += price * moves
    relaxation, everywhere = relax(departures, bounds, price, limits)
    best = ascend(relaxation, min(now, then))
    return Certificate(
        now,
        then,
        min(best.value, now, then),
        price,
        moves,
        names,
        tuple(policy.name for policy, _ in policies if policy.name not in names),
        (("", everywhere), *relaxed),
    )


def _at_present(departures: Departures, bound: ObjectiveBound) -> float:
    """Return what the bound says of the present placement. Raises ValueError for arrays of a wrong size."""
    first, entries = departures.starts[:-1], len(departures.rows)
    for state in bound.states:
        if any(len(amounts) != entries for amounts in (state.costs, *(load for _, load in state.loads))):
            raise ValueError(f"a state needs {entries} costs and loads, one for each entry")
    costs = [state.costs[first] for state in bound.states]
    return bound.base + (float(np.minimum.reduce(costs).sum()) if costs else 0.0)


def relax(
    departures: Departures, bounds: Sequence[tuple[ObjectiveBound, float]], price: float, limits: Sequence[MoveLimit]
) -> tuple[Relaxation, tuple[str, ...]]:
    """Return the relaxation of weighted bounds, and the names of the constraints that it leaves out."""
    picture = departures.picture
    nodes, entries = picture.cluster.nodes, len(departures.rows)
    resources = counted_resources(picture)
    states: list[NodeState] = [NodeState(np.zeros(entries))]
    for bound, weight in bounds:
        states = [
            _both(state, other, weight) for state in states for other in bound.states or (NodeState(np.zeros(entries)),)
        ]
    most, fixed = _capacities(departures, resources)
    number, size = len(states), len(resources)
    costs = np.array([state.costs for state in states]).T.reshape(-1)
    room = np.broadcast_to((most - fixed)[:, departures.rows].T[:, None, :], (entries, number, size)).copy()
    for place, state in enumerate(states):
        for resource, load in state.loads:
            if resource in resources:
                at = resources.index(resource)
                room[:, place, at] = np.minimum(room[:, place, at], load - fixed[at, departures.rows])
    of_state = np.repeat(np.arange(entries, dtype=np.int64), number)
    room = np.maximum(room.reshape(entries * number, size), 0.0)
    possible = np.flatnonzero(np.isfinite(costs))
    possible = possible[_undominated(departures, costs[possible], of_state[possible], room[possible], price)]
    of_state = of_state[possible]
    kinds, requests, allowed, numbers = _shapes(departures, resources)
    total = np.maximum(requests.T @ numbers, 1.0)
    index_of = {pod.uid: index for index, pod in enumerate(departures.pods)}
    pairs = [(at, index_of[uid]) for at, limit in enumerate(limits) for uid in limit.pods if uid in index_of]
    relaxation = Relaxation(
        departures,
        sum(weight * bound.base for bound, weight in bounds),
        price,
        np.searchsorted(departures.rows[of_state], np.arange(nodes.count)),
        costs[possible],
        of_state,
        room[possible] / total,
        kinds,
        requests / total,
        allowed,
        numbers,
        np.array([limit.most for limit in limits], dtype=np.float64),
        np.array([limit for limit, _ in pairs], dtype=np.int64),
        np.array([pod for _, pod in pairs], dtype=np.int64),
    )
    ignored = "which pods of a node leave, fractions of pods, and affinity, spread, volumes, ports and devices of pods"
    return relaxation, (ignored,) if resources else ("requests", ignored)


def _undominated(departures: Departures, costs: Float64s, entries: Int64s, room: Float64s, price: float) -> Int64s:
    """Return the states, in order, without those that cost as much as another one of the row and hold no more.

    Each is compared with the cheapest of the row's states that hold as much in total; other states are kept.
    """
    rows, numbers = departures.rows[entries], departures.numbers[entries]
    costs = costs + price * numbers
    order = np.lexsort((numbers, costs, -room.sum(axis=1), rows))
    # In later rows the numbers are lower, so that the minimum starts again with each row.
    lowered = costs[order] - rows[order] * (float(costs.max(initial=0.0)) + 1.0)
    is_least = lowered < np.concatenate([[np.inf], np.minimum.accumulate(lowered)[:-1]])
    cheapest = order[np.maximum.accumulate(np.where(is_least, np.arange(len(order)), 0))]
    holds = (room[cheapest] >= room[order]).all(axis=1) & (numbers[cheapest] <= numbers[order])
    return np.sort(order[~holds | (cheapest == order)])


def _both(state: NodeState, other: NodeState, weight: float) -> NodeState:
    """Return the state of nodes that are in two states, by the second of which each cost has a weight."""
    loads = dict(state.loads)
    for resource, load in other.loads:
        loads[resource] = np.minimum(loads[resource], load) if resource in loads else load
    return NodeState(state.costs + weight * other.costs, tuple(loads.items()))


def counted_resources(picture: Picture) -> list[int]:
    """Return the resources that every scheduler compares with capacity, the scarcest first."""
    cluster, nodes = picture.cluster, picture.cluster.nodes
    ignoring: list[Callable[[str], bool]] = []
    for runner in (*picture.runners.values(), picture.kubelet):
        fit = next((plugin for plugin in runner.profile.filter if plugin.name == FIT and is_own(plugin)), None)
        if fit is None:
            return []
        ignoring.append(getattr(fit, "ignores"))  # noqa: B009 - not a member of every filter
    shares: list[tuple[float, int]] = []
    for index in range(len(nodes.allocatable)):
        name = nodes.resources[index]
        if name in cluster.devices.backed or any(ignores(name) for ignores in ignoring):
            continue
        shares.append((float(nodes.requested[index].sum() / max(int(nodes.allocatable[index].sum()), 1)), index))
    shares.append((float(nodes.pod_count.sum() / max(int(nodes.allowed_pods.sum()), 1)), PODS))
    shares.sort(key=lambda entry: (-entry[0], entry[1]))
    return [index for share, index in shares[:_MOST_RESOURCES] if share > 0]


def _capacities(departures: Departures, resources: Sequence[int]) -> tuple[Float64s, Float64s]:
    """Return `[resources, rows]` each: the largest load that a node can end with, and that of pods that stay.

    A node that takes no pods ends with no more than it has. Terminating pods count as gone.
    """
    cluster, nodes = departures.picture.cluster, departures.picture.cluster.nodes
    count, pods = nodes.count, cluster.pods
    slots = np.flatnonzero((pods.row[: pods.count] >= 0) & ~pods.terminating[: pods.count])
    rows = pods.row[slots]
    moving = np.array([pod.slot for pod in departures.pods], dtype=np.int64)
    most, fixed = np.zeros((len(resources), count)), np.zeros((len(resources), count))
    for place, resource in enumerate(resources):
        offered = nodes.allowed_pods if resource == PODS else nodes.allocatable[resource]
        held = np.bincount(rows, amounts_of(departures.picture, slots, resource), count)
        movable = np.bincount(pods.row[moving], amounts_of(departures.picture, moving, resource), count)
        most[place] = np.where(departures.picture.targets[:count], np.maximum(offered[:count], held), held)
        fixed[place] = held - movable
    return most, fixed


def amounts_of(picture: Picture, slots: Int64s, resource: int) -> Float64s:
    """Return `[slots]` what the pods in some slots request."""
    if resource == PODS:
        return np.ones(len(slots))
    classes = picture.cluster.classes.requests
    if resource >= len(classes):
        return np.zeros(len(slots))
    return np.asarray(classes[resource, picture.cluster.pods.pod_class[slots]], dtype=np.float64)


def _shapes(departures: Departures, resources: Sequence[int]) -> tuple[Int64s, Float64s, Bools, Float64s]:
    """Return the kinds of nodes by row, and of each shape its requests, possible kinds, and number of pods."""
    picture = departures.picture
    count = picture.cluster.nodes.count
    known: dict[Hashable, int] = {}
    choices: list[Bools] = []
    of_pod = np.zeros(len(departures.pods), dtype=np.int64)
    for index, pod in enumerate(departures.pods):
        key = _selection(pod)
        if key not in known:
            known[key] = len(choices)
            choices.append(_possible_rows(picture, pod))
        of_pod[index] = known[key]
    if not choices:
        return (
            np.zeros(count, dtype=np.int64),
            np.zeros((0, len(resources))),
            np.zeros((0, 1), dtype=np.bool_),
            np.zeros(0),
        )
    rows, choice_of = np.unique(np.array(choices), axis=0, return_inverse=True)
    columns, kinds = np.unique(rows, axis=1, return_inverse=True)
    kinds = kinds.reshape(-1).astype(np.int64)
    slots = np.array([pod.slot for pod in departures.pods], dtype=np.int64)
    amounts = np.array([amounts_of(picture, slots, resource) for resource in resources]).reshape(
        len(resources), len(slots)
    )
    own = kinds[departures.pod_rows]
    chosen = choice_of.reshape(-1)[of_pod]
    # A pod may also stay where it could not go.
    strays = np.where(columns[chosen, own], -1, own)
    table = np.vstack([amounts, chosen, strays])
    shapes, numbers = np.unique(table, axis=1, return_counts=True)
    allowed = columns[shapes[-2].astype(np.int64)].copy()
    at = np.flatnonzero(shapes[-1] >= 0)
    allowed[at, shapes[-1][at].astype(np.int64)] = True
    return kinds, shapes[:-2].T.copy(), allowed, numbers.astype(np.float64)


_SELECTING = frozenset(("NodeAffinity", "NodeUnschedulable", "TaintToleration"))
"""The filters that `_selection` determines; all others are left out."""


def _selection(pod: PodRecord) -> Hashable:
    """Return the fields of a pod by which its nodes are selected."""
    spec = pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return pod.scheduler_name, repr(spec.node_selector), repr(affinity), repr(spec.tolerations)


def _possible_rows(picture: Picture, pod: PodRecord) -> Bools:
    """Return `[rows]` the nodes whose labels and taints let the pod in; all that take pods if that is not known."""
    runner, state = picture.runner_of(pod), CycleState()
    count = picture.cluster.nodes.count
    possible = picture.targets[:count] & picture.cluster.nodes.present[:count]
    others = (plugin.name for plugin in runner.profile.filter if plugin.name not in _SELECTING or not is_own(plugin))
    state.skip_filter = state.skip_filter.union(others)
    try:
        outcome = runner.filter_view(state, pod, View(picture.cluster), Scope.NODE)
    except PluginError:
        return possible
    return np.asarray(possible & (outcome.refused == 0))
