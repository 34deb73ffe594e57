"""Garbage collection of objects whose owners are deleted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.workloads import JOB_TRACKING
from podium.apirequests.actions import cleanup_by_requests
from podium.apirequests.request import Request, Response
from podium.store.cleanup import DeleteStep, GarbageCollector, PatchStep, Step
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.deletion import Propagation
from tests.pod_statuses import set_pod_status
from tests.store.collecting import steps_at
from tests.store.objects import Raw, pod


def config_map(name: str, *owners: Stored, blocks: bool = True, **metadata: object) -> Raw:
    references = [
        {
            "apiVersion": "v1",
            "kind": owner.kind,
            "name": owner.object.metadata.name,
            "uid": owner.uid,
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    metadata = {"name": name, "ownerReferences": references, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Family:
    """A grandparent, a parent and two children."""

    def __init__(self, *, blocks: bool = True) -> None:
        self.store = Store()
        self.collector = GarbageCollector(self.store, steps_at(self.store))
        self.add("grandparent")
        self.add("parent", "grandparent", blocks=blocks)
        self.add("son", "parent", blocks=blocks)
        self.add("daughter", "parent", blocks=blocks)
        self.collect()

    def add(self, name: str, *owners: str, blocks: bool = True, **metadata: object) -> Stored:
        found = [self.store.get("ConfigMap", f"default/{owner}") for owner in owners]
        return self.store.create(config_map(name, *found, blocks=blocks, **metadata), now=0)

    def delete(self, name: str, propagation: Propagation = "") -> None:
        self.store.delete("ConfigMap", f"default/{name}", now=0, propagation=propagation)

    def collect(self) -> int:
        return self.collector.collect(0)

    def names(self) -> list[str]:
        return [stored.object.metadata.name for stored in self.store.objects("ConfigMap")]

    def owners(self, name: str) -> list[str]:
        return [one.name for one in self.store.get("ConfigMap", f"default/{name}").object.metadata.owner_references]


def test_objects_with_a_living_owner_are_not_collected() -> None:
    family = Family()

    assert family.collect() == 0
    assert family.names() == ["daughter", "grandparent", "parent", "son"]


@pytest.mark.parametrize("propagation", ["", "Background"])
def test_in_the_background_owners_go_first(propagation: Propagation) -> None:
    family = Family()

    family.delete("grandparent", propagation)

    assert family.names() == ["daughter", "parent", "son"]
    assert family.collect() == 3
    assert family.names() == []
    gone = [event.stored.object.metadata.name for event in family.store.events_since(0) if event.type == "DELETED"]
    assert gone == ["grandparent", "parent", "son", "daughter"]


def test_in_the_foreground_dependents_go_first() -> None:
    family = Family()

    family.delete("grandparent", "Foreground")
    family.collect()

    assert family.names() == []
    gone = [event.stored.object.metadata.name for event in family.store.events_since(0) if event.type == "DELETED"]
    assert gone == ["son", "daughter", "parent", "grandparent"]


def test_an_owner_waits_for_dependents_that_block_and_have_finalizers() -> None:
    family = Family()
    family.add("slow", "grandparent", finalizers=["example.com/a"])

    family.delete("grandparent", "Foreground")
    family.collect()
    assert family.names() == ["grandparent", "slow"]

    slow = family.store.get("ConfigMap", "default/slow")
    family.store.update({**slow.raw, "metadata": {**slow.raw["metadata"], "finalizers": []}})
    family.collect()
    assert family.names() == []


def test_an_owner_does_not_wait_for_dependents_that_do_not_block() -> None:
    family = Family(blocks=False)
    family.add("slow", "grandparent", blocks=False, finalizers=["example.com/a"])

    family.delete("grandparent", "Foreground")
    family.collect()

    assert family.names() == ["slow"]


def test_orphans_stay_and_forget_their_owner() -> None:
    family = Family()

    family.delete("parent", "Orphan")
    assert "parent" in family.names()
    family.collect()

    assert family.names() == ["daughter", "grandparent", "son"]
    assert family.owners("son") == family.owners("daughter") == []


def test_pods_that_a_job_orphans_are_not_held_until_it_counts_them() -> None:
    """[TestOrphanPodsFinalizersClearedWithGC]"""
    store = Store()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"}, "spec": {"template": {}}}
    owner = store.create(job, now=0)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "uid": owner.uid, "controller": True}
    held = pod("sum-a")
    held["metadata"] |= {"ownerReferences": [reference], "finalizers": [JOB_TRACKING, "example.com/kept"]}
    store.create(held, now=0)

    store.delete("Job", "default/sum", now=0)
    GarbageCollector(store, steps_at(store)).collect(0)

    assert store.find("Job", "default/sum") is None
    left = store.get("Pod", "default/sum-a").object.metadata
    assert (left.owner_references, left.finalizers) == ((), ("example.com/kept",))


def test_the_last_deleted_owner_takes_its_dependent_along() -> None:
    family = Family()
    family.add("other")
    family.add("shared", "parent", "other")

    family.delete("other")
    family.collect()
    assert family.owners("shared") == ["parent"]

    family.delete("parent")
    family.collect()
    assert family.names() == ["grandparent"]


def test_a_dependent_leaves_an_owner_that_waits_where_it_has_another() -> None:
    family = Family()
    family.add("other")
    family.add("shared", "parent", "other")

    family.delete("parent", "Foreground")
    family.collect()

    assert family.names() == ["grandparent", "other", "shared"]
    assert family.owners("shared") == ["other"]


def test_a_namesake_is_not_an_owner() -> None:
    family = Family()
    family.delete("grandparent")
    family.add("grandparent")

    family.collect()

    assert family.names() == ["grandparent"]


def test_b29_owners_in_a_circle_go_together() -> None:
    family = Family()
    first = family.add("first")
    second = family.add("second", "first")
    reference = config_map("", second)["metadata"]["ownerReferences"]
    family.store.update({**first.raw, "metadata": {**first.raw["metadata"], "ownerReferences": reference}})
    family.collect()
    assert "first" in family.names()

    family.delete("first", "Foreground")
    family.collect()

    assert "first" not in family.names()
    assert "second" not in family.names()


def test_an_owner_that_was_never_there_counts_as_gone_unless_the_cluster_is_known_in_part() -> None:
    store = Store()
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1"}
    store.create(pod("web", metadata={"ownerReferences": [reference]}), now=0)

    assert GarbageCollector(store, steps_at(store), absent_is_gone=False).due(0) == []
    assert [type(step) for step in GarbageCollector(store, steps_at(store)).due(0)] == [DeleteStep]


def test_an_owner_of_a_kind_that_the_cluster_does_not_have_counts_as_there() -> None:
    store = Store()
    reference = {"apiVersion": "shop.example.com/v1", "kind": "Basket", "name": "web", "uid": "u1"}
    store.create(pod("web", metadata={"ownerReferences": [reference]}), now=0)

    assert GarbageCollector(store, steps_at(store)).due(0) == []


@pytest.mark.parametrize("absent_is_gone", [True, False])
@pytest.mark.parametrize("unserved", ["extensions/v1beta1", "apps/v1"])
def test_a_reference_in_an_api_version_that_is_not_served_collects_nothing_while_its_owner_lives(
    unserved: str, *, absent_is_gone: bool
) -> None:
    """[TestConflictingData]: the meaning of such a reference is unknown; that of another kind is wrong."""
    store = Store()
    owned = config_map("owned", store.create(config_map("owner"), now=0))
    owned["metadata"]["ownerReferences"][0]["apiVersion"] = unserved
    store.create(owned, now=0)
    collector = GarbageCollector(store, steps_at(store), absent_is_gone=absent_is_gone)

    collector.collect(0)
    assert [one.key for one in store.objects("ConfigMap")] == ["default/owned", "default/owner"]

    store.delete("ConfigMap", "default/owner", now=0)
    collector.collect(0)
    assert store.objects("ConfigMap") == []


def test_dependents_are_collected_in_a_partially_known_cluster() -> None:
    store = Store()
    owner = store.create(config_map("owner"), now=0)
    store.create(config_map("owned", owner), now=0)
    collector = GarbageCollector(store, steps_at(store), absent_is_gone=False)

    store.delete("ConfigMap", "default/owner", now=0)
    collector.collect(0)

    assert store.objects("ConfigMap") == []


@pytest.mark.parametrize("absent_is_gone", [True, False])
@pytest.mark.parametrize(
    "wrong",
    [{"name": "other"}, {"kind": "Secret"}, {"apiVersion": "apps/v1", "kind": "Deployment"}, {"namespace": "shop"}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_uid_alone_makes_no_owner(wrong: Raw, *, absent_is_gone: bool) -> None:
    store = Store()
    owned = config_map("owned", store.create(config_map("owner"), now=0))
    namespace = wrong.get("namespace", "default")
    reference = {**owned["metadata"]["ownerReferences"][0], **wrong}
    reference.pop("namespace", None)
    owned["metadata"] |= {"namespace": namespace, "ownerReferences": [reference]}
    store.create(owned, now=0)

    GarbageCollector(store, steps_at(store), absent_is_gone=absent_is_gone).collect(0)

    assert [one.key for one in store.objects("ConfigMap")] == ["default/owner"]


def test_an_object_created_for_a_just_deleted_owner_is_collected() -> None:
    store = Store()
    owned = config_map("owned", store.create(config_map("owner"), now=0))
    collector = GarbageCollector(store, steps_at(store), absent_is_gone=False)
    store.delete("ConfigMap", "default/owner", now=0)
    collector.collect(0)
    store.create(owned, now=60)

    collector.collect(60 * 10**9)

    assert store.objects("ConfigMap") == []


def test_a_collector_forgets_what_went_long_ago() -> None:
    store = Store()
    collector = GarbageCollector(store, steps_at(store), absent_is_gone=False)
    for minute in range(100):
        now = minute * 60 * 10**9
        owned = config_map("owned", store.create(config_map("owner"), now=now))
        store.create(owned, now=now)
        store.delete("ConfigMap", "default/owner", now=now)
        collector.collect(now)

    assert len(collector._gone) <= 24
    assert not collector._owned
    assert not collector._objects


def test_a_collector_that_fell_behind_rescans_all_objects() -> None:
    store = Store(log_capacity=2)
    owner = store.create(config_map("owner"), now=0)
    store.create(config_map("owned", owner), now=0)
    collector = GarbageCollector(store, steps_at(store))
    store.delete("ConfigMap", "default/owner", now=0)
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    collector.collect(0)

    assert store.objects("ConfigMap") == []


def test_each_step_is_reported_once_and_is_conditional() -> None:
    family = Family()
    family.delete("parent", "Orphan")

    steps = family.collector.due(0)

    assert [type(step) for step in steps] == [PatchStep, PatchStep, PatchStep]
    requests: list[Request] = []

    def ask(request: Request, now: int) -> Response:
        requests.append(request)
        return Response()

    for step in steps:
        cleanup_by_requests(ask)(step, 0)
        metadata = requests[-1].body["metadata"]
        assert (metadata["uid"], metadata["resourceVersion"]) == (step.stored.uid, str(step.stored.version))
    assert family.collector.due(0) == []


def test_a_status_update_makes_no_object_worth_another_look(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family()
    looked_at: list[str] = []
    reference = config_map("x", family.store.get("ConfigMap", "default/parent"))["metadata"]["ownerReferences"]
    raw = pod("child")
    family.store.create({**raw, "metadata": {**raw["metadata"], "ownerReferences": reference}}, now=0)
    family.collect()
    steps = GarbageCollector._steps

    def noted(self: GarbageCollector, stored: Stored) -> list[Step]:
        looked_at.append(stored.key)
        return steps(self, stored)

    monkeypatch.setattr(GarbageCollector, "_steps", noted)

    set_pod_status(family.store, "default/child", {"phase": "Running"}, (), now=0)
    family.collect()

    assert looked_at == []
    family.delete("parent")
    family.collect()
    assert family.store.objects("Pod") == []


@given(
    owners=st.lists(st.sets(st.integers(0, 5), max_size=2), min_size=6, max_size=6),
    deleted=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    propagation=st.sampled_from(["Background", "Foreground"]),
)
def test_every_object_left_has_a_living_owner_or_none(
    owners: list[set[int]], deleted: list[int], propagation: Propagation
) -> None:
    store = Store()
    collector = GarbageCollector(store, steps_at(store))
    stored: list[Stored] = []
    for number, above in enumerate(owners):
        parents = [stored[index] for index in sorted(above) if index < number]
        stored.append(store.create(config_map(f"c{number}", *parents), now=0))

    for number in deleted:
        if store.find("ConfigMap", f"default/c{number}") is not None:
            store.delete("ConfigMap", f"default/c{number}", now=0, propagation=propagation)
        collector.collect(0)

    left = {one.uid for one in store.objects("ConfigMap")}
    alive: set[str] = set()
    for number, one in enumerate(stored):
        uids = {owner.uid for owner in one.object.metadata.owner_references}
        if number not in deleted and (not uids or alive & uids):
            alive.add(one.uid)
    assert left == alive


def test_a_cluster_scoped_object_is_not_collected_for_a_namespaced_owner() -> None:
    """[TestMixedRelationships]: such an owner cannot be looked up, whether it exists or not."""
    family = Family()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": "gone"}
    known = {**owner, "uid": family.store.get("ConfigMap", "default/parent").uid}
    for name, reference in (("a", owner), ("b", known)):
        metadata = {"name": name, "ownerReferences": [reference]}
        family.store.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata}, now=0)

    family.delete("parent")
    family.collect()

    assert [stored.key for stored in family.store.objects("Node")] == ["a", "b"]
