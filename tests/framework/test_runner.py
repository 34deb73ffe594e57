"""Calling the plugins of a profile, and combining their answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podium.api.pod import Pod
from podium.app.explaining.attempts import explain_decision
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.decide.placement import place
from podium.framework.handle import CycleState
from podium.framework.plugin import PreFilterResult, Scope
from podium.framework.runner import Runner
from podium.framework.settings.registry import Profile
from podium.framework.verdicts import SKIP, SUCCESS, Code, PluginError, Status, Verdicts, unresolvable, unschedulable
from tests.builders import ZONE, cluster_of, configuration, explain, node, plain_runner, pod, spread_over, term
from tests.plugin_errors import without_place

FULL = unschedulable("full")


class Recorder:
    """A plugin with scripted answers that records its calls."""

    def __init__(
        self, name: str = "Recorder", *, before: object = SUCCESS, on: Callable[[NodeView], object] = lambda _: SUCCESS
    ) -> None:
        self.name = name
        self.before = before
        self.on = on
        self.asked: list[str] = []

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Any:
        self.asked.append("PreFilter")
        return self.before

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Any:
        self.asked.append(node.name)
        return self.on(node)


def runner_with(*plugins: Recorder, cluster: Cluster | None = None) -> tuple[Runner, PodRecord]:
    cluster = cluster or cluster_of(node("n1"), node("n2"))
    profile = Profile("default-scheduler", pre_filter=plugins, filter=plugins)
    return Runner(profile, cluster), cluster.read(pod("p"))


def statuses(runner: Runner, record: PodRecord) -> dict[str, Status]:
    state = CycleState()
    runner.pre_filter(state, record)
    outcome = runner.filter(state, record)
    return {name: outcome.status(row) for name, row in runner.cluster.nodes.row_of.items()}


# PreFilter


def test_a_plugin_that_skips_at_pre_filter_is_not_asked_at_filter() -> None:
    skipping, asked = Recorder("Skips", before=SKIP), Recorder("Asked")

    statuses(*runner_with(skipping, asked))

    assert (skipping.asked, asked.asked) == (["PreFilter"], ["PreFilter", "n1", "n2"])


@pytest.mark.parametrize(("code", "goes_on"), [(unschedulable("no"), True), (unresolvable("no"), False)])
def test_only_a_rejection_that_preemption_might_lift_lets_the_others_prepare(code: Status, goes_on: bool) -> None:
    """kube-scheduler does so since kubernetes/kubernetes#119770."""
    first, second = Recorder("First", before=code), Recorder("Second")
    runner, record = runner_with(first, second)

    found = runner.pre_filter(CycleState(), record)

    assert found.status == code.by("First")
    assert bool(second.asked) is goes_on


def test_the_last_of_two_pre_filter_rejections_is_reported() -> None:
    runner, record = runner_with(Recorder("First", before=FULL), Recorder("Second", before=unresolvable("never")))

    assert runner.pre_filter(CycleState(), record).status == unresolvable("never").by("Second")


class Tokens:
    """Pods of the app hold the only token; its PreFilter looks whether it is free, its Filter whether it is by then."""

    name = "Tokens"

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        state[self.name] = [sum(one.labels.get("app") == "a" for one in cluster.placed.values())]
        return FULL if state[self.name][0] else SUCCESS

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None:
        state[self.name] = [state[self.name][0] + (added.labels.get("app") == "a")]

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
        state[self.name] = [state[self.name][0] - (removed.labels.get("app") == "a")]

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        return FULL if state[self.name][0] else SUCCESS


def test_preemption_can_lift_a_rejection_at_pre_filter() -> None:
    """Row 2 of Kubernetes' tests: TestPreemption, basic pod preemption with preFilter."""
    holder = pod("holder", on="n1", labels={"app": "a"})
    cluster = cluster_of(node("n1"), node("n2"), holder, pod("q", on="n1"), pod("r", on="n2"))
    runner = plain_runner(cluster, extra=[Tokens()])

    found = explain_decision(runner, cluster.read(pod("p", priority=5)))

    assert (found.outcome, found.node) == ("preempts", "n1")
    assert found.plan is not None
    assert {name: [one.name for one in each.victims] for name, each in found.plan.candidates.items()} == {
        "n1": ["holder"]
    }
    assert {name: status.by("") for name, status in found.plan.rejected.items()} == {"n2": FULL}


