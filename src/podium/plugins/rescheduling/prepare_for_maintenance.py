"""PrepareForMaintenance: nodes that will go down are emptied ahead of time.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod off of a node in anticipation of a known or
speculated future event").
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.api.times import format_time
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Float64s, Proposal, Relocation
from podium.framework.rescheduling.written_scope import Span, span_ns
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.parts.node_use import NodeUse, guests_on

_HOUR_NS = 3_600 * 10**9


class PrepareForMaintenanceArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    Nodes are emptied from ``leadTime`` before the time that is announced, 1 hour where it is not given, and until
    ``overdueAfter`` it, 1 hour: an announcement that is older has come to nothing, or is done.
    """

    lead_time: Span | None = None
    overdue_after: Span | None = None


class PrepareForMaintenance:
    """Counts the pods on nodes that will go down soon: 1 each at first, 2 when the time has come.

    So whoever else would move a pod there makes it worse.
    """

    name = "PrepareForMaintenance"

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, PrepareForMaintenanceArgs, self.name)
        self._lead_ns = span_ns(args.lead_time, _HOUR_NS, ".leadTime")
        self._overdue_ns = span_ns(args.overdue_after, _HOUR_NS, ".overdueAfter", least=0)
        self._picture: Picture | None = None
        # By node name, the times that are announced; few nodes have one.
        self._announced: dict[str, int] = {}
        self._use = NodeUse()

    def objective(self, picture: Picture) -> float:
        """The pods on nodes that will go down soon, each by how soon."""
        urgencies = self._urgencies(picture)
        return float((urgencies * self._use.guests).sum()) if urgencies.any() else 0.0

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Each pod of such a node by itself: of the node that goes first, then by node, then by key."""
        urgencies = self._urgencies(picture)
        safe = urgencies == 0
        rows = np.flatnonzero(urgencies).tolist()
        rows.sort(key=lambda row: (self._announced[picture.node_name(row)], picture.node_name(row)))
        for row in rows:
            name = picture.node_name(row)
            avoid_for_ns = max(self._announced[name] - picture.now, 0) + self._overdue_ns
            reason = f"{name} is announced to go down at {format_time(self._announced[name])}"
            for pod in sorted(guests_on(picture.cluster, row), key=lambda pod: (pod.key, pod.uid)):
                if picture.is_movable(pod):
                    yield Proposal((Relocation(pod, safe),), reason, avoid_for_ns or None)

    def _urgencies(self, picture: Picture) -> Float64s:
        """``[rows]``: 0 for nodes that stay, 1 at the beginning of the lead time, 2 when the time has come."""
        nodes = picture.cluster.nodes
        self._read(picture)
        urgencies = np.zeros(nodes.count)
        self._use.look(picture.cluster)
        for name, time_ns in self._announced.items():
            left_ns = time_ns - picture.now
            row = nodes.row_of.get(name)
            if row is not None and -self._overdue_ns <= left_ns <= self._lead_ns:
                urgencies[row] = 2 - max(left_ns, 0) / self._lead_ns
        return urgencies

    def _read(self, picture: Picture) -> None:
        if picture is not self._picture:
            told = sorted(picture.signals.nodes.items(), key=lambda each: each[0])
            self._announced = {name: node.maintenance_ns for name, node in told if node.maintenance_ns is not None}
            self._picture = picture
