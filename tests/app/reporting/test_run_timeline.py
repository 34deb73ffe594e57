"""The data of a run's picture."""

from __future__ import annotations

from typing import Any

from podium.app.library import simulate
from podium.app.reporting.run_timeline import RunTimeline, timeline_of
from tests.docs.blocks import ROOT
from tests.sim.objects import scenario

STARVATION = ROOT / "examples" / "starvation-1.yaml"


def story(*objects: Any, **options: Any) -> RunTimeline:
    return timeline_of(simulate(list(objects), latency=0, **options), "")


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def of(report: RunTimeline, name: str) -> dict[str, Any]:
    """Return the first pod of that name, its words written out."""
    place = [report.words[word] for word in report.pods["name"]].index(f"default/{name}")
    columns = {field: column[place] for field, column in report.pods.items()}
    return columns | {"state": report.words[columns["state"]]}


def reason(report: RunTimeline, moment: int) -> str:
    return report.words[report.events["reason"][moment]]


def test_a_pod_has_the_moments_of_its_events() -> None:
    report = story(STARVATION)

    victim, winner, waits = of(report, "a"), of(report, "c"), of(report, "d")
    assert victim["created"] == victim["scheduled"] == victim["started"] == -1
    assert reason(report, victim["killing"]) == "Killing"
    assert reason(report, victim["ended"]) == "Terminated"
    assert report.events["time"][victim["ended"]] == 60
    assert reason(report, winner["scheduled"]) == "Scheduled"
    assert reason(report, winner["started"]) == "Started"
    assert waits["scheduled"] is waits["ended"] is None
    assert waits["state"] == "pending"


def test_a_preemption_names_the_pod_that_it_was_for() -> None:
    report = story(STARVATION)

    moment = [report.words[word] for word in report.events["reason"]].index("Preempted")

    names = [report.words[word] for word in report.pods["name"]]
    assert names[report.events["pod"][moment]] == "default/a"
    assert names[report.events["byPod"][moment]] == "default/c"
    assert report.events["message"][moment] == -1


def test_the_story_reports_the_reason_of_waiting_in_explains_words() -> None:
    report = story(STARVATION)

    messages = {report.words[word] for word in report.events["message"] if word >= 0}
    assert "1 Insufficient cpu. preemption: 1 No preemption victims found for incoming pod" in messages
    assert not any("nodes are available" in message for message in messages)


def test_pods_with_equal_names_are_distinguished() -> None:
    again = {"at": "10s", "apply": [pod("web", "2")]}

    report = story(
        node("n"),
        pod("web", nodeName="n"),
        scenario({"at": "5s", "delete": {"kind": "Pod", "name": "web"}}, again),
        termination=0,
    )

    first, second = ({field: report.pods[field][place] for field in ("created", "ended", "asks")} for place in range(2))
    assert [report.words[word] for word in report.pods["name"]] == ["default/web", "default/web"]
    assert first["created"] == -1
    assert report.events["time"][first["ended"]] == 5
    assert report.events["time"][second["created"]] == 10
    assert second["ended"] is None
    assert [report.amounts[first["asks"]][0], report.amounts[second["asks"]][0]] == [1000, 2000]
    assert [report.events["pod"][moment] for moment in (first["ended"], second["created"])] == [0, 1]


def test_nodes_have_what_they_offer_their_zone_and_their_life() -> None:
    zone = {"topology.kubernetes.io/zone": "a"}
    steps = ({"at": "5s", "apply": [node("late")]}, {"at": "9s", "delete": {"kind": "Node", "name": "early"}})

    report = story(node("early", "2", **zone), pod("web"), scenario(*steps))

    assert [report.words[word] for word in report.nodes["name"]] == ["early", "late"]
    assert report.words[report.nodes["zone"][0]] == "a"
    assert report.resources == ["cpu"]
    assert [report.amounts[offers] for offers in report.nodes["offers"]] == [[2000], [4000]]
    added, gone = report.nodes["added"], report.nodes["gone"]
    assert added[0] == -1
    assert report.events["time"][added[1]] == 5
    assert gone[0] is not None
    assert report.events["time"][gone[0]] == 9
    assert gone[1] is None


def test_a_previously_ended_pod_has_ended_before_the_first_event() -> None:
    done = pod("done", nodeName="n") | {"status": {"phase": "Succeeded"}}

    assert of(story(node("n"), done), "done")["ended"] == -1


def test_a_pod_held_by_a_budget_is_reported_with_the_times() -> None:
    drained = scenario({"at": "5s", "drain": {"name": "n", "force": True}})
    web = pod("web", nodeName="n")
    web["metadata"]["labels"] = {"app": "web"}
    web["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }

    report = story(node("n"), web, budget, drained, until="60s")

    assert (report.holds["pod"], report.holds["since"], report.holds["until"]) == ([0], [5], [None])
    assert report.words[report.holds["why"][0]] == "budget default/web"


def test_misleading_characters_in_the_story_are_escaped() -> None:
    hostile = pod("web", schedulerName="nobody") | {"metadata": {"name": "web", "namespace": "default", "labels": {}}}

    report = story(node("n", **{"topology.kubernetes.io/zone": "a\u202eb"}), hostile)

    assert "a\\u202eb" in report.words
