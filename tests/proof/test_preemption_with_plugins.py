"""Preemption with custom filters, and with ReadWriteOncePod claims."""

from __future__ import annotations

import pytest

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.framework.handle import CycleState
from podium.framework.plugin import Plugin
from podium.framework.verdicts import SUCCESS, Status, unresolvable, unschedulable
from tests.builders import cluster_of, node, plain_runner, pod
from tests.controllers.driving import Driver, deletions
from tests.plugins.volume_objects import NAMESPACE, claim, mounts, volume

KEY = "Tokens.left"


class Tokens:
    """A plugin that lets so many pods run in the whole cluster.

    It counts at PreFilter, and observes the pods that preemption removes and adds. It rejects at PreFilter, or at
    Filter (``late``) with the given status.
    """

    name = "Tokens"

    def __init__(self, number: int, refusal: Status, *, late: bool) -> None:
        self._number, self._refusal, self._late = number, refusal, late

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        left = self._number - len(cluster.placed)
        state[KEY] = left
        return SUCCESS if left > 0 or self._late else self._refusal

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return SUCCESS if self._left(state) > 0 else self._refusal

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None:
        state[KEY] = self._left(state) - 1

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
        state[KEY] = self._left(state) + 1

    @staticmethod
    def _left(state: CycleState) -> int:
        left = state.get(KEY)
        assert isinstance(left, int)
        return left


class Accepts:
    """A plugin that rejects all nodes except the given ones, whatever runs there."""

    name = "Accepts"

    def __init__(self, *names: str) -> None:
        self._names = names

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return SUCCESS if node.name in self._names else unschedulable("not this one")


def explained(*objects: Kubernetes, by: Plugin, target: Pod) -> Explanation:
    cluster = cluster_of(*objects)
    return explain_decision(plain_runner(cluster, extra=[by]), cluster.read(target))


FULL = [node("n1"), pod("important", on="n1", priority=9), pod("victim", on="n1", priority=1)]


@pytest.mark.upstream(2)
@pytest.mark.parametrize("late", [True, False])
def test_preemption_reports_removed_pods_to_a_custom_filter(late: bool) -> None:
    by = Tokens(2, unschedulable("no token left"), late=late)

    found = explained(*FULL, by=by, target=pod("p", priority=100))

    assert (found.outcome, found.node) == ("preempts", "n1")
    assert found.plan is not None
    assert [one.name for one in found.plan.candidates["n1"].victims] == ["victim"]


@pytest.mark.upstream(3)
@pytest.mark.parametrize("late", [True, False])
def test_no_pod_is_preempted_when_a_custom_filter_rejects_as_unresolvable(late: bool) -> None:
    found = explained(*FULL, by=Tokens(2, unresolvable("no token ever"), late=late), target=pod("p", priority=100))

    assert found.outcome == "unschedulable"
    assert found.plan is not None
    assert not found.plan.candidates
    assert not found.plan.rejected


TWO_NODES = [
    node("n1", cpu=4),
    node("n2", cpu=4),
    *(pod(f"on-{name}", on=name, cpu=3, priority=1) for name in ("n1", "n2")),
]


@pytest.mark.upstream(27)
@pytest.mark.parametrize(
    ("accepted", "cpu", "candidates"),
    [
        ([], 1, []),  # it fits nowhere, whichever pods are removed
        (["n1"], 2, ["n1"]),  # a filter refuses n2 also once everybody is gone
        (["n1", "n2"], 2, ["n1", "n2"]),
    ],
)
def test_a_node_is_a_candidate_where_all_filters_accept_the_pod_once_its_victims_are_gone(
    accepted: list[str], cpu: int, candidates: list[str]
) -> None:
    found = explained(*TWO_NODES, by=Accepts(*accepted), target=pod("p", priority=5, cpu=cpu))

    assert found.outcome == ("preempts" if candidates else "unschedulable")
    assert found.plan is not None
    assert sorted(found.plan.candidates) == candidates
    assert sorted(found.plan.rejected) == sorted({"n1", "n2"} - set(candidates))


@pytest.mark.upstream(27)
def test_a_pod_that_fits_preempts_no_pod() -> None:
    found = explained(*TWO_NODES, by=Accepts("n2"), target=pod("p", priority=5, cpu=1))

    assert (found.outcome, found.node, found.plan) == ("schedulable", "n2", None)


def mounting(name: str, *claims: str, on: str = "", priority: int = 1) -> Pod:
    return pod(name, namespace=NAMESPACE, on=on, priority=priority, spec={"volumes": mounts(*claims)})


@pytest.mark.upstream(15)
@pytest.mark.parametrize(
    ("holders", "wanted", "victims"),
    [
        ({"one": ["c1"]}, ["c1"], ["one"]),
        ({"one": ["c1"], "two": ["c2"]}, ["c1", "c2"], ["one", "two"]),
        ({"one": ["c1", "c2"]}, ["c1", "c2"], ["one"]),
        ({"one": ["c1"], "two": ["c2"]}, ["c2"], ["two"]),
    ],
)
def test_preemption_frees_a_single_pod_claim_from_its_user(
    holders: dict[str, list[str]], wanted: list[str], victims: list[str]
) -> None:
    storage: list[Kubernetes] = []
    for number in (1, 2):
        storage += [
            volume(f"v{number}", access_modes=("ReadWriteOncePod",)),
            claim(f"c{number}", None, volume=f"v{number}", access_modes=("ReadWriteOncePod",)),
        ]
    running = [mounting(name, *claims, on="n1") for name, claims in holders.items()]
    driver = Driver(node("n1"), *storage, *running, mounting("p", *wanted, priority=100))

    actions = driver.carry_out(driver.tick())

    assert [line for line in deletions(actions) if line.startswith("delete")] == [
        f"delete {NAMESPACE}/{name}" for name in victims
    ]