def test_pre_filters_narrow_the_nodes_to_those_that_all_of_them_name() -> None:
    both = Recorder("Both", before=PreFilterResult(SUCCESS, frozenset({"n1", "n2"})))
    one = Recorder("Another", before=PreFilterResult(SUCCESS, frozenset({"n2", "unknown"})))
    runner, record = runner_with(both, one)

    found = runner.pre_filter(CycleState(), record)

    assert found.rows is not None
    assert [runner.cluster.nodes.name(int(row)) for row in found.rows] == ["n2"]
    assert found.plugins == ("Another", "Both")


def test_pre_filters_that_leave_no_node_together_are_an_unresolvable_rejection() -> None:
    first = Recorder("Z", before=PreFilterResult(SUCCESS, frozenset({"n1"})))
    second = Recorder("A", before=PreFilterResult(SUCCESS, frozenset({"n2"})))
    alone = Recorder("Alone", before=PreFilterResult(SUCCESS, frozenset()))

    def found(*plugins: Recorder) -> Status:
        runner, record = runner_with(*plugins)
        return runner.pre_filter(CycleState(), record).status

    assert found(first, second) == unresolvable("node(s) didn't satisfy plugin(s) [A Z] simultaneously")
    assert found(alone) == unresolvable("node(s) didn't satisfy plugin Alone")


# Filter


def test_the_first_plugin_that_refuses_gives_the_reason_and_the_next_is_not_asked() -> None:
    first = Recorder("First", on=lambda node: FULL if node.name == "n1" else SUCCESS)
    second = Recorder("Second", on=lambda node: unresolvable("never"))

    found = statuses(*runner_with(first, second))

    assert found == {"n1": FULL.by("First"), "n2": unresolvable("never").by("Second")}
    assert second.asked == ["PreFilter", "n2"]


class Everywhere:
    """An array plugin that refuses all nodes, behind or before others."""

    name = "Everywhere"

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        return Verdicts.where(np.ones(len(view), dtype=np.bool_), FULL)


@pytest.mark.parametrize("scope", Scope)
def test_the_profile_order_decides_across_scopes(scope: Scope) -> None:
    """Cached parts are computed before others, and must not come first in the result."""
    cluster = cluster_of(node("n1"), node("n2"))
    first = Recorder("First", on=lambda node: unresolvable("no") if node.name == "n1" else SUCCESS)
    profile = Profile("default-scheduler", filter=[first, Everywhere(scope)])

    found = statuses(Runner(profile, cluster), cluster.read(pod("p")))

    assert found == {"n1": unresolvable("no").by("First"), "n2": FULL.by("Everywhere")}


def test_a_row_without_a_node_is_neither_feasible_nor_asked_about() -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    cluster.remove_node("n1")
    asked = Recorder()
    runner, record = runner_with(asked, cluster=cluster)

    outcome = runner.filter(CycleState(), record)

    assert outcome.feasible.tolist() == [cluster.nodes.row_of["n2"]]
    assert asked.asked == ["n2"]


# Nominated pods


def test_filters_run_beside_the_nominated_pods_first_and_then_without_them() -> None:
    seen: list[tuple[str, ...]] = []

    def note(node: NodeView) -> Status:
        seen.append(tuple(one.name for one in node.pods))
        return SUCCESS

    nominated = [pod("w", priority=0, nominated="n1"), pod("low", priority=-1, nominated="n1")]
    cluster = cluster_of(node("n1"), node("n2"), *nominated)
    runner, record = runner_with(Recorder(on=note), cluster=cluster)

    statuses(runner, record)

    assert sorted(seen) == [(), (), ("w",)]


def test_a_refusal_beside_the_nominated_pods_is_the_answer() -> None:
    crowded = Recorder(on=lambda node: FULL if node.pods else unresolvable("lonely"))
    cluster = cluster_of(node("n1"), node("n2"), pod("w", nominated="n1"))
    runner, record = runner_with(crowded, cluster=cluster)

    assert {name: status.reasons for name, status in statuses(runner, record).items()} == {
        "n1": ("full",),
        "n2": ("lonely",),
    }


