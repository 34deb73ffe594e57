"""MoveToUnderusedNodes: move pods off over-used nodes when others are nearly empty, as after a scale-up.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto an under-utilized node").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import log2
from sys import maxsize

import msgspec
import numpy as np

from podium.cluster.arrays import Bools, Int64s, column_ranks
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.certificate import amounts_of
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import PODS as PODS_INDEX
from podium.framework.rescheduling.bounds import Departures, NodeState, ObjectiveBound
from podium.framework.rescheduling.policy import Float64s, Picture, Proposal, Relocation, predecessor
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.node_use import RowChanges, accepting, has_room, placed_slots


class MoveToUnderusedNodesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments; thresholds are shares in percent, by resource: cpu, memory, extended resources, and ``pods``.

    ``thresholds``: a node above none of them is under-used. ``targetThresholds``: a node above any of them is
    over-used. With ``useDeviationThresholds`` they are distances below and above the share of the whole cluster. Both
    name the same resources. The names are those of descheduler's LowNodeUtilization. ``useMetrics``: use the measured
    cpu and memory of pods instead of their requests; pods without a measurement count by requests. ``numberOfNodes``:
    act only if more nodes than that are under-used.
    """

    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: {"cpu": 20.0, "memory": 20.0})
    target_thresholds: dict[str, float] = msgspec.field(default_factory=lambda: {"cpu": 50.0, "memory": 50.0})
    use_deviation_thresholds: bool = False
    use_metrics: bool = False
    number_of_nodes: int = 0

    def __post_init__(self) -> None:
        low, high = self.thresholds, self.target_thresholds
        if not low:
            raise ValueError("thresholds must name a resource at least")
        if low.keys() != high.keys():
            given = " and ".join(", ".join(sorted(each)) or "none" for each in (low, high))
            raise ValueError(f"thresholds and targetThresholds must name the same resources, not {given}")
        for resource in low:
            if not (0 <= low[resource] <= 100 and 0 <= high[resource] <= 100):
                raise ValueError(f"thresholds of {resource} must be from 0 to 100 per cent")
            if low[resource] > high[resource] and not self.use_deviation_thresholds:
                raise ValueError(
                    f"thresholds of {resource} is {low[resource]:g}, and must not be above its targetThresholds, "
                    f"{high[resource]:g}"
                )
        if self.number_of_nodes < 0:
            raise ValueError("numberOfNodes must not be below 0")


@dataclass(slots=True)
class _Situation:
    """The loads of nodes (``[resources, rows]``), the excess pods on each, and which nodes are under-used.

    The latter are ``[rows]``. Everything follows from the ``low`` and ``high`` marks, shares of each resource, and from
    which nodes accept pods (``targets``).
    """

    targets: Bools
    low: Float64s
    high: Float64s
    shares: Float64s
    excess: Float64s
    underused: Bools


@dataclass(slots=True)
class _Turn:
    """The over-used node of a row: the pod proposed last, and the classes whose pods have no target or were refused.

    If it has ``leavers``, only these (uids) are proposed.
    """

    row: int
    leavers: Collection[str] = ()
    proposed: PodRecord | None = None
    stuck: set[PodClass] = field(default_factory=set)


