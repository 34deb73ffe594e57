"""Brief results: without the pods in which two runs of a cluster cannot differ, for the same answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.input.codec import Document, Input, decode
from podium.app.console.page import Page
from podium.app.planning.answer import NODES, TIMELINE, PlanAnswer, plan_markdown, write_answer
from podium.app.planning.question import PlanRun
from podium.app.planning.questions.change import change
from podium.app.planning.questions.deploy import deploy
from podium.app.planning.questions.nodes import PlannedDrain, change_nodes, drain, fail
from podium.app.simulating.simulation_result import SimulationResult
from podium.sim.run_options import RunOptions
from tests.app.planning.small import Raw, budget, node, pod, priority_class, replica_set
from tests.fuzzing import usual
from tests.store.objects import replicated

NAMES = ("a", "b", "c")
FORCED = PlannedDrain(force=True)


def documents(objects: Sequence[Raw]) -> list[Document]:
    return [Document("objects", place, raw, decode(raw)) for place, raw in enumerate(objects, 1)]


def stateful_set(replicas: int) -> Raw:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return replicated("StatefulSet", "db", replicas, {"containers": [container]}, uid="uid-db")


def unwell(raw: Raw, state: str) -> Raw:
    """Return a pod in another state than running and ready."""
    changes: dict[str, Raw] = {
        "not ready": {"conditions": [{"type": "Ready", "status": "False"}]},
        "failed": {"phase": "Failed"},
        "succeeded": {"phase": "Succeeded"},
        "starting": {"phase": "Pending", "conditions": []},
    }
    if state == "terminating":
        deleted = {"deletionTimestamp": "2026-01-01T01:00:00Z", "deletionGracePeriodSeconds": 30}
        return {**raw, "metadata": {**raw["metadata"], **deleted}}
    return {**raw, "status": {**raw["status"], **changes.get(state, {})}}


STATES = st.sampled_from(["", "", "", "not ready", "failed", "succeeded", "starting", "terminating"])


@st.composite
def clusters(draw: st.DrawFn) -> list[Raw]:
    """Draw three nodes, workloads with some of their pods in all states, and pods that wait."""
    is_ready = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=3, max_size=3))
    nodes = [node(name, draw(st.sampled_from(["2", "4"]))) for name in NAMES]
    for each, ready in zip(nodes, is_ready, strict=True):
        each["status"]["conditions"][0]["status"] = str(ready)
    objects = [*nodes, priority_class("high", 1000)]
    for owner in ("web", "batch"):
        number = draw(st.integers(0, 4))
        objects.append(replica_set(owner, max(1, number + draw(st.integers(-1, 1)))))
        objects += [
            unwell(pod(f"{owner}-{each}", on=draw(st.sampled_from(NAMES)), owner=owner), draw(STATES))
            for each in range(number)
        ]
    objects += [budget("web", minAvailable=draw(st.integers(0, 3)))] * draw(st.booleans())
    objects += [stateful_set(2)] * draw(st.booleans())
    objects += [unwell(pod("lonely", on=draw(st.sampled_from(NAMES))), draw(STATES))] * draw(st.booleans())
    waiting = draw(st.lists(st.sampled_from([("1", 1000), ("3", 1000), ("2", 0), ("30", 5)]), max_size=2))
    objects += [pod(f"waits-{place}", cpu, priority=priority) for place, (cpu, priority) in enumerate(waiting)]
    return objects


QUESTIONS: dict[str, Callable[[PlanRun], PlanAnswer]] = {
    "drain": lambda run: drain(run, ["a"], "", FORCED),
    "drain all": lambda run: drain(run, NAMES, "", PlannedDrain(parallel=True, timeout_ns=600 * 10**9, force=True)),
    "fail": lambda run: fail(run, ["a", "b"], ""),
    "fail for a time": lambda run: fail(run, ["b"], "", 600 * 10**9),
    "deploy": lambda run: deploy(run, documents([replica_set("new", 4, "1", priority=2000)])),
    "deploy more": lambda run: deploy(run, documents([replica_set("web", 6, "1", priority=2000)])),
    "deploy by name": lambda run: deploy(run, documents([stateful_set(5)])),
    "scale down": lambda run: change(run, "rs/web", ["replicas=0"], [], ""),
    "add and remove": lambda run: change_nodes(run, [], add=1, like="a", remove=["c"], selector=""),
}


def shown(answer: PlanAnswer) -> list[Any]:
    """Return all that a terminal, a spreadsheet and a pull request show of an answer, but for the list of pods."""
    page = Page()
    write_answer(page, answer, (TIMELINE, NODES))
    return [page.text, answer.summary, answer.csv(), plan_markdown(answer), answer.findings, answer.anyway]


def name_of(row: dict[str, Any]) -> tuple[str, str]:
    return row["pod"], row["uid"]


def assert_brief(brief: SimulationResult, whole: SimulationResult) -> None:
    """Assert that a result has all pods but those that are ready and that no event names, as the whole one has them."""
    named = {name for event in whole.events for name in (event.pod, event.by)}
    assert brief.pods == [row for row in whole.pods if row["state"] != "ready" or row["pod"] in named]
    assert brief.events == whole.events
    assert brief.measures.workloads == whole.measures.workloads
    assert [replace_requests(each) for each in whole.nodes] == [replace_requests(each) for each in brief.nodes]
    assert {**brief.summary, "pods": {}} == {**whole.summary, "pods": {}}


def replace_requests(found: Any) -> dict[str, Any]:
    return {**found.to_dict(), "requested": {}}


@settings(max_examples=usual(60))
@given(clusters(), st.sampled_from(sorted(QUESTIONS)), st.sampled_from([0, 20 * 10**9]))
def test_brief_results_give_the_answers_of_whole_ones(objects: list[Raw], question: str, delay_ns: int) -> None:
    run = PlanRun(Input(documents(objects)), RunOptions(start_delay_ns=delay_ns, latency_ns=delay_ns // 10**4))

    whole = QUESTIONS[question](run)
    brief = QUESTIONS[question](PlanRun(run.read, run.options, forks=True, is_brief=True))

    assert shown(brief) == shown(whole)
    assert brief.result is not None
    assert brief.baseline is not None
    assert whole.result is not None
    assert whole.baseline is not None
    assert_brief(brief.result, whole.result)
    assert_brief(brief.baseline, whole.baseline)


def test_a_workload_whose_pods_have_all_stayed_ready_is_not_without_pods() -> None:
    ending = replica_set("web", 2)
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T01:00:00Z", "finalizers": ["example.com/kept"]}
    found = Input(documents([node("a"), ending, *(pod(f"web-{each}", on="a", owner="web") for each in range(2))]))
    more = partial(change, target="rs/web", assignments=["replicas=3"], patches=[], namespace="")

    brief = more(PlanRun(found, RunOptions(), forks=True, is_brief=True))

    assert brief.result is not None
    assert brief.result.pods == []
    assert [each.why for each in brief.impact] == ["no controller replaces its pods"]
    assert shown(brief) == shown(more(PlanRun(found, RunOptions())))


def test_pods_that_only_the_plan_disrupts_are_not_new() -> None:
    pods = (pod(f"web-{each}", on="a", owner="web") for each in range(2))
    found = Input(documents([node("a", "2"), replica_set("web", 2), *pods]))
    deployed = documents([replica_set("web", 3), pod("big", "2", priority=1000)])
    # The victims still terminate at the end.
    run = PlanRun(found, RunOptions(until_ns=10**9))

    brief = deploy(PlanRun(run.read, run.options, forks=True, is_brief=True), deployed)

    assert brief.result is not None
    assert [row["state"] for row in brief.result.pods if row["pod"] == "default/web-0"] == ["terminating"]
    assert shown(brief) == shown(deploy(run, deployed))


def test_a_brief_result_has_no_json() -> None:
    found = Input(documents([node("a"), pod("web", on="a")]))
    answer = drain(PlanRun(found, RunOptions(), forks=True, is_brief=True), ["a"], "", FORCED)

    with pytest.raises(ValueError, match="a brief result has no JSON"):
        answer.to_dict()
