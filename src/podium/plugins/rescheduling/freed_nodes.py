"""Little-used nodes: their cost, and the moves that empty them.

Source: autoscaler cluster-autoscaler (core/scaledown); descheduler pkg/framework/plugins/nodeutilization
(highnodeutilization.go).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice

import numpy as np

from podium.api.node import INSTANCE_TYPE_LABEL
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.autoscaling import belongs_to_node
from podium.framework.rescheduling.bounds import PODS, Departures, NodeState, ObjectiveBound
from podium.framework.rescheduling.policy import Float64s, MonthlyCost, Picture, Proposal, Relocation
from podium.plugins.rescheduling.node_use import NodeUse, accepting, guests_on

# A node is emptied entirely; a plan with more pods than this is not made.
_MOST_PODS = 100


class FreedNodes:
    """Empties nodes whose requested share is below a threshold.

    What a node in use costs does not depend on how much of it is requested: filling a node gains nothing, nor does
    emptying it in part. Only fewer nodes in use are a gain, and the gain per move is highest where few pods keep a node
    in use. The threshold only selects the nodes to examine. A node costs ``worth``, or a share of it by its price: the
    mean price is ``worth``, and so is a node without a price. ``prices`` are those of instance types.
    """

    def __init__(self, threshold: float, worth: float, max_nodes: int, prices: Mapping[str, float]) -> None:
        self._threshold = threshold
        self._worth = worth
        self._max_nodes = max_nodes
        self._prices = prices
        self._picture: Picture | None = None
        self._hourly: Float64s = np.zeros(0)
        self._worths: Float64s = np.zeros(0)
        self.use = NodeUse()

    def badness(self, picture: Picture) -> float:
        """Return what the nodes in use cost."""
        if not self._threshold:
            return 0.0
        return float(self._costs(picture)[self._counted(picture)].sum())

    def monthly_cost(self, picture: Picture) -> MonthlyCost | None:
        """Return the sum of the prices of all nodes in use; None if no node has one."""
        self._costs(picture)
        self.use.update(picture.cluster)
        used = self._hourly[self.use.guests > 0]
        if np.isnan(self._hourly).all():
            return None
        return MonthlyCost(HOURS_A_MONTH * float(np.nansum(used)), int(np.isnan(used).sum()))

    def _costs(self, picture: Picture) -> Float64s:
        """Return ``[rows]`` what each node costs if it is in use."""
        if picture is not self._picture:
            self._picture, self._hourly = picture, hourly_prices(picture, self._prices)
            mean = float(np.nanmean(self._hourly)) if np.isfinite(self._hourly).any() else 0.0
            shares = self._hourly / mean if mean else np.ones(len(self._hourly))
            self._worths = self._worth * np.where(np.isnan(shares), 1.0, shares)
        return self._worths

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the price of each node in use: a node is free if all its pods leave and none arrive."""
        if not self._threshold:
            return ObjectiveBound()
        picture, rows = departures.picture, departures.rows
        is_counted = picture.targets[: picture.cluster.nodes.count]
        self.use.update(picture.cluster)
        free = np.where(is_counted[rows] & (departures.numbers < self.use.guests[rows]), np.inf, 0.0)
        # These are never emptied, unless another policy moves some of their pods first.
        excluded = departures.within_settings & self._counted(picture) & (self.use.shares >= self._threshold)
        free[excluded[rows]] = np.inf
        # Pods that belong to their nodes usually stay; where they may move, a free node could hold others of them.
        is_open = ~is_counted
        is_open[[pod.row for pod in departures.pods if belongs_to_node(pod)]] = True
        load = np.where(is_open, np.inf, 0.0)[rows]
        resources = (*range(len(picture.cluster.nodes.allocatable)), PODS)
        states = (
            NodeState(free, tuple((resource, load) for resource in resources)),
            NodeState((self._costs(picture) * is_counted)[rows]),
        )
        text = f"plans within limits that empty nodes that are asked for {self._threshold:.0%} or more"
        return ObjectiveBound(states, relaxed=(text,) if excluded.any() else ())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield all pods of a node: first of the nodes that are best emptied together, then of others.

        In both groups the nodes with the fewest pods for what they cost come first; ties by use, then by name.
        """
        if not self._threshold:
            return
        little_used = np.flatnonzero(self._hardly_used(picture)).tolist()
        by_cost, shares = pods_by_cost(self.use.guests, self._costs(picture)), self.use.shares
        rows = sorted(little_used, key=lambda row: (by_cost[row], shares[row], picture.node_name(row)))
        together = self._together(picture, rows)
        to_free, looked_into = set(together[0]), 0
        for row in sorted(rows, key=lambda row: row not in together[0]):
            if looked_into == self._max_nodes:
                return
            to_free.discard(row)
            proposal = self._proposal(picture, row, (frozenset(to_free), together[1]))
            if proposal is not None:
                looked_into += 1
                yield proposal

    def _together(self, picture: Picture, rows: Sequence[int]) -> EmptiedNodes:
        """Return the nodes that are best emptied together, among the first of those that can be emptied at all."""
        candidates: list[tuple[int, list[PodRecord]]] = []
        left = MOST_PODS
        for row in rows:
            leaving = self._leaving(picture, row)
            left -= len(leaving)
            if left < 0 or len(candidates) == self._max_nodes:
                break
            if leaving:
                candidates.append((row, leaving))
        pods = by_size(picture, [pod for _, leaving in candidates for pod in leaving])
        homes = np.flatnonzero(self._counted(picture)).astype(np.int64)
        return emptied_together(NodePacking(picture, homes, pods), candidates, self._costs(picture))

    def _counted(self, picture: Picture) -> Bools:
        """Return ``[rows]`` the nodes in use, without those that another component empties."""
        self.use.update(picture.cluster)
        return np.asarray((self.use.guests > 0) & picture.targets[: len(self.use.guests)])

    def _hardly_used(self, picture: Picture) -> Bools:
        return np.asarray(self._counted(picture) & (self.use.shares < self._threshold))

    def _leaving(self, picture: Picture, row: int) -> list[PodRecord]:
        """Return the pods that would have to leave a node; none if one of them must not be moved."""
        leaving = guests_on(picture.cluster, row)
        return leaving if len(leaving) <= _MOST_PODS and all(map(picture.is_movable, leaving)) else []

    def _proposal(self, picture: Picture, row: int, together: EmptiedNodes) -> Proposal | None:
        """Return the moves that empty a node in the present state; None if one of its pods must not be moved.

        Its pods prefer the targets that were found for them over nodes that are still to be emptied.
        """
        if not self._hardly_used(picture)[row]:
            return None
        leaving = self._leaving(picture, row)
        if not leaving:
            return None
        targets = self._counted(picture)
        targets[row] = False
        name, share = picture.node_name(row), float(self.use.shares[row])
        pods = "its pod" if len(leaving) == 1 else f"its {len(leaving)} pods"
        reason = f"{share:.0%} of {name} is requested; without {pods} it is free"
        shares = self.use.shares.copy()
        shares[list(together[0])] -= 1 + shares.max()
        relocations = []
        for pod in by_size(picture, leaving):
            preferred, home = shares, together[1].get(pod.uid)
            if home is not None:
                preferred = shares.copy()
                preferred[home] = 1 + shares.max()
            relocations.append(Relocation(pod, targets, preferred))
        return Proposal(tuple(relocations), reason, in_parts=True)


PRICE_LABEL = "podium.dev/price"
HOURS_A_MONTH = 730


def hourly_prices(picture: Picture, of_types: Mapping[str, float]) -> Float64s:
    """Return ``[rows]`` the price of each node by its label, else by its instance type; NaN for nodes without one."""
    nodes = picture.cluster.nodes
    found = np.full(nodes.count, np.nan)
    for key, price_of in ((INSTANCE_TYPE_LABEL, of_types.get), (PRICE_LABEL, _price)):
        column = nodes.labels(key)
        for value, code in column.number_of.items():
            price = None if value is None else price_of(value)
            if price is not None:
                found[column.codes[: nodes.count] == code] = price
    return found


def _price(label: str) -> float | None:
    """Return the price that a label states; None if it is no number of 0 or more."""
    try:
        price = float(label)
    except ValueError:
        return None
    return price if 0 <= price < np.inf else None


def pods_by_cost(pods: Int64s, costs: Float64s) -> Float64s:
    """Return the numbers of pods for each unit of what their nodes cost; a node may cost nothing."""
    return np.asarray(pods / np.maximum(costs, 1e-9))


def by_size(picture: Picture, pods: list[PodRecord]) -> list[PodRecord]:
    """Return the pods, those hardest to place first: the largest; ties by key, then uid."""
    nodes = picture.cluster.nodes
    largest = nodes.allocatable[:, : nodes.count].max(axis=1, initial=1)

    def size(pod: PodRecord) -> float:
        requests = pod.pod_class.requests.items()
        return max((amount / max(int(largest[resource]), 1) for resource, amount in requests), default=0.0)

    return sorted(pods, key=lambda pod: (-size(pod), pod.key, pod.uid))


_MOST_STEPS = 4_000
"""The most pods that are given a place in the search, over all sets of nodes; a set without room counts its nodes.

