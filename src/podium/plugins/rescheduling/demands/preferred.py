"""What pods prefer: nodes, company, evenness."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from podium.api.node import Taint
from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Bools
from podium.cluster.node_selection import matching_term
from podium.cluster.pod_class import PodClass
from podium.cluster.taints import kept_off, tolerated
from podium.cluster.view import View
from podium.decide.rescheduling.landing import SOFT_TAINT
from podium.framework.rescheduling.picture import Picture
from podium.plugins.node_affinity import preferred_nodes, required_nodes
from podium.plugins.rescheduling.demands.compiling import DomainsOfKeys, selected_by, spread_demands
from podium.plugins.rescheduling.demands.demand import MICRO, Demand
from podium.plugins.rescheduling.demands.node_demands import NodeDemand, NodeDemands, demand_of
from podium.plugins.rescheduling.demands.pod_demand import PodDemand
from podium.plugins.spreading.constraints import own_constraints


@dataclass(frozen=True, slots=True)
class Weights:
    """How much it counts that a pod misses all of its preferences of a kind; 0 is not at all."""

    node_affinity: float
    pod_affinity: float
    topology_spread: float
    taints: float


class Preferred:
    """Makes the demands of what pods themselves prefer, not of what their scheduler adds for pods without any."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def __call__(self, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
        weights = self._weights
        yield NodeDemands(_PreferredNodes(picture, weights).of(classes))
        if weights.pod_affinity:
            yield from _pod_demands(picture, classes, weights.pod_affinity)
        if weights.topology_spread:
            soft = (
                (pod_class, own_constraints(pod_class, "ScheduleAnyway"))
                for pod_class in classes.values()
                if pod_class.spec.topology_spread_constraints
            )
            each = round(MICRO * weights.topology_spread)
            wanted = [(pod_class, found, each // len(found)) for pod_class, found in soft if found]
            yield from spread_demands(picture, classes, wanted)


class _PreferredNodes:
    """What classes miss of preferred node affinity, and by PreferNoSchedule taints.

    Only what some node gives that takes in pods, and may take these, counts as missing.
    """

    def __init__(self, picture: Picture, weights: Weights) -> None:
        self._picture, self._weights = picture, weights
        self._view = View(picture.cluster)
        self._has_soft_taints = weights.taints > 0 and any(
            _is_soft(taint) for taints in picture.cluster.nodes.taint_groups for taint in taints
        )

    def of(self, classes: Mapping[int, PodClass]) -> dict[int, NodeDemand]:
        """By class id; without those who miss nothing anywhere."""
        known: dict[Hashable, NodeDemand | None] = {}
        found: dict[int, NodeDemand] = {}
        for class_id, pod_class in classes.items():
            preferred = preferred_nodes(pod_class) if self._weights.node_affinity else ()
            if not preferred and not self._has_soft_taints:
                continue
            key = (preferred, pod_class.spec.tolerations, required_nodes(pod_class))
            if key not in known:
                known[key] = self._demand(pod_class)
            demand = known[key]
            if demand is not None:
                found[class_id] = demand
        return found

    def _demand(self, pod_class: PodClass) -> NodeDemand | None:
        view, weights = self._view, self._weights
        possible = self._picture.targets[: len(view)] & required_nodes(pod_class).rows(view)
        possible &= ~kept_off(pod_class.spec.tolerations, view)
        untolerated = self._untolerated(pod_class)
        misses = (untolerated * round(weights.taints * MICRO)).astype(np.int64)
        preferred = preferred_nodes(pod_class) if weights.node_affinity else ()
        total = sum(weight for weight, _ in preferred)
        for weight, term in preferred:
            misses += ~matching_term(view, term) * round(weights.node_affinity * MICRO * weight / total)
        anywhere = np.ones(len(view), dtype=np.bool_)
        complaints = (
            (untolerated, "its taints say to prefer others"),
            (anywhere, "it has fewer of the labels that the pod prefers than others have"),
        )
        return demand_of(misses, possible, complaints)

    def _untolerated(self, pod_class: PodClass) -> Bools:
        """`[rows]`: the nodes with a PreferNoSchedule taint that the pods do not tolerate."""
        view = self._view
        if not self._has_soft_taints:
            return np.zeros(len(view), dtype=np.bool_)
        tolerations = [item for item in pod_class.spec.tolerations if item.effect in ("", "PreferNoSchedule")]
        groups = view.cluster.nodes.taint_groups
        table = np.fromiter(
            (any(_is_soft(taint) and not tolerated(tolerations, taint) for taint in taints) for taints in groups),
            dtype=np.bool_,
            count=len(groups),
        )
        found: Bools = table[view.take(view.cluster.nodes.taint_group)]
        return found


def _is_soft(taint: Taint) -> bool:
    """Whether it is a taint to be heeded: not the rescheduler's own, which is there for the time of a move."""
    return taint.effect == "PreferNoSchedule" and taint.key != SOFT_TAINT.key


def _pod_demands(picture: Picture, classes: Mapping[int, PodClass], weight: float) -> Iterator[Demand]:
    """A demand for each preferred term, and each share that it has in all that its carriers prefer."""
    carriers: dict[tuple[AffinityTerm, int, bool], list[int]] = {}
    for class_id, pod_class in classes.items():
        total = sum(abs(weighted.weight) for weighted in pod_class.preferred)
        for weighted in pod_class.preferred:
            if weighted.weight:
                unit = round(MICRO * weight * abs(weighted.weight) / total)
                carriers.setdefault((weighted.term, unit, weighted.weight < 0), []).append(class_id)
    domains = DomainsOfKeys(picture)
    for (term, unit, is_apart), carrying in carriers.items():
        codes, number = domains.of(term.topology_key)
        selected = selected_by((term,), picture, classes)
        yield PodDemand(
            term, unit, is_apart=is_apart, carriers=carrying, selected=selected, codes=codes, domains=number
        )
