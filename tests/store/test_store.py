"""Versions, updates, status writes, and the rules shared by all kinds."""

import pytest

from podium.store.store import Store
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, node, pod, replicated
from tests.store.refusals import answer, refusal


def changed(raw: Raw, **metadata: object) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def test_fields_that_podium_does_not_read_are_kept() -> None:
    store = Store()
    raw = pod("web", spec={"hostname": "web-0", "securityContext": {"runAsUser": 1000}})

    store.create(raw, now=0)
    store.bind("default/web", "n1", now=0)

    assert store.get("Pod", "default/web").raw["spec"]["securityContext"] == {"runAsUser": 1000}


def test_stored_objects_do_not_change_with_the_callers_object() -> None:
    store = Store()
    raw = pod("web", labels={"app": "web"})
    as_written = pod("web", labels={"app": "web"})

    store.create(raw, now=0)
    store.bind("default/web", "n1", now=0)
    store.delete("Pod", "default/web", now=0)

    assert raw == as_written


@pytest.mark.parametrize("change", [{"spec": []}, {"spec": "none"}, {"metadata": None}, {"metadata": {"name": ""}}])
def test_an_update_that_cannot_be_read_is_a_bad_request(change: Raw) -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)

    assert answer(refusal(store, lambda: store.update({**stored.raw, **change}))) == (400, "BadRequest")


def test_objects_are_listed_by_key() -> None:
    store = Store()
    for name, namespace in (("b", "x"), ("a", "y"), ("a", "x")):
        store.create(pod(name, namespace=namespace), now=0)

    assert [stored.key for stored in store.objects("Pod")] == ["x/a", "x/b", "y/a"]


def test_each_write_commits_the_next_version() -> None:
    store = Store()

    versions = [
        store.create(node("n1"), now=0).version,
        store.create(pod("web"), now=0).version,
        store.bind("default/web", "n1", now=0).version,
    ]

    assert versions == [1, 2, 3]


def test_a_write_that_changes_nothing_commits_nothing() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)

    assert store.update(stored.raw) is stored
    assert store.update_status(stored.raw) is stored
    assert set_pod_status(store, "default/web", {"phase": "Pending"}, [], now=0) is stored
    assert store.version == 1


def test_one_of_two_writers_of_the_same_version_wins() -> None:
    store = Store()
    read = store.create(node("n1"), now=0)
    store.update(changed(read.raw, labels={"zone": "a"}))

    error = refusal(store, lambda: store.update(changed(read.raw, labels={"zone": "b"})))

    assert (error.code, error.reason) == (409, "Conflict")
    assert store.get("Node", "n1").object.metadata.labels == {"zone": "a"}


def test_a_write_without_a_version_is_not_conditional() -> None:
    store = Store()
    store.create(node("n1"), now=0)
    store.update(node("n1", zone="a"))

    assert store.update(node("n1", zone="b")).object.metadata.labels == {"zone": "b"}


def test_a_write_meant_for_another_uid_is_refused() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)
    other = {**stored.raw, "metadata": {"name": "n1", "uid": "someone-else"}}

    assert refusal(store, lambda: store.update(other)).code == 409
    assert refusal(store, lambda: store.update_status(other)).code == 409
    assert refusal(store, lambda: store.delete("Node", "n1", now=0, uid="someone-else")).code == 409


def test_an_update_changes_neither_status_nor_what_the_server_wrote() -> None:
    store = Store()
    stored = store.create(node("n1", cpu=4), now=0)
    raw = {**node("n1", cpu=8), "spec": {"unschedulable": True}}
    raw["metadata"] |= {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 9}

    updated = store.update(raw)

    assert updated.raw["status"] == stored.raw["status"]
    assert updated.raw["metadata"]["creationTimestamp"] == stored.raw["metadata"]["creationTimestamp"]
    assert "generation" not in updated.raw["metadata"]


def test_an_update_deletes_nothing() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)

    updated = store.update(changed(stored.raw, deletionTimestamp="2026-01-01T00:00:00Z", labels={"zone": "a"}))

    assert updated.object.metadata.deletion_timestamp is None
    assert store.find("Node", "n1") is updated


def test_a_status_write_changes_nothing_of_the_spec() -> None:
    store = Store()
    stored = store.create(node("n1", cpu=4), now=0)
    raw = {**node("n1", cpu=8, zone="a"), "spec": {"unschedulable": True}}

    updated = store.update_status(raw)

    assert updated.raw["status"]["allocatable"]["cpu"] == 8
    assert updated.raw.get("spec") == stored.raw.get("spec")


CHANGED: Raw = {"labels": {"a": "1"}, "annotations": {"b": "2"}, "finalizers": ["shop.example/c"]}
DEPLOYMENT = replicated("Deployment", "web", 1, {"containers": [{"name": "main", "image": "app"}]})
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"devices": {}},
}


