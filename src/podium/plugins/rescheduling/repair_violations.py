"""RepairViolations: move pods whose requirements are violated to nodes that meet them.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod onto a node that better satisfies its
scheduling criteria").
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.matchers import SelectedByTerms
from podium.cluster.pod_classes import AffinityTerm, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, kept_off
from podium.cluster.what_if_view import WhatIfView
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture
from podium.framework.runner import Runner
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.node_affinity import NodeAffinity, required_nodes
from podium.plugins.node_filters import TaintToleration
from podium.plugins.pod_topology_spread import ConstraintSet, PodTopologySpread
from podium.plugins.rescheduling.demand_kinds import (
    NodeDemand,
    NodeDemands,
    demand_of,
    domain_codes,
    matching,
    node_demands,
    pod_demands,
    spread_demands,
)
from podium.plugins.rescheduling.demands import MICRO, Demand, DemandPolicy, Demands


class RepairViolationsArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: there are none."""


class RepairViolations(DemandPolicy):
    """Proposes pods that their own scheduler would not place on the nodes where they run.

    It considers node affinity and selectors, NoSchedule and NoExecute taints, required inter-pod affinity and
    anti-affinity of any pod, and DoNotSchedule spread, as far as the profile of the pod's scheduler filters by them,
    and all of them together: a pod that meets them stays, however uneven the rest is. The objective is how many pods
    would have to move until there is no violation; violations that no move can repair do not count if that is known.
    """

    name = "RepairViolations"

    def __init__(self, context: PluginContext) -> None:
        read_arguments(context.args, RepairViolationsArgs, self.name)
        super().__init__(Demands(required), _reason)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    reason = refusal(picture, pod)
    if not reason:
        return ""
    node = picture.node_name(pod.row)
    return f"{pod.key} would be rejected by {node} now: {'; '.join(complaints) or reason}"


_Filter = TypeVar("_Filter", NodeAffinity, TaintToleration, InterPodAffinity, PodTopologySpread)
_Filters = NodeAffinity | TaintToleration | InterPodAffinity | PodTopologySpread


