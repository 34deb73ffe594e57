"""Replays of recordings: what chance decided is decided as recorded, and pods run as long as they ran."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from podium.api.input.codec import Input, load_text
from podium.controllers.actions import CreateObject
from podium.sim.recording.replay import Replay
from podium.sim.recording.tape import RecordedEvent, Recording
from podium.sim.run import play
from podium.sim.run_options import RunOptions
from podium.store.store import Store
from tests.sim.objects import documents, job, scenario, workload
from tests.sim.recording.recording import recorded
from tests.store.objects import SECOND, Raw, node, pod

LATENCY = 5_000_000


def recording_of(*objects: Raw, steps: list[Raw], **options: Any) -> Input:
    given = documents(*objects, scenario(*steps, until="10m"))
    return recorded(given, replace(RunOptions(seed=7, latency_ns=LATENCY), **options))


def nodes(number: int, cpu: int = 8) -> list[Raw]:
    return [node(f"n{index:03}", cpu=cpu) for index in range(number)]


@pytest.mark.parametrize("number", [20, 150], ids=["all are examined", "some are examined"])
def test_pods_go_to_their_recorded_nodes_whatever_the_seed(number: int) -> None:
    steps: list[Raw] = [
        {"at": "1s", "apply": [workload("Deployment", "web", 30)]},
        {"at": "1m", "scale": {"name": "web", "replicas": 60}},
    ]
    found = recording_of(*nodes(number), steps=steps)

    for seed in (0, 3):
        result = play(found, RunOptions(seed=seed, latency_ns=LATENCY))
        assert result.recorded is not None
        assert result.recorded.other_node == ()
        assert result.recorded.same_node == 60


def test_pods_go_to_their_recorded_nodes_although_the_recorded_scheduler_was_quicker() -> None:
    found = recording_of(*nodes(20), steps=[{"at": "1s", "apply": [workload("Deployment", "web", 30)]}], latency_ns=0)

    result = play(found, RunOptions(seed=3, latency_ns=LATENCY))

    assert result.recorded is not None
    assert result.recorded.other_node == ()
    assert result.recorded.same_node == 30


def test_pods_of_workloads_have_their_recorded_names() -> None:
    found = recording_of(*nodes(3), steps=[{"at": "1s", "apply": [workload("Deployment", "web", 5)]}])
    events = next(document.raw for document in found.documents if document.raw["kind"] == "Recording")["events"]
    names = {event["key"] for event in events if event["what"] == "bound"}

    again = play(found, RunOptions(seed=3, latency_ns=LATENCY))

    assert {pod["pod"] for pod in again.pods} == names


@pytest.mark.parametrize("seed", [0, 3, 7], ids=["another", "a third", "that of the recording"])
def test_a_scale_down_deletes_the_recorded_pods_among_equal_ones(seed: int) -> None:
    steps: list[Raw] = [
        {"at": "1s", "apply": [workload("Deployment", "web", 30)]},
        {"at": "1m", "scale": {"name": "web", "replicas": 12}},
    ]
    found = recording_of(*nodes(30), steps=steps)
    events = next(document.raw for document in found.documents if document.raw["kind"] == "Recording")["events"]
    gone = {event["key"] for event in events if event["what"] == "gone" and event["kind"] == "Pod"}

    again = play(found, RunOptions(seed=seed, latency_ns=LATENCY))

    assert len(gone) == 18
    assert {pod["pod"] for pod in again.pods if pod["endedAt"] is not None} == gone
    assert len({pod["uid"] for pod in again.pods}) == 30


def test_a_pod_that_starts_later_than_recorded_runs_as_long() -> None:
    steps: list[Raw] = [
        {"at": "1s", "apply": [pod("first", cpu=8)]},
        {"at": "2m", "finish": {"name": "first"}},
        {"at": "30s", "apply": [pod("second", cpu=8)]},
        {"at": "90s", "finish": {"name": "second"}},
    ]
    found = recording_of(*nodes(2), steps=steps)
    fewer = Input([document for document in found.documents if document.raw["metadata"].get("name") != "n001"])

    ends = {pod["pod"]: (pod["scheduledAt"], pod["endedAt"]) for pod in play(fewer, RunOptions()).pods}

    assert ends["default/first"] == (pytest.approx(1, abs=0.1), pytest.approx(120, abs=0.1))
    assert ends["default/second"] == (pytest.approx(120, abs=0.1), pytest.approx(180, abs=0.2))


def test_the_pods_of_a_job_finish_in_the_recorded_order() -> None:
    steps: list[Raw] = [{"at": "1s", "apply": [job("j", parallelism=6, completions=6)]}]
    steps += [{"at": f"{60 + number}s", "finish": {"kind": "Job", "name": "j"}} for number in range(6)]
    found = recording_of(*nodes(3, cpu=4), steps=steps)
    recording = next(document.raw for document in found.documents if document.raw["kind"] == "Recording")
    order = [event["key"] for event in recording["events"] if event["what"] == "finished"]

    events = play(found, RunOptions(seed=3, latency_ns=LATENCY)).events

    assert len(order) == 6
    assert [event.pod for event in events if event.reason == "Finished"] == order


def test_changes_of_one_instant_and_of_machines_take_effect_when_recorded() -> None:
    steps: list[Raw] = [
        {"at": "1s", "apply": [pod(f"p{number}") for number in range(8)]},
        {"at": "1m", "nodeDown": {"name": "n000"}},
        {"at": "5m", "nodeUp": {"name": "n000"}},
    ]
    found = recording_of(*nodes(2), steps=steps)

    def changes(result: Any) -> list[Any]:
        return [
            (round(event.time, 2), event.reason, event.pod, event.node)
            for event in result.events
            if event.reason in ("Created", "Scheduled", "NodeChanged", "Terminated")
        ]

    original = documents(*nodes(2), scenario(*steps, until="10m"))
    before = play(Input(original), RunOptions(seed=7, latency_ns=LATENCY))

    assert changes(play(found, RunOptions(latency_ns=LATENCY))) == changes(before)


def test_a_recorded_node_that_is_not_among_the_best_is_not_taken() -> None:
    found = recording_of(*nodes(2), steps=[{"at": "1s", "apply": [pod("a", cpu=1)]}])
    (place,) = {pod["node"] for pod in play(found, RunOptions()).pods}
    busy = pod("busy", node=place, cpu=4)
    (more,) = load_text(str({**busy, "status": {"phase": "Running"}}).replace("'", '"'), "more")

    result = play(Input([more, *found.documents]), RunOptions())

    assert result.recorded is not None
    (other,) = result.recorded.other_node
    assert (other.pod, other.recorded_node) == ("default/a", place)
    assert other.simulated_node != place


def test_the_recorder_takes_in_nominations() -> None:
    low, high = pod("low", node="n000", cpu=8), pod("high", cpu=8, priority=10)
    found = recording_of(*nodes(1), low, steps=[{"at": "1s", "apply": [high]}])
    events = next(document.raw for document in found.documents if document.raw["kind"] == "Recording")["events"]

    assert [event["node"] for event in events if event["what"] == "nominated"] == ["n000"]


def test_pods_preempt_on_their_recorded_nodes_whatever_the_seed() -> None:
    low = [pod(f"low-{number:03}", node=f"n{number:03}", cpu=8) for number in range(250)]
    high = [pod(f"high-{number}", cpu=8, priority=10) for number in range(3)]
    found = recording_of(*nodes(250), *low, steps=[{"at": "1s", "apply": high}])

    # kube-scheduler tries 100 of these nodes, from a random one on.
    for seed in (0, 3):
        result = play(found, RunOptions(seed=seed, latency_ns=LATENCY))
        assert result.recorded is not None
        assert result.recorded.recorded.preempted == 3
        assert result.recorded.other_node == ()


def test_a_workload_whose_pod_a_quota_refuses_goes_on_with_the_recorded_names() -> None:
    """The controller waits for its creation, which has no name; the answer is about that."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    steps: list[Raw] = [
        {"at": "1s", "apply": [workload("Deployment", "web", 3)]},
        {"at": "1m", "delete": {"kind": "ResourceQuota", "name": "q"}},
    ]
    found = recording_of(*nodes(3), {**quota, "spec": {"hard": {"pods": "2"}}}, steps=steps)

    again = play(found, RunOptions(seed=3, latency_ns=LATENCY))

    assert again.recorded is not None
    assert (again.recorded.same_node, again.recorded.other_node) == (3, ())


