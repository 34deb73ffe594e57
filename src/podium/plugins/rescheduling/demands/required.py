"""What pods require, as the filters of their own schedulers have it, of the places where they already are."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Bools
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.rescheduling.picture import Picture
from podium.framework.runner import Runner
from podium.plugins.node_affinity import NodeAffinity, required_nodes
from podium.plugins.pod_affinity.inter_pod_affinity import InterPodAffinity
from podium.plugins.rescheduling.demands.compiling import DomainsOfKeys, selected_by, spread_demands
from podium.plugins.rescheduling.demands.demand import MICRO, Demand
from podium.plugins.rescheduling.demands.near_demand import NearDemand
from podium.plugins.rescheduling.demands.node_demands import NodeDemand, NodeDemands, demand_of
from podium.plugins.rescheduling.demands.pod_demand import PodDemand
from podium.plugins.spreading.constraints import ConstraintSet
from podium.plugins.spreading.pod_topology_spread import PodTopologySpread
from podium.plugins.taint_toleration import TaintToleration

_Filter = TypeVar("_Filter", NodeAffinity, TaintToleration, InterPodAffinity, PodTopologySpread)
_Filters = NodeAffinity | TaintToleration | InterPodAffinity | PodTopologySpread


def required(picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
    """The demands of what the pods of some classes require, each by the profile of its scheduler."""
    yield NodeDemands(_RequiredNodes(picture).of(classes))
    by_affinity = {
        class_id: pod_class
        for class_id, pod_class in classes.items()
        if (pod_class.required_affinity or pod_class.required_anti_affinity)
        and _filter_of(_runner_of(picture, pod_class), InterPodAffinity) is not None
    }
    yield from _pods_apart(picture, classes, by_affinity)
    yield from _pods_near(picture, classes, by_affinity)
    hard = ((pod_class, _hard_constraints(picture, pod_class)) for pod_class in classes.values())
    yield from spread_demands(picture, classes, [(pod_class, found, MICRO) for pod_class, found in hard if found])


def refusal(picture: Picture, pod: PodRecord) -> str:
    """Why the filters of its own scheduler would keep a placed pod off its node, were it not on it; "" if they do not.

    Only those filters are asked that judge what pods require of nodes' labels and taints, and of other pods. All of
    them have their say, so that a pod that meets them together is let be.
    """
    worlds = Worlds(picture.cluster, np.array([pod.row], dtype=np.int64))
    worlds.remove(np.zeros(1, dtype=np.int64), np.array([pod.slot], dtype=np.int64))
    state = CycleState()
    for plugin in picture.runner_of(pod).profile.filter:
        if isinstance(plugin, _Filters):
            verdicts = plugin.filter_rows(state, pod, worlds)
            code = int(verdicts.codes[0])
            if code:
                return verdicts.status(code).message
    return ""


class _RequiredNodes:
    """What classes require of nodes: labels, no taints that they do not tolerate, and the keys that they spread over.

    Nodes that take in nobody are somebody else's business.
    """

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._view = View(picture.cluster)

    def of(self, classes: Mapping[int, PodClass]) -> dict[int, NodeDemand]:
        """By class id; without those that are everywhere right, or everywhere wrong."""
        known: dict[Hashable, NodeDemand | None] = {}
        found: dict[int, NodeDemand] = {}
        for class_id, pod_class in classes.items():
            spec = pod_class.spec
            keys = tuple(constraint.key for constraint in _hard_constraints(self._picture, pod_class).constraints)
            place = (spec.scheduler_name, spec.tolerations, required_nodes(pod_class), keys)
            if place not in known:
                known[place] = self._demand(pod_class, keys)
            demand = known[place]
            if demand is not None:
                found[class_id] = demand
        return found

    def _demand(self, pod_class: PodClass, keys: tuple[str, ...]) -> NodeDemand | None:
        runner = _runner_of(self._picture, pod_class)
        complaints: list[tuple[Bools, str]] = []
        by_affinity, by_taints = _filter_of(runner, NodeAffinity), _filter_of(runner, TaintToleration)
        if by_affinity is not None:
            refused = by_affinity.refused(pod_class, self._view)
            complaints.append((refused, "it does not match the pod's node affinity or selector"))
        if by_taints is not None:
            refused = by_taints.refused(pod_class, self._view)
            complaints.append((refused, "it has a taint that the pod does not tolerate"))
        for key in keys:
            complaints.append((self._view.codes(key) == 0, f"it lacks the label {key}, over which the pod spreads"))
        targets = self._picture.targets[: len(self._view)]
        wrong = np.zeros(len(self._view), dtype=np.bool_)
        for where, _ in complaints:
            wrong |= where
        return demand_of(MICRO * (wrong & targets).astype(np.int64), targets & ~wrong, complaints)


def _pods_apart(
    picture: Picture, classes: Mapping[int, PodClass], carrying: Mapping[int, PodClass]
) -> Iterator[PodDemand]:
    carriers: dict[AffinityTerm, list[int]] = {}
    for class_id, pod_class in carrying.items():
        for term in pod_class.required_anti_affinity:
            carriers.setdefault(term, []).append(class_id)
    domains = DomainsOfKeys(picture)
    for term, carriers_of_term in carriers.items():
        codes, number = domains.of(term.topology_key)
        selected = selected_by((term,), picture, classes)
        yield PodDemand(
            term, MICRO, is_apart=True, carriers=carriers_of_term, selected=selected, codes=codes, domains=number
        )


def _pods_near(
    picture: Picture, classes: Mapping[int, PodClass], carrying: Mapping[int, PodClass]
) -> Iterator[NearDemand]:
    carriers: dict[tuple[AffinityTerm, ...], list[int]] = {}
    for class_id, pod_class in carrying.items():
        if pod_class.required_affinity:
            carriers.setdefault(pod_class.required_affinity, []).append(class_id)
    domains = DomainsOfKeys(picture)
    for terms, carriers_of_terms in carriers.items():
        keys = [term.topology_key for term in terms]
        codes = [domains.of(key)[0] for key in keys]
        yield NearDemand(keys, codes, carriers_of_terms, selected_by(terms, picture, classes))


def _hard_constraints(picture: Picture, pod_class: PodClass) -> ConstraintSet:
    plugin = _filter_of(_runner_of(picture, pod_class), PodTopologySpread)
    return _NO_CONSTRAINTS if plugin is None else plugin.constraints(pod_class, "DoNotSchedule")


_NO_CONSTRAINTS = ConstraintSet((), need_all_keys=True)


def _runner_of(picture: Picture, pod_class: PodClass) -> Runner:
    return picture.runners.get(pod_class.spec.scheduler_name, picture.kubelet)


def _filter_of(runner: Runner, type_: type[_Filter]) -> _Filter | None:
    """The plugin of a type among a profile's filters; None where it does not filter."""
    return next((plugin for plugin in runner.profile.filter if isinstance(plugin, type_)), None)