def required(picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
    """Yield the demands of what the pods of some classes require, each by the profile of its scheduler."""
    yield _required_nodes(picture, classes)
    by_affinity = {
        class_id: pod_class
        for class_id, pod_class in classes.items()
        if (pod_class.required_affinity or pod_class.required_anti_affinity)
        and _filter_of(_runner_of(picture, pod_class), InterPodAffinity) is not None
    }
    carriers: dict[tuple[AffinityTerm, int, bool], list[int]] = {}
    for class_id, pod_class in by_affinity.items():
        for term in pod_class.required_anti_affinity:
            carriers.setdefault((term, MICRO, True), []).append(class_id)
    yield from pod_demands(picture, classes, carriers)
    yield from _pods_near(picture, classes, by_affinity)
    hard = ((pod_class, _hard_constraints(picture, pod_class)) for pod_class in classes.values())
    yield from spread_demands(picture, classes, [(pod_class, found, MICRO) for pod_class, found in hard if found])


def refusal(picture: Picture, pod: PodRecord) -> str:
    """Return why a placed pod's own filters would reject its node if it were not there; "" if they would not.

    Only filters on node labels, taints and other pods are evaluated. All of them are, so that a pod that meets them
    together stays.
    """
    worlds = WhatIfView(picture.cluster, np.array([pod.row], dtype=np.int64))
    worlds.remove(np.zeros(1, dtype=np.int64), np.array([pod.slot], dtype=np.int64))
    state = CycleState()
    for plugin in picture.runner_of(pod).profile.filter:
        if isinstance(plugin, _Filters):
            verdicts = plugin.filter_rows(state, pod, worlds)
            code = int(verdicts.codes[0])
            if code:
                return verdicts.status(code).message
    return ""


def _required_nodes(picture: Picture, classes: Mapping[int, PodClass]) -> NodeDemands:
    """Return what classes require of nodes: labels, tolerated taints, and the keys of their spread constraints.

    Nodes that accept no pods are left out; other components handle them.
    """
    view = View(picture.cluster)

    def keys_of(pod_class: PodClass) -> tuple[str, ...]:
        return tuple(constraint.key for constraint in _hard_constraints(picture, pod_class).constraints)

    def key_of(pod_class: PodClass) -> Hashable:
        spec = pod_class.spec
        return spec.scheduler_name, spec.tolerations, required_nodes(pod_class), keys_of(pod_class)

    def demand(pod_class: PodClass) -> NodeDemand | None:
        runner = _runner_of(picture, pod_class)
        complaints: list[tuple[Bools, str]] = []
        by_affinity = _filter_of(runner, NodeAffinity)
        if by_affinity is not None:
            refused = by_affinity.refused(pod_class, view)
            complaints.append((refused, "it does not match the pod's node affinity or selector"))
        if _filter_of(runner, TaintToleration) is not None:
            refused = kept_off(pod_class.spec.tolerations, view)
            complaints.append((refused, "it has a taint that the pod does not tolerate"))
        for key in keys_of(pod_class):
            complaints.append((view.codes(key) == 0, f"it lacks the label {key}, over which the pod spreads"))
        targets = picture.targets[: len(view)]
        wrong = np.zeros(len(view), dtype=np.bool_)
        for where, _ in complaints:
            wrong |= where
        return demand_of(MICRO * (wrong & targets).astype(np.int64), targets & ~wrong, complaints)

    return node_demands(classes, key_of, demand)


def _pods_near(
    picture: Picture, classes: Mapping[int, PodClass], carrying: Mapping[int, PodClass]
) -> Iterator[NearDemand]:
    carriers: dict[tuple[AffinityTerm, ...], list[int]] = {}
    for class_id, pod_class in carrying.items():
        if pod_class.required_affinity:
            carriers.setdefault(pod_class.required_affinity, []).append(class_id)
    for terms, carriers_of_terms in carriers.items():
        keys = [term.topology_key for term in terms]
        codes = [domain_codes(picture, key) for key in keys]
        yield NearDemand(keys, codes, carriers_of_terms, matching(SelectedByTerms(terms), picture, classes))


def _hard_constraints(picture: Picture, pod_class: PodClass) -> ConstraintSet:
    plugin = _filter_of(_runner_of(picture, pod_class), PodTopologySpread)
    return _NO_CONSTRAINTS if plugin is None else plugin.constraints(pod_class, "DoNotSchedule")


_NO_CONSTRAINTS = ConstraintSet((), need_all_keys=True)


def _runner_of(picture: Picture, pod_class: PodClass) -> Runner:
    return picture.runners.get(pod_class.spec.scheduler_name, picture.kubelet)


def _filter_of(runner: Runner, type_: type[_Filter]) -> _Filter | None:
    """Return the plugin of a type among a profile's filters; None if it does not filter."""
    return next((plugin for plugin in runner.profile.filter if isinstance(plugin, type_)), None)


class NearDemand(Demand):
    """The required terms of some classes (``carriers``), and the classes that all of them select (``selected``).

    ``keys`` are the terms' topology keys, and ``codes`` (`[rows]`) distinguish the domains of each. A carrier lacks its
    affinity if some domain of its node has no other pod that all terms select. If no such pod exists at all, the first
    of a group that selects itself may be alone (interpodaffinity/filtering.go, satisfyPodAffinity).
    """

    name = "required affinity to pods"

    def __init__(
        self, keys: Sequence[str], codes: Sequence[Int32s], carriers: Collection[int], selected: Collection[int]
    ) -> None:
        super().__init__({*carriers, *selected})
        self._keys, self._codes = keys, codes
        self._carriers, self._selected = frozenset(carriers), frozenset(selected)
        size = len(codes[0])
        self._labelled: Bools = np.logical_and.reduce([each != 0 for each in codes])
        self._domains: list[Int64s] = [np.zeros(int(each.max(initial=0)) + 1, dtype=np.int64) for each in codes]
        # The carriers by row that are selected themselves, and those that are not.
        self._alike: Int64s = np.zeros(size, dtype=np.int64)
        self._unlike: Int64s = np.zeros(size, dtype=np.int64)
        self._pods = 0
        self._missing: int | None = None

    @property
    def missing(self) -> int:
        if self._missing is None:
            alone = int((self._alike * self._is_without(1)).sum())
            self._missing = MICRO * (alone + int((self._unlike * self._is_without(0)).sum()))
        return self._missing

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        for class_id, found in rows.items():
            for row in found.tolist():
                self.count(class_id, row, 1)

    def count(self, class_id: int, row: int, number: int) -> None:
        is_selected = class_id in self._selected
        if class_id in self._carriers:
            (self._alike if is_selected else self._unlike)[row] += number
        if is_selected:
            # Upstream counts selected pods by domain, and counts none on nodes without the keys.
            self._pods += number * any(codes[row] for codes in self._codes)
            for domain, codes in zip(self._domains, self._codes, strict=True):
                domain[codes[row]] += number
        self._missing = None

    def leaving(self, class_id: int) -> Int64s:
        """Return `[rows]` whether a pod of the class lacks its affinity there, whatever other pods lose."""
        if class_id not in self._carriers:
            return np.zeros(len(self._labelled), dtype=np.int64)
        return MICRO * self._is_without(int(class_id in self._selected)).astype(np.int64)

    def arriving(self, class_id: int) -> Int64s:
        if class_id not in self._carriers:
            return np.zeros(len(self._labelled), dtype=np.int64)
        return MICRO * self._is_without(0, may_be_first=class_id in self._selected).astype(np.int64)

    def complaint(self, class_id: int, row: int) -> str:
        if class_id not in self._carriers or not self.leaving(class_id)[row]:
            return ""
        return f"it lacks the pods that it must be near by {' and '.join(dict.fromkeys(self._keys))}"

    def _is_without(self, own: int, *, may_be_first: bool = False) -> Bools:
        """Return `[rows]` where there is no selected pod besides ``own`` ones."""
        company = self._labelled.copy()
        if self._pods > own or not (own or may_be_first):
            for domain, codes in zip(self._domains, self._codes, strict=True):
                company &= domain[codes] > own
        return ~company
