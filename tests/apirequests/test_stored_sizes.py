"""The size of objects, with their defaults."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.meta import MAX_OBJECT_BYTES
from podium.api.structural.structural import read_structural, unfolded_bytes
from tests.apirequests.asking import API
from tests.store.objects import Raw
from tests.store.test_definitions import definition, version, widget

KIND = "Widget.example.com"
TOO_LARGE = f"etcdserver: request is too large: an object has at most {MAX_OBJECT_BYTES} bytes with its defaults"
NOTES: Raw = {"type": "object", "properties": {f"note{n}": {"type": "string", "default": "x" * 900} for n in range(9)}}
LISTED: Raw = {"properties": {"size": {"type": "integer"}, "list": {"type": "array", "items": NOTES}}}


def api(spec: Raw) -> API:
    found = API()
    assert found.ask("create", "CustomResourceDefinition", body=definition(version(spec=spec))).code == 201
    return found


def test_defaults_that_exceed_the_size_of_an_object_are_not_unfolded() -> None:
    asked = api(LISTED)

    response = asked.ask(
        "create", KIND, namespace="default", body=widget(list=[{}] * 10_000), field_validation="Warn", field_manager="m"
    )
    assert (response.code, response.error and response.error.message) == (500, TOO_LARGE)
    assert asked.ask("create", KIND, namespace="default", body=widget(list=[{}] * 10)).code == 201


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_an_object_beyond_the_limit_of_etcd_is_refused_and_not_stored(verb: Any) -> None:
    asked = API()
    raw: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    large = {**raw, "status": {"images": [{"names": ["x" * 400_000]} for _ in range(4)]}}
    if verb == "create":
        response = asked.ask("create", "Node", body=large, field_manager="m")
    else:
        assert asked.ask("create", "Node", body=raw, field_manager="m").code == 201
        response = asked.ask(verb, "Node", "a", body=large, subresource="status", field_manager="m")

    assert (response.code, response.error and response.error.message) == (500, TOO_LARGE)
    found = asked.store.find("Node", "a")
    assert found is None if verb == "create" else found is not None and "images" not in found.raw.get("status", {})


@pytest.mark.parametrize("verb", ["create", "update", "patch"])
def test_an_object_that_has_no_room_for_managed_fields_is_stored_without_them(verb: Any) -> None:
    asked = API()
    raw: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
    large = {**raw, "data": {f"{n:0100}": "" for n in range(9_000)}}
    if verb == "create":
        response = asked.ask("create", "ConfigMap", body=large, namespace="default", field_manager="m")
    else:
        assert asked.ask("create", "ConfigMap", body=raw, namespace="default", field_manager="m").code == 201
        response = asked.ask(verb, "ConfigMap", "default/a", body=large, field_manager="m")

    assert response.error is None
    found = asked.store.get("ConfigMap", "default/a").raw
    assert len(found["data"]) == 9_000
    assert "managedFields" not in found["metadata"]
    # An apply request records who owned the fields before, for which there is no room either.
    applied = asked.ask("patch", "ConfigMap", "default/a", body=raw, patch_type="apply", field_manager="n")
    assert (applied.code, applied.error and applied.error.message) == (500, TOO_LARGE)
    assert asked.store.get("ConfigMap", "default/a").raw == found


def test_the_bound_of_the_size_with_defaults_counts_those_of_list_items_for_each_item() -> None:
    spec = read_structural({"type": "object", "properties": {"a": {"type": "string", "default": "xx"}}})
    listed = read_structural({"type": "object", "properties": {"l": {"type": "array", "items": NOTES}}})

    assert unfolded_bytes(spec, 100) == 100 + 4
    assert unfolded_bytes(listed, 30) == 30 + 9 * 902 + 10 * 9 * 902
