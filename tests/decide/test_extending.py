"""Extenders' answers: rejected nodes, scores, and failures."""

from __future__ import annotations

import numpy as np

from podium.cluster.cluster import Cluster
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.placement import Placement, full_outcome, place, rejecting_plugins
from podium.framework.extenders import EXTENDER, Extenders
from podium.framework.runner import Runner
from tests.builders import cluster_of, configuration, node, pending_in, plain_runner, pod, runner_on
from tests.extenders import FakeExtender

FAILS = frozenset(("filter", "prioritize"))


def extended(cluster: Cluster, *extenders: FakeExtender) -> Runner:
    runner = plain_runner(cluster)
    runner.extenders = Extenders(extenders)
    return runner


def tried(runner: Runner, name: str = "p", nominated: str = "") -> Placement:
    record = pending_in(runner.cluster, pod(name, cpu=1))
    record.nominated_node_name = nominated
    return place(runner, record, detailed=False)


def node_of(runner: Runner, placement: Placement) -> str | None:
    return None if placement.row is None else runner.cluster.nodes.name(placement.row)


def message(runner: Runner, placement: Placement) -> str:
    return fit_error(placement, len(runner.cluster.nodes), "")


def two() -> Cluster:
    return cluster_of(node("a", cpu=4), node("b", cpu=4))


def test_a_node_that_an_extender_refuses_is_not_taken() -> None:
    for refused, taken in (("a", "b"), ("b", "a")):
        runner = extended(two(), FakeExtender(refuses={refused: "no licence"}))

        assert node_of(runner, tried(runner)) == taken


def test_each_extender_is_asked_about_what_those_before_it_left() -> None:
    first, second = FakeExtender(refuses={"a": "no"}), FakeExtender(refuses={"b": "no"})
    third = FakeExtender()
    runner = extended(two(), first, second, third)

    assert tried(runner).row is None
    assert [one.asked for one in (first, second, third)] == [[("filter", ("a", "b"))], [("filter", ("b",))], []]


def test_only_nodes_that_pass_the_filters_are_asked_about() -> None:
    extender = FakeExtender()
    runner = extended(cluster_of(node("a"), node("small", cpu=0)), extender)

    tried(runner)

    assert extender.asked == [("filter", ("a",))]


def test_reasons_are_counted_with_those_of_plugins_and_any_event_may_wake() -> None:
    runner = extended(
        cluster_of(node("a"), node("b"), node("c"), node("small", cpu=0)),
        FakeExtender(refuses={"a": "no licence", "b": "no licence"}, unresolvable={"c": "banned"}),
    )

    found = tried(runner)

    assert message(runner, found) == "0/4 nodes are available: 1 Insufficient cpu, 1 banned, 2 no licence."
    assert set(rejecting_plugins(found)) == {"NodeResourcesFit", EXTENDER}


def test_preemption_may_help_where_a_node_is_refused_and_not_where_it_is_unresolvable_or_left_out() -> None:
    runner = extended(
        cluster_of(*(node(name) for name in "abc")),
        FakeExtender(refuses={"a": "no", "b": "no"}, unresolvable={"b": "never"}, drops=frozenset("c")),
    )

    found = tried(runner)

    rows = full_outcome(runner.cluster, found).resolvable().tolist()
    assert [runner.cluster.nodes.name(row) for row in rows] == ["a"]
    assert message(runner, found) == "0/3 nodes are available: 1 never, 1 no."


def test_extenders_do_not_change_cached_filter_results() -> None:
    cluster = two()
    runner = extended(cluster, FakeExtender(refuses={"a": "no", "b": "no"}, only="x"))
    assert tried(runner, "x").row is None

    assert node_of(runner, tried(runner, "p")) in ("a", "b")
    assert tried(runner, "x").row is None


def test_scores_count_by_weight_ten_times_and_decide() -> None:
    for better in "ab":
        runner = extended(two(), FakeExtender(scores={better: 10}, weight=3))

        found = tried(runner)

        assert node_of(runner, found) == better
        assert found.totals is not None
        assert int(np.ptp(found.totals)) == 10 * 3 * 10


def test_scores_of_several_add_up_and_those_of_unknown_nodes_do_not_matter() -> None:
    runner = extended(
        two(), FakeExtender(scores={"a": 5, "z": 9}), FakeExtender(scores={"b": 4}), FakeExtender(scores={"b": 2})
    )

    assert node_of(runner, tried(runner)) == "b"


def test_scores_beyond_all_bounds_count_for_nothing() -> None:
    runner = extended(two(), FakeExtender(scores={"a": 1 << 62}), FakeExtender(scores={"b": 1}))

    assert node_of(runner, tried(runner)) == "b"


def test_an_extender_that_fails_to_prioritize_is_skipped() -> None:
    runner = extended(
        two(), FakeExtender(scores={"a": 9}, fails=frozenset(("prioritize",))), FakeExtender(scores={"b": 1})
    )

    assert node_of(runner, tried(runner)) == "b"


def test_an_extender_without_answer_fails_the_attempt_unless_ignorable() -> None:
    runner = extended(two(), FakeExtender(fails=FAILS))
    found = tried(runner)
    assert (found.row, found.error) == (None, "failed filter")

    runner = extended(two(), FakeExtender(fails=FAILS, is_ignorable=True), FakeExtender(refuses={"a": "no"}))
    assert node_of(runner, tried(runner)) == "b"


def test_an_extender_answer_with_an_unrequested_node_is_invalid() -> None:
    runner = extended(two(), FakeExtender(adds=("elsewhere",)))

    assert tried(runner).error == "extender fake leaves node elsewhere, which it was not asked about"


def test_a_pod_goes_where_it_is_nominated_only_if_extenders_agree() -> None:
    agreeing = FakeExtender()
    runner = extended(two(), agreeing)
    assert node_of(runner, tried(runner, nominated="b")) == "b"
    assert agreeing.asked == [("filter", ("b",))]

    runner = extended(two(), FakeExtender(refuses={"b": "no"}))
    assert node_of(runner, tried(runner, nominated="b")) == "a"


def test_an_uninterested_extender_is_not_called() -> None:
    extender = FakeExtender(only="gpu", refuses={"a": "no", "b": "no"})
    runner = extended(two(), extender)

    assert tried(runner).row is not None
    assert extender.asked == []


def test_nodes_outside_the_sample_are_not_preemption_candidates() -> None:
    names = [f"n{number:03}" for number in range(150)]
    cluster = cluster_of(*(node(name) for name in names))
    runner = runner_on(cluster, configuration(percentageOfNodesToScore=10))
    extender = FakeExtender(drops=frozenset(names))
    runner.extenders = Extenders([extender])

    found = tried(runner)

    assert len(extender.asked[0][1]) == 100
    assert (found.row, len(found.outcome.feasible), len(found.outcome.resolvable())) == (None, 0, 0)
