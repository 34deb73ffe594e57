"""Objects as protobuf, and the definitions that have messages of their own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from podium.server.protobuf import MAGIC, decode, encode, encode_event, encode_item, encode_list, fields, message_of
from tests.server.protobuf.encoder import field
from tests.server.protobuf.test_decoding import envelope, of_any_kind
from tests.store.objects import Raw

SCHEMA: Raw = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0, "default": 3, "nullable": True},
            "x-kubernetes-validations": [{"rule": "self.size() > 0", "message": "must not be empty"}],
        },
        "any": {"type": "object", "additionalProperties": True, "x-kubernetes-preserve-unknown-fields": True},
        "names": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b"]},
            "maxItems": 3,
            "x-kubernetes-list-type": "set",
        },
        "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
DEFINITION: Raw = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.shop.example"},
    "spec": {
        "group": "shop.example",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}},
            }
        ],
    },
}


@given(of_any_kind())
def test_objects_survive_being_encoded_and_decoded(raw: Raw) -> None:
    assert decode(encode(raw)) == raw


def test_a_definition_survives_with_its_schema() -> None:
    assert decode(encode(DEFINITION)) == DEFINITION


def test_a_schema_is_read_from_the_numbers_of_its_message() -> None:
    inner = field(5, 2, b"integer") + field(8, 2, field(1, 2, b"7"))
    schema = field(29, 2, field(1, 2, b"size") + field(2, 2, inner)) + field(30, 2, field(1, 0, 1))
    version = field(1, 2, b"v1") + field(4, 2, field(1, 2, schema))
    found = decode(envelope("CustomResourceDefinition", field(2, 2, field(7, 2, version)), "apiextensions.k8s.io/v1"))

    assert found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "properties": {"size": {"type": "integer", "default": 7}},
        "additionalProperties": True,
    }


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema = b""
    for _ in range(5_000):
        schema = field(28, 2, schema)
    version = field(4, 2, field(1, 2, schema))
    body = envelope("CustomResourceDefinition", field(2, 2, field(7, 2, version)), "apiextensions.k8s.io/v1")

    with pytest.raises(ValueError, match="nested too deep"):
        decode(body)


def test_a_list_has_its_metadata_and_items() -> None:
    head = {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}}
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]

    body = encode_list(head, [encode_item(raw) for raw in items])

    content = dict_of(dict_of(body.removeprefix(MAGIC))[2])
    assert dict_of(content[1]) == {2: b"7"}
    listed = [value for number, _, value in fields(dict_of(body.removeprefix(MAGIC))[2]) if number == 2]
    assert [dict_of(dict_of(one)[1])[1] for one in listed] == [b"a", b"b"]


def test_a_watch_event_is_a_frame_with_a_length_and_an_encoded_object() -> None:
    body = encode({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410})

    frame = encode_event("ERROR", body)

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    event = dict_of(frame[4:])
    assert (event[1], dict_of(event[2])[1]) == (b"ERROR", body)
    assert decode(body)["code"] == 410


def test_a_time_before_1970_is_kept() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": "1969-07-20T20:17:40Z"}}

    assert decode(encode(raw)) == raw


def test_custom_kinds_have_no_protobuf_form() -> None:
    assert message_of("shop.example/v1", "Widget") == ""


def dict_of(data: Any) -> dict[int, Any]:
    return {number: value for number, _, value in fields(data)}
