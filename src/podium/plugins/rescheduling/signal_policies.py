"""LeavePoorService and SeparateInterfering: the policies for pods that are reported to fare badly where they run.

The first moves pods off nodes on which they fail although they would run well elsewhere; if pods slow one another down,
the second moves one of them, the aggressor or a victim.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod off of a node from which it is receiving
poor service": anomalous crash loops, repeated out-of-resource killing, rejections by the kubelet; "poor performance due
to interference from other containers on the node ... in this case there is a choice of moving the victim or the
aggressor").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np

from podium.api.avoid_list import avoid_list, avoid_list_text
from podium.api.reading import Interval
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.autoscaling import belongs_to_node
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Avoidance, Float64s, Picture, Proposal, Relocation, predecessor
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.node_use import RowChanges, guests_on, placed_slots

_MINUTE = 60 * 10**9
_DAY_NS = 24 * 60 * _MINUTE
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class LeavePoorServiceArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    A pod fails if its containers were restarted ``minRestarts`` times and wait for another restart, or failed
    ``within`` that time. A pod runs well if it is ready and started earlier than that. A node is in trouble if pods of
    ``minOwners`` fail there, or are rejected ``minRejections`` times each, and fail nowhere else. The node that a pod
    leaves is avoided for ``avoidFor``, and until then counts as one where its owner fails.
    """

    min_restarts: _Count = 3
    within_ns: Interval = 10 * _MINUTE
    min_owners: _Count = 3
    min_rejections: _Count = 3
    avoid_for_ns: Interval = _DAY_NS


class LeavePoorService:
    """Counts the pods that fail where they are and would probably not fail elsewhere.

    The node is the cause if more pods of the owner run well than fail on other nodes, or if the node is in trouble.
    Moving does not help pods of an owner that fails everywhere.
    """

    name = "LeavePoorService"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, LeavePoorServiceArgs, self.name)
        self._failures = FailureStats(self._args)
        self._picture: Picture | None = None
        # The owners whose pods the node's kubelet rejected repeatedly, by row.
        self._turned_away: dict[int, set[str]] = {}

    def objective(self, picture: Picture) -> float:
        """Return how many pods fail because of their nodes."""
        self._look(picture)
        alone = sum(sum(numbers.values()) for row, numbers in self._failures.lonely.items() if self._is_in_trouble(row))
        return float(self._failures.misplaced + alone)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield each of them, by the number of restarts, then by key."""
        self._look(picture)

        def place(pod: PodRecord) -> tuple[int, str, str]:
            return -picture.signals.of_pod(pod.uid).restarts, pod.key, pod.uid

        for pod in sorted(self._failures.failing(), key=place):
            if not picture.is_movable(pod) or pod.row == NO_ROW:
                continue
            self._look(picture)
            why = self._why(picture, pod)
            if why:
                yield Proposal((Relocation(pod, self._targets(picture, pod)),), why, self._args.avoid_for_ns)

    def avoidances(self, picture: Picture) -> Iterator[Avoidance]:
        """Yield the owners whose pods a kubelet rejected repeatedly and recently, the most frequent first."""
        found = sorted(picture.signals.turned_away.items(), key=lambda item: (-len(item[1]), item[0]))
        for (_, node), by_uid in found:
            pods = sorted(by_uid.values(), key=lambda pod: (pod.created_ns, pod.key, pod.uid))
            if len(pods) < self._args.min_rejections or picture.now - pods[-1].created_ns > self._args.within_ns:
                continue
            # The oldest one is evicted: users can still read the statuses of the latest ones.
            owner_text = pods[0].controller
            owners = "of one owner" if owner_text is None else f"of {owner_text.kind} {owner_text.name}"
            reason = f"the kubelet of {node} turned away {len(pods)} pods {owners}, the last one of late"
            yield Avoidance(pods[0], reason, self._args.avoid_for_ns)

    def _look(self, picture: Picture) -> None:
        self._failures.update(picture)
        if picture is not self._picture:
            self._picture, self._turned_away = picture, {}
            for (owner, node), pods in picture.signals.turned_away.items():
                row = picture.cluster.nodes.row_of.get(node)
                if row is not None and len(pods) >= self._args.min_rejections:
                    self._turned_away.setdefault(row, set()).add(owner)

    def _why(self, picture: Picture, pod: PodRecord) -> str:
        """Return why a failing pod would be better placed elsewhere; "" if it probably would not be."""
        owner, node = self._failures.of(pod.owner_uid), picture.node_name(pod.row)
        elsewhere, signals = owner.failing_elsewhere(pod.row), picture.signals.of_pod(pod.uid)
        how = (
            f"was started again {signals.restarts} times{' for want of memory' if signals.out_of_memory_kills else ''}"
        )
        if owner.well > elsewhere:
            others = "1 other of its pods is well" if owner.well == 1 else f"{owner.well} others of its pods are well"
            owner_text = "" if pod.controller is None else f" of {pod.controller.kind} {pod.controller.name}"
            return f"{pod.key}{owner_text} {how} on {node}, while {others}"
        if not elsewhere and self._is_in_trouble(pod.row):
            return f"{pod.key} {how} on {node}, as pods of other owners do there that fail nowhere else"
        return ""

    def _is_in_trouble(self, row: int) -> bool:
        """Return whether pods of many owners fail on a node, or are rejected there, and fail nowhere else."""
        failing, turned_away = self._failures.lonely.get(row, {}), self._turned_away.get(row, set())
        return len(failing) + len(turned_away - failing.keys()) >= self._args.min_owners

    def _targets(self, picture: Picture, pod: PodRecord) -> Bools:
        """Return the nodes on which no pod of its owner fails or is rejected, and which are not in trouble."""
        targets: Bools = np.ones(picture.cluster.nodes.count, dtype=np.bool_)
        owner = self._failures.of(pod.owner_uid)
        for row in {*self._failures.rows(), *owner.left, *self._turned_away}:
            is_bad = row in owner.failing or row in owner.left or pod.owner_uid in self._turned_away.get(row, ())
            targets[row] = not (is_bad or self._is_in_trouble(row))
        return targets


@dataclass(frozen=True, slots=True)
class _Row:
    """The pods in one row: those that fail, and by owner the number of those that run well."""

    failing: tuple[PodRecord, ...] = ()
    well: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class OwnerRecord:
    """The number of pods of an owner that run well anywhere, and of those that fail, by row.

    ``left`` are the rows from which its pods were evicted recently, by the avoid lists of their nodes: a pod that
    failed there and fails again elsewhere is itself the cause.
    """

    well: int = 0
    failing: Counter[int] = field(default_factory=Counter)
    left: frozenset[int] = frozenset()

    def failing_elsewhere(self, row: int) -> int:
        """Return how many fail in other rows, or left them recently."""
        gone = len(self.left.difference(self.failing, (row,)))
        return self.failing.total() - self.failing[row] + gone

    def misplaced(self) -> int:
        """Return how many failing pods are outnumbered: more of the owner's pods run well than fail in other rows."""
        return sum(number for row, number in self.failing.items() if self.well > self.failing_elsewhere(row))


