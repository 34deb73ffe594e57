"""MoveToUnderusedNodes: pods leave over-used nodes where others are nearly empty, as after a scale-up.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto an under-utilized node").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.framework.settings.arguments import read_arguments
from podium.plugins.rescheduling.parts.load_thresholds import LoadThresholds, MarkMaker, Marks
from podium.plugins.rescheduling.parts.node_contents import Amounts, contents_of
from podium.plugins.rescheduling.parts.node_loads import NodeLoads
from podium.plugins.rescheduling.parts.rough_fit import rough_fit


class MoveToUnderusedNodesArgs(LoadThresholds, frozen=True, kw_only=True):
    """Arguments, beside the thresholds.

    ``useMetrics``: by what the pods are measured to use of cpu and memory, instead of by what they request; who is not
    measured counts by requests. ``numberOfNodes``: nothing is done until more nodes than that are under-used.
    """

    use_metrics: bool = False
    number_of_nodes: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.number_of_nodes < 0:
            raise ValueError("numberOfNodes must not be below 0")


@dataclass(slots=True)
class _Situation:
    """How full nodes are (``[resources, rows]``), how many pods are too many on each, and which are under-used.

    The latter are ``[rows]``. All of it follows from ``marks``.
    """

    marks: Marks
    shares: Float64s
    excess: Float64s
    underused: Bools


class MoveToUnderusedNodes:
    """Proposes the pods of over-used nodes that fit on under-used ones without making these over-used.

    The objective is the number of pods too many on over-used nodes: of the pods that share a node's most wanted
    resource, the part above the high mark. It grows with every pod by more than with the one before, so that there is
    nothing to be gained by passing a load on. Nodes that may not take in pods, such as those that somebody drains or
    empties, count neither as under-used nor as over-used.
    """

    name = "MoveToUnderusedNodes"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, MoveToUnderusedNodesArgs, self.name)
        self._maker = MarkMaker(arguments)
        self.needs_use = arguments.use_metrics
        self._loads = NodeLoads(self._maker.resources, by_use=arguments.use_metrics)
        self._verb = "uses" if arguments.use_metrics else "is asked for"
        self._fewest = arguments.number_of_nodes + 1
        self._known: _Situation | None = None

    def objective(self, picture: Picture) -> float:
        """How many pods are too many on over-used nodes."""
        return float(self._situation(picture).excess.sum())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """One pod of each over-used node at a time, the most over-used first, then by name.

        Of a node's pods those that relieve it most, of equals the least important, then by key. Once begun, since nodes
        are under-used, it goes on until none is over-used any more: the last of many moves is as good as the first.
        """
        underused = int(self._situation(picture).underused.sum())
        if underused < self._fewest:
            return
        # By row, the classes whose pods have nowhere to go from it, or were not let go.
        waiting: dict[int, set[PodClass]] = {row: set() for row in self._worst(picture, self._situation(picture))}
        while waiting:
            for row, stuck in list(waiting.items()):
                situation = self._situation(picture)
                found = self._next(picture, row, stuck, underused) if situation.excess[row] else None
                if found is None:
                    del waiting[row]
                    continue
                yield found
                pod = found.relocations[0].pod
                if _is_on(picture, pod, row):
                    # Its like would fare no better.
                    stuck.add(pod.pod_class)

    def linear(self, movables: Movables) -> LinearForm:
        """The objective as a table for each node of the pods that can be on it."""
        picture, loads = movables.picture, self._loads
        situation = self._situation(picture)
        high, counted = situation.marks.high[:, None], picture.targets
        of_pod = {
            pod.uid: (*amounts, *roots)
            for pod, amounts, roots in zip(
                movables.pods, *(part.T.tolist() for part in loads.parts_of(picture, movables.pods)), strict=True
            )
        }
        size = len(loads.resources)

        def cost(row: int, amounts: Int64s) -> float:
            if not counted[row]:
                return 0.0
            shares, pods = loads.as_shares(row, amounts[:size, None], amounts[size:, None])
            return float(_too_many(pods, shares, high)[0]) if (shares > high).any() else 0.0

        in_all, most = loads.parts()
        contents = tuple(contents_of(movables, Amounts(of_pod, in_all, most), cost))
        base = float(situation.excess.sum()) - sum(situation.excess[table.row] for table in contents)
        return LinearForm(base, contents=contents)

    def _situation(self, picture: Picture) -> _Situation:
        loads, known = self._loads, self._known
        rows = loads.follow(picture)
        size = loads.amounts.shape[1]
        marks = self._maker.marks(loads, picture.targets[:size])
        if known is None or len(rows) == size or not marks.equals(known.marks):
            rows = picture.cluster.nodes.all_rows()
            shape = (len(loads.resources), size)
            known = _Situation(marks, np.zeros(shape), np.zeros(size), np.zeros(size, dtype=np.bool_))
            self._known = known
        if len(rows):
            counted = picture.targets[rows]
            known.shares[:, rows] = shares = loads.shares(rows)
            known.underused[rows] = marks.underused(shares) & counted
            known.excess[rows] = self._excess(rows, shares, marks) * counted
        return known

    def _excess(self, rows: Int64s, shares: Float64s, marks: Marks) -> Float64s:
        """`[n]`: how many pods are too many on some rows."""
        excess = np.zeros(len(rows))
        at = np.flatnonzero((shares > marks.high[:, None]).any(axis=0))
        if len(at):
            excess[at] = _too_many(self._loads.effective_pods(rows[at]), shares[:, at], marks.high[:, None])
        return excess

    def _worst(self, picture: Picture, situation: _Situation) -> list[int]:
        excess = situation.excess.tolist()
        rows = np.flatnonzero(situation.excess).tolist()
        return sorted(rows, key=lambda row: (-excess[row], picture.node_name(row)))

    def _candidates(self, picture: Picture, row: int) -> list[PodRecord]:
        """The pods of a node that may be moved, those first that relieve it most."""
        pods = [pod for pod in picture.cluster.pods_on(row) if picture.is_movable(pod)]
        if not pods:
            return []
        situation = self._situation(picture)
        left, rest = self._loads.without(row, self._loads.of_pods(picture, pods))
        gains = (situation.excess[row] - _too_many(rest, left, situation.marks.high[:, None])).tolist()
        relieving = [(-gain, pod) for gain, pod in zip(gains, pods, strict=True) if gain > 0]
        relieving.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in relieving]

    def _next(self, picture: Picture, row: int, stuck: set[PodClass], underused: int) -> Proposal | None:
        """The pod that would relieve a node most by now, of those that have somewhere to go; who has not is stuck."""
        situation = self._situation(picture)
        for pod in self._candidates(picture, row):
            if pod.pod_class in stuck:
                continue
            targets = self._targets(picture, pod, situation)
            if targets.any():
                emptiness: Float64s = 1.0 - situation.shares.max(axis=0)
                return Proposal(
                    (Relocation(pod, targets, emptiness),), self._reason(picture, row, situation, underused)
                )
            stuck.add(pod.pod_class)
        return None

    def _targets(self, picture: Picture, pod: PodRecord, situation: _Situation) -> Bools:
        """`[rows]`: the nodes that have room for the pod, and are not over-used with it.

        Its scheduler may like one in between better than the under-used ones, and that is as well.
        """
        loads = self._loads
        targets = rough_fit(picture, pod)
        at = np.flatnonzero(targets)
        if len(at):
            amounts = loads.amounts[:, at] + loads.of_pods(picture, [pod])
            shares = amounts / np.maximum(loads.allocatable[:, at], 1)
            targets[at] = (shares <= situation.marks.high[:, None]).all(axis=0)
        return targets

    def _reason(self, picture: Picture, row: int, situation: _Situation, number: int) -> str:
        shares, marks = situation.shares[:, row], situation.marks
        beyond = np.where(shares > marks.high, shares - marks.high, -1.0)
        worst = int(beyond.argmax())
        nodes = "1 node" if number == 1 else f"{number} nodes"
        only = "" if self._verb == "uses" else "for "
        return (
            f"{picture.node_name(row)} {self._verb} {100 * shares[worst]:.0f} % of its "
            f"{self._loads.resources[worst]}, and {nodes} {only}at most {self._low_marks(marks.low)}"
        )

    def _low_marks(self, low: Sequence[float] | Float64s) -> str:
        shares = [f"{100 * share:.0f} %" for share in low]
        if len(set(shares)) == 1:
            return shares[0]
        each = [f"{share} of {name}" for share, name in zip(shares, self._loads.resources, strict=True)]
        return " and ".join((", ".join(each[:-1]), each[-1]))


def _too_many(pods: Float64s, shares: Float64s, high: Float64s) -> Float64s:
    """How many pods are too many, by the resource of which there are most: along the first axis."""
    beyond = 1.0 - high / np.maximum(shares, 1e-12)
    worst: Float64s = (pods * np.maximum(beyond, 0.0)).max(axis=0)
    return worst


def _is_on(picture: Picture, pod: PodRecord, row: int) -> bool:
    known = picture.cluster.placed.get(pod.uid)
    return known is not None and known.row == row
