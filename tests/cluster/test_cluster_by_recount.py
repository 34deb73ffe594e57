"""Incrementally updated cluster state against a recount."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from podium.api.pod import Pod
from podium.api.resource_requests import nonzero_requests, pod_requests
from podium.cluster.matchers import (
    Predicate,
    carries_affinity,
    carries_anti_affinity,
    carries_preference,
)
from podium.cluster.pod_classes import AffinityTerm
from podium.cluster.pods import PodRecord
from podium.cluster.ranking import PreemptionRanking
from tests.cluster.changing_cluster import ChangingCluster, predicates
from tests.fuzzing import long_runs, usual
from tests.generators import KEYS
from tests.twins.victims import importance


class CountingCluster(ChangingCluster):
    """Some predicates, once asked about, are counted from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.ranking = PreemptionRanking(self.cluster)
        self.watched: dict[Predicate, str] = {}

    @rule(predicate=predicates(), key=st.sampled_from(KEYS))
    def watch(self, predicate: Predicate, key: str) -> None:
        self.watched[predicate] = key

    @rule(choice=st.integers(0, 99))
    def watch_what_a_pod_carries(self, choice: int) -> None:
        found: list[tuple[Predicate, AffinityTerm]] = []
        for one in self.cluster.classes:
            found += [(carries_anti_affinity(term), term) for term in one.required_anti_affinity]
            found += [(carries_affinity(term), term) for term in one.required_affinity]
            found += [(carries_preference(each), each.term) for each in one.preferred]
        if found:
            predicate, term = found[choice % len(found)]
            self.watched[predicate] = term.topology_key

    @invariant()
    def every_pod_is_on_its_row(self) -> None:
        cluster = self.cluster
        assert cluster.placed.keys() == self.placed.keys()
        for record in cluster.placed.values():
            assert record.row == cluster.nodes.row_of.get(record.node_name, -1)
            assert cluster.pods.record(record.slot) is record
            assert cluster.pods.row[record.slot] == record.row
        for name, row in cluster.nodes.row_of.items():
            assert {one.uid for one in cluster.pods_on(row)} == {one.metadata.uid for one in self.on(name)}

    @invariant()
    def requests_add_up(self) -> None:
        nodes = self.cluster.nodes
        for name, row in nodes.row_of.items():
            total: Counter[str] = Counter()
            for pod in self.on(name):
                total.update(pod_requests(pod.spec))
            assert {one: int(nodes.requested[i, row]) for i, one in enumerate(nodes.resources)} == {
                one: total[one] for one in nodes.resources
            }
            assert int(nodes.pod_count[row]) == len(self.on(name))
            defaults = [nonzero_requests(pod.spec) for pod in self.on(name)]
            assert nodes.nonzero_requested[:, row].tolist() == [sum(one[i] for one in defaults) for i in (0, 1)]

    @invariant()
    def rows_show_their_nodes(self) -> None:
        nodes = self.cluster.nodes
        assert nodes.row_of.keys() == self.nodes.keys()
        assert sorted(nodes.row_of.values()) == nodes.present.nonzero()[0].tolist()
        for name, node in self.nodes.items():
            row = nodes.row_of[name]
            assert nodes.node(row) is node
            for key in KEYS:
                column = nodes.labels(key)
                assert column.values[column.codes[row]] == node.metadata.labels.get(key)
            assert nodes.taint_groups[nodes.taint_group[row]] == node.spec.taints
            held = {image for one in node.status.images for image in one.names}
            assert set(nodes.images._names_in.get(row, ())) == held
            assert all(row in image.rows for name in held if (image := nodes.images.find(name)))

    @invariant()
    def matching_pods_are_counted(self) -> None:
        cluster = self.cluster
        for predicate, key in self.watched.items():
            on_nodes = {name: self.matching(predicate, row) for name, row in cluster.nodes.row_of.items()}
            count = cluster.matcher(predicate).count
            assert {name: int(count[row]) for name, row in cluster.nodes.row_of.items()} == on_nodes
            by_value: Counter[str | None] = Counter()
            for name, number in on_nodes.items():
                by_value[self.nodes[name].metadata.labels.get(key)] += number
            domains = cluster.domain_counts(predicate, key)
            values = cluster.nodes.labels(key).values
            # Codes that no node has any more stand for no value, and no pod is counted there.
            counts = zip(values[1:], domains[1:].tolist(), strict=True)
            assert {value: number for value, number in counts if number} == {
                value: number for value, number in by_value.items() if number and value is not None
            }
            assert int(domains[0]) == by_value[None]

    @invariant()
    def pods_are_ranked_by_importance(self) -> None:
        self.ranking.refresh()
        for name, row in self.cluster.nodes.row_of.items():
            slots = [slot for slot in self.ranking.slots[row].tolist() if slot >= 0]
            ranked = [self.cluster.pods.record(slot) for slot in slots]
            preemptible = [pod for pod in self.on(name) if not pod.metadata.annotations]
            assert [one.key for one in ranked] == [pod.key for pod in sorted(preemptible, key=by_number)]
            assert self.ranking.priorities[row][: len(ranked)].tolist() == [one.priority for one in ranked]

    @invariant()
    def nominations_are_by_node(self) -> None:
        nominations = self.cluster.nominations
        assert {pod.uid: node for pod, node in nominations.all()} == {
            uid: pod.status.nominated_node_name for uid, pod in self.nominated.items()
        }
        assert all(pod.nominated_node_name == node for pod, node in nominations.all())

    def on(self, name: str) -> list[Pod]:
        return [pod for pod in self.placed.values() if pod.spec.node_name == name]

    def matching(self, predicate: Predicate, row: int) -> int:
        def counts(record: PodRecord) -> bool:
            return not (predicate.live_only and record.terminating) and predicate.matches(
                record.pod_class, self.cluster.namespaces
            )

        return sum(map(counts, self.cluster.pods_on(row)))


def by_number(pod: Pod) -> tuple[int, float, int, str]:
    """Return the key of `importance`, with pod-10 after pod-9."""
    priority, start, name, namespace = importance(pod)
    return priority, start, int(name.rpartition("-")[2]), namespace


CountingCluster.TestCase.settings = settings(max_examples=usual(30), stateful_step_count=30)
TestWhatIsCounted = CountingCluster.TestCase


@pytest.mark.fuzz
def test_counts_stay_right_over_long_runs() -> None:
    long_runs(CountingCluster)