_NO_RECORD = OwnerRecord()


class FailureStats:
    """Failing pods and pods that run well, for owners with a failing pod, by row and owner.

    A pod runs well if it has run long enough to conclude that it does not fail. A replacement, of which nothing is
    known yet, does neither. ``misplaced`` counts failing pods whose owner has more pods that run well. ``lonely`` are,
    by row, the owners whose pods fail there and nowhere else, each with the number of its failing pods while none runs
    well.
    """

    def __init__(self, args: LeavePoorServiceArgs) -> None:
        self._args = args
        self._changes = RowChanges()
        self._picture: Picture | None = None
        self._rows: dict[int, _Row] = {}
        self._owners: dict[str, OwnerRecord] = {}
        self.misplaced = 0
        self.lonely: dict[int, dict[str, int]] = {}

    def update(self, picture: Picture) -> None:
        """Update the statistics. Cached results hold for one picture only, since time passes."""
        rows = self._changes.since_last(picture.cluster, picture)
        if rows is None:
            # While a picture lasts, an owner with failing pods stays known: its pod may be off its node for a trial.
            known = tuple(self._owners) if picture is self._picture else ()
            self._picture = picture
            self._read_all(picture, known)
        elif self._owners and len(rows):
            self._rows.update({row: self._read(picture, picture.cluster.pods_on(row)) for row in rows.tolist()})
        else:
            return
        self._count()

    def failing(self) -> list[PodRecord]:
        return [pod for row in sorted(self._rows) for pod in self._rows[row].failing]

    def of(self, owner: str) -> OwnerRecord:
        """Return the statistics of an owner's pods."""
        return self._owners.get(owner, _NO_RECORD)

    def rows(self) -> list[int]:
        return sorted(row for row, read in self._rows.items() if read.failing)

    def _read_all(self, picture: Picture, known: Iterable[str]) -> None:
        placed = picture.cluster.placed
        reported = (placed.get(uid) for uid in picture.signals.pods)
        failing = (pod.owner_uid for pod in reported if pod is not None and self._fails(picture, pod))
        self._owners, self._rows = {owner: OwnerRecord() for owner in (*known, *failing)}, {}
        if not self._owners:
            return
        nodes = picture.cluster.nodes
        for row in nodes.row_of.values():
            text = avoid_list_text(nodes.node(row))
            for entry in avoid_list(text).entries if text else ():
                if (owner := self._owners.get(entry.controller.uid)) is not None:
                    owner.left |= {row}
        concerned: dict[int, list[PodRecord]] = {}
        for pod in placed.values():
            if pod.row >= 0 and pod.owner_uid in self._owners:
                concerned.setdefault(pod.row, []).append(pod)
        self._rows = {row: self._read(picture, pods) for row, pods in concerned.items()}

    def _read(self, picture: Picture, pods: Iterable[PodRecord]) -> _Row:
        failing, well = list[PodRecord](), Counter[str]()
        for pod in pods:
            if pod.owner_uid not in self._owners or pod.terminating:
                continue
            if self._fails(picture, pod):
                failing.append(pod)
            elif pod.ready and pod.start_ns <= picture.now - self._args.within_ns:
                well[pod.owner_uid] += 1
        return _Row(tuple(failing), well)

    def _fails(self, picture: Picture, pod: PodRecord) -> bool:
        reported = picture.signals.pods.get(pod.uid)
        if reported is None or reported.restarts < self._args.min_restarts or belongs_to_node(pod):
            return False
        is_recent = reported.failure_ns is not None and picture.now - reported.failure_ns <= self._args.within_ns
        return reported.is_crash_looping or is_recent

    def _count(self) -> None:
        """Count the pods of each owner in all rows."""
        self._owners = {name: OwnerRecord(left=owner.left) for name, owner in self._owners.items()}
        for row, read in self._rows.items():
            for name, number in read.well.items():
                self._owners[name].well += number
            for pod in read.failing:
                self._owners[pod.owner_uid].failing[row] += 1
        self.misplaced, self.lonely = sum(owner.misplaced() for owner in self._owners.values()), {}
        for name, owner in self._owners.items():
            if owner.failing and len({*owner.failing, *owner.left}) == 1:
                (row,) = owner.failing
                self.lonely.setdefault(row, {})[name] = 0 if owner.well else owner.failing[row]


