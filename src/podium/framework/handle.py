"""The state of one attempt, the interface for PostFilter plugins, how far filters look, and pods delayed at Permit.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go (Handle, PluginsRunner);
pkg/scheduler/framework/runtime/waiting_pods_map.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import Predicate
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from podium.framework.verdicts import Outcome

if TYPE_CHECKING:
    from podium.framework.cache.row_filters import RowFilters
    from podium.framework.extenders import Extenders


class Handle(Protocol):
    """The cluster, and the profile's Filter plugins for hypothetical clusters.

    A PostFilter plugin needs no other part of `podium.framework.runner.Runner`, and gets no other.
    """

    @property
    def cluster(self) -> Cluster:
        """The present cluster; read-only."""

    def extenders_of(self, pod: PodRecord) -> Extenders | None:
        """Return the extenders if any of them is called for the pod, else None."""

    def filter_what_if(self, state: CycleState, pod: PodRecord, worlds: WhatIfView, own_uid: str) -> Outcome:
        """Filter what-if views, considering nominated pods except the nomination of ``own_uid``."""

    def fits_without(self, state: CycleState, pod: PodRecord, node_name: str, gone: Iterable[PodRecord]) -> bool:
        """Return whether the pod of this attempt would fit a node if some pods, on any nodes, were gone.

        Nominated pods count, but for the pod's own nomination. False for a node that does not exist.
        """

    def for_known_nodes(self, state: CycleState) -> CycleState:
        """Return the same attempt without the Filter plugins that depend on the node object alone.

        It is for nodes that pass these plugins.
        """

    def feasible_rows(self, pod: PodRecord) -> Int64s:
        """Return the rows that another pod like ``pod`` would pass the Filter plugins on, in the present state."""

    def is_row_local(self, state: CycleState) -> bool:
        """Return whether every Filter plugin that applies to the pod depends on one row alone."""

    def reaches(self, state: CycleState, pod: PodRecord) -> Reaches:
        """Return the pods of other nodes on which the Filter plugins that apply to the pod depend."""

    def filter_parts(self, state: CycleState, pod: PodRecord) -> FilterParts | None:
        """Return the attempt with the Filter plugins of single rows and with the others; None if that is no help."""

    def filter_view(self, state: CycleState, pod: PodRecord, view: View) -> Outcome:
        """Run the Filter plugins that apply, ignoring nominated pods."""

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        """Return the Filter plugins for one row at a time, for ``rows`` calls; None if arrays are needed or faster."""


ANYWHERE = ""
"""Used instead of a topology key: the whole cluster is one domain."""

Effect = Literal["AllGone", "SomeGone", "Stay"]


class Reach(Struct, frozen=True):
    """Pods on which a filter's answer for a node depends: those that match, in the node's domain of a topology key.

    ``effect`` says how. ``AllGone``: the node is rejected as long as one of them exists. ``SomeGone``: there may be too
    many of them, and fewer are better; in another domain, of this or another such key, it may be the other way round.
    ``Stay``: one of them must exist. ``reason`` says briefly why one has to go or to stay.
    """

    predicate: Predicate
    key: str
    effect: Effect
    reason: str


class Reaches(Struct, frozen=True):
    """The combined dependence of all filters beyond a node. ``is_known`` is False if one of them does not report it."""

    found: tuple[Reach, ...]
    is_known: bool = True

    @property
    def is_monotone(self) -> bool:
        """Return whether removing a pod never makes a node infeasible that the pod fitted."""
        effects = [reach.effect for reach in self.found if reach.key != ANYWHERE]
        return self.is_known and "Stay" not in effects and effects.count("SomeGone") <= 1


@runtime_checkable
class ReachingFilterPlugin(Protocol):
    """A filter of scope CLUSTER that reports the pods of other nodes on which its answer for a node depends.

    Called within an attempt, for a pod that its PreFilter has not skipped.
    """

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]: ...


@runtime_checkable
class DomainFilterPlugin(Protocol):
    """A filter of scope CLUSTER that states what its answers depend on besides the row itself.

    Of the row, only its topology domains matter, as long as no pods leave or join it. As long as the inputs are equal,
    so are the answers for a row that has not changed, also if pods leave it.
    """

    def inputs(self, state: CycleState, pod: PodRecord) -> list[object]: ...


@runtime_checkable
class CountingFilterPlugin(Protocol):
    """A filter of scope CLUSTER whose answer for a node depends on how many pods match some predicates.

    Pods that match none of them make no difference on any node.
    """

    def counted(self, state: CycleState, pod: PodRecord) -> Sequence[Predicate]: ...


class FilterParts(Struct, frozen=True):
    """An attempt as two: `local` has the filters of single rows, `wide` all others, which are counting filters.

    `counted` are the predicates that the latter count.
    """

    local: CycleState
    wide: CycleState
    counted: tuple[Predicate, ...]


_NONE: frozenset[str] = frozenset()


class CycleState(Struct, eq=False):
    """A store of values by key. Values with a ``clone`` method are copied with the state, others are shared.

    ``skip_filter`` and ``skip_score`` are the plugins to skip at Filter and Score, ``never_run`` those whose PreFilter
    was not reached because one before it rejected the pod.
    """

    _values: dict[str, Any] = {}
    skip_filter: frozenset[str] = _NONE
    never_run: frozenset[str] = _NONE
    skip_score: frozenset[str] = _NONE

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under ``key``, or ``default``."""
        return self._values.get(key, default)

    def has_any(self, keys: Iterable[str]) -> bool:
        """Return whether any of the keys has a value other than None."""
        values = self._values
        for key in keys if values else ():  # noqa: SIM110 - a generator would cost more than all that it asks
            if values.get(key) is not None:
                return True
        return False

    def skipping(self, names: Iterable[str]) -> CycleState:
        """Return the same state with further Filter plugins skipped."""
        return CycleState(self._values, self.skip_filter.union(names), self.never_run, self.skip_score)

    def clone(self) -> CycleState:
        """Return a copy in which cloneable values are independent."""
        values = {key: value.clone() if hasattr(value, "clone") else value for key, value in self._values.items()}
        return CycleState(values, self.skip_filter, self.never_run, self.skip_score)


