"""Preferred nodes: preferred node affinity, and nodes without PreferNoSchedule taints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.node_selection import matching_term
from podium.cluster.pod_class import PodClass
from podium.cluster.taints import kept_off, tolerated
from podium.cluster.view import View
from podium.framework.rescheduling.picture import Picture
from podium.plugins.node_affinity import preferred_nodes, required_nodes
from podium.plugins.rescheduling.preferences.wish import MICRO


@dataclass(frozen=True, slots=True)
class NodeWish:
    """What a pod of the classes misses of its preferred nodes by row: ``misses`` is `[rows]`.

    Only what some node gives that takes in pods, and that may take these, counts as missing.
    """

    misses: Int64s
    untolerated: Bools


class NodeWishes:
    """The preferred nodes of all classes."""

    def __init__(self, picture: Picture, classes: Iterable[PodClass], affinity_weight: float, taint_weight: float):
        self._picture = picture
        self._view = View(picture.cluster)
        self._affinity, self._taints = affinity_weight, taint_weight
        self._has_soft_taints = bool(taint_weight) and any(
            taint.effect == "PreferNoSchedule" for taints in picture.cluster.nodes.taint_groups for taint in taints
        )
        self.missing = 0
        self.of_class: dict[int, NodeWish] = {}
        known: dict[Hashable, NodeWish | None] = {}
        for pod_class in classes:
            preferred = preferred_nodes(pod_class) if affinity_weight else ()
            if preferred or self._has_soft_taints:
                key = (preferred, pod_class.spec.tolerations, required_nodes(pod_class))
                if key not in known:
                    known[key] = self._wish(pod_class)
                wish = known[key]
                if wish is not None:
                    self.of_class[pod_class.id] = wish

    @property
    def concerns(self) -> Iterable[int]:
        return self.of_class

    def count(self, class_id: int, row: int, number: int) -> None:
        """So many more pods of a class are on a row."""
        self.missing += number * int(self.of_class[class_id].misses[row])

    def leaving(self, class_id: int) -> Int64s:
        """`[rows]`: what a pod of the class misses there."""
        return self.of_class[class_id].misses

    def arriving(self, class_id: int) -> Int64s:
        """`[rows]`: what a pod of the class would miss there."""
        return self.of_class[class_id].misses

    def complaint(self, class_id: int, row: int) -> str:
        """What is wrong with the node."""
        wish = self.of_class[class_id]
        if not wish.misses[row]:
            return ""
        if wish.untolerated[row]:
            return "its taints say to prefer others"
        return "it has fewer of the labels that the pod prefers than others have"

    def _wish(self, pod_class: PodClass) -> NodeWish | None:
        """What the pods of a class miss; None where no node is better than another."""
        view, targets = self._view, self._picture.targets
        feasible = targets[: len(view)] & required_nodes(pod_class).rows(view)
        feasible &= ~kept_off(pod_class.spec.tolerations, view)
        if not feasible.any():
            return None
        untolerated = self._untolerated(pod_class)
        misses = (untolerated * round(self._taints * MICRO)).astype(np.int64)
        preferred = preferred_nodes(pod_class) if self._affinity else ()
        total = sum(weight for weight, _ in preferred)
        for weight, term in preferred:
            misses += ~matching_term(view, term) * round(self._affinity * MICRO * weight / total)
        misses = np.maximum(misses - misses[feasible].min(), 0)
        return NodeWish(misses, untolerated) if misses.any() else None

    def _untolerated(self, pod_class: PodClass) -> Bools:
        """`[rows]`: the nodes with a PreferNoSchedule taint that the pods do not tolerate."""
        view = self._view
        if not self._has_soft_taints:
            return np.zeros(len(view), dtype=np.bool_)
        tolerations = [item for item in pod_class.spec.tolerations if item.effect in ("", "PreferNoSchedule")]
        groups = view.cluster.nodes.taint_groups
        table = np.fromiter(
            (
                any(taint.effect == "PreferNoSchedule" and not tolerated(tolerations, taint) for taint in taints)
                for taints in groups
            ),
            dtype=np.bool_,
            count=len(groups),
        )
        found: Bools = table[view.take(view.cluster.nodes.taint_group)]
        return found
