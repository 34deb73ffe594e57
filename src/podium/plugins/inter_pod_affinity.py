"""InterPodAffinity: required and preferred affinity and anti-affinity to other pods.

Source: pkg/scheduler/framework/plugins/interpodaffinity (filtering.go, scoring.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from podium.cluster import matchers
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import AffinityTerm, PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState, Reach
from podium.framework.plugin import MAX_NODE_SCORE, PluginContext, Scope
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import SKIP, SUCCESS, Status, Verdicts, unresolvable, unschedulable
from podium.plugins.domain_counts import DomainCount, DomainCounts

_STATUSES = (
    SUCCESS,
    unresolvable("node(s) didn't match pod affinity rules"),
    unschedulable("node(s) didn't match pod anti-affinity rules"),
    unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
)


class InterPodAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments.

    ``hardPodAffinityWeight``: the score for each required affinity of an existing pod.
    ``ignorePreferredTermsOfExistingPods``: pods without preferred terms are not scored at all. ``nominatedPodsRepel``:
    the required anti-affinity of nominated pods counts even if no placed pod has any; kube-scheduler skips the filter
    then.
    """

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    nominated_pods_repel: bool = False


class InterPodAffinity:
    """Counts, in topology domains, the pods that terms select and the pods that have terms."""

    name = "InterPodAffinity"
    scope = Scope.CLUSTER
    needs_pre_score = True

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, InterPodAffinityArgs, self.name)
        self._cluster = context.cluster

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        """Skip pods without required terms that no placed pod's anti-affinity selects.

        With ``nominatedPodsRepel`` nominated pods count, too: otherwise a preemptor may find its victim's replacement
        in the room made for it, and preempt again.
        """
        pod_class = pod.pod_class
        if pod_class.required_affinity or pod_class.required_anti_affinity:
            return SUCCESS
        opposing = cluster.carried.anti_affinity.selecting(pod_class)
        if not opposing:
            return SKIP
        for predicate, key in repelling_pods(cluster, pod_class):
            if _is_found(cluster, predicate, key):
                return SUCCESS
        repel = self._args.nominated_pods_repel or cluster.nominations.reach_domains
        nominated = cluster.nominations.all() if repel else []
        carried = {term for waiting, _ in nominated for term in waiting.pod_class.required_anti_affinity}
        return SKIP if carried.isdisjoint(opposing) else SUCCESS

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        pod_class = pod.pod_class
        codes = np.zeros(len(view), dtype=np.int64)
        for code, repelling in ((3, repelling_pods(self._cluster, pod_class)), (2, repelled_pods(pod_class))):
            for predicate, key in repelling:
                codes[view.domain_count(predicate, key) > 0] = code
        if pod_class.required_affinity:
            codes[~self._near(pod_class, view)] = 1
        return Verdicts.choose(codes, _STATUSES)

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]:
        """Return the pods that the pod repels, that repel it, and that it requires."""
        pod_class = pod.pod_class
        sides = (("its ", repelling_pods(self._cluster, pod_class)), ("", repelled_pods(pod_class)))
        found = [
            Reach(predicate, key, "AllGone", f"{prefix}anti-affinity over {key}")
            for prefix, repelling in sides
            for predicate, key in repelling
        ]
        selected = matchers.SelectedByTerms(pod_class.required_affinity)
        keys = dict.fromkeys(term.topology_key for term in pod_class.required_affinity)
        return found + [Reach(selected, key, "Stay", f"affinity over {key}") for key in keys]

    def counted(self, state: CycleState, pod: PodRecord) -> list[matchers.Predicate]:
        """Return the predicates of the pods of `reaches`."""
        return [reach.predicate for reach in self.reaches(state, pod)]

    def inputs(self, state: CycleState, pod: PodRecord) -> list[object]:
        """Return the counts of the pods of `reaches`, and whether the pod may be the first of its group."""
        cluster, terms = self._cluster, pod.pod_class.required_affinity
        found: list[object] = (
            [matchers.SelectedByTerms(terms).matches(pod.pod_class, cluster.namespaces)] if terms else []
        )
        for reach in self.reaches(state, pod):
            column, counts = cluster.nodes.labels(reach.key), cluster.domain_counts(reach.predicate, reach.key)
            found += (reach, column, column.version, counts.tobytes())
        return found

    def filter_cells(self, pod: PodRecord) -> AffinityFilterCells | None:
        """Return cells by the domains of required terms."""
        cells = AffinityFilterCells(self._cluster, pod.pod_class)
        return cells if cells.has_cells else None

    def score_cells(self, pod: PodRecord) -> AffinityScoreCells | None:
        """Return cells by the domains of preferences."""
        cells = AffinityScoreCells(self._cluster, pod.pod_class, list(self._preferences(pod.pod_class)))
        return cells if cells.has_cells else None

    def _near(self, pod_class: PodClass, view: View) -> Bools:
        """Return ``[n]`` where the required affinity holds.

        Only pods that all terms select count. If there are none, the first pod of a group that selects itself may be on
        any node with the topology labels.
        """
        terms = pod_class.required_affinity
        selected = matchers.SelectedByTerms(terms)
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
        concerned = any(
            _is_found(self._cluster, predicate, key) for _, predicate, key in self._preferences(pod.pod_class)
        )
        return SUCCESS if concerned else SKIP

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Add each term's weight for every matching pod in the node's domain."""
        scores = np.zeros(len(view), dtype=np.int64)
        for weight, predicate, key in self._preferences(pod.pod_class):
            scores += weight * view.domain_count(predicate, key)
        return scores

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """Scale from the worst node (0) to the best (100); all 0 if they are equal."""
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        return (MAX_NODE_SCORE * ((scores - lowest) / (highest - lowest))).astype(np.int64)

    def events_to_register(self) -> Sequence[EventToRegister]:
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
                self._may_enable_nodes,
            ),
            EventToRegister(EventResource.NAMESPACE, ActionType.ADD | ActionType.UPDATE),
        )

    def _preferences(self, pod_class: PodClass) -> Iterator[tuple[int, matchers.Predicate, str]]:
        """Yield weight, counted pods, and topology key of everything that scores nodes for the class."""
        if self._args.ignore_preferred_terms_of_existing_pods and not pod_class.preferred:
            return
        for weighted in pod_class.preferred:
            yield weighted.weight, matchers.SelectedByTerms((weighted.term,)), weighted.term.topology_key
        if self._args.hard_pod_affinity_weight:
            for term in self._cluster.carried.affinity.selecting(pod_class):
                yield self._args.hard_pod_affinity_weight, matchers.carries_affinity(term), term.topology_key
        for weighted in self._cluster.carried.preferences.selecting(pod_class):
            predicate = matchers.carries_preference(weighted)
            yield weighted.weight, predicate, weighted.term.topology_key

    def _concerns_pod(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether a pod's change may help: one that affinity selects comes, or an anti-affinity ends.

        The end of the last pod that affinity selects may help, too, if the pod may then be the first of its group.
        """
        pod_class, old, new = pod.pod_class, event.old, event.new
        wanted, avoided = pod_class.required_affinity, pod_class.required_anti_affinity
        comes_near = bool(wanted) and new is not None and self._select(wanted, new.pod_class)
        if comes_near and (old is None or not self._select(wanted, old.pod_class)):
            return True
        if old is None:
            return False
        if wanted and self._select(wanted, old.pod_class) and self._select(wanted, pod_class) and not comes_near:
            return True
        left = [(term,) for term in avoided if self._select((term,), old.pod_class)]
        if any(new is None or not self._select(term, new.pod_class) for term in left):
            return True
        return new is None and any(
            term.selects(pod_class.namespace, pod_class.labels, self._cluster.namespaces)
            for term in old.pod_class.required_anti_affinity
        )

    def _may_enable_nodes(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether a node's domain changed for one of the pod's terms, or for an anti-affinity against it.

        A node that enters a domain may have required pods there; one that leaves a domain, is deleted, or comes without
        the label has no repelling pods, and may leave a pod the first of its group. kube-scheduler's hint lacks
        deletions, first pods and other pods' terms.
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
        # The terms of placed and nominated pods are in force, those of pending pods are not.
        opposing = self._cluster.carried.anti_affinity.selecting(pod.pod_class)
        nominated = self._cluster.nominations.all()
        return any(
            term.topology_key in left
            and (
                self._cluster.matcher(matchers.carries_anti_affinity(term)).count.any()
                or any(term in waiting.pod_class.required_anti_affinity for waiting, _ in nominated)
            )
            for term in opposing
        )

    def _select(self, terms: tuple[AffinityTerm, ...], pod_class: PodClass) -> bool:
        return matchers.SelectedByTerms(terms).matches(pod_class, self._cluster.namespaces)


def repelling_pods(cluster: Cluster, pod_class: PodClass) -> list[tuple[matchers.Predicate, str]]:
    """Return the pods whose required anti-affinity selects a class, with the topology key of each term."""
    opposing = cluster.carried.anti_affinity.selecting(pod_class)
    return [(matchers.carries_anti_affinity(term), term.topology_key) for term in opposing]


def repelled_pods(pod_class: PodClass) -> list[tuple[matchers.Predicate, str]]:
    """Return the pods that the required anti-affinity of a class selects, with the topology key of each term."""
    return [(matchers.SelectedByTerms((term,)), term.topology_key) for term in pod_class.required_anti_affinity]


def _is_found(cluster: Cluster, predicate: matchers.Predicate, key: str) -> bool:
    """Return whether any pod on a node with the topology label matches."""
    return bool(cluster.domain_counts(predicate, key)[1:].any())


class AffinityFilterCells(DomainCounts):
    """Cells by the required terms of a class, and by other pods' terms that select it."""

    def __init__(self, cluster: Cluster, pod_class: PodClass) -> None:
        self._cluster = cluster
        self._opposing = tuple(cluster.carried.anti_affinity.selecting(pod_class))
        self._selected = matchers.SelectedByTerms(pod_class.required_affinity)
        repelling = [*repelling_pods(cluster, pod_class), *repelled_pods(pod_class)]
        self._refusing = tuple(DomainCount(cluster, predicate, key) for predicate, key in repelling)
        keys = [term.topology_key for term in pod_class.required_affinity]
        self._near = tuple(DomainCount(cluster, self._selected, key) for key in keys)
        super().__init__((*self._refusing, *self._near))

    def is_current(self, pod: PodRecord) -> bool:
        """Return whether the same terms select the class."""
        opposing = self._cluster.carried.anti_affinity.selecting(pod.pod_class)
        return tuple(opposing) == self._opposing and self.are_current

    def fits(self, pod: PodRecord, rows: Sequence[int]) -> list[bool]:
        found = [not any(count.around(row) for count in self._refusing) for row in rows]
        if not self._near:
            return found
        # The first pod of a group that selects itself may be on any node with the labels, as in the filter.
        is_first: bool | None = None
        for number, row in enumerate(rows):
            if found[number] and not all(count.around(row) for count in self._near):
                if is_first is None:
                    selects_itself = self._selected.matches(pod.pod_class, self._cluster.namespaces)
                    is_first = selects_itself and not any(count.labelled() for count in self._near)
                found[number] = is_first and all(count.code(row) for count in self._near)
        return found


class AffinityScoreCells(DomainCounts):
    """Cells by the preferences of a class, and by other pods' terms that select it."""

    def __init__(
        self, cluster: Cluster, pod_class: PodClass, preferences: Sequence[tuple[int, matchers.Predicate, str]]
    ) -> None:
        self._cluster = cluster
        carried = cluster.carried
        self._terms = tuple(carried.affinity.selecting(pod_class)), tuple(carried.preferences.selecting(pod_class))
        self._weights = [weight for weight, _, _ in preferences]
        super().__init__(tuple(DomainCount(cluster, predicate, key) for _, predicate, key in preferences))

    def is_current(self, pod: PodRecord) -> bool:
        """Return whether the same terms select the class."""
        carried, (affinity, preferences) = self._cluster.carried, self._terms
        return (
            tuple(carried.affinity.selecting(pod.pod_class)) == affinity
            and tuple(carried.preferences.selecting(pod.pod_class)) == preferences
            and self.are_current
        )

    def score(self, pod: PodRecord, rows: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Return the normalized sums of weights for some rows."""
        if not self._weights:
            return [0] * len(rows)
        weighted = list(zip(self._weights, self._counts, strict=True))
        raw = [sum([weight * count.around(row) for weight, count in weighted]) for row in rows]
        lowest, highest = min(raw), max(raw)
        if lowest == highest:
            return [0] * len(raw)
        return [int(MAX_NODE_SCORE * ((score - lowest) / (highest - lowest))) for score in raw]
