"""MoveToUnderusedNodes: move pods off over-used nodes when others are nearly empty, as after a scale-up.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto an under-utilized node").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import PODS as PODS_INDEX
from podium.framework.rescheduling.bounds import Departures, NodeState, ObjectiveBound
from podium.framework.rescheduling.policy import Float64s, Picture, Proposal, Relocation, predecessor
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.node_use import RowChanges, placed_slots, rough_fit


def _defaults(percent: float) -> dict[str, float]:
    return {"cpu": percent, "memory": percent}


def _named(thresholds: Mapping[str, float]) -> str:
    return ", ".join(sorted(thresholds)) or "none"


class MoveToUnderusedNodesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments; thresholds are shares in percent, by resource: cpu, memory, extended resources, and ``pods``.

    ``thresholds``: a node above none of them is under-used. ``targetThresholds``: a node above any of them is
    over-used. With ``useDeviationThresholds`` they are distances below and above the share of the whole cluster. Both
    name the same resources. The names are those of descheduler's LowNodeUtilization. ``useMetrics``: use the measured
    cpu and memory of pods instead of their requests; pods without a measurement count by requests. ``numberOfNodes``:
    act only if more nodes than that are under-used.
    """

    thresholds: dict[str, float] = msgspec.field(default_factory=lambda: _defaults(20))
    target_thresholds: dict[str, float] = msgspec.field(default_factory=lambda: _defaults(50))
    use_deviation_thresholds: bool = False
    use_metrics: bool = False
    number_of_nodes: int = 0

    def __post_init__(self) -> None:
        low, high = self.thresholds, self.target_thresholds
        if not low:
            raise ValueError("thresholds must name a resource at least")
        if low.keys() != high.keys():
            raise ValueError(
                f"thresholds and targetThresholds must name the same resources, not {_named(low)} and {_named(high)}"
            )
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
    """How full nodes are (``[resources, rows]``), how many pods are too many on each, and which are under-used.

    The latter are ``[rows]``. Everything follows from the ``low`` and ``high`` marks, shares of each resource.
    """

    low: Float64s
    high: Float64s
    shares: Float64s
    excess: Float64s
    underused: Bools


@dataclass(slots=True)
class _Turn:
    """The over-used node of a row: the pod proposed last, and the classes whose pods have no target or were refused."""

    row: int
    proposed: PodRecord | None = None
    stuck: set[PodClass] = field(default_factory=set)


class MoveToUnderusedNodes:
    """Proposes the pods of over-used nodes that fit on under-used ones without making these over-used.

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
        self._verb = "uses" if arguments.use_metrics else "is asked for"
        self._fewest = arguments.number_of_nodes + 1
        self._known: _Situation | None = None

    def objective(self, picture: Picture) -> float:
        """Return the number of excess pods on over-used nodes."""
        return float(self._situation(picture).excess.sum())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield one pod of each over-used node at a time, the most over-used node first, then by name.

        The pods of a node are ordered by how much they relieve it, ties by importance, the least important first, then
        by key. Once started, because nodes are under-used, it continues until no node is over-used: the last of many
        moves is as good as the first.
        """
        underused = int(self._situation(picture).underused.sum())
        if underused < self._fewest:
            return
        excess = self._situation(picture).excess
        worst = sorted(np.flatnonzero(excess).tolist(), key=lambda row: (-excess[row], picture.node_name(row)))
        turns = [_Turn(row) for row in worst]
        while turns:
            for turn in list(turns):
                found = self._next(picture, turn, underused)
                if found is None:
                    turns.remove(turn)
                    continue
                if picture.waits(found.relocations[0].pod):
                    # The node waits with its pod: a smaller pod instead would be one more to move.
                    turns.remove(turn)
                    turn.proposed = None
                yield found

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
        parts = loads.parts_of(picture, departures.pods).astype(np.float64)
        labels = np.unique(parts, axis=1, return_inverse=True)[1].reshape(-1)
        labels = np.where(situation.excess[departures.pod_rows] > 0, labels, 0)
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
        are_same = known is not None and np.array_equal(low, known.low) and np.array_equal(high, known.high)
        if known is None or not are_same or len(rows) == size:
            rows = picture.cluster.nodes.all_rows()
            shape = (len(loads.resources), size)
            known = _Situation(low, high, np.zeros(shape), np.zeros(size), np.zeros(size, dtype=np.bool_))
            self._known = known
        if len(rows):
            counted = picture.targets[rows]
            known.shares[:, rows] = shares = loads.shares(rows)
            known.underused[rows] = (shares <= low[:, None]).all(axis=0) & counted
            known.excess[rows] = self._excess(rows, shares, high[:, None]) * counted
        return known

    def _excess(self, rows: Int64s, shares: Float64s, high: Float64s) -> Float64s:
        """Return `[n]` the number of excess pods in some rows."""
        excess = np.zeros(len(rows))
        at = np.flatnonzero((shares > high).any(axis=0))
        if len(at):
            loads, here = self._loads, rows[at]
            excess[at] = _too_many(_effective(loads.roots[:, here], loads.amounts[:, here]), shares[:, at], high)
        return excess

    def _candidates(self, picture: Picture, row: int) -> list[PodRecord]:
        """Return the movable pods of a node, those first that relieve it most."""
        pods = [pod for pod in picture.cluster.pods_on(row) if picture.is_movable(pod)]
        if not pods:
            return []
        situation = self._situation(picture)
        rest = self._loads.parts_on(row)[:, None] - self._loads.parts_of(picture, pods)
        left, remaining = self._loads.as_shares(row, *np.split(rest, 2))
        gains = (situation.excess[row] - _too_many(remaining, left, situation.high[:, None])).tolist()
        relieving = [(-gain, pod) for gain, pod in zip(gains, pods, strict=True) if gain > 0]
        relieving.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in relieving]

    def _next(self, picture: Picture, turn: _Turn, underused: int) -> Proposal | None:
        """Return the move of the pod that now relieves a node most; None if no pod with a target does.

        Pods like the last one, if that is still there, and those without a target are not proposed any more.
        """
        last = turn.proposed
        if last is not None and (known := picture.cluster.placed.get(last.uid)) is not None and known.row == turn.row:
            turn.stuck.add(last.pod_class)
        turn.proposed = None
        situation = self._situation(picture)
        for pod in self._candidates(picture, turn.row) if situation.excess[turn.row] else ():
            if pod.pod_class in turn.stuck:
                continue
            targets = self._targets(picture, pod, situation)
            if targets.any():
                turn.proposed = pod
                emptiness: Float64s = 1.0 - situation.shares.max(axis=0)
                reason = self._reason(picture, turn.row, situation, underused)
                relocation = Relocation(pod, targets, emptiness)
                return Proposal((relocation,), reason, anew=lambda: self._next(picture, turn, underused))
            turn.stuck.add(pod.pod_class)
        return None

    def _targets(self, picture: Picture, pod: PodRecord, situation: _Situation) -> Bools:
        """Return `[rows]` the nodes that have room for the pod and are not over-used with it.

        Its scheduler may prefer a node in between to the under-used ones, which is fine.
        """
        loads = self._loads
        targets = rough_fit(picture, pod)
        at = np.flatnonzero(targets)
        if len(at):
            amounts = loads.amounts[:, at] + loads.of_pods(picture, [pod])
            shares = amounts / np.maximum(loads.allocatable[:, at], 1)
            targets[at] = (shares <= situation.high[:, None]).all(axis=0)
        return targets

    def _reason(self, picture: Picture, row: int, situation: _Situation, number: int) -> str:
        shares, high = situation.shares[:, row], situation.high
        beyond = np.where(shares > high, shares - high, -1.0)
        worst = int(beyond.argmax())
        nodes = "1 node" if number == 1 else f"{number} nodes"
        only = "" if self._verb == "uses" else "for "
        marks, resources = [f"{100 * share:.0f} %" for share in situation.low], self._loads.resources
        least = marks[0]
        if len(set(marks)) > 1:
            each = [f"{mark} of {name}" for mark, name in zip(marks, resources, strict=True)]
            least = f"{', '.join(each[:-1])} and {each[-1]}"
        return (
            f"{picture.node_name(row)} {self._verb} {100 * shares[worst]:.0f} % of its {resources[worst]}, "
            f"and {nodes} {only}at most {least}"
        )


