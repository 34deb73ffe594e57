"""Cached preemption trials, and the changes that invalidate them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.ranking import PreemptionRanking
from podium.decide.placement import full_outcome, place
from podium.decide.preempting import trials
from podium.decide.preempting.reprieve import Preemptor, choose_victims, choose_victims_on
from podium.framework.runner import Runner
from podium.plugins.default_preemption import DefaultPreemption
from tests.builders import budget, cluster_of, node, pending_in, plain_runner, pod
from tests.decide.answers import answers

TARGET = pod("p", priority=5, cpu=2)
RUNNING = [pod("q", on="n", cpu=1, started=1), pod("r", on="n", cpu=1, labels={"app": "db"}, started=2)]


def candidates(runner: Runner, target: Pod = TARGET) -> Any:
    found = answers(runner, pending_in(runner.cluster, target))
    return found.get("candidates")


def asked(cluster: Cluster, target: Pod) -> tuple[trials.Trials, Preemptor, Int64s]:
    """Return the trials of a scheduler, a pod that it found no node for, and the rows where preemption may help."""
    runner, record = plain_runner(cluster), pending_in(cluster, target)
    placement, plugin = place(runner, record), runner.profile.post_filter[-1]
    assert isinstance(plugin, DefaultPreemption)
    found = plugin.plain_trials(cluster)
    assert found is not None
    return found, Preemptor(runner, placement.state, record), full_outcome(cluster, placement).resolvable()


def reported(change: Callable[[Cluster], object]) -> tuple[Any, Any]:
    """Return the candidates before and after a change, found by the same scheduler."""
    cluster = cluster_of(node("n", cpu=3), node("m", cpu=0), pod("k", on="n", priority=9, cpu=1), *RUNNING)
    runner, target = plain_runner(cluster), pod("p", priority=5, cpu=1)
    before = candidates(runner, target)
    change(cluster)
    return before, candidates(runner, target)


def put(item: Kubernetes) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.put(item)


def replace(item: Pod) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.replace_pod(cluster.read(item))


Q, R = {"n": (["default/q"], 0)}, {"n": (["default/r"], 0)}


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (put(budget("b", "app=db", 0)), Q),
        (replace(pod("q", on="n", cpu=1, started=3)), Q),
        (replace(pod("r", on="n", cpu=1, priority=1, labels={"app": "db"})), Q),
        (replace(pod("r", on="n", cpu=1, policy="NonPreemptible", started=2)), Q),
        (lambda cluster: cluster.remove_pod("default/r"), None),
        (lambda cluster: cluster.add_pod(cluster.read(pod("s", on="n", started=9))), R),
        (put(node("n", cpu=2)), {"n": (["default/q", "default/r"], 0)}),
        (put(node("m", cpu=9)), None),
    ],
)
def test_a_trial_is_repeated_when_its_node_or_the_budgets_change(
    change: Callable[[Cluster], object], after: object
) -> None:
    assert reported(change) == (R, after)


def test_several_changed_nodes_are_tried_together_whatever_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_FEW_PODS", 0)
    victims = [pod(f"v{number}", on=f"n{number}", cpu=number % 3 + 1) for number in range(9)]
    cluster = cluster_of(*(node(f"n{number}", cpu=3) for number in range(9)), *victims)
    runner, target = plain_runner(cluster), pod("p", priority=5, cpu=3)
    candidates(runner, target)

    # The rows 8 and 1 of a set come in this order.
    for number in (8, 1):
        cluster.add_pod(cluster.read(pod(f"w{number}", on=f"n{number}", cpu=number % 2, priority=number)))

    assert candidates(runner, target) == candidates(plain_runner(cluster), target)


def test_a_nomination_that_begins_or_ends_repeats_the_trial() -> None:
    cluster = cluster_of(node("n", cpu=3), *RUNNING, pod("s", on="n", cpu=1, started=3))
    runner, other = plain_runner(cluster), cluster.read(pod("w", priority=5, cpu=1))
    target = pod("p", priority=5, cpu=1)

    found = [candidates(runner, target)]
    cluster.nominations.put(other, "n")
    found.append(candidates(runner, target))
    cluster.nominations.remove(other.uid)
    found.append(candidates(runner, target))

    one, two = (["default/s"], 0), (["default/r", "default/s"], 0)
    assert found == [{"n": one}, {"n": two}, {"n": one}]


def rows_tried(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, *changes: Callable[[Cluster], object]) -> list[int]:
    """On how many nodes preemption is tried after each change, by a scheduler that has tried all of them before."""
    tried: list[int] = []

    def counted(*args: Any, **more: Any) -> Any:
        tried[-1] += len(args[2].rows)
        return choose_victims(*args, **more)

    def counted_one(*args: Any) -> Any:
        tried[-1] += 1
        return choose_victims_on(*args)

    monkeypatch.setattr("podium.decide.preempting.trials.choose_victims", counted)
    monkeypatch.setattr("podium.decide.preempting.trials.choose_victims_on", counted_one)
    runner = plain_runner(cluster)
    # What is kept of a class of pods lives as long as one of them.
    waiting = cluster.read(TARGET)
    for change in (lambda _: None, *changes):
        change(cluster)
        tried.append(0)
        candidates(runner)
    assert waiting.name == TARGET.metadata.name
    return tried[1:]


def test_a_change_of_a_budget_repeats_the_trials_of_its_pods_nodes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{number}", cpu=2) for number in range(40)]
    pods = [pod(f"q{n}", on=f"n{n}", cpu=2, ready=True, labels={"app": "db" if n < 3 else "web"}) for n in range(40)]
    cluster = cluster_of(*nodes, *pods, budget("b", "app=db", 1), budget("w", "app=web", 1, rate="1/2s", used=1))

    assert rows_tried(
        monkeypatch,
        cluster,
        put(budget("b", "app=db", 0)),
        put(budget("b", "app=db", 0)),
        put(budget("b", "app=none", 0)),
        put(budget("elsewhere", "app", 0, namespace="kube-system")),
        lambda one: one.pass_time(10**9),
        lambda one: one.pass_time(2 * 10**9),
        lambda one: one.remove(budget("w", "app=web", 1)),
    ) == [3, 0, 3, 0, 0, 37, 37]


def test_more_changes_of_budgets_than_can_be_remembered_repeat_all_trials() -> None:
    cluster = cluster_of(node("n", cpu=3), *RUNNING, pod("k", on="n", priority=9, cpu=1))
    runner, target = plain_runner(cluster), pod("p", priority=5, cpu=1)
    assert candidates(runner, target) == R

    cluster.put(budget("b", "app=db", 0))
    for number in range(2_000):
        cluster.put(budget("other", "app=other", number % 2))

    assert candidates(runner, target) == Q


def test_equal_pods_share_their_trials_except_for_their_own_nominations() -> None:
    """To each of them the other's nomination counts, and its own does not."""
    cluster = cluster_of(node("n", cpu=3), *RUNNING, pod("s", on="n", cpu=1, started=3))
    runner = plain_runner(cluster)
    first, second = cluster.read(pod("p1", priority=5, cpu=1)), cluster.read(pod("p2", priority=5, cpu=1))
    assert first.pod_class is second.pod_class
    cluster.nominations.put(first, "n")

    victims = {one.name: answers(runner, one)["candidates"]["n"][0] for one in (first, second, first)}

    assert victims == {"p1": ["default/s"], "p2": ["default/r", "default/s"]}


