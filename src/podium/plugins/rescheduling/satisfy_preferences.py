"""SatisfyPreferences: move pods to where more of their preferences hold.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto a node that meets more of the pod's
affinity/anti-affinity preferences than wherever it is currently running").
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from podium.api.node import Taint
from podium.cluster.arrays import Bools
from podium.cluster.pod_classes import AffinityTerm, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View, matching_term, tolerated
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.node_affinity import preferred_nodes, required_nodes
from podium.plugins.pod_topology_spread import own_constraints
from podium.plugins.rescheduling.demand_kinds import NodeDemand, demand_of, node_demands, pod_demands, spread_demands
from podium.plugins.rescheduling.demands import MICRO, Demand, DemandPolicy, Demands
from podium.plugins.rescheduling.node_use import accepting


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
        super().__init__(Demands(Preferred(arguments)), _reason)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    reason = f"{pod.key} would have more of what is preferred elsewhere than on {picture.node_name(pod.row)}"
    return f"{reason}: {'; '.join(complaints)}" if complaints else reason


class Preferred:
    """Creates the demands of what pods prefer themselves, without the defaults that their scheduler adds."""

    def __init__(self, weights: SatisfyPreferencesArgs) -> None:
        self._weights = weights

    def __call__(self, picture: Picture, classes: Mapping[int, PodClass]) -> Iterator[Demand]:
        weights = self._weights
        nodes = _PreferredNodes(picture, weights)
        yield node_demands(classes, nodes.key_of, nodes.demand)
        if weights.pod_affinity:
            yield from pod_demands(picture, classes, _carriers(classes, weights.pod_affinity))
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
    """What classes lack of preferred node affinity and by PreferNoSchedule taints, as far as some target offers it."""

    def __init__(self, picture: Picture, weights: SatisfyPreferencesArgs) -> None:
        self._picture, self._weights = picture, weights
        self._view = View(picture.cluster)
        self._has_soft_taints = weights.taints > 0 and any(
            _is_soft(taint) for taints in picture.cluster.nodes.taint_groups for taint in taints
        )

    def key_of(self, pod_class: PodClass) -> Hashable | None:
        """Return a value that is equal for classes with the same demand; None for classes that lack nothing."""
        preferred = preferred_nodes(pod_class) if self._weights.node_affinity else ()
        if not preferred and not self._has_soft_taints:
            return None
        return preferred, pod_class.spec.tolerations, required_nodes(pod_class)

    def demand(self, pod_class: PodClass) -> NodeDemand | None:
        view, weights = self._view, self._weights
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
        return demand_of(misses, accepting(self._picture, pod_class), complaints)

    def _untolerated(self, pod_class: PodClass) -> Bools:
        """Return `[rows]` the nodes with a PreferNoSchedule taint that the pods do not tolerate."""
        view = self._view
        if not self._has_soft_taints:
            return np.zeros(len(view), dtype=np.bool_)
        tolerations = [item for item in pod_class.spec.tolerations if item.effect in ("", "PreferNoSchedule")]
        return view.by_taints(
            lambda taints: any(_is_soft(taint) and not tolerated(tolerations, taint) for taint in taints)
        ).astype(np.bool_)


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
