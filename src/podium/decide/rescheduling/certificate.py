"""Certificates of plans: a lower bound on the cost of every placement that evictions can reach.

The bound is a Lagrangean one. Each node ends in one of several states, with a cost and the load that it can then hold;
what arrives anywhere must be what left elsewhere. Prices of capacity, and of moves that count against
limits, replace these common constraints. For any prices that are not negative, the cheapest state of each node then
gives a lower bound, so that only the quality of the bound depends on how the prices were found.

Source: Geoffrion, Lagrangean relaxation for integer programming (1974); Dantzig and Wolfe, Decomposition principle for
linear programs (1960).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter

import numpy as np

from podium.cluster.arrays import Bools, Int64s, column_ranks
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.rescheduling.guards import BudgetRoom, PlanInputs
from podium.decide.rescheduling.round_robin import PolicyError, calling_policy
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope, is_own
from podium.framework.rescheduling.bounds import PODS, BoundedObjective, Departures, NodeState, ObjectiveBound, Reliefs
from podium.framework.rescheduling.policy import Float64s, Picture, Policy
from podium.framework.verdicts import PluginError

FIT = "NodeResourcesFit"
# The most resources of which capacity is counted, those with the largest requested share first.
_MOST_RESOURCES = 3
# The most steps of an ascent, and after how many without progress the next ones are smaller. Planning, which waits for
# the prices of `best_leavers`, has less patience: at 5,000 nodes its moves with better prices were no better.
_MOST_STEPS, _PATIENCE, _LITTLE_PATIENCE = 400, 10, 5
_GOOD_ENOUGH = 1e-4
# The common prices of limits from which an ascent may start.
_COMMON = (0.0, *(2.0**power for power in range(-5, 5)))
# Limits count by the root of the number of their pods if some matter more, and by that number if all matter alike.
_POWERS = (0.5, 1.0)
# What a place costs pods that none takes: more than any pod is worth.
_NOWHERE = 1e3

FEW_STATES = 20_000
"""An ascent evaluates all of so many states; of more, only those that matter."""


@dataclass(frozen=True, slots=True)
class MoveLimit:
    """An upper bound on how many of the given pods (uids) move."""

    pods: Collection[str]
    most: int


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """The cost of the placement now, after a plan, and a lower bound on the cost of every placement.

    The cost is the weighted sum of the objectives of the policies with a bound, plus ``price`` for each moved pod;
    ``objectives`` are their weights and present values. ``uncovered`` are policies without a bound. ``relaxed`` names
    what the bound ignores, by policy or "" for all. At first it is that of a plan that moves nothing (`of_plan`).
    """

    now: float
    after: float
    bound: float
    price: float
    moves: int
    objectives: Mapping[str, tuple[float, float]]
    uncovered: tuple[str, ...]
    relaxed: tuple[tuple[str, tuple[str, ...]], ...]

    def of_plan(self, after: Mapping[str, float], moves: int) -> Certificate:
        """Return the certificate of a plan that makes so many moves and leaves the objectives ``after``, by policy."""
        then = self.price * moves
        then += sum(weight * after.get(name, now) for name, (weight, now) in self.objectives.items())
        return replace(self, after=then, bound=min(self.bound, self.now, then), moves=moves)

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

    def flat(self) -> Float64s:
        return np.concatenate([self.capacity.ravel(), self.limits])


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """The nodes' states, and the constraints that they share.

    As pods leave, their ``reliefs`` (`_combined`) reduce the cost. States are ordered by row, which begin at ``starts``
    (`[rows]`): ``costs`` and ``entries`` (of `Departures`) are `[states]`, ``spare`` what may arrive beyond what
    leaves, `[states, resources]`. ``kinds`` are the kinds of nodes by row. Movable pods with the same ``requests``
    (`[shapes, resources]`) and possible kinds (``allowed``, `[shapes, kinds]`) are one shape. ``places`` (`[pods]`) are
    the kinds of the pods' nodes and their shapes, as indices of a flat array `[kinds, shapes]`. At most so many pods of
    each limit move (``limits``); ``limit_of`` and ``pod_of`` are the pairs of a limit and a pod (indices) that counts
    against it.
    """

    departures: Departures
    reliefs: tuple[Float64s, Int64s, Int64s, Float64s]
    base: float
    price: float
    starts: Int64s
    costs: Float64s
    entries: Int64s
    spare: Float64s
    kinds: Int64s
    requests: Float64s
    allowed: Bools
    places: Int64s
    limits: Float64s
    limit_of: Int64s
    pod_of: Int64s

    @property
    def free(self) -> Prices:
        """Prices of 0."""
        return Prices(np.zeros((self.allowed.shape[1], self.spare.shape[1])), np.zeros(len(self.limits)))

    def only(self, states: Int64s) -> Relaxation:
        """Return the relaxation with some states alone, in ascending order, at least one of each row.

        Its values are not below those with all states, and so are no bounds.
        """
        entries, places = np.unique(self.entries[states], return_inverse=True)
        departures = self.departures.of(entries)
        starts = np.searchsorted(departures.rows[places], np.arange(len(self.starts)))
        few = replace(self, departures=departures, starts=starts, entries=places)
        return replace(few, costs=self.costs[states], spare=self.spare[states])

    def evaluate(self, prices: Prices, width: float = 0.0) -> PricedBound:
        """Return the lower bound by these prices; states within ``width`` of the best of their row are ``near``.

        Pods that are better gone leave for nothing: where costs do not rise as more pods leave, that loses nothing.
        """
        departures = self.departures
        worth = self.requests @ prices.capacity.T
        offers = np.where(self.allowed, worth, _NOWHERE)
        homes = offers.argmin(axis=1)
        moving = self.price + np.bincount(self.pod_of, prices.limits[self.limit_of], len(departures.pods))
        moving += (offers.min(axis=1) - worth.T).ravel()[self.places]
        alone, grouped, group, further = self.reliefs
        moving -= alone
        moving[grouped[np.lexsort((moving[grouped], group))]] -= further
        numbers = np.diff(self.starts, append=len(self.costs))
        paid = np.maximum(moving, 0.0)
        order = departures.order(paid)
        values = self.costs - departures.most(-paid, order)[self.entries]
        for place in np.flatnonzero(prices.capacity.any(axis=0)):
            values -= np.repeat(prices.capacity[self.kinds, place], numbers) * self.spare[:, place]
        least = np.minimum.reduceat(values, self.starts)
        beyond = values - np.repeat(least, numbers)
        at = np.flatnonzero(beyond <= 0)
        chosen = at[np.searchsorted(at, self.starts)]
        value = self.base + float(least.sum() + np.minimum(moving, 0.0).sum() - prices.limits @ self.limits)
        leaving = (moving < 0) | departures.leaving(self.entries[chosen], order)
        return PricedBound(prices, value, chosen, homes, leaving, np.flatnonzero(beyond <= width) if width else at)

    def slope(self, found: PricedBound) -> Prices:
        """Return by how much the choice of an evaluation exceeds each constraint: a supergradient of the bound."""
        leaving, (kinds, number) = found.leaving, self.allowed.T.shape
        # How many pods of each shape leave each kind, by their nodes; those of a shape all go to one kind.
        left = np.bincount(self.places[leaving], minlength=kinds * number).reshape(kinds, number)
        wanted = -left.astype(np.float64) @ self.requests
        arriving = left.sum(axis=0)[:, None] * self.requests
        amounts = np.concatenate([wanted, arriving, -self.spare[found.states]])
        places = np.concatenate([np.arange(kinds), found.homes, self.kinds])
        wanted = np.array([np.bincount(places, each, kinds) for each in amounts.T]).T.reshape(wanted.shape)
        moved = np.bincount(self.limit_of, leaving[self.pod_of], len(self.limits))
        return Prices(wanted, moved - self.limits)


@dataclass(frozen=True, slots=True, eq=False)
class PricedBound:
    """The lower bound ``value`` by some prices, and the choice that gives it.

    ``states`` is the chosen state of each row, ``homes`` the kind of node that pods of each shape would choose,
    ``leaving`` which pods leave (`[pods]`). ``near`` are nearly best states.
    """

    prices: Prices
    value: float
    states: Int64s
    homes: Int64s
    leaving: Bools
    near: Int64s


def ascend(relaxation: Relaxation, target: float, rounds: int = 8, patience: int = _PATIENCE) -> PricedBound:
    """Return the best evaluation found by an ascent of prices, if no bound can exceed ``target``.

    Good prices make few states of each node the best. Of many states, an ascent first evaluates those that are nearly
    the best by some common prices, and then, in some ``rounds``, also those that are nearly the best by the prices that
    it finds. The result is always an evaluation of all states: those that an ascent leaves out cannot make it too high.
    """
    if len(relaxation.costs) <= FEW_STATES:
        return _climb(relaxation, target, patience)
    free, width = relaxation.free, 2 * relaxation.price
    common = _COMMON if len(relaxation.limits) else _COMMON[:1]
    begun = [relaxation.evaluate(replace(free, limits=free.limits + price), width) for price in common]
    best, states = max(begun, key=attrgetter("value")), np.unique(np.concatenate([each.near for each in begun]))
    found = _climb(relaxation.only(states), target, patience)
    for number in range(rounds + 1):
        whole = relaxation.evaluate(found.prices, width)
        best = max(best, whole, key=attrgetter("value"))
        if number == rounds or whole.value >= found.value - _GOOD_ENOUGH * max(found.value, 1.0):
            break
        states = np.union1d(states, whole.near)
        few = relaxation.only(states)
        begin = few.evaluate(best.prices)
        power = _POWERS[number % 2] if len(relaxation.limits) else np.inf
        found = _ascent(few, begin, found.value - begin.value, power, 2 * patience)
    return best


def _climb(relaxation: Relaxation, target: float, patience: int = _PATIENCE) -> PricedBound:
    """Return the best evaluation found by an ascent of prices from 0.

    Prices of capacity rise first, then those of limits with them, from the best common price of all limits, with those
    of capacity or without.
    """
    free = relaxation.free
    best = relaxation.evaluate(free)
    best = _ascent(relaxation, best, (target - best.value) / 10, np.inf, patience)
    if not len(relaxation.limits):
        return best
    starts = product((best.prices.capacity, free.capacity), _COMMON)
    begun = [relaxation.evaluate(Prices(capacity, free.limits + price)) for capacity, price in starts]
    best = max(begun, key=attrgetter("value"))
    ends = [_ascent(relaxation, best, (target - best.value) / 10, power, patience) for power in _POWERS]
    return max(ends, key=attrgetter("value"))


def _ascent(relaxation: Relaxation, best: PricedBound, ahead: float, power: float, patience: int) -> PricedBound:
    """Return the best evaluation of a subgradient ascent to levels.

    Polyak's steps aim ``ahead`` of the best bound, and at half of that after ``patience`` steps without progress. Each
    goes half in the present direction, half in those before. A limit counts by a ``power`` of twice the number of
    its pods; if that is infinite, prices of limits stay.
    """
    # Each constraint counts by its size, so that one step suits all prices.
    offered = np.zeros(best.prices.capacity.shape)
    np.add.at(offered, relaxation.kinds, np.maximum(np.maximum.reduceat(relaxation.spare, relaxation.starts), 0.0))
    kinds, shapes = np.divmod(relaxation.places, len(relaxation.requests))
    np.add.at(offered, kinds, relaxation.requests[shapes])
    counted = np.maximum(2.0 * np.bincount(relaxation.limit_of, minlength=len(relaxation.limits)), 2.0)
    sizes = np.concatenate([np.maximum(offered, 1e-6).ravel(), counted**power])
    each, way, stuck = best, np.zeros(len(sizes)), 0
    for _ in range(_MOST_STEPS):
        prices, here = each.prices.flat(), relaxation.slope(each).flat() / sizes
        way = (way + here) / 2
        # A price of 0 does not fall any further.
        rising = (prices > 0) | (way > 0)
        if not rising.any():
            # Only the directions before may point below 0.
            way, rising = here, here > 0
        way, here = way * rising, here * rising
        norm = float(way @ way)
        if norm <= 0 or ahead <= _GOOD_ENOUGH * max(best.value, 1.0):
            break
        # Directions that cancel each other do not make a step longer.
        step = (best.value + ahead - each.value) / max(norm, float(here @ here) / 4)
        prices = np.maximum(prices + step * way / sizes, 0.0)
        each = relaxation.evaluate(Prices(prices[: offered.size].reshape(offered.shape), prices[offered.size :]))
        stuck = 0 if each.value > best.value + ahead / 10 else stuck + 1
        best = max(best, each, key=attrgetter("value"))
        if stuck == patience:
            each, way, ahead, stuck = best, np.zeros(len(sizes)), ahead / 2, 0
    return best


def lower_bounds(
    picture: Picture, policies: Sequence[tuple[Policy, float]], price: float, limits: Sequence[MoveLimit] = ()
) -> tuple[Certificate, Certificate]:
    """Return the certificates of a plan that moves nothing: within the limits, and without them.

    They hold for all placements of the pods that may be moved now; within limits without those that the policies'
    settings exclude. Policies that fail or state a bound above their objective are left out.
    """
    movable = sorted(picture.movable_pods(), key=lambda pod: pod.row)
    relaxation, ever = _relaxed(Departures(picture, movable), policies, price)
    within = ever = replace(ever, bound=ascend(relaxation, ever.now).value)
    if limits:
        held = frozenset[str]().union(*(limit.pods for limit in limits if limit.most <= 0))
        departures = Departures(picture, [pod for pod in movable if pod.uid not in held])
        departures.within_settings = True
        relaxation, within = _relaxed(departures, policies, price)
        value = ascend(limited(relaxation, limits), within.now).value
        # Limits and settings only exclude placements.
        within = replace(within, bound=max(value, ever.bound))
    return within, ever


def best_leavers(
    picture: Picture, policies: Sequence[tuple[Policy, float]], price: float, inputs: PlanInputs, room: BudgetRoom
) -> frozenset[str]:
    """Return the uids of the pods that leave their nodes by the best prices of disruption budgets and of capacity.

    The largest gain first spends a budget on the node that comes first, though other nodes may have no other pod to
    give. Prices weigh that for all nodes together. These pods may exceed a budget, or leave a part of it unused.
    """
    movable = sorted(picture.movable_pods(), key=lambda pod: pod.row)
    limits = budget_limits(movable, inputs, room)
    held = frozenset[str]().union(*(limit.pods for limit in limits if limit.most <= 0))
    pods = [pod for pod in movable if pod.uid not in held]
    # No pod leaves a node that costs less than a move.
    costs = np.zeros(picture.cluster.nodes.count)
    for _, weight, _, bound in _covered(Departures(picture, [], np.zeros(0, dtype=np.int64)), policies, price):
        costs += weight * np.minimum.reduce([state.costs for state in bound.states]) if bound.states else 0.0
    pods = [pod for pod in pods if costs[pod.row] > price]
    relaxation = limited(_relaxed(Departures(picture, pods), policies, price)[0], limits)
    found = ascend(relaxation, float(relaxation.costs[relaxation.starts].sum()), rounds=1, patience=_LITTLE_PATIENCE)
    return frozenset(pods[index].uid for index in np.flatnonzero(found.leaving).tolist())


def budget_limits(pods: Iterable[PodRecord], inputs: PlanInputs, room: BudgetRoom) -> list[MoveLimit]:
    """Return how many of the pods of each disruption budget may move now."""
    found: dict[str, tuple[list[str], int]] = {}
    for pod in pods:
        for budget in inputs.budgets.over(pod.pod_class):
            most = max(0, budget.disruptions_allowed - room.reserve(budget))
            found.setdefault(budget.key, ([], most))[0].append(pod.uid)
    return [MoveLimit(uids, most) for uids, most in found.values()]


def _relaxed(
    departures: Departures, policies: Sequence[tuple[Policy, float]], price: float
) -> tuple[Relaxation, Certificate]:
    """Return the relaxation (`relax`) for departures of some pods, and a certificate with the bound 0."""
    covered = list(_covered(departures, policies, price))
    labels = [bound.labels for *_, bound in covered if bound.labels is not None]
    if labels:
        settings = departures.within_settings
        departures = Departures(departures.picture, departures.pods, column_ranks(np.array(labels)))
        departures.within_settings = settings
        covered = list(_covered(departures, policies, price))
    relaxation, everywhere = relax(departures, [(bound, weight) for _, weight, _, bound in covered], price)
    if counting := [name for name, *_, bound in covered if bound.states and bound.labels is None]:
        everywhere = (f"which pods of a node leave, as only their number counts ({', '.join(counting)})", *everywhere)
    objectives = {name: (weight, objective) for name, weight, objective, _ in covered}
    uncovered = tuple(policy.name for policy, _ in policies if policy.name not in objectives)
    relaxed = (("", everywhere), *((name, bound.relaxed) for name, *_, bound in covered if bound.relaxed))
    now = sum(weight * objective for weight, objective in objectives.values())
    return relaxation, Certificate(now, now, 0.0, price, 0, objectives, uncovered, relaxed)


def _covered(
    departures: Departures, policies: Sequence[tuple[Policy, float]], price: float
) -> Iterator[tuple[str, float, float, ObjectiveBound]]:
    """Yield the name, weight, objective and bound of each policy with a valid bound."""
    for policy, weight in policies:
        if not isinstance(policy, BoundedObjective):
            continue
        try:
            with calling_policy(policy.name, "bound"):
                objective = float(policy.objective(departures.picture))
                bound = policy.bound(departures, price / weight)
                present = _at_present(departures, bound)
        except PolicyError:
            continue
        if present <= objective + max(1.0, objective) * 1e-6:
            yield policy.name, weight, objective, bound


def _at_present(departures: Departures, bound: ObjectiveBound) -> float:
    """Return what the bound says of the present placement. Raises ValueError for arrays of a wrong size."""
    first, entries = departures.starts[:-1], len(departures.rows)
    for state in bound.states:
        if any(len(amounts) != entries for amounts in (state.costs, *(load for _, load in state.loads))):
            raise ValueError(f"a state needs {entries} costs and loads, one for each entry")
    of_pods: list[Float64s | Int64s] = [] if bound.labels is None else [bound.labels]
    of_pods += [] if bound.reliefs is None else [bound.reliefs.own, bound.reliefs.group, bound.reliefs.most]
    if any(len(each) != len(departures.pods) for each in of_pods):
        raise ValueError(f"a bound needs {len(departures.pods)} labels and reliefs, one for each pod")
    costs = [state.costs[first] for state in bound.states]
    return bound.base + (float(np.minimum.reduce(costs).sum()) if costs else 0.0)


def relax(
    departures: Departures, bounds: Sequence[tuple[ObjectiveBound, float]], price: float
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
    most, fixed, held = _capacities(departures, resources)
    number = len(states)
    costs = np.array([state.costs for state in states])
    loaded = sorted({resources.index(index) for state in states for index, _ in state.loads if index in resources})
    limited = np.zeros((number, len(loaded), entries))
    for of_resource, at in zip(limited.swapaxes(0, 1), loaded, strict=True):
        least, room, now = (amounts[at, departures.rows] for amounts in (fixed, most, held))
        for place, state in enumerate(states):
            load = np.minimum(room, dict(state.loads).get(resources[at], np.inf))
            of_resource[place] = np.maximum(load, least) - now
    # A state leaves all of the other resources, so that these do not distinguish the states of a node.
    possible, which = np.nonzero(_undominated(departures, costs, limited).T)
    spare = (np.maximum(most, fixed) - held)[:, departures.rows[possible]].T
    spare[:, loaded] = limited[which, :, possible]
    costs = costs[which, possible]
    kept, of_state = np.unique(possible, return_inverse=True)
    departures = departures.of(kept)
    kinds, requests, allowed, shape_of = _shapes(departures, resources)
    total = np.maximum(requests[shape_of].sum(axis=0), 1.0)
    relaxation = Relaxation(
        departures,
        _combined(departures, [(each.reliefs, weight) for each, weight in bounds if each.reliefs is not None]),
        sum(weight * bound.base for bound, weight in bounds),
        price,
        np.searchsorted(departures.rows[of_state], np.arange(nodes.count)),
        costs,
        of_state,
        spare / total,
        kinds,
        requests / total,
        allowed,
        kinds[departures.pod_rows] * len(requests) + shape_of,
        *(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)),
    )
    ignored = "parts of pods that arrive, and affinity, spread, volumes, ports and devices of pods"
    return relaxation, (ignored,) if resources else ("requests", ignored)


def _combined(
    departures: Departures, bounds: Sequence[tuple[Reliefs, float]]
) -> tuple[Float64s, Int64s, Int64s, Float64s]:
    """Return what pods add (`[pods]`), the pods in groups (indices), their groups, and what each leaving one adds.

    The last is what the first, second, ... pod adds that leaves its group. Pods of one group of each bound and of one
    stack form a group. Those that cost the least leave first: for any number of pods that is the least cost.
    """
    own, further = np.zeros((2, len(departures.pods)))
    group = column_ranks(np.array([departures.stacks, *(each.group for each, _ in bounds)]))
    order = np.argsort(group, kind="stable")
    group = group[order]
    rank = np.arange(len(order)) - np.searchsorted(group, group)
    for each, weight in bounds:
        own += weight * each.own
        further += weight * (rank < each.most[order])
    grouped = np.isin(group, group[further > 0])
    return own, order[grouped], group[grouped], further[grouped]


def limited(relaxation: Relaxation, limits: Sequence[MoveLimit]) -> Relaxation:
    """Return the relaxation within some limits."""
    index_of = {pod.uid: index for index, pod in enumerate(relaxation.departures.pods)}
    pairs = [(at, index_of[uid]) for at, limit in enumerate(limits) for uid in limit.pods if uid in index_of]
    limit_of, pod_of = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    most = np.array([limit.most for limit in limits], dtype=np.float64)
    return replace(relaxation, limits=most, limit_of=limit_of, pod_of=pod_of)


def _undominated(departures: Departures, costs: Float64s, spare: Float64s) -> Bools:
    """Return the possible states (`[states, entries]`), without those that another one makes needless.

    That costs no more, leaves as much room, and no pod leaves that stays in the first. Of the states of an entry, the
    cheapest one after each, and then before it, is compared.
    """
    kept, number = np.isfinite(costs), len(costs)
    for order in (range(number)[::-1], range(number)):
        least, room = np.full(costs.shape[1], np.inf), np.full(spare.shape[1:], -np.inf)
        for one in order:
            kept[one] &= ~((costs[one] >= least) & (spare[one] <= room).all(axis=0))
            is_cheapest = kept[one] & (costs[one] < least)
            least, room = np.where(is_cheapest, costs[one], least), np.where(is_cheapest, spare[one], room)
    entries, before = departures.fewer
    for one in range(number):
        pairs = np.flatnonzero(kept[one, entries])
        pairs = pairs[costs[one, before[pairs]] <= costs[one, entries[pairs]]]
        pairs = pairs[(spare[one][:, before[pairs]] >= spare[one][:, entries[pairs]]).all(axis=0)]
        kept[one, entries[pairs]] = False
    return kept


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


def _capacities(departures: Departures, resources: Sequence[int]) -> tuple[Float64s, Float64s, Float64s]:
    """Return `[resources, rows]`: the largest load that a node can end with, that of fixed pods, and the present one.

    A node that takes no pods ends with no more than it has. Terminating pods count as gone.
    """
    cluster, nodes = departures.picture.cluster, departures.picture.cluster.nodes
    count, pods = nodes.count, cluster.pods
    slots = np.flatnonzero((pods.row[: pods.count] >= 0) & ~pods.terminating[: pods.count])
    rows = pods.row[slots]
    moving = np.array([pod.slot for pod in departures.pods], dtype=np.int64)
    most, fixed, present = np.zeros((3, len(resources), count))
    for place, resource in enumerate(resources):
        offered = nodes.allowed_pods if resource == PODS else nodes.allocatable[resource]
        held = np.bincount(rows, amounts_of(departures.picture, slots, resource), count)
        movable = np.bincount(pods.row[moving], amounts_of(departures.picture, moving, resource), count)
        most[place] = np.where(departures.picture.targets[:count], np.maximum(offered[:count], held), held)
        fixed[place], present[place] = held - movable, held
    return most, fixed, present


def amounts_of(picture: Picture, slots: Int64s, resource: int) -> Float64s:
    """Return `[slots]` what the pods in some slots request."""
    if resource == PODS:
        return np.ones(len(slots))
    classes = picture.cluster.classes.requests
    if resource >= len(classes):
        return np.zeros(len(slots))
    return np.asarray(classes[resource, picture.cluster.pods.pod_class[slots]], dtype=np.float64)


def _shapes(departures: Departures, resources: Sequence[int]) -> tuple[Int64s, Float64s, Bools, Int64s]:
    """Return the kinds of nodes by row, the requests and possible kinds of each shape, and the shape of each pod."""
    picture, count = departures.picture, departures.picture.cluster.nodes.count
    if not departures.pods:
        nothing = np.zeros(0, dtype=np.int64)
        return np.zeros(count, dtype=np.int64), np.zeros((0, len(resources))), np.zeros((0, 1), dtype=np.bool_), nothing
    known: dict[Hashable, int] = {}
    choices: list[Bools] = []
    of_class: dict[PodClass, int] = {}
    for pod_class, pod in {pod.pod_class: pod for pod in departures.pods}.items():
        key = _selection(pod)
        if (place := known.setdefault(key, len(choices))) == len(choices):
            choices.append(_possible_rows(picture, pod))
        of_class[pod_class] = place
    of_pod = [of_class[pod.pod_class] for pod in departures.pods]
    columns, kinds = np.unique(np.array(choices), axis=1, return_inverse=True)
    slots = np.array([pod.slot for pod in departures.pods], dtype=np.int64)
    table = np.array([*(amounts_of(picture, slots, resource) for resource in resources), np.array(of_pod, dtype=float)])
    shape_of = column_ranks(table)
    shapes = table[:, np.unique(shape_of, return_index=True)[1]]
    return kinds.reshape(-1), shapes[:-1].T.copy(), columns[shapes[-1].astype(np.int64)], shape_of


_SELECTING = frozenset(("NodeAffinity", "NodeUnschedulable", "TaintToleration"))
"""The filters that `_selection` determines; all others are left out."""


def _selection(pod: PodRecord) -> Hashable:
    """Return the fields of a pod by which its nodes are selected."""
    spec = pod.spec
    return pod.scheduler_name, repr(spec.node_selector), repr(spec.node_affinity), repr(spec.tolerations)


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