With many target nodes, one such step counts once for each ``_HOMES_A_STEP`` of them."""

_HOMES_A_STEP = 1_000

MOST_PODS = 1_000
"""The most pods that the candidates may have in total, so that several sets can be examined."""


EmptiedNodes = tuple[frozenset[int], Mapping[str, int]]
"""The rows of nodes to empty together, and a target row for each of their pods, by uid."""


_Pods = Sequence[PodRecord]


def emptied_together(packing: NodePacking, candidates: Sequence[tuple[int, _Pods]], costs: Float64s) -> EmptiedNodes:
    """Return the best set of nodes that can be emptied; an empty one if none is found.

    Candidates are rows with their pods, those with the fewest pods for what they cost (``costs``, by row) first. The
    search first examines sets of as many nodes as the capacity of all others may allow, those with the fewest pods for
    what their nodes cost first, ties in the candidates' order; then sets with one node less. It takes the first set
    whose pods all find a place. Each set size may use up half of the remaining steps; after the last step nothing is
    found.
    """
    guests = [len(pods) for _, pods in candidates]
    own_costs = costs[[row for row, _ in candidates]]
    by_cost: list[float] = pods_by_cost(np.array(guests, dtype=np.int64), own_costs).tolist()
    room: Float64s = np.maximum(packing.room, 0).sum(axis=1, dtype=np.float64)
    needs = _needs(packing, candidates)
    left = _MOST_STEPS // (1 + len(packing.homes) // _HOMES_A_STEP)
    # Each resource bounds the number of nodes that can be emptied.
    least = np.sort(needs, axis=0).cumsum(axis=0)
    for size in range(int((least <= room).all(axis=1).sum()), 0, -1):
        allowed = left - left // 2
        # As many as can be examined: those without the last candidates come first.
        sets = islice(combinations(range(len(candidates)), size), 1 + allowed // size)
        for chosen in sorted(sets, key=lambda chosen: (sum(by_cost[index] for index in chosen), chosen)):
            if allowed <= 0:
                break
            has_room = bool((needs[list(chosen)].sum(axis=0) <= room).all())
            steps = sum(guests[index] for index in chosen) if has_room else size
            allowed -= steps
            left -= steps
            rows = frozenset(candidates[index][0] for index in chosen)
            homes = packing.places(rows) if has_room else None
            if homes is not None:
                return rows, homes
    return frozenset(), {}


def _needs(packing: NodePacking, candidates: Sequence[tuple[int, _Pods]]) -> Float64s:
    """Return ``[candidates, resources]`` what emptying each node costs: its pods' requests and its own room."""
    index_of = {row: index for index, row in enumerate(packing.homes.tolist())}
    needs = np.maximum(packing.room[:, [index_of[row] for row, _ in candidates]].T, 0).astype(np.float64)
    for number, (_, pods) in enumerate(candidates):
        needs[number] += sum(map(packing.need, pods))
    return needs


