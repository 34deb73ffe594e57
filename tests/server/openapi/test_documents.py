"""The OpenAPI documents that kubectl uses to create, apply and explain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from podium.api.schemas.schema import fields_of
from podium.server.discovery import served_kinds
from podium.server.openapi import REFERENCE, definition_of, described, descriptions, document, document_of_v2
from podium.store.api_resources import APIResource
from tests.store.objects import Raw, serving

GVK = "x-kubernetes-group-version-kind"
WIDGET = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
DEFINITION: Raw = {
    "spec": {
        "versions": [
            {"name": "v0"},
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "description": "A thing.",
                        "type": "object",
                        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                    }
                },
            },
        ]
    }
}
RESOURCES = serving(WIDGET)
KINDS = [(kind, RESOURCES.served_at(kind.api_version, kind.plural)) for kind in served_kinds(RESOURCES.all())]
VERSIONS = list(dict.fromkeys(kind.api_version for kind, _ in KINDS))


def written(api_version: str) -> Raw:
    definitions = {"Widget": definition_of(DEFINITION, api_version)} if api_version == "example.com/v1" else {}
    return document([of for of in KINDS if of[0].api_version == api_version], api_version, definitions)


def schema(api_version: str, name: str) -> Raw:
    found: Raw = written(api_version)["components"]["schemas"][name]
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for part in value.values():
            yield from references(part)
    elif isinstance(value, list):
        for part in value:
            yield from references(part)


@pytest.mark.parametrize("api_version", VERSIONS)
def test_every_openapi_reference_resolves(api_version: str) -> None:
    found = written(api_version)
    schemas = found["components"]["schemas"]
    assert {name.removeprefix(REFERENCE) for name in references(found)} <= set(schemas)


@pytest.mark.parametrize("api_version", VERSIONS)
def test_schemas_have_no_empty_parts_which_are_lost_when_clients_write_them_again(api_version: str) -> None:
    for schema in written(api_version)["components"]["schemas"].values():
        assert schema.get("properties", True)
        assert schema.get("required", True)


@pytest.mark.parametrize("api_version", VERSIONS)
def test_every_kind_is_found_by_its_group_version_and_kind(api_version: str) -> None:
    found = written(api_version)
    marked = [one.get("x-kubernetes-group-version-kind", []) for one in found["components"]["schemas"].values()]
    kinds = {mark["kind"] for marks in marked for mark in marks}
    assert kinds == {kind.kind for kind, _ in KINDS if kind.api_version == api_version}


def test_kinds_that_can_be_patched_say_that_fields_are_validated() -> None:
    for kind, _ in KINDS:
        patches = [
            operation["patch"]
            for operation in written(kind.api_version)["paths"].values()
            if operation.get("patch", {}).get("x-kubernetes-group-version-kind", {}).get("kind") == kind.kind
        ]
        assert bool(patches) is ("patch" in kind.verbs)
        for patch in patches:
            assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def test_paths_are_those_of_the_api() -> None:
    paths = written("v1")["paths"]
    assert set(paths["/api/v1/namespaces/{namespace}/pods"]) == {"delete", "get", "post"}
    assert set(paths["/api/v1/namespaces/{namespace}/pods/{name}"]) == {"delete", "get", "patch", "put"}
    assert set(paths["/api/v1/pods"]) == {"get"}
    assert set(paths["/api/v1/nodes/{name}/status"]) == {"get", "patch", "put"}
    evict = paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert evict["x-kubernetes-group-version-kind"] == {"group": "policy", "kind": "Eviction", "version": "v1"}


def test_strategic_merge_patch_is_for_kubernetes_own_kinds() -> None:
    def patches(api_version: str, path: str) -> set[str]:
        return set(written(api_version)["paths"][path]["patch"]["requestBody"]["content"])

    strategic = "application/strategic-merge-patch+json"
    assert strategic in patches("v1", "/api/v1/nodes/{name}")
    for api_version, path in (
        ("example.com/v1", "namespaces/{namespace}/widgets/{name}"),
        ("podium.dev/v1alpha1", "disruptionpolicies/{name}"),
    ):
        assert patches(api_version, f"/apis/{api_version}/{path}") == {
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        }


@pytest.mark.parametrize(
    ("field", "marks"),
    [
        ("containers", {"patch-merge-key": "name", "patch-strategy": "merge", "list-type": "map"}),
        ("volumes", {"patch-merge-key": "name", "patch-strategy": "merge,retainKeys", "list-type": "map"}),
        ("tolerations", {"list-type": "atomic"}),
    ],
)
def test_lists_say_how_they_are_merged(field: str, marks: Raw) -> None:
    found = schema("v1", "io.k8s.api.core.v1.PodSpec")["properties"][field]
    for name, value in marks.items():
        assert found[f"x-kubernetes-{name}"] == value
    assert ("x-kubernetes-patch-strategy" in found) is ("patch-strategy" in marks)


def test_a_type_is_called_the_same_in_every_document() -> None:
    assert "io.k8s.api.core.v1.PodSpec" in written("apps/v1")["components"]["schemas"]
    assert "io.k8s.api.apps.v1.DeploymentSpec" in written("apps/v1")["components"]["schemas"]
    assert "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in written("v1")["components"]["schemas"]


@pytest.mark.parametrize(
    ("api_version", "name", "field"),
    [
        ("autoscaling/v1", "io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerSpec", "targetCPUUtilizationPercentage"),
        ("events.k8s.io/v1", "io.k8s.api.events.v1.Event", "regarding"),
        ("authorization.k8s.io/v1", "io.k8s.api.authorization.v1.ResourceAttributes", "verb"),
        ("v1", "io.k8s.api.core.v1.Binding", "target"),
    ],
)
def test_fields_missing_from_schemas_are_taken_from_protobuf(api_version: str, name: str, field: str) -> None:
    assert field in schema(api_version, name)["properties"]


def test_few_kinds_may_have_any_fields() -> None:
    anything = {
        mark["kind"]
        for api_version in VERSIONS
        for found in written(api_version)["components"]["schemas"].values()
        for mark in found.get("x-kubernetes-group-version-kind", ())
        if found.get("x-kubernetes-preserve-unknown-fields")
    }
    assert anything == {"NodeMetrics", "PodMetrics"}


def test_custom_kinds_have_the_schema_of_their_definition() -> None:
    found = schema("example.com/v1", "com.example.v1.Widget")
    assert found["description"] == "A thing."
    assert found["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}
    assert set(found["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert definition_of(DEFINITION, "example.com/v0") is None
    assert definition_of(None, "example.com/v1") is None


def test_disruption_policies_have_the_fields_that_podium_reads() -> None:
    spec = schema("podium.dev/v1alpha1", "dev.podium.v1alpha1.DisruptionPolicy")["properties"]["spec"]
    fields = {"avoidLists", "budgetBounds", "caps", "defaultBudgets", "priorities", "priorityRules", "severalBudgets"}
    assert set(spec["properties"]) == fields
    minimum = spec["properties"]["defaultBudgets"]["items"]["properties"]["minAvailable"]
    assert minimum == {"x-kubernetes-int-or-string": True}


def test_every_description_belongs_to_an_existing_field() -> None:
    for of in descriptions():
        type_, _, field = of.partition(".")
        assert type_ == "*" or not field or field in fields_of(type_), of
    assert described("PodSpec.nodeName")
    assert described("JobStatus.conditions") == described("*.conditions")
    assert described("Nothing") == ""


V2 = document_of_v2(written(version) for version in VERSIONS)


def of_widgets(schema: Raw) -> Raw:
    """Return the definition of v2 for a custom kind with that schema of `spec`."""
    definition = {"type": "object", "properties": {"spec": schema}}
    kinds = [of for of in KINDS if of[0].api_version == "example.com/v1"]
    made = document_of_v2([document(kinds, "example.com/v1", {"Widget": definition})])
    found: Raw = made["definitions"]["com.example.v1.Widget"]["properties"]["spec"]
    return found


def test_every_reference_of_version_2_resolves() -> None:
    assert {name.removeprefix("#/definitions/") for name in references(V2)} <= set(V2["definitions"])


def test_version_2_has_bodies_as_parameters() -> None:
    created = V2["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"]

    assert created["x-kubernetes-action"] == "post"
    assert created["parameters"][-1] == {
        **{"name": "body", "in": "body", "required": True},
        "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
    }
    assert "application/json" in created["consumes"]
    assert created["responses"]["200"]["schema"] == {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"}


def test_version_2_describes_lists_and_how_to_select_in_them() -> None:
    listed = V2["paths"]["/api/v1/namespaces/{namespace}/services"]["get"]

    assert listed["responses"]["200"] == {"description": "List of services"}
    assert {one["name"] for one in listed["parameters"]} > {"labelSelector", "limit", "watch"}


def test_amounts_are_text_in_version_2() -> None:
    quantity = V2["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"]

    assert (quantity["type"], "oneOf" in quantity) == ("string", False)


def test_the_schema_of_a_definition_is_the_same_in_version_2_as_far_as_that_has_it() -> None:
    size: Raw = {"type": "integer", "minimum": 1, "description": "How large."}
    listed: Raw = {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": size}}}

    assert of_widgets(listed) == listed
    assert of_widgets({"type": "object", "properties": {"oneOf": size}})["properties"] == {"oneOf": size}
    assert of_widgets({**listed, "anyOf": [{"minItems": 1}], "not": {"maxItems": 2}}) == listed


def test_version_2_does_not_describe_what_its_clients_cannot_read() -> None:
    size: Raw = {"type": "integer"}
    kept: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"size": size}}
    nullable: Raw = {"type": "object", "required": ["a"], "properties": {"a": {**size, "nullable": True}}}

    assert of_widgets(kept) == {"x-kubernetes-preserve-unknown-fields": True}
    root = document_of_v2([{"paths": {}, "components": {"schemas": {"w": {**kept, GVK: []}}}}])
    assert root["definitions"]["w"] == {"type": "object", GVK: []}
    assert of_widgets(nullable) == {"type": "object", "required": [], "properties": {"a": {}}}
