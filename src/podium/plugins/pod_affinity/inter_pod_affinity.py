"""InterPodAffinity: pods that want to be near, or apart from, other pods.

Source: pkg/scheduler/framework/plugins/interpodaffinity (filtering.go, scoring.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import CarriesAffinity, CarriesAntiAffinity, CarriesPreference, Predicate, Selected
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.reach import Reach
from podium.framework.settings.arguments import read_arguments
from podium.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from podium.framework.verdicts import Verdicts
from podium.plugins.pod_affinity.cells import AffinityFilterCells, AffinityScoreCells

_STATUSES = (
    SUCCESS,
    unresolvable("node(s) didn't match pod affinity rules"),
    unschedulable("node(s) didn't match pod anti-affinity rules"),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
)


class InterPodAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments.

    ``hardPodAffinityWeight``: what the required affinity of a pod already there adds to the score.
    ``ignorePreferredTermsOfExistingPods``: pods without preferred terms of their own are not rated at all.
    ``nominatedPodsRepel``: the required anti-affinity of nominated pods keeps others off also where no placed pod has
    any. kube-scheduler skips the filter there.
    """

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    nominated_pods_repel: bool = False


class InterPodAffinity:
    """Counts, over topology domains, the pods that terms select and the pods that carry terms."""

    name = "InterPodAffinity"
    scope = Scope.CLUSTER
    needs_pre_score = True

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, InterPodAffinityArgs, self.name)
        self._cluster = context.cluster

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without required terms whom no placed pod's anti-affinity selects.

        Nor, if that is wanted, a nominated pod's: or else a preemptor that keeps others off may meet its victim's
        replacement in the room that was made for it, and preempt again.
        """
        pod_class = pod.pod_class
        if pod_class.required_affinity or pod_class.required_anti_affinity:
            return SUCCESS
        opposing = cluster.carried.anti_affinity(pod_class)
        if not opposing:
            return SKIP
        if any(_is_found(cluster, CarriesAntiAffinity(term), term.topology_key) for term in opposing):
            return SUCCESS
        repel = self._args.nominated_pods_repel or cluster.nominations.reach_domains
        nominated = cluster.nominations.all() if repel else []
        carried = {term for waiting, _ in nominated for term in waiting.pod_class.required_anti_affinity}
        return SKIP if carried.isdisjoint(opposing) else SUCCESS

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """The pod's affinity, then its anti-affinity, then that of the pods already there."""
        pod_class = pod.pod_class
        codes = np.zeros(len(view), dtype=np.int64)
        for term in self._cluster.carried.anti_affinity(pod_class):
            codes[view.domain_count(CarriesAntiAffinity(term), term.topology_key) > 0] = 3
        for term in pod_class.required_anti_affinity:
            codes[view.domain_count(Selected((term,)), term.topology_key) > 0] = 2
        if pod_class.required_affinity:
            codes[~self._near(pod_class, view)] = 1
        return Verdicts.choose(codes, _STATUSES)

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Whom the pod keeps off, who keeps it off, and whom it wants to be near."""
        pod_class = pod.pod_class
        found = [
            Reach(
                CarriesAntiAffinity(term), term.topology_key, "AllGone", f"its anti-affinity over {term.topology_key}"
            )
            for term in self._cluster.carried.anti_affinity(pod_class)
        ]
        found += [
            Reach(Selected((term,)), term.topology_key, "AllGone", f"anti-affinity over {term.topology_key}")
            for term in pod_class.required_anti_affinity
        ]
        selected = Selected(pod_class.required_affinity)
        keys = dict.fromkeys(term.topology_key for term in pod_class.required_affinity)
        return found + [Reach(selected, key, "Stay", f"affinity over {key}") for key in keys]

    def filter_cells(self, pod: PodRecord) -> AffinityFilterCells | None:
        """By the domains of required terms."""
        cells = AffinityFilterCells(self._cluster, pod.pod_class)
        return cells if cells.tell_apart else None

    def score_cells(self, pod: PodRecord) -> AffinityScoreCells | None:
        """By the domains of preferences."""
        cells = AffinityScoreCells(self._cluster, pod.pod_class, list(self._preferences(pod.pod_class)))
        return cells if cells.tell_apart else None

    def _near(self, pod_class: PodClass, view: View) -> Bools:
        """``[n]``: where the required affinity holds.

        Only pods that all terms select count. When there is none of them at all, the first pod of a group that selects
        itself may start anywhere, as long as the node has the topology labels.
        """
        terms = pod_class.required_affinity
        selected = Selected(terms)
        labelled = np.ones(len(view), dtype=np.bool_)
        found = np.ones(len(view), dtype=np.bool_)
        alone = np.ones(len(view), dtype=np.bool_)
        for term in terms:
            labelled &= view.codes(term.topology_key) != 0
            found &= view.domain_count(selected, term.topology_key) > 0
            alone &= view.labelled_count(selected, term.topology_key) == 0
        if selected.matches(pod_class, self._cluster.namespaces):
            found |= alone
        return labelled & found

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        """Skip pods that no preference concerns."""
        concerned = any(
            _is_found(self._cluster, predicate, key) for _, predicate, key in self._preferences(pod.pod_class)
        )
        return SUCCESS if concerned else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Add the weight of each term once for every pod in the node's domain that it concerns."""
        scores = np.zeros(len(view), dtype=np.int64)
        for weight, predicate, key in self._preferences(pod.pod_class):
            scores += weight * view.domain_count(predicate, key)
        return scores

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """Spread from the worst node, which gets 0, to the best, which gets 100; all 0 where they do not differ."""
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        return (MAX_NODE_SCORE * ((scores - lowest) / (highest - lowest))).astype(np.int64)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Pods that a term concerns may come, go or be relabelled; nodes may come, go or be relabelled."""
        return (
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE,
                self._concerns_pod,
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL),
            EventToRegister(
                EventResource.NODE,
                ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL,
                self._may_be_a_way_out,
            ),
            EventToRegister(EventResource.NAMESPACE, ActionType.ADD | ActionType.UPDATE),
        )

    def _preferences(self, pod_class: PodClass) -> Iterator[tuple[int, Predicate, str]]:
        """Weight, pods counted, and topology key of everything that rates nodes for the class."""
        if self._args.ignore_preferred_terms_of_existing_pods and not pod_class.preferred:
            return
        for weighted in pod_class.preferred:
            yield weighted.weight, Selected((weighted.term,)), weighted.term.topology_key
        if self._args.hard_pod_affinity_weight:
            for term in self._cluster.carried.affinity(pod_class):
                yield self._args.hard_pod_affinity_weight, CarriesAffinity(term), term.topology_key
        for weighted in self._cluster.carried.preferences(pod_class):
            predicate = CarriesPreference(weighted.weight, weighted.term)
            yield weighted.weight, predicate, weighted.term.topology_key

    def _concerns_pod(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """A pod that affinity selects helps by coming; one that anti-affinity selects, or that carries it, by going.

        One that affinity selects helps by going too, if it was the last, and the pod would be the first of its group.
        """
        pod_class, old, new = pod.pod_class, event.old, event.new
        wanted, avoided = pod_class.required_affinity, pod_class.required_anti_affinity
        comes_near = bool(wanted) and new is not None and self._all_mean(wanted, new.pod_class)
        if comes_near and (old is None or not self._all_mean(wanted, old.pod_class)):
            return True
        if old is None:
            return False
        if wanted and self._all_mean(wanted, old.pod_class) and self._all_mean(wanted, pod_class) and not comes_near:
            return True
        if any(
            self._means(term, old.pod_class) and (new is None or not self._means(term, new.pod_class))
            for term in avoided
        ):
            return True
        return new is None and any(
            term.selects(pod_class.namespace, pod_class.labels, self._cluster.namespaces)
            for term in old.pod_class.required_anti_affinity
        )

    def _may_be_a_way_out(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Whether the node is in another domain of a term of the pod's, or leaves one of a term that keeps the pod off.

        A node that gets a domain may have whom affinity selects in it; one that loses it, goes, or comes without it, is
        free of whom anti-affinity selects, and leaves a pod that is to be the first of its group alone. Beyond
        kube-scheduler's hint are those who go, the first of a group, and the terms of other pods.
        """
        near, apart = pod.pod_class.required_affinity, pod.pod_class.required_anti_affinity
        if event.new is None or not (near or apart):
            return True
        labels = event.new.metadata.labels
        if event.old is None:
            return bool(apart) or any(term.topology_key in labels for term in near)
        before = event.old.metadata.labels
        if any(before.get(term.topology_key) != labels.get(term.topology_key) for term in near):
            return True
        left = {key for key, value in before.items() if labels.get(key) != value}
        if any(term.topology_key in left for term in apart):
            return True
        opposing = self._cluster.carried.anti_affinity(pod.pod_class)
        return any(term.topology_key in left and self._is_in_force(term) for term in opposing)

    def _is_in_force(self, term: AffinityTerm) -> bool:
        """Whether a placed or nominated pod keeps others off by the term; those who only wait have no say."""
        if self._cluster.matcher(CarriesAntiAffinity(term)).count.any():
            return True
        return any(term in waiting.pod_class.required_anti_affinity for waiting, _ in self._cluster.nominations.all())

    def _all_mean(self, terms: tuple[AffinityTerm, ...], pod_class: PodClass) -> bool:
        """Whether pods of a class are meant by all of the terms of a pod to be scheduled."""
        return all(self._means(term, pod_class) for term in terms)

    def _means(self, term: AffinityTerm, pod_class: PodClass) -> bool:
        return term.selects_for_owner(pod_class.namespace, pod_class.labels, self._cluster.namespaces)


def _is_found(cluster: Cluster, predicate: Predicate, key: str) -> bool:
    """Whether any pod on a node with the topology label matches."""
    return bool(cluster.domain_counts(predicate, key)[1:].any())