def created(name: str, *owners: Raw) -> RecordedEvent:
    """Return the event of a pod that has these owners."""
    raw = {**pod(name), "metadata": {"name": name, "namespace": "default", "ownerReferences": owners}}
    return RecordedEvent(at="0s", what="created", kind="Pod", key=f"default/{name}", uid=f"uid-{name}", object=raw)


def name_of(replay: Replay, cause: str, store: Store | None = None, **metadata: str) -> str:
    """Return the name with which a replay creates a pod of a workload, "" for none."""
    raw = {**pod(""), "metadata": {"namespace": "default", "generateName": "web-", **metadata}}
    action = replay.with_recorded_name(CreateObject(raw, cause), store or Store())
    assert isinstance(action, CreateObject)
    return str(action.raw["metadata"].get("name", ""))


CONTROLLER: Raw = {"kind": "ReplicaSet", "name": "web-5d8", "controller": True}


def test_a_replica_set_takes_recorded_names_though_its_hash_is_another_one() -> None:
    replay = Replay(Recording(events=(created("web-5d8-a", CONTROLLER),)), 0, None)

    assert name_of(replay, "ReplicaSet default/api-777") == ""
    assert name_of(replay, "ReplicaSet default/web-777") == "web-5d8-a"
    assert name_of(replay, "ReplicaSet default/web-777") == ""


