"""SeparateInterfering: if pods slow one another down, move one of them: the aggressor or a victim.

Source: controlled-rescheduling.md, Example use cases ("poor performance due to interference from other containers on
the node ... in this case there is a choice of moving the victim or the aggressor").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU
from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Float64s, Picture, Proposal, Relocation, predecessor
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.node_use import RowChanges, guests_on, placed_slots

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
        if not self._loads.look(picture):
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
        gained = (self._slowed(wanted, eager, usable) - after).tolist()
        found = zip(pods, gained, strict=True)
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
        # What measured pods want, by uid.
        self._measured: dict[str, int] = {}
        self.wanted: Int64s = np.zeros(0, dtype=np.int64)
        self.eager: Int64s = np.zeros(0, dtype=np.int64)

    def look(self, picture: Picture) -> bool:
        """Update the counters; return whether anything is measured."""
        rows = self._changes.since_last(picture.cluster, picture)
        if rows is None:
            self._measured = {
                uid: _wanted(reported.cpu_used_milli, reported.cpu_pressure)
                for uid, reported in picture.signals.pods.items()
                if reported.cpu_used_milli is not None
            }
            rows, count = picture.cluster.nodes.all_rows(), picture.cluster.nodes.count
            self.wanted, self.eager = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        if len(rows) and self._measured:
            self._read(picture.cluster, rows)
        return bool(self._measured)

    def wanted_by(self, pod: PodRecord) -> int:
        """Return what a pod wants."""
        measured = self._measured.get(pod.uid)
        if measured is None:
            measured = self._measured.get(predecessor(pod.uid))
        return requested_by(pod) if measured is None else measured

    def _read(self, cluster: Cluster, rows: Int64s) -> None:
        """Count the pods on some rows."""
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


def _wanted(used_milli: int, pressure: float | None) -> int:
    used_milli = max(0, min(used_milli, _MOST_MILLI))
    # A value that is no share of time is ignored.
    return round(used_milli / (1 - min(pressure, _MOST_PRESSURE))) if pressure and pressure > 0 else used_milli
