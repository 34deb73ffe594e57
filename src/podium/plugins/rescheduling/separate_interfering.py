"""SeparateInterfering: where pods slow one another down, one of them leaves: the aggressor, or a victim.

Source: controlled-rescheduling.md, Example use cases ("poor performance due to interference from other containers on
the node ... in this case there is a choice of moving the victim or the aggressor").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np

from podium.cluster.nodes import CPU
from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.parts.cpu_loads import CPULoads, requested_by
from podium.plugins.rescheduling.parts.node_use import guests_on

# How many pods of a node are proposed: the first of them that finds a place is likely to do.
_MOST_PODS = 10


class SeparateInterferingArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    A node is crowded whose pods want more than ``utilization`` of its cpu. A pod is quite in the wrong place where
    ``pressure`` of what is wanted there is not to be had. An aggressor wants ``aggressorRatio`` times what it requests.
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
        """The pods that are slowed down, each by how much."""
        return float(self._terms(picture).sum())

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods of crowded nodes, the worst node first, then by name; of a node those first by whom it gains most."""
        terms = self._terms(picture)
        rows = np.flatnonzero(terms).tolist()
        rows.sort(key=lambda row: (-float(terms[row]), picture.node_name(row)))
        for row in rows:
            for pod, gained in self._ranked(picture, row)[:_MOST_PODS]:
                # Whoever has left by now made room for the others.
                if self._terms(picture)[row] < terms[row] or gained <= 0:
                    break
                yield Proposal((Relocation(pod, preferred=self._room(picture)),), self._why(picture, pod))

    def _terms(self, picture: Picture) -> Float64s:
        if not self._loads.look(picture):
            return np.zeros(picture.cluster.nodes.count)
        return self._slowed(self._loads.lacking(picture.cluster, self._args.utilization)) * self._loads.eager

    def _slowed(self, lacking: Float64s) -> Float64s:
        """How far in the wrong place pods are where some share is lacking, from 0 to 1."""
        slowed: Float64s = np.minimum(lacking / self._args.pressure, 1.0)
        return slowed

    def _ranked(self, picture: Picture, row: int) -> list[tuple[PodRecord, float]]:
        """The pods of a node that may leave, with what the node gains; of equal ones, by importance and key."""
        usable = self._args.utilization * float(picture.cluster.nodes.allocatable[CPU, row])
        wanted, eager = int(self._loads.wanted[row]), int(self._loads.eager[row])
        before = self._term(wanted, eager, usable)
        found = []
        for pod in guests_on(picture.cluster, row):
            amount = self._loads.wanted_by(pod)
            if amount and picture.is_movable(pod):
                after = self._term(wanted - amount, eager - (amount > requested_by(pod)), usable)
                found.append((pod, before - after))
        return sorted(found, key=lambda pair: (-pair[1], pair[0].priority, pair[0].key, pair[0].uid))

    def _term(self, wanted: int, eager: int, usable: float) -> float:
        lacking = max(1 - usable / wanted, 0.0) if wanted else 0.0
        return min(lacking / self._args.pressure, 1.0) * eager

    def _room(self, picture: Picture) -> Float64s:
        """``[rows]``: the cpu that nobody wants."""
        nodes = picture.cluster.nodes
        room: Float64s = (nodes.allocatable[CPU, : nodes.count] - self._loads.wanted).astype(np.float64)
        return room

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