def test_a_trial_on_the_nominated_node_is_not_reused_for_its_class() -> None:
    """They would have to fit beside it there."""
    lesser = pod("q", on="n", cpu=1, priority=1), pod("r", on="m", cpu=1, priority=2)
    cluster = cluster_of(node("n", cpu=1), node("m", cpu=1), *lesser)
    runner = plain_runner(cluster)
    first, second = cluster.read(pod("p1", priority=5, cpu=1)), cluster.read(pod("p2", priority=5, cpu=1))
    cluster.nominations.put(first, "n")

    chosen = [answers(runner, one)["chosen"] for one in (first, second, first, second)]

    assert chosen == ["n", "m", "n", "m"]


def test_pods_of_one_class_and_different_priorities_do_not_share_trials() -> None:
    cluster = cluster_of(node("n", cpu=1), pod("q", on="n", priority=3, cpu=1))
    runner = plain_runner(cluster)

    found = [candidates(runner, pod("p", priority=priority, cpu=1)) for priority in (4, 3, 4)]

    assert found == [{"n": (["default/q"], 0)}, {}, {"n": (["default/q"], 0)}]


def test_trials_of_a_pod_that_is_too_large_for_every_node_rank_no_victims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranking the pods of thousands of nodes takes longer than all else about such a pod."""
    found, preemptor, rows = asked(cluster_of(node("n", cpu=3), *RUNNING), pod("p", priority=5, cpu=8))
    monkeypatch.delattr(PreemptionRanking, "refresh")

    table = found.on(preemptor, rows, None)

    assert table.rows.tolist() == table.refused.tolist() == []


def test_trials_on_one_node_say_nothing_of_other_nodes() -> None:
    """A gang tries single nodes; a later trial of its class on all nodes finds those of the others."""
    cluster = cluster_of(node("n", cpu=3), node("m", cpu=3), *RUNNING, pod("s", on="m", cpu=2))
    found, preemptor, rows = asked(cluster, TARGET)
    assert len(rows) == 2

    numbers = [len(found.on(preemptor, some, None).candidates) for some in (rows[:1], rows)]

    assert numbers == [1, 2]


def test_the_trials_of_the_classes_seen_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many classes there are, and with the same answers."""
    monkeypatch.setattr(trials, "_CACHED_CLASSES", 2)
    cluster = cluster_of(node("n", cpu=4), *(pod(f"q{n}", on="n", cpu=1, started=n) for n in range(4)))
    runner = plain_runner(cluster)

    found = [len(candidates(runner, pod("p", priority=5, cpu=cpu))["n"][0]) for cpu in (1, 2, 3, 4, 1, 2, 3, 4)]

    assert found == [1, 2, 3, 4, 1, 2, 3, 4]


def test_a_trial_is_made_again_when_readiness_decides_whether_a_victim_takes_a_token() -> None:
    """The rate has no token left. A pod that is not ready takes none, and so it violates nothing any more."""
    spent = budget("db", "app=db", 5, rate="1/1h", used=1)
    ready = pod("r", on="n", cpu=1, labels={"app": "db"}, started=2, ready=True)
    cluster = cluster_of(node("n", cpu=3), pod("k", on="n", priority=9, cpu=1), RUNNING[0], ready, spent)
    runner, target = plain_runner(cluster), pod("p", priority=5, cpu=1)

    before = candidates(runner, target)
    cluster.replace_pod(cluster.read(RUNNING[1]))

    assert (before, candidates(runner, target)) == (Q, R)