@pytest.mark.parametrize(
    ("raw", "kept"),
    [(node("n1"), ()), (DEPLOYMENT, ("labels",)), (CLAIM, tuple(CHANGED))],
    ids=["Node", "Deployment", "ResourceClaim"],
)
def test_a_status_write_takes_the_metadata_that_its_kind_opens(raw: Raw, kept: tuple[str, ...]) -> None:
    store = Store()
    before = store.create(raw, now=0).raw

    after = store.update_status(changed(before, **CHANGED)).raw["metadata"]

    for field, value in CHANGED.items():
        assert after.get(field) == (before["metadata"].get(field) if field in kept else value)


def test_a_status_write_leaves_the_owners_of_a_pod() -> None:
    store = Store()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}
    before = store.create(pod("a", metadata={"ownerReferences": [owner]}), now=0).raw

    after = store.update_status(changed(before, ownerReferences=[], annotations={"a": "b"})).raw["metadata"]

    assert (after["ownerReferences"], after["annotations"]) == ([owner], {"a": "b"})


def test_a_status_write_with_invalid_labels_is_refused() -> None:
    store = Store()
    before = store.create(node("n1"), now=0).raw

    assert refusal(store, lambda: store.update_status(changed(before, labels={"a b": "c"}))).code == 422


def test_the_generation_counts_changes_of_the_spec_alone() -> None:
    store = Store()
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
    stored = store.create({**budget, "spec": {"minAvailable": 1}}, now=0)

    relabelled = store.update(changed(stored.raw, labels={"zone": "a"}))
    stricter = store.update({**relabelled.raw, "spec": {"minAvailable": 2}})
    observed = store.update_status({**stricter.raw, "status": {"currentHealthy": 1}})

    generations = [one.object.metadata.generation for one in (stored, relabelled, stricter, observed)]
    assert generations == [1, 1, 2, 2]


def test_updates_of_a_node_do_not_set_its_generation() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)

    cordoned = store.update({**stored.raw, "spec": {"unschedulable": True}})

    assert "generation" not in cordoned.raw["metadata"]


def test_a_pod_gets_its_node_by_no_update() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)
    moved = {**stored.raw, "spec": {**stored.raw["spec"], "nodeName": "n1"}}

    assert refusal(store, lambda: store.update(moved)).code == 422


@pytest.mark.parametrize(("ended", "other"), [("Succeeded", "Failed"), ("Failed", "Running")])
def test_a_pod_that_has_ended_keeps_its_phase(ended: str, other: str) -> None:
    store = Store()
    store.create(pod("web", node="n1", status={"phase": ended}), now=0)

    assert refusal(store, lambda: set_pod_status(store, "default/web", {"phase": other}, [], now=0)).code == 422


def test_a_patch_sets_removes_and_keeps_fields_and_conditions() -> None:
    store = Store()
    store.create(pod("web", status={"nominatedNodeName": "n1", "message": "hello"}), now=0)
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

    patched = set_pod_status(store, "default/web", {"nominatedNodeName": None}, [scheduled], now=SECOND)

    assert patched.raw["status"] == {
        "phase": "Pending",
        "message": "hello",
        "conditions": [{**scheduled, "lastTransitionTime": "1970-01-01T00:00:01Z"}],
    }


def test_a_condition_keeps_its_transition_time_until_its_status_changes() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    def times(status: str, reason: str, now: int) -> list[str]:
        condition = {"type": "Ready", "status": status, "reason": reason}
        patched = set_pod_status(store, "default/web", {}, [condition], now=now * SECOND)
        return [one["lastTransitionTime"][-3:-1] for one in patched.raw["status"]["conditions"]]

    assert times("False", "Starting", 1) == ["01"]
    assert times("False", "StillStarting", 2) == ["01"]
    assert times("True", "", 3) == ["03"]


@pytest.mark.parametrize(
    ("status", "code"),
    [({"phase": "Sleeping"}, 422), ({"phase": 1}, 400), ({"startTime": "now"}, 422), ([], 400)],
)
def test_a_status_that_its_kind_does_not_have_is_refused(status: object, code: int) -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)

    assert refusal(store, lambda: store.update_status({**stored.raw, "status": status})).code == code


def test_observed_generation_is_as_its_writer_says() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)

    observed = store.update_status({**stored.raw, "status": {"phase": "Pending", "observedGeneration": 1}})

    assert observed.raw["status"]["observedGeneration"] == observed.object.metadata.generation == 1


def test_all_objects_are_counted() -> None:
    store = Store()
    store.create(node("n1"), now=0)
    store.create(pod("a"), now=0)
    store.create(pod("b"), now=0)
    store.delete("Pod", "default/a", now=0, grace_seconds=0)

    assert store.count() == 2