_SLACK = 32


class WaitingPod(Struct):
    """A waiting pod. ``deadlines_ns`` maps each plugin that requested the wait to its timeout."""

    pod: PodRecord
    node_name: str
    deadlines_ns: dict[str, int] = {}
    rejected_by: str = ""
    message: str = ""
    on_settled: Callable[[str], None] | None = None

    @property
    def is_settled(self) -> bool:
        """Return whether no plugin delays the pod any longer, or it was rejected."""
        return bool(self.rejected_by) or not self.deadlines_ns

    def allow(self, plugin: str) -> None:
        """Record that ``plugin`` allows the pod; it continues when all plugins do."""
        self.deadlines_ns.pop(plugin, None)
        self._notify()

    def reject(self, plugin: str, message: str) -> None:
        """Reject the pod: it returns to the queue."""
        if not self.rejected_by:
            self.rejected_by, self.message = plugin, message
        self._notify()

    def _notify(self) -> None:
        if self.is_settled and self.on_settled is not None:
            self.on_settled(self.pod.uid)


class WaitingPods:
    """All waiting pods.

    Plugins change them at any time; the scheduler checks after every step which ones are settled.
    """

    def __init__(self) -> None:
        # In the order in which they began to wait, each with its number in that order.
        self._pods: dict[str, tuple[int, WaitingPod]] = {}
        self.uids = self._pods.keys()
        """The uids of all waiting pods; a live view."""
        self._added = 0
        self._settled: set[str] = set()
        # The deadlines, each with its pod's number; obsolete ones stay until they expire.
        self._deadlines: list[tuple[int, int, str]] = []
        self._most_kept = _SLACK

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        found = self._pods.get(uid)
        return None if found is None else found[1]

    def all(self) -> list[WaitingPod]:
        """Return all waiting pods, in the order in which they began to wait."""
        return [waiting for _, waiting in self._pods.values()]

    def add(self, waiting: WaitingPod) -> None:
        uid = waiting.pod.uid
        self.remove(uid)
        self._added += 1
        self._pods[uid] = (self._added, waiting)
        waiting.on_settled = self._settled.add
        for deadline_ns in waiting.deadlines_ns.values():
            heappush(self._deadlines, (deadline_ns, self._added, uid))
        if len(self._deadlines) > self._most_kept:
            # The list has doubled: drop the deadlines that no longer count.
            self._deadlines = [deadline for deadline in self._deadlines if self._counts(*deadline)]
            heapify(self._deadlines)
            self._most_kept = 2 * len(self._deadlines) + _SLACK
        if waiting.is_settled:
            self._settled.add(uid)

    def remove(self, uid: str) -> None:
        found = self._pods.pop(uid, None)
        if found is not None:
            found[1].on_settled = None
            self._settled.discard(uid)

    def settled(self, now: int) -> list[WaitingPod]:
        """Return the pods that are settled: allowed by all plugins, rejected, or timed out (rejected now)."""
        while (first := self._first()) is not None and first[0] <= now:
            waiting = self._pods[heappop(self._deadlines)[2]][1]
            late = min(name for name, deadline_ns in waiting.deadlines_ns.items() if deadline_ns <= now)
            waiting.reject(late, f"timed out waiting for {late}")
        return [self._pods[uid][1] for uid in sorted(self._settled, key=lambda uid: self._pods[uid][0])]

    def next_deadline(self) -> int | None:
        """Return the first deadline; 0 if a pod is settled already, None if none waits."""
        if self._settled:
            return 0
        first = self._first()
        return None if first is None else first[0]

    def _first(self) -> tuple[int, int, str] | None:
        """Return the first deadline that still counts."""
        while self._deadlines and not self._counts(*self._deadlines[0]):
            heappop(self._deadlines)
        return self._deadlines[0] if self._deadlines else None

    def _counts(self, deadline_ns: int, number: int, uid: str) -> bool:
        found = self._pods.get(uid)
        return found is not None and found[0] == number and deadline_ns in found[1].deadlines_ns.values()
