"""Versions, identities, updates and the rules that every kind of object shares."""

import pytest

from podium.store.resource import Resource
from podium.store.resources import Resources
from podium.store.store import Store
from tests.store.objects import SECOND, Raw, node, pod, priority_class
from tests.store.refusals import answer, refusal


def changed(raw: Raw, **metadata: object) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def test_a_created_object_has_identity_time_version_and_both_forms() -> None:
    store = Store()

    stored = store.create(pod("web", labels={"app": "web"}), now=5 * SECOND)

    assert stored.raw["metadata"]["uid"] == stored.uid != ""
    assert stored.raw["metadata"]["creationTimestamp"] == "1970-01-01T00:00:05Z"
    assert stored.raw["metadata"]["generation"] == stored.object.metadata.generation == 1
    assert stored.raw["metadata"]["resourceVersion"] == stored.object.metadata.resource_version == "1"
    assert store.get("Pod", "default/web") is stored


def test_fields_that_podium_does_not_read_are_kept() -> None:
    store = Store()
    raw = pod("web", spec={"hostname": "web-0", "securityContext": {"runAsUser": 1000}})

    store.create(raw, now=0)
    store.bind("default/web", "n1", now=0)

    assert store.get("Pod", "default/web").raw["spec"]["securityContext"] == {"runAsUser": 1000}


def test_what_is_handed_in_is_never_changed() -> None:
    store = Store()
    raw = pod("web", labels={"app": "web"})
    as_written = pod("web", labels={"app": "web"})

    store.create(raw, now=0)
    store.bind("default/web", "n1", now=0)
    store.delete("Pod", "default/web", now=0)

    assert raw == as_written


def test_the_same_seed_gives_the_same_identities_and_another_seed_others() -> None:
    def uids(seed: int) -> list[str]:
        store = Store(seed=seed)
        return [store.create(pod(name), now=0).uid for name in ("a", "b", "c")]

    assert uids(1) == uids(1)
    assert not set(uids(1)) & set(uids(2))


def test_a_generated_name_is_free_and_ends_in_five_letters() -> None:
    store = Store()
    template = pod("")
    template["metadata"] = {"generateName": "web-", "namespace": "default"}

    names = {store.create(template, now=0).object.metadata.name for _ in range(100)}

    assert len(names) == 100
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


def test_a_long_base_leaves_room_for_the_generated_end() -> None:
    template = pod("")
    template["metadata"] = {"generateName": "x" * 80}

    assert len(Store().create(template, now=0).object.metadata.name) == 63


def test_an_object_without_a_name_is_refused() -> None:
    store = Store()
    nameless = {**pod("web"), "metadata": {}}

    assert refusal(store, lambda: store.create(nameless, now=0)).code == 422


def test_a_key_that_is_taken_is_refused() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    error = refusal(store, lambda: store.create(pod("web"), now=0))

    assert (error.code, error.reason) == (409, "AlreadyExists")


def test_a_uid_is_never_used_twice() -> None:
    store = Store()
    store.create(pod("a", metadata={"uid": "u1"}), now=0)
    store.delete("Pod", "default/a", now=0)

    assert refusal(store, lambda: store.create(pod("b", metadata={"uid": "u1"}), now=0)).code == 422


def test_a_name_used_again_gets_another_uid() -> None:
    store = Store()
    first = store.create(pod("a"), now=0)
    store.delete("Pod", "default/a", now=0)

    assert store.create(pod("a"), now=0).uid != first.uid


def test_a_kind_that_nobody_knows_is_not_found() -> None:
    store = Store()

    assert (
        refusal(store, lambda: store.create({"apiVersion": "v1", "kind": "Gadget", "metadata": {}}, now=0)).code == 404
    )
    assert refusal(store, lambda: store.objects("Gadget")).code == 404


def test_b10_a_value_that_cannot_be_read_is_a_bad_request_that_names_the_field() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("web", cpu="much"), now=0))

    assert answer(error) == (400, "BadRequest")
    assert "Pod default/web, .spec.containers[0].resources.requests.cpu" in error.message


@pytest.mark.parametrize("metadata", [[], "web", {"name": 1}, {"name": "web", "labels": 7}, {"name": {"a": "b"}}])
def test_metadata_that_cannot_be_read_is_a_bad_request(metadata: object) -> None:
    store = Store()

    assert answer(refusal(store, lambda: store.create({**pod("web"), "metadata": metadata}, now=0)))[0] == 400


@pytest.mark.parametrize("change", [{"spec": []}, {"spec": "none"}, {"metadata": None}, {"metadata": {"name": ""}}])
def test_an_update_that_cannot_be_read_is_a_bad_request(change: Raw) -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)

    assert answer(refusal(store, lambda: store.update({**stored.raw, **change}))) == (400, "BadRequest")


def test_b13_a_value_that_breaks_a_rule_is_invalid_with_its_field_as_the_cause() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("web", cpu=-1), now=0))

    assert answer(error) == (422, "Invalid")
    (cause,) = error.details["causes"]
    assert cause["field"] == "spec.containers[0].resources.requests.cpu"
    assert "must be 0 or more" in cause["message"]


def test_b14_a_new_pod_requests_no_more_than_its_limits() -> None:
    store = Store()
    resources = {"requests": {"cpu": 2}, "limits": {"cpu": 1}}
    raw = pod("web", spec={"containers": [{"name": "main", "resources": resources}]})

    assert answer(refusal(store, lambda: store.create(raw, now=0))) == (422, "Invalid")
    uid = {**raw, "metadata": {**raw["metadata"], "uid": "u1"}}
    assert answer(refusal(store, lambda: store.create(uid, now=0, is_new=True))) == (422, "Invalid")


