"""Rules of placing a pod on a node."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import full_outcome, pick, place
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.verdicts import SUCCESS, Code, Status, unresolvable, unschedulable
from tests.builders import cluster_of, configuration, node, node_term, pending_in, plain_runner, pod, runner_on


def placed(runner: Runner, record: PodRecord, seed: int = 0) -> str | None:
    row = place(runner, record, seed).row
    return None if row is None else runner.cluster.nodes.name(row)


def test_a_pod_goes_to_the_node_with_the_highest_total() -> None:
    cluster = cluster_of(node("full", cpu=4), node("empty", cpu=4), pod("q", on="full", cpu=2))

    assert placed(plain_runner(cluster), cluster.read(pod("p", cpu=1))) == "empty"


def test_a_pod_that_fits_nowhere_gets_no_node_and_every_node_a_reason() -> None:
    cluster = cluster_of(node("small", cpu=1), node("tainted", taints=["gpu:NoSchedule"]))

    found = place(plain_runner(cluster), cluster.read(pod("p", cpu=2)))

    outcome = full_outcome(cluster, found)
    reasons = {name: outcome.status(row).reasons for name, row in cluster.nodes.row_of.items()}
    assert found.row is None
    assert reasons == {"small": ("Insufficient cpu",), "tainted": ("node(s) had untolerated taint(s)",)}


def test_the_only_node_that_fits_is_taken_without_rating_it() -> None:
    cluster = cluster_of(node("n"), node("small", cpu=0))

    found = place(plain_runner(cluster), cluster.read(pod("p", cpu=1)))

    assert (found.totals, cluster.nodes.name(found.row or 0)) == (None, "n")


def test_ties_are_broken_by_a_repeatable_hash() -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(5)))
    runner = plain_runner(cluster)
    uids = [f"uid-{number}" for number in range(1000)]

    def lots(seed: int) -> list[str | None]:
        return [placed(runner, cluster.read(pod("p", uid=uid)), seed) for uid in uids]

    first = lots(0)
    assert first == lots(0)
    assert first != lots(1)
    counts = Counter(first)
    assert set(counts) == set(cluster.nodes.row_of)
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_the_lot_does_not_depend_on_the_order_of_the_choices_or_the_rows() -> None:
    names = [f"n{number}" for number in range(7)]
    one, other = cluster_of(*map(node, names)), cluster_of(*map(node, reversed(names)))

    def drawn(cluster: Cluster, uid: str) -> str:
        rows = np.array(sorted(cluster.nodes.row_of.values()), dtype=np.int64)
        return cluster.nodes.name(pick(cluster.nodes, rows, uid, 0))

    assert [drawn(one, f"u{n}") for n in range(50)] == [drawn(other, f"u{n}") for n in range(50)]


@pytest.mark.upstream(12)
def test_the_nominated_node_is_taken_where_it_fits_though_others_are_better() -> None:
    """Row 12 of Kubernetes' tests: TestPreferNominatedNode."""
    cluster = cluster_of(node("n", cpu=4), node("better", cpu=4), pod("q", on="n", cpu=2))
    target = pod("p", cpu=1, nominated="n")

    runner = plain_runner(cluster)

    assert placed(runner, cluster.read(target)) == "n"
    assert place(runner, cluster.read(target), nominated_first=False).row == cluster.nodes.row_of["better"]


@pytest.mark.upstream(12)
@pytest.mark.parametrize("nominated", ["full", "gone"])
def test_another_node_is_taken_where_the_nominated_one_does_not_fit(nominated: str) -> None:
    """Row 12 of Kubernetes' tests."""
    cluster = cluster_of(node("full", cpu=1), node("n", cpu=4), pod("q", on="full", cpu=1))

    assert placed(plain_runner(cluster), cluster.read(pod("p", cpu=1, nominated=nominated))) == "n"


def test_nodes_that_a_pre_filter_left_out_say_which_plugins_did() -> None:
    cluster = cluster_of(node("n1"), node("n2"), node("n3"))
    target = cluster.read(pod("p", needs_nodes=[node_term(name="n2")]))

    found = place(plain_runner(cluster), target)

    outcome = full_outcome(cluster, found)
    statuses = {name: outcome.status(row) for name, row in cluster.nodes.row_of.items()}
    assert statuses["n2"].is_success
    left_out = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]").by("PreFilter")
    assert statuses["n1"] == statuses["n3"] == found.pre_filter.left_out == left_out


class TurnsDown:
    """Turns every pod down at PreFilter."""

    name = "TurnsDown"

    def __init__(self, answer: Status) -> None:
        self.answer = answer

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        return self.answer


@pytest.mark.parametrize("answer", [unschedulable("not now"), unresolvable("never")])
def test_a_rejection_at_pre_filter_is_every_nodes(answer: Status) -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    cluster.remove_node("n1")
    runner = plain_runner(cluster, extra=[TurnsDown(answer)])

    found = place(runner, cluster.read(pod("p")))

    outcome = full_outcome(cluster, found)
    assert found.row is None
    assert outcome.status(cluster.nodes.row_of["n2"]) == answer.by("TurnsDown")
    assert [code for code, _ in outcome.tally()] == [1]


# Samples


def rated(runner: Runner, record: PodRecord) -> list[int]:
    return sorted(place(runner, record).feasible.tolist())


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        (100, 10, 100),  # at least 100 nodes are rated
        (300, 10, 100),
        (300, 50, 150),
        (300, 100, 300),
        (300, None, 300),  # without a percentage all are
        (300, 0, 144),  # by the cluster's size: 50 - 300/125 percent
        (6000, 0, 300),  # at least 5 percent
    ],
)
def test_scoring_covers_the_configured_number_of_feasible_nodes(
    nodes: int, percentage: int | None, expected: int
) -> None:
    cluster = cluster_of(*(node(f"n{number}") for number in range(nodes)))
    profile: dict[str, Any] = {} if percentage is None else {"percentageOfNodesToScore": percentage}
    runner = runner_on(cluster, configuration(**profile))

    assert len(rated(runner, cluster.read(pod("p")))) == expected


def test_every_attempt_rates_the_nodes_after_those_of_the_attempt_before() -> None:
    cluster = cluster_of(*(node(f"n{number:03}") for number in range(250)))
    runner = runner_on(cluster, configuration(percentageOfNodesToScore=40))
    record, cursor = cluster.read(pod("p")), 0

    attempts = []
    for _ in range(3):
        placement = place(runner, record, cursor=cursor)
        attempts.append(sorted(placement.feasible.tolist()))
        cursor = placement.cursor

    assert attempts == [list(range(100)), list(range(100, 200)), [*range(50), *range(200, 250)]]


def test_a_sample_does_not_hide_a_nodes_verdict() -> None:
    cluster = cluster_of(*(node(f"n{number:03}", unschedulable=number == 249) for number in range(250)))
    runner = runner_on(cluster, configuration(percentageOfNodesToScore=1))

    found = place(runner, cluster.read(pod("p")))

    assert found.outcome.status(249).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found.outcome.status(200) == SUCCESS


def test_a_nominated_pods_own_record_is_the_one_that_counts() -> None:
    target = pod("p", priority=5, cpu=2, nominated="n")
    cluster = cluster_of(node("n", cpu=2), target)

    assert placed(plain_runner(cluster), pending_in(cluster, target)) == "n"
