"""Both forms of PodGroups at the API server."""

from __future__ import annotations

import pytest

from tests.apirequests.asking import API
from tests.store.objects import Raw

NEWER, OLDER = "scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1"
KEY = "default/g"


def group(**spec: object) -> Raw:
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    metadata = {"name": "g", "namespace": "default"}
    return {"apiVersion": NEWER, "kind": "PodGroup", "metadata": metadata, "spec": {**policy, **spec}}


def older() -> Raw:
    return {**group(), "apiVersion": OLDER, "spec": {"minMember": 3, "scheduleTimeoutSeconds": 20}}


def test_an_older_pod_group_is_stored_in_the_new_version_and_readable_in_both() -> None:
    api = API()

    made = api.ask("create", "PodGroup", body=older(), namespace="default", api_version=OLDER)

    assert made.code == 201
    assert api.raw("PodGroup", KEY)["apiVersion"] == NEWER
    assert api.raw("PodGroup", KEY)["spec"] == group()["spec"]
    assert made.stored is not None
    assert (made.stored.raw["apiVersion"], made.stored.raw["spec"]) == (OLDER, older()["spec"])


def test_its_changes_are_counted() -> None:
    api = API()

    api.ask("create", "PodGroup", body=group(), namespace="default")

    assert api.raw("PodGroup", KEY)["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulingPolicy": {"gang": {"minCount": 2}}},
        {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
        {"disruptionMode": "PodGroup"},
    ],
)
def test_a_change_of_a_pod_group_spec_is_rejected(spec: Raw) -> None:
    api = API(group())

    assert api.ask("patch", "PodGroup", KEY, body={"spec": spec}).code == 422


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {"minMember": 2}}, "spec.minMember"),
        (
            {"metadata": {"annotations": {"podium.dev/topology-key": "rack"}}},
            "metadata.annotations[podium.dev/topology-key]",
        ),
        (
            {"metadata": {"annotations": {"podium.dev/disruption-mode": "PodGroup"}}},
            "metadata.annotations[podium.dev/disruption-mode]",
        ),
    ],
)
def test_a_refusal_names_the_field_of_the_form_that_was_written(change: Raw, field: str) -> None:
    api = API(group())

    refused = api.ask("patch", "PodGroup", KEY, body=change, api_version=OLDER).error

    assert refused is not None
    assert refused.message == f"PodGroup default/g is invalid: {field}: the field is immutable"
    assert [cause["field"] for cause in refused.details["causes"]] == [field]
    assert f"{field}: the field is immutable" in refused.to_dict()["message"]


def test_its_conditions_can_be_written() -> None:
    api = API(group())
    condition = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "message": ""}

    api.ask("patch", "PodGroup", KEY, body={"status": {"conditions": [condition]}}, subresource="status")

    (written,) = api.raw("PodGroup", KEY)["status"]["conditions"]
    assert written["status"] == "True"
    assert api.raw("PodGroup", KEY)["metadata"]["generation"] == 1


def test_a_group_without_a_policy_is_refused() -> None:
    body = {**group(), "spec": {}}

    assert API().ask("create", "PodGroup", body=body, namespace="default").code == 422
