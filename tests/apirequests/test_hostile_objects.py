"""Definitions, custom objects and applies of any shape get an answer."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from podium.apirequests.request import Request
from tests.apirequests.asking import API
from tests.fuzzing import usual
from tests.store.objects import Raw
from tests.store.test_definitions import definition, version, widget

JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-3, 2**64) | some.floats(allow_nan=False) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYWORDS = some.sampled_from(
    (
        *("type", "properties", "items", "additionalProperties", "default", "enum", "required", "pattern", "format"),
        *("minimum", "maxLength", "maxItems", "nullable", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations"),
        *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "multipleOf"),
        *("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
    )
)
TYPES = some.sampled_from(("object", "array", "string", "integer", "number", "boolean"))
SCHEMAS = some.recursive(
    some.fixed_dictionaries({"type": TYPES}) | some.dictionaries(KEYWORDS, JSON, max_size=3),
    lambda inner: some.fixed_dictionaries(
        {"type": TYPES},
        optional={
            "properties": some.dictionaries(some.sampled_from("abc"), inner, max_size=3),
            "items": inner,
            "additionalProperties": inner,
            "anyOf": some.lists(inner, max_size=2),
            "default": JSON,
            "enum": some.lists(JSON, max_size=2),
            "nullable": JSON,
        },
    ),
    max_leaves=6,
)
ANSWERS = {200, 201, 400, 404, 405, 409, 413, 415, 422}


def changed(raw: Raw, path: list[int], value: Any) -> Raw:
    """Return the object with another value at a place that the numbers lead to."""
    raw = copy.deepcopy(raw)
    at: Any = raw
    for number in path:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[number % len(keys)]
        if not isinstance(at[key], dict | list) or not at[key] or number == path[-1]:
            at[key] = value
            return raw
        at = at[key]
    return raw


PATHS = some.lists(some.integers(0, 7), min_size=1, max_size=7)


def ask(api: API, **request: Any) -> int:
    response = api.answer(Request(**request))
    response.to_dict()
    return response.code


@settings(max_examples=usual(60), deadline=None)
@given(PATHS, JSON, some.sampled_from(("", "Warn", "Strict")))
def test_every_definition_is_answered(path: list[int], value: Any, validation: Any) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    whole = definition(
        version(
            subresources={"status": {}, "scale": scale},
            additionalPrinterColumns=[column],
            selectableFields=[{"jsonPath": ".spec.color"}],
        ),
        names={"shortNames": ["wd"], "categories": ["all"]},
        conversion={"strategy": "None"},
    )
    api, raw = API(), changed(whole, path, value)

    kind = "CustomResourceDefinition"
    assert ask(api, verb="create", kind=kind, body=raw, field_validation=validation) in ANSWERS
    if api.store.count():
        key = api.store.objects(kind)[0].key
        assert ask(api, verb="patch", kind=kind, key=key, body={"spec": raw["spec"]}) in ANSWERS
        assert ask(api, verb="delete", kind=kind, key=key) in ANSWERS


@settings(max_examples=usual(60), deadline=None)
@given(SCHEMAS, JSON, JSON)
def test_every_schema_and_every_object_is_answered(schema: Raw, first: Any, second: Any) -> None:
    api = API()
    whole = {"type": "object", "properties": {"spec": schema}}
    body = definition({**version(), "schema": {"openAPIV3Schema": whole}})
    assert ask(api, verb="create", kind="CustomResourceDefinition", body=body) in ANSWERS
    kind, key = "Widget.example.com", "default/a"
    for spec in (first, second):
        raw = {**widget(), "spec": spec}
        assert ask(api, verb="create", kind=kind, body=raw, field_validation="Warn", field_manager="m") in ANSWERS
        assert ask(api, verb="update", kind=kind, key=key, body=raw, field_validation="Warn") in ANSWERS
        apply = {"patch_type": "apply", "field_manager": "n", "force": True}
        assert ask(api, verb="patch", kind=kind, key=key, body=raw, **apply) in ANSWERS


@settings(max_examples=usual(60), deadline=None)
@given(some.sampled_from(("Deployment", "Pod", "Service", "ConfigMap", "Event", "Namespace", "Secret")), PATHS, JSON)
def test_every_application_is_answered(kind: str, path: list[int], value: Any) -> None:
    group = {"Deployment": "apps/v1"}.get(kind, "v1")
    labels = {"app": "web"}
    pod: Raw = {"containers": [{"name": "main", "image": "app", "ports": [{"containerPort": 80}]}]}
    spec: Raw = {
        "Deployment": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        "Pod": pod,
        "Service": {"ports": [{"port": 80}], "selector": labels},
    }.get(kind, {"finalizers": ["x/y"]})
    metadata: Raw = {"name": "web", "labels": labels, "annotations": {"a": "b"}, "finalizers": ["x/y"]}
    whole: Raw = {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec, "data": {"a": "MQ=="}}
    whole["stringData"] = {"b": "c"}
    api = API()
    key = "web" if kind == "Namespace" else "default/web"
    for manager, raw in (("one", whole), ("two", changed(whole, path, value)), ("one", whole)):
        for more in ({}, {"force": True}):
            code = ask(
                api, verb="patch", kind=kind, key=key, body=raw, patch_type="apply", field_manager=manager, **more
            )
            assert code in ANSWERS
        body = {name: part for name, part in changed(whole, path, value).items() if name in ("metadata", "spec")}
        assert ask(api, verb="patch", kind=kind, key=key, body=body, field_manager="three") in ANSWERS
        assert ask(api, verb="update", kind=kind, key=key, body=raw, field_manager="four") in ANSWERS
