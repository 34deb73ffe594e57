"""ReplaceOldPods: pods that have run for long are replaced, where that is asked for.

Source: descheduler pkg/framework/plugins/podlifetime.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.scaling.scale_down import belongs_to_node
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.framework.rescheduling.written_scope import Span, span_ns
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.parts.row_changes import RowChanges

_SECOND = 10**9
_MONTH_NS = 30 * 86_400 * _SECOND
_UNITS = ((86_400 * _SECOND, "d"), (3_600 * _SECOND, "h"), (60 * _SECOND, "m"), (_SECOND, "s"))


class ReplaceOldPodsArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: pods that were created longer than ``maxAge`` ago are replaced, 720h (30 days) if it is not given."""

    max_age: Span | None = None


class ReplaceOldPods:
    """Counts the pods that are too old. Their replacements go to other nodes, like those of all moves."""

    name = "ReplaceOldPods"

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, ReplaceOldPodsArgs, self.name)
        self._max_age_ns = span_ns(args.max_age, _MONTH_NS, ".maxAge")
        self._ages = _Ages()

    def objective(self, picture: Picture) -> float:
        """How many pods are too old."""
        return float(self._ages.created_before(picture.cluster, picture.now - self._max_age_ns))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Each of them, the oldest first, then by key."""
        latest_ns = picture.now - self._max_age_ns
        placed = picture.cluster.placed.values()
        old = [(pod.created_ns, pod.key, pod.uid, pod) for pod in placed if _is_old(pod, latest_ns)]
        # Few of many will be asked for.
        heapify(old)
        while old:
            *_, pod = heappop(old)
            if picture.is_movable(pod):
                age, most = in_words(picture.now - pod.created_ns), in_words(self._max_age_ns)
                yield Proposal((Relocation(pod),), f"{pod.key} is {age} old; pods are to be no older than {most}")


class _Ages:
    """When the pods of each row were created, brought up to date for the rows that changed."""

    def __init__(self) -> None:
        self._changes = RowChanges()
        self._latest_ns: int | None = None
        self._old: Int64s = np.zeros(0, dtype=np.int64)

    def created_before(self, cluster: Cluster, latest_ns: int) -> int:
        """How many pods were created before a time, of those that may be replaced at all."""
        if latest_ns != self._latest_ns:
            self._changes.forget()
            self._latest_ns = latest_ns
        rows = self._changes.since_last(cluster)
        if rows is None:
            self._old = np.zeros(cluster.nodes.count, dtype=np.int64)
            rows_of = [pod.row for pod in cluster.placed.values() if _is_old(pod, latest_ns)]
            np.add.at(self._old, rows_of, 1)
        else:
            for row in rows.tolist():
                self._old[row] = sum(_is_old(pod, latest_ns) for pod in cluster.pods_on(row))
        return int(self._old.sum())


def _is_old(pod: PodRecord, latest_ns: int) -> bool:
    return 0 < pod.created_ns < latest_ns and pod.row >= 0 and not pod.terminating and not belongs_to_node(pod)


def in_words(duration_ns: int) -> str:
    """A duration in its two largest units, as people say an age: 3d4h."""
    said, left = "", duration_ns
    for unit_ns, unit in _UNITS:
        number, left = divmod(left, unit_ns)
        if number or said:
            if said:
                return f"{said}{number}{unit}" if number else said
            said = f"{number}{unit}"
    return said or "0s"
