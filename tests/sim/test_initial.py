"""The initial state of a cluster."""

import json

import pytest

from podium.api.clock_inference import DEFAULT_START_NS, start_time
from podium.api.errors import InputError
from podium.api.times import format_time
from tests.sim.objects import documents, owned, workload
from tests.sim.played import played, reported
from tests.store.objects import SECOND, Raw, node, pod


def at(seconds: int) -> str:
    return format_time(DEFAULT_START_NS + seconds * SECOND)


def started(*objects: Raw) -> int:
    return (start_time(documents(*objects)) - DEFAULT_START_NS) // SECOND


def test_without_any_time_the_start_is_fixed() -> None:
    assert started(node("n1"), pod("a")) == 0


@pytest.mark.parametrize(
    "newest",
    [
        pod("b", metadata={"creationTimestamp": at(70)}),
        pod("b", node="n1", status={"phase": "Running", "startTime": at(70)}),
        pod("b", status={"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": at(70)}]}),
        pod("b", node="n1", metadata={"deletionTimestamp": at(100), "deletionGracePeriodSeconds": 30}),
        {**node("n2"), "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": at(70)}]}},
    ],
)
def test_the_start_is_when_the_last_thing_happened(newest: Raw) -> None:
    assert started(pod("a", metadata={"creationTimestamp": at(5)}), newest) == 70


@pytest.mark.parametrize("time", ["lately", "2300-01-01T00:00:00Z", 7])
def test_an_invalid_time_is_rejected_for_every_reader(time: str | int) -> None:
    broken = {"type": "Ready", "status": "True", "lastHeartbeatTime": time}

    with pytest.raises(InputError, match=r"lastHeartbeatTime: .* is "):
        started({**node("n1"), "status": {"conditions": [broken]}})


def test_owners_are_created_before_their_dependents_in_any_input_order() -> None:
    owner = workload("ReplicaSet", "web", 1, uid="rs")

    simulation = played(owned(pod("web-1", node="n1"), owner), owner, node("n1"))

    assert [event.stored.kind for event in simulation.store.events_since(0)][:3] == ["Node", "ReplicaSet", "Pod"]


def test_older_pods_come_first() -> None:
    objects = [
        pod("a", metadata={"creationTimestamp": at(9)}),
        pod("b", metadata={"creationTimestamp": at(3)}),
        pod("c"),
    ]

    simulation = played(*objects)

    assert [event.stored.key for event in simulation.store.events_since(0)][:3] == [
        "default/b",
        "default/a",
        "default/c",
    ]


def test_a_node_whose_state_is_unknown_is_down_from_the_start() -> None:
    unknown = node("n1")
    unknown["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    simulation = played(unknown, pod("a"))

    assert reported(simulation) == ["0 Scheduled default/a on n1 by default-scheduler"]
    assert simulation.settings.start_ns == DEFAULT_START_NS


def test_an_object_that_the_store_rejects_is_named() -> None:
    twins = [pod(name, metadata={"uid": "same"}) for name in ("a", "b")]

    with pytest.raises(InputError, match=r"test\.json, document 1, Pod default/b: .*the uid same was used before"):
        played(*twins)


def test_a_status_that_is_not_an_object_is_an_error() -> None:
    with pytest.raises(InputError, match=r'Deployment default/web, \.status: "x" is not an object'):
        played({**workload("Deployment", "web", 1), "status": "x"})


def test_a_status_of_a_kind_without_one_is_left_aside_like_any_unknown_field() -> None:
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"}}

    simulation = played({**storage, "provisioner": "example.com/disk", "status": "x"}, node("n1"), pod("a"))

    assert reported(simulation)[0] == "0 Scheduled default/a on n1 by default-scheduler"


def test_a_grace_period_that_began_before_all_times_says_nothing_about_the_start() -> None:
    long = {"deletionTimestamp": at(90), "deletionGracePeriodSeconds": 999_999_999_999}

    assert started(pod("a", metadata=long), pod("b", metadata={"creationTimestamp": at(5)})) == 5


def test_objects_share_in_memory_what_they_have_alike() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    managed = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}]
    pods = [pod(name, node="n", labels={"app": "web"}, status=status) for name in ("a", "b")]
    for raw in pods:
        raw["metadata"]["managedFields"] = managed

    store = played(node("n"), *json.loads(json.dumps(pods))).store

    one, other = (store.get("Pod", f"default/{name}").raw for name in ("a", "b"))
    assert one["metadata"]["labels"] is other["metadata"]["labels"]
    assert one["status"]["conditions"] is other["status"]["conditions"]
    fields = [raw["metadata"]["managedFields"][0]["fieldsV1"] for raw in (one, other)]
    assert fields[0] is fields[1]
    assert fields[0] == managed[0]["fieldsV1"]