def test_only_the_controller_among_owners_gives_a_pod_its_recorded_name() -> None:
    owners = {"kind": "Job", "name": "other"}, CONTROLLER
    replay = Replay(Recording(events=(created("web-5d8-a", *owners),)), 0, None)

    assert name_of(replay, "Job default/other") == ""


def test_a_pod_with_a_name_keeps_it_and_leaves_the_recorded_name_to_the_next() -> None:
    replay = Replay(Recording(events=(created("web-5d8-a", CONTROLLER),)), 0, None)

    assert name_of(replay, "ReplicaSet default/web-777", name="mine") == "mine"
    assert name_of(replay, "ReplicaSet default/web-777") == "web-5d8-a"


def test_a_recorded_name_that_is_taken_is_not_used() -> None:
    store = Store()
    store.create(pod("web-5d8-a"), now=0)
    replay = Replay(Recording(events=(created("web-5d8-a", CONTROLLER),)), 0, None)

    assert name_of(replay, "ReplicaSet default/web-777", store) == ""


@pytest.mark.parametrize(
    ("after_s", "chosen"), [(0, "nominated"), (10, "nominated"), (11, "bound"), (20, "bound"), (21, "bound")]
)
def test_an_attempt_prefers_the_next_recorded_choice_and_after_all_the_last(after_s: int, chosen: str) -> None:
    start_ns = 1_000 * SECOND
    events = (
        RecordedEvent(at="10s", what="nominated", kind="Pod", key="default/a", uid="uid-a", node="nominated"),
        RecordedEvent(at="20s", what="bound", kind="Pod", key="default/a", uid="uid-a", node="bound"),
    )
    cluster = SimpleNamespace(now=start_ns + after_s * SECOND, recorded_choice=None)
    queued = SimpleNamespace(record=SimpleNamespace(uid="uid-a"))

    Replay(Recording(events=events), start_ns, None).on_attempt(
        cast("Any", queued), cast("Any", SimpleNamespace(cluster=cluster))
    )

    assert cluster.recorded_choice == ("uid-a", chosen)
