"""Measurements of a run: readiness by workload, held evictions, and the lives of nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from podium.sim.results.measures import Measures
from podium.sim.results.readiness import WorkloadReadiness
from podium.sim.results.result import Result, result_of
from podium.sim.results.usage import Series
from tests.app.planning.dumps import cloud_name, dump
from tests.sim.objects import TEMPLATE, budget, job, owned, scenario, template, workload
from tests.sim.played import instantly, played
from tests.store.objects import Raw, node, pod

SECOND = 10**9


def measured(*objects: Raw, **settings: Any) -> Measures:
    return result_of(played(*objects, **settings)).measures


def of(measures: Measures, label: str) -> WorkloadReadiness:
    return next(found for found in measures.workloads if found.workload == label)


def test_a_pod_counts_for_the_topmost_workload_that_is_known() -> None:
    nodes = [node("n1")]
    web = workload("Deployment", "web", 2)
    found = measured(*nodes, web, pod("alone"), until_ns=SECOND)

    assert [each.workload for each in found.workloads] == ["Deployment default/web", "Pod default/alone"]
    stray = owned(pod("stray", node="n1"), {**workload("ReplicaSet", "lost", 1), "metadata": NAMED})
    assert [each.workload for each in measured(*nodes, stray).workloads] == ["ReplicaSet default/lost"]


NAMED: Raw = {"name": "lost", "namespace": "default", "uid": "lost"}


def test_a_gap_is_counted_for_as_long_as_it_lasts_and_not_where_it_lasts_for_no_time() -> None:
    steps = scenario({"at": "10s", "evict": {"name": "web", "kind": "Deployment"}}, until="1m")
    given = (node("n1"), workload("Deployment", "web", 2), steps)
    slow = measured(*given, until_ns=60 * SECOND, start_delay_ns=5 * SECOND)
    web = of(slow, "Deployment default/web")

    # The pods that start at first, and the one in the place of the evicted one.
    assert (web.before, web.lowest, web.ready, web.wanted) == (0, 0, 2, 2)
    assert web.short_ns == 10 * SECOND
    quick = measured(*given, until_ns=60 * SECOND)
    assert of(quick, "Deployment default/web").short_ns == 0


def test_pods_on_a_stopped_machine_are_not_ready_though_the_api_does_not_know_yet() -> None:
    steps = scenario({"at": "10s", "nodeDown": {"name": "n1"}}, {"at": "20s", "nodeUp": {"name": "n1"}}, until="30s")
    found = of(measured(node("n1"), pod("a", node="n1"), steps, until_ns=30 * SECOND), "Pod default/a")

    assert (found.before, found.lowest, found.ready) == (1, 0, 1)
    assert found.short_ns == 10 * SECOND
    assert [(time - found.points.points[0][0], value) for time, value in found.points.points] == [
        (0, (1, 1)),
        (10 * SECOND, (0, 1)),
        (20 * SECOND, (1, 1)),
    ]


def test_waiting_is_added_up_over_the_pods() -> None:
    tight = [node("n1", cpu="1"), *(pod(name, cpu="1") for name in "abc")]
    found = measured(*tight, until_ns=10 * SECOND)

    assert sum(each.pending_ns for each in found.workloads) == 20 * SECOND
    assert found.series[-1][1].pending == 2


def test_a_job_that_is_done_wants_no_more() -> None:
    done = job("once", template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}, completions=1)
    done["spec"]["template"]["metadata"] = {"annotations": {"podium.dev/duration": "5s"}}
    found = of(measured(node("n1"), done, until_ns=60 * SECOND), "Job default/once")

    assert (found.wanted, found.ready, found.short_ns) == (0, 0, 0)


def test_readiness_reports_a_blocking_budget_from_its_first_refusal_until_it_allows() -> None:
    slow = workload("Deployment", "web", 2, template=template(**{"ready-after": "20s"}))
    cordoned = {**node("n2"), "spec": {"unschedulable": True}}
    steps = scenario({"at": "50s", "uncordon": {"name": "n2"}}, {"at": "1m", "drain": {"name": "n1"}})
    result: Result = instantly([node("n1"), cordoned, slow, budget("web", maxUnavailable=1), steps])

    (held,) = result.measures.holds
    assert (held.budgets, held.by) == (("default/web",), "drain")
    assert (held.from_ns - result.measures.start_ns, held.until_ns) == (60 * SECOND, held.from_ns + 20 * SECOND)


def test_a_drain_after_another_begins_when_that_is_over_and_drained_nodes_may_go() -> None:
    second = {"name": cloud_name(1), "after": cloud_name(0), "removeNode": True}
    steps = scenario({"at": "0s", "drain": {"name": cloud_name(0), "removeNode": True}}, {"at": "0s", "drain": second})
    result: Result = instantly([*dump(5, 25), steps])

    gone = [event.node for event in result.events if event.reason == "NodeRemoved"]
    assert gone == [cloud_name(0), cloud_name(1)]
    assert [drain["state"] for drain in result.summary["drains"]] == ["drained", "drained"]
    cordoned = [event.time for event in result.events if event.message == "cordoned"]
    removed = [event.time for event in result.events if event.reason == "NodeRemoved"]
    assert cordoned[1] >= removed[0]
    assert {found.node for found in result.nodes if "gone" in found.marks} == {cloud_name(0), cloud_name(1)}


def test_a_drain_after_one_that_never_was_begins_at_once() -> None:
    steps = scenario({"at": "0s", "drain": {"name": cloud_name(1), "after": "nobody"}})

    assert instantly([*dump(5, 25), steps]).summary["drains"][0]["state"] == "drained"


def test_a_series_has_so_many_points_at_most_and_keeps_first_and_last() -> None:
    series: Series[int] = Series(10)
    for time in range(1000):
        series.put(time, time)

    assert len(series.points) <= 11
    assert series.points[0] == (0, 0)
    assert series.points[-1] == (999, 999)
    assert [time for time, _ in series.points] == sorted({time for time, _ in series.points})


def test_a_long_series_of_even_changes_keeps_points_that_are_as_even() -> None:
    series: Series[int] = Series(10)
    for time in range(100, 1100):
        series.put(time, time)

    gaps = [later - before for (before, _), (later, _) in pairwise(series.points)]
    assert len(gaps) >= 5
    assert max(gaps) < 2 * min(gaps)


def test_a_series_keeps_changes_alone_and_of_one_instant_the_last() -> None:
    series: Series[str] = Series()
    for time, value in ((0, "a"), (1, "a"), (2, "b"), (2, "c")):
        series.put(time, value)

    assert series.points == [(0, "a"), (2, "c")]
