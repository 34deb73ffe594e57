"""A PodGroup gets the priority of the class that it names, and is made from a template that exists."""

import pytest

from podium.api.pod_group import PodGroup
from podium.store.store import Store
from tests.store.objects import Raw, priority_class
from tests.store.refusals import answer, refusal


def group(uid: str = "", **spec: object) -> Raw:
    metadata = {"name": "g", "namespace": "default"} | ({"uid": uid} if uid else {})
    policy: Raw = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    return {**kind, "metadata": metadata, "spec": {**policy, **spec}}


def a_store() -> Store:
    store = Store()
    store.create(priority_class("high", 7), now=0)
    store.create(priority_class("usual", 3, globalDefault=True), now=0)
    return store


@pytest.mark.parametrize("spec", [{}, {"priority": 7}])
def test_a_group_gets_the_priority_of_its_class(spec: Raw) -> None:
    made = a_store().create(group(priorityClassName="high", **spec), now=0)

    assert made.raw["spec"]["priority"] == 7
    assert isinstance(made.object, PodGroup)
    assert made.object.spec.priority == 7


@pytest.mark.parametrize("spec", [{}, {"priority": 5}])
def test_a_group_without_a_class_is_as_important_as_it_says_or_as_its_pods(spec: Raw) -> None:
    made = a_store().create(group(**spec), now=0)

    assert made.raw["spec"].get("priority") == spec.get("priority")
    assert "priorityClassName" not in made.raw["spec"]


@pytest.mark.parametrize("uid", ["", "a-b-c"])
def test_a_class_that_is_not_there_is_refused_and_a_similar_one_named(uid: str) -> None:
    store = a_store()

    error = refusal(store, lambda: store.create(group(uid, priorityClassName="hihg"), now=0))

    assert answer(error) == (403, "Forbidden")
    assert error.message == (
        "PodGroup default/g is forbidden: no PriorityClass with name hihg was found; did you mean high?"
    )


def test_another_priority_than_that_of_the_class_is_refused() -> None:
    store = a_store()

    error = refusal(store, lambda: store.create(group(priorityClassName="high", priority=9), now=0))

    assert answer(error) == (403, "Forbidden")
    assert "priority 9 is not that of PriorityClass high, 7; leave it out" in error.message


def test_classes_of_the_system_are_too_high_for_groups() -> None:
    store = a_store()

    error = refusal(store, lambda: store.create(group(priorityClassName="system-node-critical"), now=0))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "spec.priority"


@pytest.mark.parametrize(("spec", "priority"), [({"priority": 4}, 4), ({}, 7)])
def test_a_group_that_was_in_a_cluster_keeps_the_priority_it_got_there(spec: Raw, priority: int) -> None:
    made = a_store().create(group("a-b-c", priorityClassName="high", **spec), now=0)

    assert made.raw["spec"]["priority"] == priority


def test_an_update_that_leaves_the_priority_out_keeps_it() -> None:
    store = a_store()
    store.create(group(priorityClassName="high"), now=0)

    labelled = group(priorityClassName="high")
    labelled["metadata"]["labels"] = {"a": "b"}
    updated = store.update(labelled)

    assert updated.raw["spec"]["priority"] == 7
    assert updated.raw["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("spec", [{}, {"priorityClassName": "usual"}, {"priorityClassName": "high", "priority": 3}])
def test_the_class_and_the_priority_of_a_group_stay_as_they_are(spec: Raw) -> None:
    store = a_store()
    store.create(group(priorityClassName="high"), now=0)

    error = refusal(store, lambda: store.update(group(**spec)))

    assert answer(error) == (422, "Invalid")
    assert "field is immutable" in error.message


def workload(*templates: str, **metadata: object) -> Raw:
    policy: Raw = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default", **metadata},
        "spec": {"podGroupTemplates": [{"name": one, **policy} for one in templates]},
    }


MADE: Raw = {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "workers"}}}


def test_a_group_is_made_from_a_template_of_a_workload() -> None:
    store = a_store()
    store.create(workload("head", "workers"), now=0)

    made = store.create(group(**MADE), now=0, is_new=True)

    assert made.raw["spec"]["podGroupTemplateRef"] == MADE["podGroupTemplateRef"]


def test_a_group_of_a_workload_that_does_not_exist_is_refused() -> None:
    store = a_store()

    error = refusal(store, lambda: store.create(group(**MADE), now=0, is_new=True))

    assert answer(error) == (403, "Forbidden")
    assert 'PodGroup rejected: Workload "w" not found' in error.message


def test_a_group_of_a_workload_that_is_being_deleted_is_refused() -> None:
    store = a_store()
    store.create(workload("workers", finalizers=["example.com/a"]), now=0)
    store.delete("Workload", "default/w", now=0)

    error = refusal(store, lambda: store.create(group(**MADE), now=0, is_new=True))

    assert answer(error) == (403, "Forbidden")
    assert 'PodGroup rejected: Workload "w" is being deleted' in error.message


def test_a_group_of_a_template_that_its_workload_lacks_is_refused() -> None:
    store = a_store()
    store.create(workload("head"), now=0)

    error = refusal(store, lambda: store.create(group(**MADE), now=0, is_new=True))

    assert answer(error) == (403, "Forbidden")
    assert 'PodGroup rejected: PodGroupTemplate "workers" not found in Workload "w"' in error.message


def test_a_group_of_a_file_may_name_a_workload_that_follows() -> None:
    store = a_store()

    assert store.create(group(**MADE), now=0).raw["spec"]["podGroupTemplateRef"] == MADE["podGroupTemplateRef"]