# The most pods of a node that are proposed: the first one with a target probably suffices.
_MOST_PODS = 10


class SeparateInterferingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    A node is crowded if its pods want more than ``utilization`` of its cpu. A pod is badly placed if ``pressure`` of
    the wanted cpu is missing. An aggressor wants ``aggressorRatio`` times what it requests.
    """

    utilization: Annotated[float, msgspec.Meta(gt=0, le=2)] = 0.9
    pressure: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.2
    aggressor_ratio: Annotated[float, msgspec.Meta(ge=1, le=1_000)] = 2


class SeparateInterfering:
    """Counts the pods on crowded nodes that want more than they request: they share what is left."""

    name = "SeparateInterfering"
    needs_use = True

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, SeparateInterferingArgs, self.name)
        self._loads = CPULoads()

    def objective(self, picture: Picture) -> float:
        """Return the pods that are slowed down, weighted by how much."""
        return float(self._terms(picture).sum())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield pods of crowded nodes, the worst node first, then by name; within a node, the largest gain first."""
        terms = self._terms(picture)
        rows = np.flatnonzero(terms).tolist()
        rows.sort(key=lambda row: (-float(terms[row]), picture.node_name(row)))
        for row in rows:
            for pod, gained in self._ranked(picture, row)[:_MOST_PODS]:
                # Pods that have left meanwhile made room for the others.
                if self._terms(picture)[row] < terms[row] or gained <= 0:
                    break
                nodes = picture.cluster.nodes
                # The cpu that no pod wants.
                room = (nodes.allocatable[CPU, : nodes.count] - self._loads.wanted).astype(np.float64)
                yield Proposal((Relocation(pod, preferred=room),), self._why(picture, pod))

    def _terms(self, picture: Picture) -> Float64s:
        count = picture.cluster.nodes.count
        if not self._loads.update(picture):
            return np.zeros(count)
        usable = self._args.utilization * picture.cluster.nodes.allocatable[CPU, :count].astype(np.float64)
        return self._slowed(self._loads.wanted, self._loads.eager, usable)

    def _ranked(self, picture: Picture, row: int) -> list[tuple[PodRecord, float]]:
        """Return the movable pods of a node, with the gain for the node; ties by importance and key."""
        usable = self._args.utilization * float(picture.cluster.nodes.allocatable[CPU, row])
        pods = [pod for pod in guests_on(picture.cluster, row) if picture.is_movable(pod)]
        amounts = np.array(list(map(self._loads.wanted_by, pods)), dtype=np.int64)
        requested = np.array(list(map(requested_by, pods)), dtype=np.int64)
        wanted, eager = self._loads.wanted[row], self._loads.eager[row]
        after = self._slowed(wanted - amounts, eager - (amounts > requested), usable)
        found = zip(pods, (self._slowed(wanted, eager, usable) - after).tolist(), strict=True)
        return sorted(found, key=lambda pair: (-pair[1], pair[0].priority, pair[0].key, pair[0].uid))

    def _slowed(self, wanted: Int64s, eager: Int64s, usable: Float64s | float) -> Float64s:
        """Return `[n]` how many ``eager`` pods are slowed down, weighted, if so much of the wanted cpu is usable."""
        lacking = np.maximum(1 - usable / np.maximum(wanted, 1), 0.0)
        return np.asarray(np.minimum(lacking / self._args.pressure, 1.0) * eager)

    def _why(self, picture: Picture, pod: PodRecord) -> str:
        node, has = picture.node_name(pod.row), int(picture.cluster.nodes.allocatable[CPU, pod.row])
        crowded = f"the pods on {node} want {_cpus(int(self._loads.wanted[pod.row]))} of its {_cpus(has)} cpu"
        wants, requests = self._loads.wanted_by(pod), requested_by(pod)
        if wants > self._args.aggressor_ratio * requests:
            requested = f"requests {_cpus(requests)}" if requests else "requests none"
            return f"{crowded}; {pod.key} wants {_cpus(wants)} and {requested}"
        return f"{crowded}; {pod.key} is slowed down by others there"


