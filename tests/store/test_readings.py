"""Validation at creation and update: everything that kube-apiserver refuses, reported at once."""

from __future__ import annotations

from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod

UNNAMED: Raw = {"containers": [{"name": "-", "ports": [{"containerPort": 0}]}]}


def refused(store: Store, raw: Raw, **how: Any) -> StoreError:
    with pytest.raises(StoreError) as caught:
        store.create(raw, now=0, **how)
    assert store.version == 0
    return caught.value


def deployment(**spec: Any) -> Raw:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web")["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def test_a_new_object_is_refused_with_all_that_is_wrong_with_it() -> None:
    error = refused(Store(), pod("web", spec=UNNAMED), is_new=True)

    assert (error.code, error.reason) == (422, "Invalid")
    assert error.details["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "field": "spec.containers[0].name",
            "message": 'Invalid value: "-" is not a valid name: at most 63 lower-case letters, digits and '
            "'-', with a letter or digit at both ends",
        },
        {"reason": "FieldValueRequired", "field": "spec.containers[0].image", "message": "Required value"},
        {
            "reason": "FieldValueRequired",
            "field": "spec.containers[0].ports[0].containerPort",
            "message": "Required value",
        },
    ]
    assert error.message.startswith("Pod default/web is invalid: [spec.containers[0].name: Invalid value")
    assert "spec.containers[0].image: Required value, spec" in error.message


def test_a_single_problem_is_shown_without_brackets() -> None:
    error = refused(Store(), deployment(replicas=-1), is_new=True)
    assert error.message == (
        "Deployment default/web is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    )


def test_a_value_that_cannot_be_read_is_a_bad_request() -> None:
    assert refused(Store(), pod("web", spec={"containers": "main"}), is_new=True).code == 400


def test_an_object_of_a_dump_is_let_in_with_what_is_wrong_with_it() -> None:
    assert Store().create(pod("web", spec=UNNAMED), now=0)


def test_an_update_is_rejected_for_the_invalid_values_that_it_adds_alone() -> None:
    store = Store()
    raw = store.create(pod("web", spec={"containers": [{"name": "main", "image": "a"}, {"name": "b"}]}), now=0).raw
    main, other = raw["spec"]["containers"]

    def update(image: str) -> None:
        before = store.get("Pod", "default/web").raw
        store.update({**before, "spec": {**before["spec"], "containers": [{**main, "image": image}, other]}})

    update("b")
    with pytest.raises(StoreError) as caught:
        update(" b")

    assert [one["field"] for one in caught.value.details["causes"]] == ["spec.containers[0].image"]


def test_a_patch_is_judged_by_what_becomes_of_the_object() -> None:
    store = Store()
    store.create(deployment(), now=0)

    with pytest.raises(StoreError) as caught:
        store.patch(
            "Deployment", "default/web", {"spec": {"progressDeadlineSeconds": 5, "minReadySeconds": 9}}, "merge"
        )

    assert caught.value.details["causes"][0]["field"] == "spec.progressDeadlineSeconds"
