"""The schemas of custom kinds beside those of Kubernetes' own."""

from typing import Any

import pytest

from podium.api.schemas.schema import (
    Field,
    Leaf,
    ListOf,
    MapOf,
    Object,
    defaults_of,
    fields_of,
    immutable_paths,
    is_type,
)
from podium.api.schemas.schema_registry import SchemaRegistry

Raw = dict[str, Any]

WIDGET: Raw = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "int32", "default": 3},
                "port": {"x-kubernetes-int-or-string": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "weight": {"type": "number", "default": 0.5}},
                    },
                },
                "place": {"type": "object", "default": {}, "properties": {"zone": {"type": "string", "default": "a"}}},
            },
        }
    },
}


def registry() -> tuple[SchemaRegistry, Object]:
    found = SchemaRegistry()
    found.add("example.com", "Widget", WIDGET)
    type_ = found.of("example.com", "Widget")
    assert type_ is not None
    return found, type_


def test_a_custom_kind_has_the_fields_of_its_definition_and_those_of_every_object() -> None:
    schemas, widget = registry()
    fields = schemas.fields(widget)
    spec_type = fields["spec"].type
    assert isinstance(spec_type, Object)
    spec = schemas.fields(spec_type)

    assert fields["metadata"].type == Object("ObjectMeta")
    assert schemas.fields(Object("ObjectMeta")) == fields_of("ObjectMeta")
    assert spec["size"] == Field(Leaf("int"), default=3)
    assert spec["port"] == Field(Leaf("intOrString"))
    assert spec["labels"] == Field(MapOf(Leaf("str")))
    assert spec["anything"] == Field(MapOf(Leaf("any")))
    assert spec["tags"] == Field(ListOf(Leaf("str")), merge_key="")
    assert spec["parts"].merge_key == "name"


def test_the_kinds_of_kubernetes_are_known_and_nobody_takes_their_place() -> None:
    schemas = SchemaRegistry()

    assert schemas.of("", "Pod") == Object("Pod")
    assert schemas.of("example.com", "Widget") is None
    with pytest.raises(ValueError, match="Kubernetes"):
        schemas.add("", "Pod", WIDGET)


def test_defaults_stand_where_nothing_is_said() -> None:
    schemas, widget = registry()
    given = {"spec": {"parts": [{"name": "x"}, {"name": "y", "weight": 1.5}]}}

    assert schemas.defaulted(given, widget)["spec"] == {
        "parts": [{"name": "x", "weight": 0.5}, {"name": "y", "weight": 1.5}],
        "size": 3,
        "place": {"zone": "a"},
    }
    assert given == {"spec": {"parts": [{"name": "x"}, {"name": "y", "weight": 1.5}]}}


def test_an_object_that_says_everything_stays_itself() -> None:
    schemas, widget = registry()
    whole = schemas.defaulted({"spec": {}}, widget)

    assert schemas.defaulted(whole, widget) is whole
    assert schemas.defaulted({}, widget) == {}
    assert schemas.defaulted({"spec": "wrong"}, widget) == {"spec": "wrong"}


def test_a_definition_can_change() -> None:
    schemas, _ = registry()
    schemas.add("example.com", "Widget", {"type": "object", "properties": {"color": {"type": "string"}}})

    widget = schemas.of("example.com", "Widget")
    assert widget is not None
    assert set(schemas.fields(widget)) == {"apiVersion", "kind", "metadata", "color"}


def test_fields_that_no_update_changes_are_those_of_the_kind_and_of_its_spec() -> None:
    assert immutable_paths("batch", "Job") == (("spec", "selector"), ("spec", "completionMode"))
    assert ("parameters",) in immutable_paths("storage.k8s.io", "StorageClass")
    # A CronJob makes Jobs of a template, which may change.
    assert immutable_paths("batch", "CronJob") == ()
    assert immutable_paths("example.com", "Widget") == ()


def test_what_the_server_fills_in_stands_in_the_schema() -> None:
    assert defaults_of("PodSpec") == {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
    assert is_type("PodSpec")