class NodePacking:
    """The remaining capacity of some nodes, for pods that may move there.

    ``homes`` are the rows of the nodes. ``pods`` are the movable pods in the order in which they are placed: the
    largest first, so that small ones fill the gaps. A pod goes to the node with the most requested; ties by the hash of
    the name.
    """

    def __init__(self, picture: Picture, homes: Int64s, pods: Sequence[PodRecord]) -> None:
        nodes = picture.cluster.nodes
        self._picture = picture
        self._pods = pods
        self.homes: Int64s = homes[np.argsort(nodes.name_hash[homes], kind="stable")]
        self._resources = sorted({resource for pod in pods for resource in pod.pod_class.requests})
        offered = nodes.allocatable[self._resources][:, self.homes]
        left = offered - nodes.requested[self._resources][:, self.homes]
        slots = nodes.allowed_pods[self.homes] - nodes.pod_count[self.homes]
        self._offered: Float64s = np.maximum(offered, 1).astype(np.float64)
        # The remaining amount of each resource, and last the remaining number of pods.
        self.room: Int64s = np.vstack([left, slots])
        self._needs: dict[int, Int64s] = {}
        self._choices: dict[int, Bools] = {}

    def need(self, pod: PodRecord) -> Int64s:
        """Return what a pod takes of `room`."""
        pod_class = pod.pod_class
        if pod_class.id not in self._needs:
            amounts = [pod_class.requests.get(resource, 0) for resource in self._resources]
            self._needs[pod_class.id] = np.array([*amounts, 1], dtype=np.int64)
        return self._needs[pod_class.id]

    def places(self, emptied: Collection[int]) -> dict[str, int] | None:
        """Return a target row for each pod on the ``emptied`` rows, by uid, on other rows; None if a pod finds none."""
        is_open = ~np.isin(self.homes, np.fromiter(emptied, dtype=np.int64))
        room = self.room.copy()
        shares: Float64s = (1 - room[:-1] / self._offered).max(axis=0, initial=0.0)
        found: dict[str, int] = {}
        for pod in self._pods:
            if pod.row not in emptied:
                continue
            need = self.need(pod)
            fits = (room >= need[:, None]).all(axis=0) & is_open & self._choice(pod)
            home = int(np.where(fits, shares, -1.0).argmax())
            if not fits[home]:
                return None
            room[:, home] -= need
            shares[home] = (1 - room[:-1, home] / self._offered[:, home]).max(initial=0.0)
            found[pod.uid] = int(self.homes[home])
        return found

    def _choice(self, pod: PodRecord) -> Bools:
        """Return ``[homes]`` the nodes that a pod may be on, regardless of their capacity."""
        class_id = pod.pod_class.id
        if class_id not in self._choices:
            self._choices[class_id] = accepting(self._picture, pod.pod_class)[self.homes]
        return self._choices[class_id]