# The number of intervals of the load that a node ends with, fewer if there are many entries in all.
_FEWEST_INTERVALS, _INTERVALS, _INTERVALS_IN_ALL = 2, 8, 600_000


@dataclass(slots=True)
class _Ceiling:
    """How much excess of a resource nodes have at least, by the load that they end with: `[entries]` each.

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
        rows = self._changes.since_last(cluster, picture)
        if rows is None:
            rows = cluster.nodes.all_rows()
            shape = (len(self.resources), len(rows))
            self.amounts, self.roots, self.allocatable = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        if len(rows):
            self._read(picture, rows)
        return rows

    def shares(self, rows: Int64s) -> Float64s:
        """Return `[resources, n]` the amounts in some rows as shares of the capacity; 0 if a node has none."""
        have = self.allocatable[:, rows]
        shares: Float64s = self.amounts[:, rows] / np.maximum(have, 1)
        shares[have <= 0] = 0.0
        return shares

    def of_pods(self, picture: Picture, pods: Sequence[PodRecord]) -> Int64s:
        """Return `[resources, n]` what placed pods add to their nodes."""
        return self._amounts(picture, np.array([pod.slot for pod in pods], dtype=np.int64))

    def parts_on(self, row: int) -> Int64s:
        """Return `[2 * resources]` the amounts on a node, then their roots."""
        return np.concatenate([self.amounts[:, row], self.roots[:, row]])

    def parts_of(self, picture: Picture, pods: Sequence[PodRecord]) -> Int64s:
        """Return `[2 * resources, n]` what placed pods add to the amounts of their nodes, and to the roots."""
        amounts = self.of_pods(picture, pods)
        return np.concatenate([amounts, _roots(amounts)])

    def as_shares(self, row: int, amounts: Int64s, roots: Int64s) -> tuple[Float64s, Float64s]:
        """Return `[resources, n]` each: `shares` and the effective number of pods of a row with each of n amounts."""
        have = self.allocatable[:, row, None]
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
        classes = cluster.pods.pod_class[slots]
        for place, resource in enumerate(self.resources):
            if resource != PODS:
                index = cluster.nodes.resource_index.get(resource)
                known = index is not None and index < len(cluster.classes.requests)
                amounts[place] = cluster.classes.requests[index, classes] if known else 0
            if self._by_use and resource in MEASURED and picture.signals.pods:
                self._measure(picture, slots, resource, amounts[place])
        return np.clip(amounts, 0, _MOST)

    def _measure(self, picture: Picture, slots: Int64s, resource: str, amounts: Int64s) -> None:
        """Fill in the measured use of pods that have one; a replacement uses what its predecessor did."""
        of_pod, record = picture.signals.of_pod, picture.cluster.pods.record
        for place, slot in enumerate(slots.tolist()):
            reported = of_pod(predecessor(record(slot).uid))
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
