"""Transactions: changes of a cluster that are rolled back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.transaction import ClusterTransaction
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope
from podium.framework.verdicts import Status, Verdicts
from tests.builders import cluster_of, node, node_term, pending_in, plain_runner, pod, tolerate
from tests.decide.answers import answers
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters


def scratch_on(cluster: Cluster, **runners: Any) -> ClusterTransaction:
    return ClusterTransaction(cluster, runners or {"default-scheduler": plain_runner(cluster)})


def places(cluster: Cluster) -> dict[str, str]:
    """Return the node of each pod that is on one."""
    nodes = cluster.nodes
    return {one.key: name for name, row in nodes.row_of.items() for one in cluster.pods_on(row)}


def change(transaction: ClusterTransaction, pod_: PodRecord, chance: Any) -> None:
    """Do something at random, a pod of the class of ``pod_`` included."""
    cluster = transaction.cluster
    some = chance.choice(("add", "drop", "take", "settle"))
    names = sorted(cluster.nodes.row_of)
    if some == "add":
        transaction.add_node(node(f"more-{transaction.savepoint()}", zone="za"))
    elif some == "drop" and names:
        transaction.drop_node(chance.choice(names))
    elif some == "take" and cluster.placed:
        transaction.take_off(chance.choice(sorted(cluster.placed)))
    elif pod_.uid not in cluster.placed:
        transaction.settle(pod_)


@efforts(12)
def test_when_all_is_taken_back_the_scheduler_decides_as_before(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        cluster = cluster_of(*objects.surroundings)
        runner = plain_runner(cluster)
        target = pending_in(cluster, objects.target)
        before, where = answers(runner, target), places(cluster)

        with scratch_on(cluster, default=runner) as transaction:
            for _ in range(chance.randrange(1, 8)):
                change(transaction, cluster.read(pod("extra", cpu=1, labels={"app": "a"})), chance)
                transaction.fitting(target)

        assert places(cluster) == where
        assert answers(runner, target) == before

    check()


@efforts(12)
def test_assumed_changes_give_the_same_feasible_nodes_as_real_ones(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        cluster, real = cluster_of(*objects.surroundings), cluster_of(*objects.surroundings)
        target, really = pending_in(cluster, objects.target), pending_in(real, objects.target)
        leaving = sorted(cluster.placed)[: chance.randrange(3)]
        for uid in leaving:
            real.remove_pod(uid)
        real.put_node(node("more", zone="za"))

        with scratch_on(cluster) as transaction, scratch_on(real) as check_:
            for uid in leaving:
                transaction.take_off(uid)
            row = transaction.add_node(node("more", zone="za"))
            found = {cluster.nodes.name(int(one)) for one in transaction.fitting(target)}
            assert found == {real.nodes.name(int(one)) for one in check_.fitting(really)}
            assert (not transaction.refusal(target, row)) is ("more" in found)

    check()


def test_part_of_the_changes_can_be_taken_back() -> None:
    cluster = cluster_of(node("n1", cpu=4), pod("a", on="n1", cpu=1))
    transaction = scratch_on(cluster)
    transaction.add_node(node("n2", cpu=8))
    mark = transaction.savepoint()
    transaction.take_off("default/a")
    transaction.drop_node("n1")

    transaction.roll_back(mark)

    assert sorted(cluster.nodes.row_of) == ["n1", "n2"]
    assert places(cluster) == {"default/a": "n1"}


def test_a_pod_that_is_taken_off_can_settle_elsewhere() -> None:
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4), pod("a", on="n1", cpu=1))

    with scratch_on(cluster) as transaction:
        taken_off = transaction.take_off("default/a")
        assert transaction.fitting(taken_off).tolist() == [0, 1]
        transaction.drop_node("n1")
        transaction.settle(taken_off)
        assert places(cluster) == {"default/a": "n2"}
    assert places(cluster) == {"default/a": "n1"}


def test_a_pod_settles_on_the_fullest_node_that_takes_it() -> None:
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=4), pod("a", on="n2", cpu=2))
    cluster.add_pod(cluster.read(pod("b", on="n3", cpu=3)))

    with scratch_on(cluster) as transaction:
        row = transaction.settle(cluster.read(pod("c", cpu=2)))
        assert row is not None
        assert cluster.nodes.name(row) == "n2"
        assert transaction.settle(cluster.read(pod("d", cpu=5))) is None


def test_a_pod_settles_on_allowed_nodes_only() -> None:
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4), pod("a", on="n2", cpu=2))
    allowed = np.array([name != "n2" for name in cluster.nodes.names])

    with scratch_on(cluster) as transaction:
        row = transaction.settle(cluster.read(pod("c", cpu=2)), allowed)
        assert row is not None
        assert cluster.nodes.name(row) == "n1"


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (pod("p", cpu=9), "Insufficient cpu"),
        (pod("p", needs_nodes=[node_term(name="n2")]), "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        (pod("p", node_selector={"disk": "ssd"}), "node(s) didn't match Pod's node affinity/selector"),
        (pod("p", tolerations=[tolerate()]), ""),
    ],
)
def test_refusal_reports_the_reason_in_the_schedulers_words(one: Any, reason: str) -> None:
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4))

    with scratch_on(cluster) as transaction:
        assert transaction.refusal(cluster.read(one), cluster.nodes.row_of["n1"]) == reason


class _Failing:
    name = "Failing"
    scope = Scope.NODE

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        raise RuntimeError("out of order")

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        raise RuntimeError("out of order")


def test_a_pod_over_which_a_plugin_fails_fits_nowhere() -> None:
    cluster = cluster_of(node("n1"))
    runner = plain_runner(cluster, extra=[_Failing()])

    with scratch_on(cluster, default=runner) as transaction:
        assert not len(transaction.fitting(cluster.read(pod("p"))))
        assert "out of order" in transaction.refusal(cluster.read(pod("p")), 0)


def test_a_schedulers_own_filters_decide_and_the_first_ones_where_it_is_unknown() -> None:
    cluster = cluster_of(node("n1", taints=["gpu=yes:NoSchedule"]))
    runners = {"strict": plain_runner(cluster), "lax": plain_runner(cluster, "NodeResourcesFit")}

    with ClusterTransaction(cluster, runners) as transaction:
        fits = {
            name: len(transaction.fitting(cluster.read(pod("p", scheduler=name)))) for name in ("strict", "lax", "who")
        }
    assert fits == {"strict": 0, "lax": 1, "who": 0}


def test_a_node_that_was_changed_is_as_it_was_when_all_is_taken_back() -> None:
    cluster = cluster_of(node("a"), pod("p", on="a"))

    with scratch_on(cluster) as transaction:
        transaction.put(node("a", taints=["gpu=yes:NoSchedule"]))
        assert len(transaction.fitting(cluster.read(pod("q")))) == 0

    assert cluster.nodes.node(0) == node("a")
    assert places(cluster) == {"default/p": "a"}


def test_a_closed_node_takes_no_pod_even_by_preemption() -> None:
    cluster = cluster_of(node("n", cpu=2), node("full", cpu=2), pod("a", on="n", cpu=2), pod("b", on="full", cpu=2))
    runner, important = plain_runner(cluster), cluster.read(pod("p", cpu=1, priority=1))

    def resolvable() -> list[int]:
        state = CycleState()
        found = runner.filter(state, important, runner.pre_filter(state, important).rows)
        return list(map(int, found.resolvable()))

    both, closed = resolvable(), cluster.nodes.row_of["n"]
    with scratch_on(cluster, default=runner) as transaction:
        transaction.close_node(closed)
        transaction.take_off(cluster.pods_on(closed)[0].uid)
        assert not len(transaction.fitting(important))
        assert resolvable() == [cluster.nodes.row_of["full"]]
    assert resolvable() == both == sorted(cluster.nodes.row_of.values())