class MoveToUnderusedNodes:
    """Proposes the pods of over-used nodes that fit on other ones, by how much the objective falls.

    The objective is the number of excess pods on over-used nodes: of the pods that share a node's most requested
    resource, the part above the high mark. Each further pod adds more than the one before, so that passing a load on
    gains nothing. Nodes that do not accept pods, such as those being drained or emptied, count as neither under-used
    nor over-used.
    """

    name = "MoveToUnderusedNodes"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, MoveToUnderusedNodesArgs, self.name)
        resources = sorted(arguments.thresholds)
        self._low = np.array([arguments.thresholds[name] for name in resources]) / 100
        self._high = np.array([arguments.target_thresholds[name] for name in resources]) / 100
        self._by_deviation = arguments.use_deviation_thresholds
        self.needs_use = arguments.use_metrics
        self._loads = NodeLoads(resources, by_use=arguments.use_metrics)
        self._measure = "used" if arguments.use_metrics else "requested"
        self._fewest = arguments.number_of_nodes + 1
        self._known: _Situation | None = None
        # By shape of pod, for a situation: the nodes that accept it, the rises of their excess, and what changed since.
        self._shapes: dict[tuple[str, bytes], tuple[Bools, Float64s, RowChanges]] = {}
        self._node_position = 0

    def objective(self, picture: Picture) -> float:
        """Return the number of excess pods on over-used nodes."""
        return float(self._situation(picture).excess.sum())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield one pod at a time, the one with the largest gain first; nodes with similar gains take turns.

        Nodes that had as many turns are ordered by their excess at first, then by name. Once started, because nodes are
        under-used, it continues until no node is over-used: the last of many moves is as good as the first. The pods
        that are best for the budgets come before all others.
        """
        underused = int(self._situation(picture).underused.sum())
        if underused < self._fewest:
            return
        if leavers := picture.leavers():
            yield from self._in_order(picture, underused, leavers)
        yield from self._in_order(picture, underused)

    def _in_order(self, picture: Picture, underused: int, leavers: Collection[str] = ()) -> Iterator[Proposal]:
        """Yield the proposals of over-used nodes, or those for some pods."""
        situation = self._situation(picture)
        # No pod of a node gains more than it relieves the node. The bound is refined when the turn comes.
        over = np.flatnonzero(situation.excess)
        slots = placed_slots(picture.cluster, over)
        most = np.zeros(len(situation.excess))
        np.maximum.at(most, picture.cluster.pods.row[slots], self._reliefs(picture, situation, slots))
        queue = [
            (_rank(most[row]), 0, -situation.excess[row], picture.node_name(row), _Turn(row, leavers))
            for row in over.tolist()
        ]
        heapify(queue)
        while queue:
            _, number, excess, name, turn = heappop(queue)
            found = self._best(picture, turn)
            if found is None:
                continue
            entry = _rank(found[0]), number, excess, name, turn
            if queue and entry[:4] > queue[0][:4]:
                heappush(queue, entry)
                continue
            proposal = self._proposal(picture, turn, underused, found)
            if picture.waits(found[1]):
                # The node waits with its pod: a smaller pod instead would be one more to move.
                turn.proposed = None
            else:
                heappush(queue, (entry[0], number + 1, excess, name, turn))
            if proposal is not None:
                yield proposal

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the excess of each node by the pods that have left and by the load that it ends with.

        Of m pods that left, the largest count. No arriving pod is larger than the largest that may move. The load
        matters only for the resource that is requested most beyond the high marks; all others count without it.
        """
        picture, loads = departures.picture, self._loads
        situation = self._situation(picture)
        counted = picture.targets[: picture.cluster.nodes.count]
        if self._by_deviation and not counted[departures.pod_rows].all():
            return ObjectiveBound(relaxed=("marks that change as pods leave closed nodes",))
        rows, size = departures.rows, len(loads.resources)
        slots = np.array([pod.slot for pod in departures.pods], dtype=np.int64)
        parts = loads.parts_of(picture, slots).astype(np.float64)
        labels = column_ranks(parts)
        labels = np.where(situation.excess[departures.pod_rows] > 0, labels, 0)
        if not departures.is_labelled:
            return ObjectiveBound(labels=labels)
        floor, ceilings = np.zeros(len(rows)), []
        for place in range(size):
            held, roots = loads.amounts[place].astype(np.float64), loads.roots[place] / ROOT_UNIT
            offered = loads.allocatable[place]
            marks = np.where(counted & (offered > 0), situation.high[place] * offered, np.inf)
            left = held[rows] - departures.most(parts[place])
            kept = np.maximum(roots[rows] - departures.most(parts[size + place] / ROOT_UNIT), 0.0)
            slope = 1 / float(np.sqrt(parts[place].max(initial=1.0)))
            # A pod that leaves makes room for pods whose roots add up to at least the product of slope and its size.
            lost = departures.most(parts[size + place] / ROOT_UNIT - slope * parts[place])
            grown = roots[rows] - lost - slope * held[rows]
            most = np.maximum(offered, held)[rows]
            ceilings.append(_Ceiling(marks[rows], left, most, kept, grown, slope))
            floor = np.maximum(floor, ceilings[-1].least)
        totals = loads.amounts @ counted / np.maximum(situation.high * (loads.allocatable @ counted), 1)
        scarce = int(totals.argmax())
        name = loads.resources[scarce]
        index = PODS_INDEX if name == PODS else picture.cluster.nodes.resource_index.get(name)
        if self.needs_use or index is None:
            return ObjectiveBound((NodeState(floor),), labels=labels)
        states = [NodeState(np.maximum(excess, floor), ((index, load),)) for excess, load in ceilings[scarce].states()]
        return ObjectiveBound(states, labels=labels)

    def _situation(self, picture: Picture) -> _Situation:
        loads, known = self._loads, self._known
        rows = loads.follow(picture)
        size = loads.amounts.shape[1]
        low, high = self._low, self._high
        if self._by_deviation:
            # Deviations are relative to the share of all nodes together that accept pods.
            counted = picture.targets[:size]
            mean = (loads.amounts @ counted) / np.maximum(loads.allocatable @ counted, 1)
            low, high = np.clip(mean - low, 0.0, 1.0), np.clip(mean + high, 0.0, 1.0)
        basis = picture.targets, low, high
        # Most often they are the same objects, which need no comparison.
        are_same = known is not None and all(
            one is other or np.array_equal(one, other)
            for one, other in zip(basis, (known.targets, known.low, known.high), strict=True)
        )
        if known is None or not are_same or len(rows) == size:
            rows = picture.cluster.nodes.all_rows()
            shape = (len(loads.resources), size)
            known = _Situation(*basis, np.zeros(shape), np.zeros(size), np.zeros(size, dtype=np.bool_))
            self._known, self._shapes = known, {}
        if self._node_position != picture.cluster.nodes.node_changes.position:
            self._node_position, self._shapes = picture.cluster.nodes.node_changes.position, {}
        if len(rows):
            counted = picture.targets[rows]
            shares, pods = loads.as_shares(rows, loads.parts_on(rows))
            known.shares[:, rows] = shares
            known.underused[rows] = (shares <= low[:, None]).all(axis=0) & counted
            known.excess[rows] = _too_many(pods, shares, high[:, None]) * counted
        return known

    def _reliefs(self, picture: Picture, situation: _Situation, slots: Int64s) -> Float64s:
        """Return `[slots]` by how much the excess of the nodes of placed pods falls if one of them leaves."""
        loads, rows = self._loads, picture.cluster.pods.row[slots].astype(np.int64)
        parts = loads.parts_on(rows) - loads.parts_of(picture, slots)
        remaining, left = loads.as_shares(rows, parts)
        return np.asarray(situation.excess[rows] - _too_many(left, remaining, situation.high[:, None]))

    def _rises(self, picture: Picture, situation: _Situation, pod: PodRecord) -> Float64s:
        """Return `[rows]` by how much the excess of each node rises with a pod; infinite where it has no place."""
        loads, cluster, memo = self._loads, picture.cluster, pod.pod_class.memo
        parts = loads.parts_of(picture, np.array([pod.slot]))
        if (selection := memo.get(self.name)) is None:
            spec, requests = pod.pod_class.spec, sorted(pod.pod_class.requests.items())
            selection = memo[self.name] = repr((requests, spec.node_selector, spec.node_affinity, spec.tolerations))
        shape, every = (selection, parts.tobytes()), cluster.nodes.all_rows()
        if shape not in self._shapes:
            self._shapes[shape] = accepting(picture, pod.pod_class), np.zeros(len(every)), RowChanges()
        accepted, rises, changes = self._shapes[shape]
        changed = changes.since_last(cluster)
        rows = every if changed is None else changed
        rises[rows] = np.inf
        at = rows[accepted[rows]]
        at = at[has_room(picture, pod.pod_class, at)]
        shares, pods = loads.as_shares(at, loads.parts_on(at) + parts)
        rises[at] = _too_many(pods, shares, situation.high[:, None]) - situation.excess[at]
        return rises

    def _best(self, picture: Picture, turn: _Turn) -> _Gain | None:
        """Return the pod whose move off a node gains most; None if no pod with a target gains anything.

        Of equals, the least important comes first, then by key. Pods like the last one, if that is still there, and
        those without a target are not considered any more.
        """
        last, row = turn.proposed, turn.row
        if last is not None and (known := picture.cluster.placed.get(last.uid)) is not None and known.row == row:
            turn.stuck.add(last.pod_class)
        turn.proposed = None
        pods = [pod for pod in picture.cluster.pods_on(row) if not turn.leavers or pod.uid in turn.leavers]
        pods = [pod for pod in pods if picture.is_movable(pod)]
        if not pods:
            return None
        situation = self._situation(picture)
        slots = np.array([pod.slot for pod in pods], dtype=np.int64)
        reliefs = self._reliefs(picture, situation, slots).tolist()
        candidates = [(-relief, pod) for relief, pod in zip(reliefs, pods, strict=True) if relief > 0]
        candidates.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        best: _Gain | None = None
        for relief, pod in candidates:
            if best is not None and -relief <= best[0]:
                break
            if pod.pod_class in turn.stuck:
                continue
            rises = self._rises(picture, situation, pod)
            # Its scheduler may prefer a node in between to the under-used ones, which is fine.
            targets = rises <= -relief * _MOST_RISE
            targets[row] = False
            if not targets.any():
                turn.stuck.add(pod.pod_class)
            elif best is None or -relief - max(rises[targets].min(), 0.0) > best[0]:
                best = float(-relief - max(rises[targets].min(), 0.0)), pod, targets, -relief, rises
        return best

    def _proposal(self, picture: Picture, turn: _Turn, underused: int, found: _Gain | None) -> Proposal | None:
        """Return the move that was found; later, what gains most on its node by then."""
        if found is None:
            return None
        _, turn.proposed, targets, relief, rises = found
        situation = self._situation(picture)
        # A pod that adds no excess goes to the emptiest node.
        preferred = np.where(rises > 0, -np.minimum(rises, relief), 1.0 - situation.shares.max(axis=0))
        reason = self._reason(picture, turn.row, situation, underused)
        relocation = Relocation(found[1], targets, preferred)
        return Proposal(
            (relocation,), reason, anew=lambda: self._proposal(picture, turn, underused, self._best(picture, turn))
        )

    def _reason(self, picture: Picture, row: int, situation: _Situation, number: int) -> str:
        shares, high = situation.shares[:, row], situation.high
        beyond = np.where(shares > high, shares - high, -1.0)
        worst = int(beyond.argmax())
        nodes = "1 node" if number == 1 else f"{number} nodes"
        marks, resources = [f"{100 * share:.0f} %" for share in situation.low], self._loads.resources
        least = marks[0]
        if len(set(marks)) > 1:
            each = [f"{mark} of {name}" for mark, name in zip(marks, resources, strict=True)]
            least = f"{', '.join(each[:-1])} and {each[-1]}"
        on_node = f"{resources[worst]} {self._measure}: {100 * shares[worst]:.0f} % on {picture.node_name(row)}"
        return f"{on_node}, at most {least} on {nodes}"


