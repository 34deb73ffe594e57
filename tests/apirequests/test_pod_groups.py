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
    assert refused.message == f"PodGroup default/g is invalid: {field}: field is immutable"
    assert [cause["field"] for cause in refused.details["causes"]] == [field]
    assert f"{field}: field is immutable" in refused.to_dict()["message"]


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


def workload() -> Raw:
    return {
        "apiVersion": NEWER,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 3}}}]},
    }


def of_workload() -> Raw:
    return group(podGroupTemplateRef={"workload": {"workloadName": "w", "podGroupTemplateName": "t"}})


def test_workloads_and_groups_are_created_read_listed_changed_and_deleted() -> None:
    api = API()
    for kind, body in (("Workload", workload()), ("PodGroup", of_workload())):
        key = f"default/{body['metadata']['name']}"

        made = api.ask("create", kind, body=body, namespace="default")
        read = api.ask("get", kind, key)
        listed = api.ask("list", kind, namespace="default")
        labelled = {**body, "metadata": {**body["metadata"], "labels": {"a": "b"}}}
        updated = api.ask("update", kind, key, body=labelled)
        patched = api.ask("patch", kind, key, body={"metadata": {"labels": {"c": "d"}}})

        assert (made.code, read.code, listed.code, updated.code, patched.code) == (201, 200, 200, 200, 200)
        assert read.object is not None
        assert read.object["spec"] == body["spec"]
        assert [one["metadata"]["name"] for one in listed.objects()] == [body["metadata"]["name"]]
        assert api.raw(kind, key)["metadata"]["labels"] == {"a": "b", "c": "d"}

    for kind, key in (("PodGroup", KEY), ("Workload", "default/w")):
        assert api.ask("delete", kind, key).code == 200
        assert api.ask("get", kind, key).code == 404


def test_the_templates_of_a_workload_do_not_change() -> None:
    api = API(workload())

    assert api.ask("patch", "Workload", "default/w", body={"spec": {"podGroupTemplates": [{"name": "x"}]}}).code == 422