def _cpus(milli: int) -> str:
    return f"{milli / 1_000:.3g}"


# A pod that hardly ever gets cpu may want any amount; its use is taken as at least a tenth of what it wants.
_MOST_PRESSURE = 0.9
_MOST_MILLI = 10**9


class CPULoads:
    """By row, what the pods want in total (``wanted``), and how many want more than they request (``eager``).

    A pod wants what it uses plus what it would have used without waiting; without a measurement, what it requests. A
    replacement wants what its predecessor did.
    """

    def __init__(self) -> None:
        self._changes = RowChanges()
        # The wanted cpu of measured pods, by uid.
        self._measured: dict[str, int] = {}
        self.wanted: Int64s = np.zeros(0, dtype=np.int64)
        self.eager: Int64s = np.zeros(0, dtype=np.int64)

    def update(self, picture: Picture) -> bool:
        """Update the counters; return whether anything is measured."""
        rows = self._changes.since_last(picture.cluster, picture)
        if rows is None:
            self._measured = {
                uid: _wanted_milli(reported.cpu_used_milli, reported.cpu_pressure)
                for uid, reported in picture.signals.pods.items()
                if reported.cpu_used_milli is not None
            }
            rows, count = picture.cluster.nodes.all_rows(), picture.cluster.nodes.count
            self.wanted, self.eager = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        if len(rows) and self._measured:
            self._read(picture.cluster, rows)
        return bool(self._measured)

    def wanted_by(self, pod: PodRecord) -> int:
        measured = self._measured.get(pod.uid)
        if measured is None:
            measured = self._measured.get(predecessor(pod.uid))
        return requested_by(pod) if measured is None else measured

    def _read(self, cluster: Cluster, rows: Int64s) -> None:
        slots = placed_slots(cluster, rows)
        on, pods = cluster.pods.row[slots], list(map(cluster.pods.record, slots.tolist()))
        wanted = np.array(list(map(self.wanted_by, pods)), dtype=np.int64)
        requested = np.array(list(map(requested_by, pods)), dtype=np.int64)
        self.wanted[rows] = self.eager[rows] = 0
        np.add.at(self.wanted, on, wanted)
        np.add.at(self.eager, on, wanted > requested)


def requested_by(pod: PodRecord) -> int:
    """Return the cpu that a pod requests, in thousandths."""
    return pod.pod_class.requests.get(CPU, 0)


def _wanted_milli(used_milli: int, pressure: float | None) -> int:
    used_milli = max(0, min(used_milli, _MOST_MILLI))
    # A value that is no share of time is ignored.
    return round(used_milli / (1 - min(pressure, _MOST_PRESSURE))) if pressure and pressure > 0 else used_milli