_Gain = tuple[float, PodRecord, Bools, float, Float64s]
"""The gain of a move, its pod and targets (`[rows]`), the relief of its node, and by row the rise there."""

# A target may become over-used if that costs at most this share of the relief: a load is not just passed on.
_MOST_RISE = 0.5


def _rank(gain: float) -> int:
    """Return the rank of a gain, the largest first. Gains of one rank differ by less than a tenth."""
    return -round(8 * log2(max(gain, 1e-9)))


# The number of intervals of the load that a node ends with, fewer if there are many entries in all.
_FEWEST_INTERVALS, _INTERVALS, _INTERVALS_IN_ALL = 2, 8, 600_000


@dataclass(slots=True)
class _Ceiling:
    """The least excess of a resource on nodes, by the load that they end with: `[entries]` each.

    A node has excess above its ``mark``. It ends with a load from ``left``, if no pods arrive, to ``most``. The sum of
    the roots of its pods is then at least ``kept``, that of the pods that have not left, and at least ``roots`` plus
    ``slope`` times the load, as no arriving pod is larger than all movable ones.
    """

    mark: Float64s
    left: Float64s
    most: Float64s
    kept: Float64s
    roots: Float64s
    slope: float

    @property
    def least(self) -> Float64s:
        """The least excess with any load."""
        low = np.maximum(self.left, 1.0)
        # The excess of the same roots rises with the load up to twice the mark, and falls then.
        return np.asarray(np.minimum(self._excess(self.kept, low), self._excess(self.kept, np.maximum(self.most, low))))

    def states(self) -> Iterator[tuple[Float64s, Float64s]]:
        """Yield pairs of an excess and a load; one of them, or a mixture, is as good as any final load of a node.

        Up to three times the mark the excess is a concave function of the load, if its roots are constant or grow from
        0 or more: the two ends of an interval are then the best loads in it. Otherwise the smallest excess counts with
        the largest load.
        """
        yield np.where(self.left <= self.mark, 0.0, np.inf), self.mark
        begin = np.minimum(np.maximum(self.left, self.mark), self.most)
        yield self._excess(self.kept, begin), begin
        number = min(max(_INTERVALS_IN_ALL // len(begin), _FEWEST_INTERVALS), _INTERVALS)
        low, width = begin, (self.most - begin) / number
        for place in range(1, number + 1):
            end = low + width * place
            at_begin, at_end = self.roots + self.slope * begin, self.roots + self.slope * end
            grows = (at_begin >= self.kept) & (self.roots >= 0)
            constant = np.maximum(self.kept, at_begin)
            first = self._excess(constant, begin)
            last = self._excess(np.where(grows, at_end, constant), end)
            flat = np.minimum(first, self._excess(constant, end))
            yield np.where(end <= 3 * self.mark, last, flat), end
            begin = end

    def _excess(self, roots: Float64s, load: Float64s) -> Float64s:
        """Return the effective number of pods times the share of the load above the mark."""
        at_least = np.maximum(load, 1.0)
        return np.where(load > self.mark, roots**2 / at_least * (1 - np.minimum(self.mark / at_least, 1.0)), 0.0)


def _too_many(pods: Float64s, shares: Float64s, high: Float64s) -> Float64s:
    """Return the number of excess pods along the first axis, by the resource with the largest excess."""
    beyond = 1.0 - high / np.maximum(shares, 1e-12)
    return np.asarray((pods * np.maximum(beyond, 0.0)).max(axis=0))


PODS = "pods"
MEASURED = ("cpu", "memory")
"""The resources whose use is measured."""

# Roots of amounts are stored as multiples of this fraction of one, so that sums do not depend on their order.
ROOT_UNIT = 2**16
# A larger amount of a pod counts as this much, so that no sum overflows.
_MOST = 2**45


class NodeLoads:
    """The sums over the pods of each node, of ``resources``: `[resources, rows]`.

    ``amounts`` are the pods' requests, or their measured use of cpu and memory if ``by_use`` is set and use is
    measured; ``roots`` add up their square roots, in units of 1 / `ROOT_UNIT`. Resources are those of Kubernetes, and
    ``pods``, of which a pod takes 1.
    """

    def __init__(self, resources: Sequence[str], *, by_use: bool) -> None:
        self.resources = tuple(resources)
        self._by_use = by_use
        self._changes = RowChanges()
        self.amounts: Int64s = np.zeros((len(self.resources), 0), dtype=np.int64)
        self.roots: Int64s = self.amounts
        self.allocatable: Int64s = self.amounts

    def follow(self, picture: Picture) -> Int64s:
        """Update the sums to the present state of the picture; return the rows that changed."""
        cluster = picture.cluster
        # Measured use may change from picture to picture.
        rows = self._changes.since_last(cluster, picture if self._by_use else None)
        if rows is None:
            rows = cluster.nodes.all_rows()
            shape = (len(self.resources), len(rows))
            self.amounts, self.roots, self.allocatable = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        if len(rows):
            self._read(picture, rows)
        return rows

    def parts_on(self, rows: Int64s) -> Int64s:
        """Return `[2 * resources, n]` the amounts on nodes, then their roots."""
        return np.concatenate([self.amounts[:, rows], self.roots[:, rows]])

    def parts_of(self, picture: Picture, slots: Int64s) -> Int64s:
        """Return `[2 * resources, n]` what placed pods add to the amounts of their nodes, and to the roots."""
        amounts = self._amounts(picture, slots)
        return np.concatenate([amounts, _roots(amounts)])

    def as_shares(self, rows: Int64s, parts: Int64s) -> tuple[Float64s, Float64s]:
        """Return `[resources, n]` each: the shares of n rows with such parts, and the effective numbers of their pods.

        The shares are those of the capacity, 0 if a node has none.
        """
        have, amounts, roots = self.allocatable[:, rows], parts[: len(self.resources)], parts[len(self.resources) :]
        shares: Float64s = np.where(have > 0, amounts / np.maximum(have, 1), 0.0)
        return shares, _effective(roots, amounts)

    def _read(self, picture: Picture, rows: Int64s) -> None:
        """Sum up the pods on some rows."""
        nodes, slots = picture.cluster.nodes, placed_slots(picture.cluster, rows)
        on, of_slots = picture.cluster.pods.row[slots], self._amounts(picture, slots)
        self.amounts[:, rows] = self.roots[:, rows] = 0
        np.add.at(self.amounts.T, on, of_slots.T)
        np.add.at(self.roots.T, on, _roots(of_slots).T)
        for place, resource in enumerate(self.resources):
            if resource == PODS:
                self.allocatable[place, rows] = nodes.allowed_pods[rows]
            elif (index := nodes.resource_index.get(resource)) is not None:
                self.allocatable[place, rows] = nodes.allocatable[index, rows]

    def _amounts(self, picture: Picture, slots: Int64s) -> Int64s:
        """Return `[resources, slots]` what the pods in some slots add to their nodes."""
        cluster = picture.cluster
        amounts = np.ones((len(self.resources), len(slots)), dtype=np.int64)
        for place, resource in enumerate(self.resources):
            if resource != PODS:
                amounts[place] = amounts_of(picture, slots, cluster.nodes.resource_index.get(resource, maxsize))
            if self._by_use and resource in MEASURED and picture.signals.pods:
                self._measure(picture, slots, resource, amounts[place])
        return np.minimum(np.maximum(amounts, 0), _MOST)

    def _measure(self, picture: Picture, slots: Int64s, resource: str, amounts: Int64s) -> None:
        """Fill in the measured use of pods that have one; a replacement uses what its predecessor did."""
        for place, slot in enumerate(slots.tolist()):
            reported = picture.signals.of_pod(predecessor(picture.cluster.pods.record(slot).uid))
            used = reported.cpu_used_milli if resource == "cpu" else reported.memory_used_bytes
            if used is not None:
                amounts[place] = min(used, _MOST)


def _roots(amounts: Int64s) -> Int64s:
    return np.asarray(np.rint(np.sqrt(amounts) * ROOT_UNIT).astype(np.int64))


def _effective(roots: Int64s, amounts: Int64s) -> Float64s:
    """Return the effective number of pods, where small pods count little beside large ones.

    It is the Hill number of order 1/2 of their sizes: n equal pods count as n, those of size 0 not at all.
    """
    return np.asarray((roots / ROOT_UNIT) ** 2 / np.maximum(amounts, 1))
