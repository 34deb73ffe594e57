"""A simple plugin that states its scope is called again only for changes within it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as replaced

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.decide.placement import place
from podium.framework import simple_form
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope
from podium.framework.runner import Runner
from podium.framework.simple_form import FilterByRow, ScoreByRow
from podium.framework.verdicts import SUCCESS, PluginError, Status, unschedulable
from tests.builders import cluster_of, node, plain_runner, pod


class Asked:
    """Notes which nodes it is asked about, at each point."""

    name = "Asked"

    def __init__(self, scope: object) -> None:
        self.scope = scope
        self.filtered: list[str] = []
        self.scored: list[str] = []

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        self.filtered.append(node.name)
        return SUCCESS

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        self.scored.append(node.name)
        return len(node.pods)

    def asked(self) -> tuple[list[str], list[str]]:
        """Return the nodes since the last time."""
        found = sorted(self.filtered), sorted(self.scored)
        self.filtered, self.scored = [], []
        return found


NODES = [f"n{number}" for number in range(8)]
ALL = (NODES, NODES)
NONE: tuple[list[str], list[str]] = ([], [])


def many_nodes() -> Cluster:
    return cluster_of(*map(node, NODES), pod("first", on="n2"))


def decide(runner: Runner, name: str = "p") -> None:
    assert place(runner, runner.cluster.read(pod(name))).row is not None


def changed_pod(cluster: Cluster) -> None:
    """Return the pod on n2 with another annotation."""
    first = pod("first", on="n2")
    metadata = replaced(first.metadata, annotations={"a": "b"})
    cluster.replace_pod(cluster.read(replaced(first, metadata=metadata)))


def test_without_a_scope_every_node_is_asked_about_in_every_attempt() -> None:
    plugin = Asked(Scope.CLUSTER)
    runner = plain_runner(many_nodes(), extra=[plugin])

    for _ in range(2):
        decide(runner)
        assert plugin.asked() == ALL


@pytest.mark.parametrize("scope", [Scope.ROW, "row"])
def test_in_scope_row_a_node_is_asked_about_again_when_it_or_a_pod_on_it_changed(scope: object) -> None:
    plugin = Asked(scope)
    cluster = many_nodes()
    runner = plain_runner(cluster, extra=[plugin])
    decide(runner)
    assert plugin.asked() == ALL

    decide(runner, "another-of-the-class")
    assert plugin.asked() == NONE

    cluster.add_pod(cluster.read(pod("new", on="n4")))
    decide(runner)
    assert plugin.asked() == (["n4"], ["n4"])

    changed_pod(cluster)
    decide(runner)
    assert plugin.asked() == (["n2"], ["n2"])


def test_in_scope_node_pods_do_not_matter() -> None:
    plugin = Asked("node")
    cluster = many_nodes()
    runner = plain_runner(cluster, extra=[plugin])
    decide(runner)
    plugin.asked()

    cluster.add_pod(cluster.read(pod("new", on="n4")))
    changed_pod(cluster)
    decide(runner)

    assert plugin.asked() == NONE


def test_a_pod_of_another_class_is_evaluated_again() -> None:
    plugin = Asked("row")
    runner = plain_runner(many_nodes(), extra=[plugin])
    decide(runner)
    plugin.asked()

    assert place(runner, runner.cluster.read(pod("q", labels={"app": "b"}))).row is not None

    assert plugin.asked() == ALL


@pytest.mark.parametrize("scope", ["rack", 3, None])
def test_an_invalid_scope_is_rejected(scope: object) -> None:
    with pytest.raises(PluginError, match=r'plugin Asked has the scope .*; it must be one of Scope.NODE \("node"\), '):
        plain_runner(many_nodes(), extra=[Asked(scope)])


class Talkative:
    """Refuses each node with words of its own."""

    name = "Talkative"
    scope = "row"

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return unschedulable(f"{node.name} has {len(node.pods)} pods")


def test_rejections_are_distinguished_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simple_form, "MOST_REFUSALS", 2)
    cluster = cluster_of(node("a"), node("b"), node("c"))
    runner = plain_runner(cluster, extra=[Talkative()])

    placement = place(runner, cluster.read(pod("p")))

    assert [placement.outcome.status(row).message for row in range(3)] == [
        "a has 0 pods",
        "b has 0 pods",
        "node(s) were refused by plugin Talkative",
    ]


def test_a_node_is_shown_as_the_same_value_until_it_changes() -> None:
    cluster = many_nodes()
    row = cluster.nodes.row_of["n2"]
    shown = cluster.node_views.of(row)

    assert cluster.node_views.of(row) is shown
    changed_pod(cluster)
    assert [one.annotations for one in cluster.node_views.of(row).pods] == [{"a": "b"}]
    assert [one.annotations for one in shown.pods] == [{}]


def test_a_node_says_0_of_a_resource_that_it_does_not_name() -> None:
    cluster = many_nodes()
    shown = cluster.node_views.of(0)

    assert (shown.allocatable["example.com/gpu"], shown.requested["example.com/gpu"]) == (0, 0)
    assert "example.com/gpu" not in shown.allocatable


class Answering:
    """A plugin with scripted answers in scope ROW."""

    name = "Answering"
    scope = "row"

    def __init__(self, status: object = SUCCESS, score: object = 1) -> None:
        self._status = status
        self._score = score

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> object:
        return self._status

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> object:
        return self._score


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Answering(status=None), "plugin Answering answered None, which is not a Status at Filter for pod default/p"),
        (Answering(score=1.5), "plugin Answering scored 1.5 for pod default/p; an integer"),
        (Answering(score=101), "plugin Answering scored 101 for pod default/p; an integer within 0 and 100 is needed"),
    ],
)
def test_single_row_answers_are_validated(plugin: Answering, problem: str) -> None:
    cluster = many_nodes()
    record = cluster.read(pod("p"))
    by_filter, by_score = FilterByRow(plugin, cluster), ScoreByRow(plugin, cluster)  # type: ignore[arg-type]

    with pytest.raises(PluginError, match=problem):
        _ = by_filter.row_filter(record.pod_class)(record, 0) and by_score.row_score(record.pod_class)(record, 0)


def test_a_single_row_is_judged_as_all_rows_are() -> None:
    cluster = many_nodes()
    record, talkative = cluster.read(pod("p")), Talkative()
    pod_class = record.pod_class

    assert FilterByRow(Answering(), cluster).row_filter(pod_class)(record, 2)  # type: ignore[arg-type]
    assert not FilterByRow(talkative, cluster).row_filter(pod_class)(record, 2)
    assert ScoreByRow(Asked("row"), cluster).row_score(pod_class)(record, cluster.nodes.row_of["n2"]) == 1