def test_equal_nominated_pods_count_against_each_other_but_not_themselves() -> None:
    """Though they are of one class, for which the answers are kept."""
    waiting = [pod(f"w{n}", priority=5, cpu=2, nominated="n1") for n in range(2)]
    fits_one, fits_two = cluster_of(node("n1", cpu=3), *waiting), cluster_of(node("n1", cpu=4), *waiting)

    for cluster, fits in ((fits_one, False), (fits_two, True)):
        runner = plain_runner(cluster)
        records = [one for one, _ in cluster.nominations.all()]
        assert [place(runner, one).row is not None for one in (*records, *records)] == [fits] * 4
        rows = [place(runner, one, nominated_first=False).row for one in records]
        assert [row is not None for row in rows] == [fits] * 2


def test_anti_affinity_of_a_nominated_pod_keeps_others_off_its_node() -> None:
    """This is a setting. Without it, only if a placed pod has such anti-affinity too, as in kube-scheduler."""
    minding = pod("w", priority=9, nominated="n1", labels={"app": "w"}, apart=[term("app=p")])
    target = pod("p", priority=5, labels={"app": "p"})
    nodes = [node("n1", zone="a"), node("n2", zone="a"), node("n3", zone="a")]
    other = pod("o", on="n2", priority=9, labels={"app": "o"}, apart=[term("app=p")])

    def refused(*objects: Pod, repel: bool = True) -> list[str]:
        settings = configuration({"InterPodAffinity": {"nominatedPodsRepel": repel}})
        found = explain([*nodes, *objects, target], settings=settings).nodes
        return [name for name, status in found.items() if not status.is_success]

    assert refused(minding) == ["n1"]
    assert refused(minding, other) == ["n1", "n2"]
    assert refused(minding, repel=False) == []
    assert refused(minding, other, repel=False) == ["n1", "n2"]


def test_a_pod_rejected_beside_a_nominated_pod_may_fit_after_a_remote_change() -> None:
    """Spreading looks at all nodes: the answer for a node cannot be kept though the node stays as it is."""
    web = {"app": "web"}
    waiting = pod("w", priority=9, labels=web, nominated="a")
    cluster = cluster_of(node("a", zone="a"), node("b", zone="b"), *(node(f"n{n}") for n in range(8)), waiting)
    runner = plain_runner(cluster)
    record = cluster.read(pod("p", labels=web, spread=[spread_over(ZONE, "app=web")]))

    def fits() -> list[str]:
        return [cluster.nodes.name(int(row)) for row in place(runner, record).feasible]

    assert fits() == ["b"]
    cluster.add_pod(cluster.read(pod("q", on="b", labels=web)))
    assert fits() == ["a"]


def test_a_plugin_that_skips_at_pre_filter_receives_no_changes() -> None:
    """It prepared nothing that would have to be kept true."""
    report = []

    class Skips(Tokens):
        def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
            return SKIP

        def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
            report.append(removed)

    cluster = cluster_of(node("n1", cpu=1), pod("q", on="n1", cpu=1))
    asked = Recorder()
    runner = plain_runner(cluster, extra=[Skips(), asked])

    found = explain_decision(runner, cluster.read(pod("p", priority=5, cpu=1)))

    assert (found.outcome, report) == ("preempts", [])
    assert "n1" in asked.asked


# Plugins that break their contract


def broken(node: NodeView) -> Status:
    raise ZeroDivisionError("nothing to share")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Recorder(before=None), "plugin Recorder answered None, which is not a Status at PreFilter for pod default/p"),
        (
            Recorder(on=lambda _: True),
            "plugin Recorder answered True, which is not a Status at Filter for pod default/p",
        ),
        (
            Recorder(before=Status(Code.ERROR, ("disk on fire",))),
            "plugin Recorder answered Error (disk on fire) at PreFilter for pod default/p",
        ),
        (Recorder(on=lambda _: SKIP), "plugin Recorder answered Skip () at Filter for pod default/p"),
        (
            Recorder(on=broken),
            "plugin Recorder failed at Filter for pod default/p: ZeroDivisionError: nothing to share",
        ),
    ],
)
def test_an_invalid_answer_names_plugin_point_and_pod(plugin: Recorder, message: str) -> None:
    with pytest.raises(PluginError) as raised:
        statuses(*runner_with(plugin))

    assert without_place(str(raised.value)) == message


