"""The demands of owners, for their pods to lie apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from podium.cluster.arrays import Bools
from podium.cluster.pod_class import Owner, PodClass
from podium.cluster.taints import kept_off
from podium.cluster.view import View
from podium.framework.rescheduling.picture import Picture
from podium.plugins.node_affinity import required_nodes
from podium.plugins.rescheduling.demands.demand import Demand
from podium.plugins.rescheduling.demands.owner_demand import OwnerDemand

ONE_A_NODE = ("DaemonSet", "Node")
"""Kinds of owners whose pods belong to their nodes: there is nothing to be spread."""


class Owned:
    """Makes the demands of all owners but those of some kinds."""

    def __init__(self, excluded_kinds: tuple[str, ...]) -> None:
        self._excluded = frozenset((*excluded_kinds, *ONE_A_NODE))

    def __call__(self, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
        owners: dict[tuple[str, Owner], list[PodClass]] = {}
        for pod_class in classes.values():
            if pod_class.owner is not None and pod_class.owner[1] not in self._excluded:
                owners.setdefault((pod_class.namespace, pod_class.owner), []).append(pod_class)
        feasible = _Feasible(picture)
        rows = picture.targets[: picture.cluster.nodes.count]
        for (_, (_, kind, name)), owned in owners.items():
            rows_of_class = {pod_class.id: feasible.rows_of(pod_class) for pod_class in owned}
            yield OwnerDemand(f"{kind} {name}", rows_of_class, rows)


class _Feasible:
    """Which nodes may take pods of a class, by what it requires of nodes alone; equal answers are one array."""

    def __init__(self, picture: Picture) -> None:
        self._view = View(picture.cluster)
        self._targets = picture.targets[: len(self._view)]
        self._known: dict[Hashable, Bools] = {}

    def rows_of(self, pod_class: PodClass) -> Bools:
        """`[rows]`: the nodes that may take its pods."""
        key = (required_nodes(pod_class), pod_class.spec.tolerations)
        if key not in self._known:
            off = kept_off(pod_class.spec.tolerations, self._view)
            self._known[key] = self._targets & required_nodes(pod_class).rows(self._view) & ~off
        return self._known[key]
