"""Scoring feasible nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework.handle import CycleState
from podium.framework.plugin import Scope
from podium.framework.runner import Runner
from podium.framework.scoring import default_normalize
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SKIP, SUCCESS, Code, PluginError, Status
from tests.builders import cluster_of, node, pod


class ByCpu:
    """Rates each node by its cpu, in array form; ``calls`` counts how often it is asked."""

    name = "ByCpu"

    def __init__(self, scope: Scope = Scope.CLUSTER, factor: int = 1) -> None:
        self.scope = scope
        self.factor = factor
        self.calls = 0

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        self.calls += 1
        return self.factor * view.allocatable(0) // 1000


class Simple:
    """A plugin with scripted scores of nodes."""

    name = "Simple"

    def __init__(self, answers: dict[str, Any], before: Status = SUCCESS) -> None:
        self.answers = answers
        self.before = before

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        return self.before

    def score(self, state: CycleState, pod: PodRecord, node: NodeView) -> Any:
        return self.answers[node.name]


class Halved(ByCpu):
    """Brings its scores into range by itself."""

    name = "Halved"

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        return scores // 2


def nodes(**cpus: int) -> Cluster:
    return cluster_of(*(node(name, cpu=cpu) for name, cpu in cpus.items()))


def runner_with(cluster: Cluster, *plugins: Any, **weights: int) -> Runner:
    pre_score = [plugin for plugin in plugins if hasattr(plugin, "pre_score")]
    weighted = {plugin.name: 1 for plugin in plugins} | weights
    return Runner(Profile("default-scheduler", pre_score=pre_score, score=plugins, weights=weighted), cluster)


def totals(runner: Runner, *names: str) -> list[int]:
    """Return the totals of some nodes (all by default), also when they are asked for again."""
    cluster = runner.cluster
    rows = np.array(sorted(cluster.nodes.row_of[name] for name in names or cluster.nodes.row_of), dtype=np.int64)
    state, record, view = CycleState(), cluster.read(pod("p")), View(cluster, rows)
    runner.scoring.prepare(state, record, view)
    found: list[int] = runner.scoring.totals(state, record, view).tolist()
    by_plugin = [each.weighted for each in runner.scoring.rated(state, record, view)]
    assert found == [sum(int(one[position]) for one in by_plugin) for position in range(len(rows))]
    return found


def test_scores_are_weighted_and_added_up() -> None:
    cluster = nodes(a=1, b=2)

    found = totals(runner_with(cluster, ByCpu(), Simple({"a": 10, "b": 0}), ByCpu=3, Simple=2))

    assert found == [3 * 1 + 2 * 10, 3 * 2 + 2 * 0]


def test_a_plugin_that_skips_at_pre_score_does_not_rate() -> None:
    assert totals(runner_with(nodes(a=1, b=2), ByCpu(), Simple({}, before=SKIP))) == [1, 2]


def test_scores_are_normalized_before_they_are_weighted() -> None:
    assert totals(runner_with(nodes(a=150, b=7), Halved(), Halved=3)) == [225, 9]


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ROW])
def test_row_local_scores_are_computed_once_until_the_row_changes(scope: Scope) -> None:
    cluster, by_cpu = nodes(a=1, b=2), ByCpu(scope)
    runner = runner_with(cluster, by_cpu)
    state, record, view = CycleState(), cluster.read(pod("p")), View(cluster)

    assert [runner.scoring.totals(state, record, view).tolist() for _ in range(3)] == [[1, 2]] * 3
    assert by_cpu.calls == 1
    cluster.put(node("b", cpu=7))
    assert runner.scoring.totals(state, record, view).tolist() == [1, 7]
    assert by_cpu.calls == 2


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ROW])
def test_of_many_rows_only_the_few_feasible_ones_are_scored(scope: Scope) -> None:
    class Counted(ByCpu):
        rows = 0

        def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
            self.rows += len(view)
            return super().score_rows(state, pod, view)

    plugin = Counted(scope)
    runner = runner_with(nodes(**{f"n{number}": number % 7 for number in range(40)}), plugin)
    record, view = runner.cluster.read(pod("p")), View(runner.cluster, np.array([5, 6], dtype=np.int64))
    assert runner.scoring.totals(CycleState(), record, view).tolist() == [5, 6]
    assert plugin.rows == 2


def test_only_row_scores_are_asked_again_when_a_pod_comes() -> None:
    cluster, by_node, by_row = nodes(a=1, b=2), ByCpu(Scope.NODE), ByCpu(Scope.ROW)
    by_row.name = "ByRow"
    runner = runner_with(cluster, by_node, by_row)
    state, record, view = CycleState(), cluster.read(pod("p")), View(cluster)
    runner.scoring.totals(state, record, view)

    cluster.add_pod(cluster.read(pod("q", on="a")))
    runner.scoring.totals(state, record, view)

    assert (by_node.calls, by_row.calls) == (1, 2)


# Plugins that break their contract


def test_pre_score_must_succeed_or_skip() -> None:
    plugin = Simple({}, before=Status(Code.ERROR, ("out of ink",)))

    with pytest.raises(PluginError, match=r"^plugin Simple failed at PreScore for pod default/p: out of ink$"):
        totals(runner_with(nodes(a=1), plugin))


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("factor", [-1, 101])
def test_a_score_out_of_range_names_the_plugin(scope: Scope, factor: int) -> None:
    """The score may be computed for this pod or cached."""
    cluster = nodes(a=1, b=1)
    runner = runner_with(cluster, ByCpu(scope, factor))
    state, record, view = CycleState(), cluster.read(pod("p")), View(cluster)

    for _ in range(2):
        with pytest.raises(PluginError, match=r"^plugin ByCpu gave pod default/p scores from .* within 0 and 100"):
            runner.scoring.totals(state, record, view)


def test_a_node_that_is_not_rated_may_have_any_score() -> None:
    """Array plugins are asked about rows that no pod will take, so that the answers can be kept."""
    runner = runner_with(nodes(a=1, b=101), ByCpu(Scope.ROW))

    assert totals(runner, "a") == [1]


@pytest.mark.parametrize("score", [0.5, None, "5"])
def test_a_simple_score_must_be_an_integer(score: object) -> None:
    runner = runner_with(nodes(a=1), Simple({"a": score}))

    with pytest.raises(PluginError, match=r"^plugin Simple scored .* for pod default/p; an integer is needed$"):
        totals(runner)


class Odd(ByCpu):
    """Answers with an array that is none of the scores asked for."""

    name = "Odd"

    def __init__(self, scope: Scope, answer: object) -> None:
        super().__init__(scope)
        self.answer = answer

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Any:
        return self.answer


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("answer", [np.array([0.5, 1.0]), np.array([1, 2, 3]), np.array(1), [1, 2]])
def test_array_scores_must_be_as_many_integers_as_nodes(scope: Scope, answer: object) -> None:
    with pytest.raises(PluginError, match=r"^plugin Odd failed at Score for pod default/p: "):
        totals(runner_with(nodes(a=1, b=1), Odd(scope, answer)))


# Normalization


def test_the_default_normalization_makes_the_highest_score_100() -> None:
    scores = np.array([0, 5, 10, 3], dtype=np.int64)

    assert default_normalize(scores, reverse=False).tolist() == [0, 50, 100, 30]
    assert default_normalize(scores, reverse=True).tolist() == [100, 50, 0, 70]


def test_zero_scores_stay_equal_after_normalization() -> None:
    zeros = np.zeros(2, dtype=np.int64)

    assert default_normalize(zeros, reverse=False).tolist() == [0, 0]
    assert default_normalize(zeros, reverse=True).tolist() == [100, 100]