class Failing:
    """A plugin that fails at a given point."""

    name = "Failing"
    scope = Scope.ROW

    def __init__(self, point: str) -> None:
        self.point = point

    def _reach(self, point: str) -> None:
        if point == self.point:
            raise KeyError("gone")

    def pre_filter(self, state: CycleState, pod: PodRecord, cluster: Cluster) -> Status:
        self._reach("PreFilter")
        return SUCCESS

    def add_pod(self, state: CycleState, pod: PodRecord, added: PodRecord, node: NodeView) -> None:
        self._reach("AddPod")

    def remove_pod(self, state: CycleState, pod: PodRecord, removed: PodRecord, node: NodeView) -> None:
        self._reach("RemovePod")

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        self._reach("Filter")
        return Verdicts.none(len(view))

    def pre_score(self, state: CycleState, pod: PodRecord, feasible: View) -> Status:
        self._reach("PreScore")
        return SUCCESS

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        self._reach("Score")
        return np.zeros(len(view), dtype=np.int64)

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        self._reach("NormalizeScore")
        return scores


def failure(point: str) -> str:
    return f"^plugin Failing failed at {point} for pod default/p: KeyError: 'gone' \\(test_runner\\.py, line [0-9]+\\)$"


@pytest.mark.parametrize("point", ["PreFilter", "Filter", "PreScore", "Score", "NormalizeScore"])
def test_plugin_errors_name_plugin_point_and_pod(point: str) -> None:
    cluster = cluster_of(node("n1"), node("n2"))
    runner = plain_runner(cluster, extra=[Failing(point)])

    with pytest.raises(PluginError, match=failure(point)):
        place(runner, cluster.read(pod("p")))


@pytest.mark.parametrize("point", ["RemovePod", "AddPod"])
def test_plugin_errors_in_a_trial_name_plugin_point_and_pod(point: str) -> None:
    cluster = cluster_of(node("n1", cpu=2), pod("q", on="n1", cpu=1), pod("r", on="n1", cpu=1))
    runner = plain_runner(cluster, extra=[Failing(point), Recorder("Simple")])

    found = explain_decision(runner, cluster.read(pod("p", priority=5, cpu=1)))

    assert found.outcome == "error"
    assert re.search(failure(point), found.error)


def test_a_plugin_that_failed_once_is_asked_again() -> None:
    """A failed computation must not mark the cached row as up to date."""
    cluster = cluster_of(node("n1"), node("n2"), node("n3"), node("n4"), node("n5"))
    failing = Failing("nowhere")
    runner = plain_runner(cluster, extra=[failing])
    record = cluster.read(pod("p", cpu=6))
    assert place(runner, record).feasible.tolist() == [0, 1, 2, 3, 4]
    cluster.add_pod(cluster.read(pod("q", on="n1", cpu=6)))

    failing.point = "Filter"
    with pytest.raises(PluginError):
        place(runner, record)
    failing.point = "nowhere"

    assert place(runner, record).feasible.tolist() == [1, 2, 3, 4]


def test_a_profile_without_a_queue_sort_cannot_order_pods() -> None:
    runner, record = runner_with()

    with pytest.raises(PluginError, match="profile default-scheduler has no QueueSort plugin"):
        runner.sort_key(record, 0)


class Contrary:
    """Refuses a node as it is, and accepts it whenever anything was tried."""

    name = "Contrary"

    def __init__(self) -> None:
        self.tried = False

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        self.tried, before = True, self.tried
        return SUCCESS if before else FULL


def test_a_node_where_every_pod_can_stay_is_no_candidate() -> None:
    """Only a filter that contradicts itself makes one; kube-scheduler rejects it too."""
    cluster = cluster_of(node("n1"), pod("q", on="n1"))
    runner = plain_runner(cluster, extra=[Contrary()])

    found = explain_decision(runner, cluster.read(pod("p", priority=5)))

    assert found.outcome == "unschedulable"
    assert found.plan is not None
    assert [status.reasons for status in found.plan.rejected.values()] == [
        ("expected at least one victim pod on node",)
    ]