@pytest.mark.parametrize("name", ["../web", "..", "a/b", "Web", "a\0b", "%2f", "x" * 254])
def test_b20_b21_names_that_are_none_are_invalid(name: str) -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod(name), now=0))

    assert answer(error) == (422, "Invalid")
    assert error.message.isprintable()


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
    assert store.patch_pod_status("default/web", {"phase": "Pending"}, [], now=0) is stored
    assert store.version == 1


def test_of_two_writers_that_read_the_same_version_one_wins() -> None:
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
    assert updated.object.metadata.generation == 2


def test_an_update_deletes_nothing() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)

    updated = store.update(changed(stored.raw, deletionTimestamp="2026-01-01T00:00:00Z", labels={"zone": "a"}))

    assert updated.object.metadata.deletion_timestamp is None
    assert store.find("Node", "n1") is updated


def test_a_status_write_changes_nothing_but_the_status() -> None:
    store = Store()
    stored = store.create(node("n1", cpu=4), now=0)
    raw = {**node("n1", cpu=8, zone="a"), "spec": {"unschedulable": True}}

    updated = store.update_status(raw)

    assert updated.raw["status"]["allocatable"]["cpu"] == 8
    assert updated.raw.get("spec") == stored.raw.get("spec")
    assert updated.object.metadata.labels == {}


def test_the_generation_counts_changes_of_the_spec_alone() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)

    relabelled = store.update(changed(stored.raw, labels={"zone": "a"}))
    cordoned = store.update({**relabelled.raw, "spec": {"unschedulable": True}})
    resized = store.update_status({**cordoned.raw, "status": {"allocatable": {"cpu": 1, "pods": 1}}})

    generations = [one.object.metadata.generation for one in (stored, relabelled, cordoned, resized)]
    assert generations == [1, 1, 2, 2]


def test_a_pod_gets_its_node_by_no_update() -> None:
    store = Store()
    stored = store.create(pod("web"), now=0)
    moved = {**stored.raw, "spec": {**stored.raw["spec"], "nodeName": "n1"}}

    assert refusal(store, lambda: store.update(moved)).code == 422


@pytest.mark.parametrize(("ended", "other"), [("Succeeded", "Failed"), ("Failed", "Running")])
def test_a_pod_that_has_ended_keeps_its_phase(ended: str, other: str) -> None:
    store = Store()
    store.create(pod("web", node="n1", status={"phase": ended}), now=0)

    assert refusal(store, lambda: store.patch_pod_status("default/web", {"phase": other}, [], now=0)).code == 422


def test_a_patch_sets_removes_and_keeps_fields_and_conditions() -> None:
    store = Store()
    store.create(pod("web", status={"nominatedNodeName": "n1", "message": "hello"}), now=0)
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

    patched = store.patch_pod_status("default/web", {"nominatedNodeName": None}, [scheduled], now=SECOND)

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
        patched = store.patch_pod_status("default/web", {}, [condition], now=now * SECOND)
        return [one["lastTransitionTime"][-3:-1] for one in patched.raw["status"]["conditions"]]

    assert times("False", "Starting", 1) == ["01"]
    assert times("False", "StillStarting", 2) == ["01"]
    assert times("True", "", 3) == ["03"]


def test_of_a_new_object_clients_say_neither_identity_nor_times_nor_status() -> None:
    store = Store()
    dumped = pod("web", metadata={"uid": "u1", "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z"})
    dumped["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    dumped["status"] = {"phase": "Running"}

    created = store.create(dumped, now=0, is_new=True)

    assert created.uid not in ("", "u1")
    assert created.object.metadata.creation_timestamp == "1970-01-01T00:00:00Z"
    assert created.object.metadata.deletion_timestamp is None
    assert created.object.metadata.generation == 1
    assert created.raw["status"] == {"phase": "Pending"}


def test_a_new_node_says_what_it_has() -> None:
    stored = Store().create(node("n1", cpu=4), now=0, is_new=True)

    assert stored.raw["status"]["allocatable"]["cpu"] == 4


def test_a_refused_creation_draws_no_identities() -> None:
    store, other = Store(), Store()
    nameless = {**pod("web", cpu="much"), "metadata": {"generateName": "web-"}}

    refusal(store, lambda: store.create(nameless, now=0))

    assert store.create(pod("a"), now=0).uid == other.create(pod("a"), now=0).uid


def test_a_built_in_kind_that_podium_does_not_read_is_kept_as_it_is() -> None:
    store = Store()
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}}

    stored = store.create(raw, now=0)
    changed_data = store.update({**stored.raw, "data": {"key": "other"}})

    assert stored.key == "default/a"
    assert changed_data.raw["data"] == {"key": "other"}
    assert changed_data.object.metadata.generation == 2


def test_a_custom_resource_is_kept_beside_the_built_in_kind_of_its_name() -> None:
    widget = Resource(group="example.com", kind="Pod", plural="pods", namespaced=False, is_custom=True)
    store = Store(resources=Resources([widget]))
    store.create(pod("web"), now=0)

    raw = {"apiVersion": "example.com/v2", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"anything": 1}}
    stored = store.create(raw, now=0)

    assert (stored.kind, stored.key) == ("Pod.example.com", "web")
    assert [one.key for one in store.objects("Pod")] == ["default/web"]
    assert store.update({**stored.raw, "spec": {"anything": 2}}).object.metadata.generation == 2


def test_a_kind_is_served_once() -> None:
    resources = Resources()

    with pytest.raises(ValueError, match="already"):
        resources.add(Resource(group="", kind="Pod", plural="pods", namespaced=True))


def test_a_kind_without_a_status_has_no_such_subresource() -> None:
    store = Store()
    stored = store.create(priority_class("high", 1), now=0)

    assert answer(refusal(store, lambda: store.update_status(stored.raw))) == (404, "NotFound")


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
