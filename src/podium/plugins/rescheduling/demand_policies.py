"""RepairViolations, SatisfyPreferences and SpreadDuplicates: the policies by what pods and their owners demand.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod onto a node that better satisfies its
scheduling criteria") and Rescheduler ("moving a pod onto a node that meets more of the pod's affinity/anti-affinity
preferences than wherever it is currently running").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from podium.api.node import Taint
from podium.api.selectors import NodeTerm
from podium.cluster.arrays import Bools, Int32s, Int64s, add_count
from podium.cluster.matchers import SelectedByTerms
from podium.cluster.pod_classes import AffinityTerm, Owner, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, kept_off, matching_term, tolerated
from podium.cluster.what_if_view import WhatIfView
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import Departures, Reliefs
from podium.framework.rescheduling.policy import Picture
from podium.framework.runner import Runner
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.node_filters import NodeAffinity, TaintToleration, preferred_nodes, required_nodes
from podium.plugins.pod_topology_spread import ConstraintSet, PodTopologySpread, own_constraints
from podium.plugins.rescheduling import demand_kinds as kinds
from podium.plugins.rescheduling.demands import MICRO, Demand, DemandPolicy, Demands
from podium.plugins.rescheduling.node_use import accepting


class RepairViolations(DemandPolicy):
    """Proposes pods that their own scheduler would not place on the nodes where they run.

    It considers node affinity and selectors, NoSchedule and NoExecute taints, required inter-pod affinity and
    anti-affinity of any pod, and DoNotSchedule spread, as far as the profile of the pod's scheduler filters by them,
    and all of them together: a pod that meets them stays, however uneven the rest is. The objective is how many pods
    would have to move until there is no violation; violations that no move can repair do not count if that is known.
    """

    name = "RepairViolations"

    def __init__(self, context: PluginContext) -> None:
        read_arguments(context.args, Arguments, self.name)
        super().__init__(Demands(required), _violation)


def _violation(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
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
        and _filter_of(picture.runner_of(pod_class.spec), InterPodAffinity) is not None
    }
    carriers: dict[tuple[AffinityTerm, int, bool], list[int]] = {}
    for class_id, pod_class in by_affinity.items():
        for term in pod_class.required_anti_affinity:
            carriers.setdefault((term, MICRO, True), []).append(class_id)
    yield from kinds.pod_demands(picture, classes, carriers)
    carriers_near: dict[tuple[AffinityTerm, ...], list[int]] = {}
    for class_id, pod_class in by_affinity.items():
        if pod_class.required_affinity:
            carriers_near.setdefault(pod_class.required_affinity, []).append(class_id)
    for terms, carrying in carriers_near.items():
        keys = [term.topology_key for term in terms]
        codes = [kinds.domain_codes(picture, key) for key in keys]
        yield NearDemand(keys, codes, carrying, kinds.matching(SelectedByTerms(terms), picture, classes))
    hard = ((pod_class, _hard_constraints(picture, pod_class)) for pod_class in classes.values())
    yield from kinds.spread_demands(picture, classes, [(pod_class, found, MICRO) for pod_class, found in hard if found])


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


def _required_nodes(picture: Picture, classes: Mapping[int, PodClass]) -> kinds.NodeDemands:
    """Return what classes require of nodes: labels, tolerated taints, and the keys of their spread constraints.

    Nodes that accept no pods are left out; other components handle them.
    """
    view = View(picture.cluster)

    def keys_of(pod_class: PodClass) -> tuple[str, ...]:
        return tuple(constraint.key for constraint in _hard_constraints(picture, pod_class).constraints)

    def key_of(pod_class: PodClass) -> Hashable:
        spec = pod_class.spec
        return spec.scheduler_name, spec.tolerations, required_nodes(pod_class), keys_of(pod_class)

    def demand(pod_class: PodClass) -> kinds.NodeDemand | None:
        runner = picture.runner_of(pod_class.spec)
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
        return kinds.demand_of(MICRO * (wrong & targets).astype(np.int64), targets & ~wrong, complaints)

    return kinds.node_demands(classes, key_of, demand)


def _hard_constraints(picture: Picture, pod_class: PodClass) -> ConstraintSet:
    plugin = _filter_of(picture.runner_of(pod_class.spec), PodTopologySpread)
    return _NO_CONSTRAINTS if plugin is None else plugin.constraints(pod_class, "DoNotSchedule")


_NO_CONSTRAINTS = ConstraintSet((), need_all_keys=True)


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

    @property
    def missing(self) -> int:
        alone = int((self._alike * self._is_without(1)).sum())
        return MICRO * (alone + int((self._unlike * self._is_without(0)).sum()))

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

    def leaving(self, class_id: int) -> Int64s:
        """Return `[rows]` whether a pod of the class lacks its affinity there, whatever other pods lose."""
        return MICRO * (class_id in self._carriers) * self._is_without(int(class_id in self._selected))

    def arriving(self, class_id: int) -> Int64s:
        return MICRO * (class_id in self._carriers) * self._is_without(0, may_be_first=class_id in self._selected)

    def complaint(self, class_id: int, row: int) -> str:
        if class_id not in self._carriers or not self.leaving(class_id)[row]:
            return ""
        return f"it lacks the pods that it must be near by {' and '.join(dict.fromkeys(self._keys))}"

    def _is_without(self, own: int, *, may_be_first: bool = False) -> Int64s:
        """Return `[rows]` whether there is no selected pod besides ``own`` ones."""
        company = self._labelled.copy()
        if self._pods > own or not (own or may_be_first):
            for domain, codes in zip(self._domains, self._codes, strict=True):
                company &= domain[codes] > own
        return (~company).astype(np.int64)


class SatisfyPreferencesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: the weight of each kind of preference; 0 leaves it out.

    ``nodeAffinity``: preferred node affinity. ``podAffinity``: preferred inter-pod affinity and anti-affinity.
    ``topologySpread``: ScheduleAnyway constraints. ``taints``: PreferNoSchedule taints that a pod does not tolerate.
    """

    node_affinity: float = 1.0
    pod_affinity: float = 1.0
    topology_spread: float = 1.0
    taints: float = 1.0

    def __post_init__(self) -> None:
        for field in msgspec.structs.fields(self):
            if not 0 <= getattr(self, field.name) <= 100:
                raise ValueError(f"{field.encode_name} must be from 0 to 100")


