"""Fields that the store sets on creation, and objects that it refuses."""

import pytest

from podium.api.input.codec import decode
from podium.api.reading import read
from podium.store.store import Store
from tests.store.objects import SECOND, Raw, node, pod
from tests.store.refusals import answer, refusal


def test_a_created_object_has_identity_time_version_and_both_forms() -> None:
    store = Store()

    stored = store.create(pod("web", labels={"app": "web"}), now=5 * SECOND)

    assert stored.raw["metadata"]["uid"] == stored.uid != ""
    assert stored.raw["metadata"]["creationTimestamp"] == "1970-01-01T00:00:05Z"
    assert stored.raw["metadata"]["generation"] == stored.object.metadata.generation == 1
    assert stored.raw["metadata"]["resourceVersion"] == stored.object.metadata.resource_version == "1"
    assert store.get("Pod", "default/web") is stored


def test_a_gated_pod_says_from_its_creation_that_it_is_not_scheduled() -> None:
    store = Store()

    gated = store.create(pod("web", spec={"schedulingGates": [{"name": "quota"}]}), now=0, is_new=True)
    open_ = store.create(pod("open"), now=0, is_new=True)

    assert gated.raw["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "observedGeneration": 1,
        }
    ]
    assert gated.object == decode(gated.raw)
    assert "conditions" not in open_.raw["status"]


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


def test_b10_a_value_that_cannot_be_read_is_a_bad_request_that_names_the_field() -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod("web", cpu="much"), now=0))

    assert answer(error) == (400, "BadRequest")
    assert "Pod default/web, .spec.containers[0].resources.requests.cpu" in error.message


@pytest.mark.parametrize("metadata", [[], "web", {"name": 1}, {"name": "web", "labels": 7}, {"name": {"a": "b"}}])
def test_metadata_that_cannot_be_read_is_a_bad_request(metadata: object) -> None:
    store = Store()

    assert answer(refusal(store, lambda: store.create({**pod("web"), "metadata": metadata}, now=0)))[0] == 400


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

    assert answer(refusal(store, lambda: store.create(raw, now=0, is_new=True))) == (422, "Invalid")
    uid = {**raw, "metadata": {**raw["metadata"], "uid": "u1"}}
    assert answer(refusal(store, lambda: store.create(uid, now=0, is_new=True))) == (422, "Invalid")


@pytest.mark.parametrize("name", ["../web", "..", "a/b", "Web", "a\0b", "%2f", "x" * 254])
def test_b20_b21_names_that_are_none_are_invalid(name: str) -> None:
    store = Store()

    error = refusal(store, lambda: store.create(pod(name), now=0))

    assert answer(error) == (422, "Invalid")
    assert error.message.isprintable()


def test_identity_times_and_status_of_a_new_object_are_ignored() -> None:
    store = Store()
    dumped = pod("web", metadata={"uid": "u1", "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z"})
    dumped["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    dumped["status"] = {"phase": "Running"}

    created = store.create(dumped, now=0, is_new=True)

    assert created.uid not in ("", "u1")
    assert created.object.metadata.creation_timestamp == "1970-01-01T00:00:00Z"
    assert created.object.metadata.deletion_timestamp is None
    assert created.object.metadata.generation == 1
    assert created.raw["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_a_cached_reading_of_a_new_object_is_updated() -> None:
    dumped = {**pod("web", metadata={"uid": "u1"}), "status": {"phase": "Running"}}
    created = Store().create(dumped, now=0, is_new=True, reading=decode(dumped))

    assert created.object == decode(created.raw)


@pytest.mark.parametrize(
    "raw",
    [
        pod("web", labels={"app": "web"}),
        pod("web", metadata={"uid": "u1", "creationTimestamp": "2026-01-31T09:30:00Z", "generation": 7}),
        {**pod("web"), "metadata": {"generateName": "web-"}},
        {**pod("web", metadata={"finalizers": ["example.com/held"]}), "status": {"phase": "Running"}},
        node("n1", cpu=4),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    ],
    ids=lambda raw: f"{raw['kind']} {sorted(raw['metadata'])}",
)
def test_an_object_becomes_the_same_whether_it_was_read_before_or_not(raw: Raw) -> None:
    report, untold = Store(), Store()

    created = report.create(raw, now=5 * SECOND, reading=read(raw, report.resources.of(raw).type))

    assert created == untold.create(raw, now=5 * SECOND)
    assert created.object == decode(created.raw)
    assert created.object.key == created.key


def test_a_new_node_says_what_it_has() -> None:
    stored = Store().create(node("n1", cpu=4), now=0, is_new=True)

    assert stored.raw["status"]["allocatable"]["cpu"] == 4


def test_a_refused_creation_draws_no_identities() -> None:
    store, other = Store(), Store()
    nameless = {**pod("web", cpu="much"), "metadata": {"generateName": "web-"}}

    refusal(store, lambda: store.create(nameless, now=0))

    assert store.create(pod("a"), now=0).uid == other.create(pod("a"), now=0).uid


def test_a_creation_that_its_key_forbids_gives_back_the_uid_that_came_with_it() -> None:
    store = Store()
    store.create(pod("a"), now=0)
    refusal(store, lambda: store.create(pod("a", metadata={"uid": "u1"}), now=0))

    assert store.create(pod("b", metadata={"uid": "u1"}), now=0).uid == "u1"


def job(**spec: object) -> Raw:
    template = {
        "metadata": {"labels": {"app": "sums"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "sums"}]},
    }
    metadata = {"name": "sums", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


def test_a_job_selects_the_pods_of_its_template_by_its_uid() -> None:
    stored = Store().create(job(), now=0, is_new=True)

    spec = stored.raw["spec"]
    own = {"controller-uid": stored.uid, "job-name": "sums"}
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": stored.uid}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "sums",
        **own,
        **{f"batch.kubernetes.io/{name}": value for name, value in own.items()},
    }
    assert stored.object == read(stored.raw, type(stored.object))


def test_a_job_with_a_selector_of_somebodys_making_keeps_it() -> None:
    selector = {"matchLabels": {"app": "sums"}}

    stored = Store().create(job(manualSelector=True, selector=selector), now=0, is_new=True)

    assert stored.raw["spec"]["selector"] == selector
    assert stored.raw["spec"]["template"]["metadata"]["labels"] == {"app": "sums"}


def test_an_update_may_leave_out_the_selector_that_a_job_was_given() -> None:
    store = Store()
    before = store.create(job(), now=0, is_new=True)

    after = store.update(job(parallelism=3))

    assert after.raw["spec"] == {**before.raw["spec"], "parallelism": 3}


@pytest.mark.parametrize("spec", ["x", [], 5, {"template": "x"}, {"template": {"metadata": ["x"]}}, {"template": None}])
def test_a_job_that_is_updated_to_something_malformed_is_refused(spec: object) -> None:
    store = Store()
    store.create(job(), now=0, is_new=True)

    error = refusal(store, lambda: store.update({**job(), "spec": spec}))

    assert error.code in (400, 422)


def test_a_uid_that_an_object_brought_along_is_not_drawn() -> None:
    drawn = Store().create(pod("a"), now=0).uid
    store = Store()
    store.create(pod("b", metadata={"uid": drawn}), now=0)

    assert store.create(pod("a"), now=0).uid != drawn
