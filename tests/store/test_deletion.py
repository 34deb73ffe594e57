"""When a deleted object is removed, and its grace period."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store.store import Store
from tests.controllers.workload_rig import workload
from tests.store.objects import SECOND, node, pod
from tests.store.refusals import answer, refusal


def bound(store: Store, **more: Any) -> None:
    store.create(pod("web", node="n1", **more), now=0)


def test_a_pending_pod_goes_at_once() -> None:
    store = Store()
    store.create(pod("web"), now=0)

    assert store.delete("Pod", "default/web", now=0) is None
    assert store.find("Pod", "default/web") is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_goes_at_once(phase: str) -> None:
    store = Store()
    bound(store, status={"phase": phase})

    assert store.delete("Pod", "default/web", now=0) is None


def test_an_object_other_than_a_pod_goes_at_once() -> None:
    store = Store()
    store.create(node("n1"), now=0)

    assert store.delete("Node", "n1", now=0, grace_seconds=60) is None


def test_a_bound_pod_gets_its_own_grace_period() -> None:
    store = Store()
    bound(store, spec={"terminationGracePeriodSeconds": 45})

    terminating = store.delete("Pod", "default/web", now=10 * SECOND)

    assert terminating is not None
    assert terminating.object.metadata.deletion_timestamp == "1970-01-01T00:00:55Z"
    assert terminating.object.metadata.deletion_grace_period_seconds == 45


def test_a_pod_that_says_nothing_gets_thirty_seconds() -> None:
    store = Store()
    bound(store)

    terminating = store.delete("Pod", "default/web", now=0)

    assert terminating is not None
    assert terminating.object.metadata.deletion_grace_period_seconds == 30


def test_grace_zero_removes_a_bound_pod() -> None:
    store = Store()
    bound(store)

    assert store.delete("Pod", "default/web", now=0, grace_seconds=0) is None


def test_a_negative_grace_period_counts_as_one_second() -> None:
    store = Store()
    bound(store)

    terminating = store.delete("Pod", "default/web", now=0, grace_seconds=-5)

    assert terminating is not None
    assert terminating.object.metadata.deletion_grace_period_seconds == 1


def test_a_second_delete_without_a_grace_period_changes_nothing() -> None:
    store = Store()
    bound(store)
    first = store.delete("Pod", "default/web", now=0)

    assert store.delete("Pod", "default/web", now=5 * SECOND) is first


@given(graces=st.lists(st.integers(-2, 100), min_size=1, max_size=8))
def test_later_deletes_only_bring_the_end_forward(graces: list[int]) -> None:
    store = Store()
    bound(store)
    ends = []

    for grace in graces:
        terminating = store.delete("Pod", "default/web", now=0, grace_seconds=grace)
        if terminating is None:
            break
        meta = terminating.object.metadata
        ends.append((meta.deletion_timestamp, meta.deletion_grace_period_seconds))

    assert ends == sorted(ends, key=lambda end: end[1] or 0, reverse=True)
    assert [end[0] for end in ends] == sorted((str(end[0]) for end in ends), reverse=True)


def test_a_shorter_grace_period_counts_from_the_first_delete() -> None:
    store = Store()
    bound(store)
    store.delete("Pod", "default/web", now=0, grace_seconds=60)

    terminating = store.delete("Pod", "default/web", now=10 * SECOND, grace_seconds=20)

    assert terminating is not None
    assert terminating.object.metadata.deletion_timestamp == "1970-01-01T00:00:20Z"


@pytest.mark.parametrize("propagation", ["Orphan", "Foreground"])
def test_a_later_request_sets_the_propagation_only_if_it_shortens_the_grace_period(propagation: Any) -> None:
    store = Store()
    bound(store)
    first = store.delete("Pod", "default/web", now=0, grace_seconds=30)

    assert store.delete("Pod", "default/web", now=0, propagation=propagation) is first
    assert store.delete("Pod", "default/web", now=0, propagation=propagation, grace_seconds=30) is first

    shorter = store.delete("Pod", "default/web", now=0, propagation=propagation, grace_seconds=15)
    assert shorter is not None
    finalizer = {"Orphan": "orphan", "Foreground": "foregroundDeletion"}[propagation]
    assert shorter.object.metadata.finalizers == (finalizer,)


def test_finalizers_keep_an_object_until_the_last_is_taken_off() -> None:
    store = Store()
    store.create(pod("web", metadata={"finalizers": ["example.com/a", "example.com/b"]}), now=0)

    kept = store.delete("Pod", "default/web", now=0)
    assert kept is not None
    assert kept.object.metadata.deletion_timestamp is not None

    raw = kept.raw
    one_left = store.update({**raw, "metadata": {**raw["metadata"], "finalizers": ["example.com/b"]}})
    assert store.find("Pod", "default/web") is one_left

    store.update({**one_left.raw, "metadata": {**one_left.raw["metadata"], "finalizers": []}})
    assert store.find("Pod", "default/web") is None


def test_finalizers_outlast_the_grace_period() -> None:
    store = Store()
    bound(store, metadata={"finalizers": ["example.com/a"]})
    store.delete("Pod", "default/web", now=0)

    assert store.delete("Pod", "default/web", now=30 * SECOND, grace_seconds=0) is not None


def test_foreground_deletion_waits_for_the_collector() -> None:
    store = Store()
    store.create(node("n1"), now=0)

    kept = store.delete("Node", "n1", now=0, propagation="Foreground")

    assert kept is not None
    assert kept.object.metadata.finalizers == ("foregroundDeletion",)
    assert kept.object.metadata.deletion_grace_period_seconds == 0


def test_the_last_wish_for_what_an_object_owns_counts() -> None:
    store = Store()
    store.create({**node("n1"), "metadata": {"name": "n1", "finalizers": ["example.com/a"]}}, now=0)

    def finalizers(propagation: Any) -> tuple[str, ...]:
        kept = store.delete("Node", "n1", now=0, propagation=propagation)
        assert kept is not None
        return kept.object.metadata.finalizers

    assert finalizers("Orphan") == ("example.com/a", "orphan")
    assert finalizers("") == ("example.com/a", "orphan")
    assert finalizers("Foreground") == ("example.com/a", "foregroundDeletion")
    assert finalizers("Background") == ("example.com/a",)


@pytest.mark.parametrize("kind", ["Job", "ReplicationController", "ReplicaSet"])
def test_jobs_and_replication_controllers_leave_their_pods_by_default(kind: str) -> None:
    store = Store()
    store.create(workload(kind, "web", {}), now=0)

    kept = store.delete(kind, "default/web", now=0)

    assert (kept is None) == (kind == "ReplicaSet")
    assert kept is None or kept.object.metadata.finalizers == ("orphan",)


def test_an_unknown_delete_option_is_rejected() -> None:
    store = Store()
    store.create(node("n1"), now=0)
    propagation: Any = "Sideways"

    error = refusal(store, lambda: store.delete("Node", "n1", now=0, propagation=propagation))

    assert answer(error) == (422, "Invalid")


def test_b40_preconditions_must_hold() -> None:
    store = Store()
    stored = store.create(node("n1"), now=0)

    wrong_uid = refusal(store, lambda: store.delete("Node", "n1", now=0, uid="someone-else"))
    wrong_version = refusal(store, lambda: store.delete("Node", "n1", now=0, resource_version="7"))

    assert answer(wrong_uid) == answer(wrong_version) == (409, "Conflict")
    assert store.delete("Node", "n1", now=0, uid=stored.uid, resource_version="1") is None


def test_an_object_that_is_being_deleted_takes_no_new_finalizers() -> None:
    store = Store()
    store.create(pod("web", metadata={"finalizers": ["example.com/a"]}), now=0)
    kept = store.delete("Pod", "default/web", now=0)
    assert kept is not None
    raw = {**kept.raw, "metadata": {**kept.raw["metadata"], "finalizers": ["example.com/a", "example.com/b"]}}

    error = refusal(store, lambda: store.update(raw))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "metadata.finalizers"


@pytest.mark.parametrize(
    ("kind", "finalizers"),
    [("Event", ["shop.example.com/f"]), ("ConfigMap", ["shop.example.com/f", "foregroundDeletion"])],
)
def test_events_are_never_deleted_after_their_dependents(kind: str, finalizers: list[str]) -> None:
    store = Store()
    metadata = {"name": "a", "namespace": "default", "finalizers": ["shop.example.com/f"]}
    store.create({"apiVersion": "v1", "kind": kind, "metadata": metadata}, now=0)

    kept = store.delete(kind, "default/a", now=0, propagation="Foreground")

    assert kept is not None
    assert kept.raw["metadata"]["finalizers"] == finalizers