class SatisfyPreferences(DemandPolicy):
    """Proposes pods that lack more of their preferences, or make others lack more, than they would elsewhere.

    The objective adds up what the pods lack: for each kind of preference a share from 0 to 1, by the weights of the
    terms. A pod without preferences lacks nothing, and neither does a pod whose preferences no node meets. A move gains
    or loses at most 1 of one kind for the pod itself, and as much for each pod that prefers to be near it or apart from
    it.
    """

    name = "SatisfyPreferences"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, SatisfyPreferencesArgs, self.name)
        super().__init__(Demands(partial(preferred, arguments)), _wish)


def _wish(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    reason = f"{pod.key} would have more of what is preferred elsewhere than on {picture.node_name(pod.row)}"
    return f"{reason}: {'; '.join(complaints)}" if complaints else reason


def preferred(weights: SatisfyPreferencesArgs, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
    """Yield the demands of what pods prefer themselves, without the defaults that their scheduler adds."""
    yield _preferred_nodes(weights, picture, classes)
    if weights.pod_affinity:
        yield from kinds.pod_demands(picture, classes, _carriers(classes, weights.pod_affinity))
    if weights.topology_spread:
        soft = (
            (pod_class, own_constraints(pod_class, "ScheduleAnyway"))
            for pod_class in classes.values()
            if pod_class.spec.topology_spread_constraints
        )
        each = round(MICRO * weights.topology_spread)
        wanted = [(pod_class, found, each // len(found)) for pod_class, found in soft if found]
        yield from kinds.spread_demands(picture, classes, wanted)


def _preferred_nodes(
    weights: SatisfyPreferencesArgs, picture: Picture, classes: Mapping[int, PodClass]
) -> kinds.NodeDemands:
    """Return what classes lack by preferred node affinity and PreferNoSchedule taints, as far as a target offers it."""
    view = View(picture.cluster)
    groups = picture.cluster.nodes.taint_groups if weights.taints > 0 else ()
    has_soft_taints = any(_is_soft(taint) for taints in groups for taint in taints)

    def terms_of(pod_class: PodClass) -> tuple[tuple[int, NodeTerm], ...]:
        return preferred_nodes(pod_class) if weights.node_affinity else ()

    def key_of(pod_class: PodClass) -> Hashable | None:
        terms = terms_of(pod_class)
        if not terms and not has_soft_taints:
            return None
        return terms, pod_class.spec.tolerations, required_nodes(pod_class)

    def demand(pod_class: PodClass) -> kinds.NodeDemand | None:
        untolerated: Bools = np.zeros(len(view), dtype=np.bool_)
        if has_soft_taints:
            tolerations = [item for item in pod_class.spec.tolerations if item.effect in ("", "PreferNoSchedule")]
            untolerated = view.by_taints(
                lambda taints: any(_is_soft(taint) and not tolerated(tolerations, taint) for taint in taints)
            ).astype(np.bool_)
        misses = (untolerated * round(weights.taints * MICRO)).astype(np.int64)
        terms = terms_of(pod_class)
        total = sum(weight for weight, _ in terms)
        for weight, term in terms:
            misses += ~matching_term(view, term) * round(weights.node_affinity * MICRO * weight / total)
        anywhere = np.ones(len(view), dtype=np.bool_)
        complaints = (
            (untolerated, "its taints say to prefer others"),
            (anywhere, "it has fewer of the labels that the pod prefers than others have"),
        )
        return kinds.demand_of(misses, accepting(picture, pod_class), complaints)

    return kinds.node_demands(classes, key_of, demand)


def _is_soft(taint: Taint) -> bool:
    """Return whether a taint counts: the rescheduler's own, which lasts as long as a move, does not."""
    return taint.effect == "PreferNoSchedule" and taint.key != SOFT_TAINT.key


def _carriers(classes: Mapping[int, PodClass], weight: float) -> dict[tuple[AffinityTerm, int, bool], list[int]]:
    """Return the classes (ids) by preferred term, the share that it has in their preferences, and its sign."""
    carriers: dict[tuple[AffinityTerm, int, bool], list[int]] = {}
    for class_id, pod_class in classes.items():
        total = sum(abs(weighted.weight) for weighted in pod_class.preferred)
        for weighted in pod_class.preferred:
            if weighted.weight:
                unit = round(MICRO * weight * abs(weighted.weight) / total)
                carriers.setdefault((weighted.term, unit, weighted.weight < 0), []).append(class_id)
    return carriers


class SpreadDuplicatesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: ``excludeOwnerKinds``: the kinds of owners, such as ``ReplicaSet``, whose pods stay where they are.

    Pods of DaemonSets stay in any case.
    """

    exclude_owner_kinds: tuple[str, ...] = ()


class SpreadDuplicates(DemandPolicy):
    """Proposes pods of owners that have more of them on a node than its share.

    A node's share of an owner's pods is their number per node that may take them, by labels and taints, rounded up. The
    objective is the number of pods beyond the shares of their nodes. Nodes that accept no pods do not count.
    """

    name = "SpreadDuplicates"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, SpreadDuplicatesArgs, self.name)
        super().__init__(
            Demands(partial(owner_demands, arguments.exclude_owner_kinds)),
            lambda picture, pod, lacks: f"{pod.key} should leave {picture.node_name(pod.row)}: {'; '.join(lacks)}",
        )


ONE_A_NODE = ("DaemonSet", "Node")
"""Kinds of owners whose pods are bound to their nodes and cannot be spread."""


def owner_demands(
    excluded_kinds: tuple[str, ...], picture: Picture, classes: Mapping[int, PodClass]
) -> Iterator[Demand]:
    """Yield the demands of all owners except those of some kinds."""
    excluded = frozenset((*excluded_kinds, *ONE_A_NODE))
    owners: dict[tuple[str, Owner], list[PodClass]] = {}
    for pod_class in classes.values():
        if pod_class.owner is not None and pod_class.owner[1] not in excluded:
            owners.setdefault((pod_class.namespace, pod_class.owner), []).append(pod_class)
    rows = picture.targets[: picture.cluster.nodes.count]
    # Classes with equal requirements share an array.
    known: dict[Hashable, Bools] = {}
    for (_, (_, kind, name)), owned in owners.items():
        feasible = {}
        for pod_class in owned:
            key = (required_nodes(pod_class), pod_class.spec.tolerations)
            if key not in known:
                known[key] = accepting(picture, pod_class)
            feasible[pod_class.id] = known[key]
        yield OwnerDemand(f"{kind} {name}", feasible, rows)


class OwnerDemand(Demand):
    """An owner's pods, none of which should be where another node could take it.

    ``feasible`` says for each of their classes (ids) which nodes may take its pods (`[rows]`). A node's fair share is
    the number of placed pods per node that may take any of them, rounded up; each pod beyond it is badly placed. Pods
    outside ``rows`` (`[rows]`) do not count.

    Source: kubernetes-sigs/descheduler, pkg/framework/plugins/removeduplicates (upperAvg, getTargetNodes).
    """

    def __init__(self, owner: str, feasible: Mapping[int, Bools], rows: Bools) -> None:
        super().__init__(feasible)
        self._owner = owner
        self._rows, self._rows_of_class = rows, feasible
        # By row and by class, without empty entries.
        self._pods: dict[int, int] = {}
        self._of_class: dict[int, int] = {}
        # The number of nodes that may take the placed pods; None until it is computed.
        self._feasible: int | None = None
        self._number = 0

    @property
    def missing(self) -> int:
        part = self._part()
        return MICRO * sum([pods - part for pods in self._pods.values() if pods > part])

    def fill(self, rows: Mapping[int, Int64s]) -> None:
        on_row: Counter[int] = Counter()
        for class_id, found in rows.items():
            counted = found[self._rows[found]].tolist()
            if counted:
                self._of_class[class_id] = len(counted)
                on_row.update(counted)
        self._pods, self._number = dict(on_row), on_row.total()
        self._feasible = None

    def count(self, class_id: int, row: int, number: int) -> None:
        if not self._rows[row]:
            return
        self._number += number
        add_count(self._pods, row, number)
        if add_count(self._of_class, class_id, number):
            self._feasible = None

    def relief(self, departures: Departures, reliefs: Reliefs, price: float) -> float | None:
        """Add 1 for as many pods of each node as there are beyond its share.

        None if pods on nodes that do not count could come to count, which would change the share.
        """
        pods, part = departures.pods_of(self._rows_of_class), self._part()
        rows, first, at = np.unique(departures.pod_rows[pods], return_index=True, return_inverse=True)
        if not self._rows[rows].all():
            return None
        beyond = np.array([max(self._pods.get(row, 0) - part, 0) for row in rows.tolist()], dtype=np.int64)
        reliefs.group[pods], reliefs.most[pods] = pods[first[at]], beyond[at]
        return self.missing / MICRO

    def leaving(self, class_id: int) -> Int64s:
        return self._at_least(self._part() + 1)

    def arriving(self, class_id: int) -> Int64s:
        """Return `[rows]` whether a node would have more than its share, which one more pod may raise."""
        return self._at_least(self._part(class_id))

    def complaint(self, class_id: int, row: int) -> str:
        pods = self._pods.get(row, 0)
        if pods <= self._part():
            return ""
        return f"{pods} pods of {self._owner} are on it, and {self._nodes(self._of_class)} nodes could have one"

    def _part(self, joining: int | None = None) -> int:
        """Return a node's share, in the present state or if a pod of a class joined."""
        number = self._number + (joining is not None)
        if joining is not None and joining not in self._of_class:
            nodes = self._nodes((*self._of_class, joining))
        else:
            if self._feasible is None:
                self._feasible = self._nodes(self._of_class)
            nodes = self._feasible
        # If no node may take any, no node has too many.
        return -(-number // nodes) if nodes else number

    def _nodes(self, classes: Iterable[int]) -> int:
        """Return how many nodes may take pods of some classes."""
        rows = {id(found): found for found in map(self._rows_of_class.__getitem__, classes)}
        return int(np.logical_or.reduce(list(rows.values())).sum()) if rows else 0

    def _at_least(self, number: int) -> Int64s:
        found: Int64s = np.zeros(len(self._rows), dtype=np.int64)
        for row, pods in self._pods.items():
            if pods >= number:
                found[row] = MICRO
        return found
