"""Protobuf bodies decode to the same objects as JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.pod_group import OLDER_VERSION
from podium.api.schemas.schema import META_VERSION, Leaf, ListOf, MapOf, Object, Type, _types, fields_of, own_fields
from podium.server.protobuf import MAGIC, decode
from podium.store.api_resources import BUILT_IN
from tests.server.protobuf.encoder import encoded, field, varint
from tests.store.objects import Raw

# What kubectl 1.32 sends for `create namespace team`.
NAMESPACE = base64.b64decode("azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEdGVhbRIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==")
DEEPEST = 16


def envelope(kind: str, content: bytes, api_version: str = "v1") -> bytes:
    types = field(1, 2, api_version.encode()) + field(2, 2, kind.encode())
    return MAGIC + field(1, 2, types) + field(2, 2, content)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "bytes": st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode()),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "int": st.integers(-(2**31), 2**31 - 1),
    "any": st.dictionaries(TEXTS, st.integers(0, 9), min_size=1, max_size=2),
    "long": st.integers(-(2**63), 2**63 - 1),
    "microtime": st.sampled_from(["2026-01-31T09:30:00.000000Z", "2026-01-31T09:30:00.123456Z"]),
    "quantity": st.sampled_from(["1", "500m", "2Gi"]),
    "intOrString": st.integers(-(2**31), 2**31 - 1) | TEXTS,
    "str": TEXTS,
    "time": st.sampled_from(["1970-01-01T00:00:00Z", "2026-01-31T09:30:00Z"]),
}


def _kinds() -> dict[tuple[str, str], str]:
    """Return the types of all kinds that have protobuf numbers, by version and kind."""
    return {
        (written.api_version, name.rpartition(".")[2]): name
        for name, written in _types().items()
        if written.fields[:2] == ["apiVersion@-", "kind@-"] and written.api_version != META_VERSION
        if {"metadata"} <= {name for name, _ in own_fields(name)}
        if all(field.number for own, field in own_fields(name) if own not in ("apiVersion", "kind"))
    }


KINDS = _kinds()


@st.composite
def objects(draw: st.DrawFn, name: str, left: int = 4) -> Raw:
    """Return an object with a few of the fields of its type, with values that are not omitted."""
    raw: Raw = {}
    numbered = [(own, one) for own, one in own_fields(name) if one.number is not None]
    fields = [(own, one) for own, one in numbered if left or isinstance(one.type, Leaf)]
    by_number = st.lists(st.sampled_from(fields), max_size=3, unique_by=lambda field: field[1].number)
    chosen = draw(by_number) if fields else []
    for own, one in chosen:
        value = draw(_values(one.type, left))
        if not own:
            raw |= value
        elif value not in (0, "", {}) or one.keeps_zero:
            raw[own] = value
    return raw


def _values(type_: Type, left: int) -> st.SearchStrategy[Any]:
    match type_:
        case Leaf(name):
            return LEAVES[name]
        case ListOf(item):
            return st.lists(_values(item, left), min_size=1, max_size=2)
        case MapOf(value):
            return st.dictionaries(TEXTS, _values(value, left), min_size=1, max_size=2)
        case Object(name):
            return objects(name, left - 1)


# The schema of a definition is any JSON in the catalogue, and a message in protobuf.
DRAWN = {place: name for place, name in KINDS.items() if name != "CustomResourceDefinition"}


@st.composite
def of_any_kind(draw: st.DrawFn) -> Raw:
    (api_version, kind), name = draw(st.sampled_from(list(DRAWN.items())))
    return {"apiVersion": api_version, "kind": kind, **draw(objects(name))}


@given(of_any_kind())
def test_objects_survive_encoding_and_decoding(raw: Raw) -> None:
    assert decode(encoded(raw)) == raw


def test_empty_fields_that_go_encodes_are_omitted() -> None:
    assert decode(NAMESPACE) == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}


def test_an_explicit_zero_is_kept() -> None:
    spec = field(1, 0, 0)
    found = decode(envelope("Deployment", field(2, 2, spec), "apps/v1"))
    assert found["spec"] == {"replicas": 0}


def test_options_of_deletion_are_read_in_every_group() -> None:
    body = envelope("DeleteOptions", field(1, 0, 0) + field(4, 2, b"Foreground"), "policy/v1")
    assert decode(body)["gracePeriodSeconds"] == 0
    assert decode(body)["propagationPolicy"] == "Foreground"


def test_lists_of_numbers_may_be_packed() -> None:
    security = field(4, 0, 7) + field(4, 2, varint(8) + varint(9))
    found = decode(envelope("Pod", field(2, 2, field(14, 2, security))))
    assert found["spec"]["securityContext"]["supplementalGroups"] == [7, 8, 9]


def test_fields_of_later_versions_are_passed_over() -> None:
    content = field(1, 2, field(1, 2, b"a")) + field(900, 2, b"later") + field(901, 0, 1) + field(902, 1, bytes(8))
    assert decode(envelope("ConfigMap", content))["metadata"] == {"name": "a"}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "does not begin"),
        (b"{}", "does not begin"),
        (MAGIC, "are read as JSON only"),
        (MAGIC + b"\x00", "number 0"),
        (envelope("Nothing", b""), '"Nothing" of "v1" are read as JSON only'),
        (envelope("Pod", b"\x0a\xff"), "cut off"),
        (envelope("Pod", b"\x0a\x05a"), "field 1 is cut off"),
        (envelope("Pod", b"\xff" * 11), "too long"),
        (envelope("Pod", b"\x0b"), "wire type 3"),
        (envelope("Pod", b"\x08\x01"), "a message has the wire type 0"),
        (envelope("Pod", field(1, 2, field(1, 2, b"\xff"))), "not UTF-8"),
        (envelope("Pod", field(1, 2, field(8, 2, field(1, 0, 2**40)))), "a time is out of range"),
        (envelope("ControllerRevision", field(2, 2, field(1, 2, b"{")), "apps/v1"), "cannot be read"),
        (MAGIC + field(1, 2, field(1, 2, b"v1") + field(2, 2, b"Pod")) + field(3, 2, b"gzip"), 'encoded as "gzip"'),
    ],
)
def test_undecodable_protobuf_is_reported(body: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode(body)


@given(st.binary(max_size=200), st.sampled_from(list(KINDS)))
def test_no_bytes_do_harm(content: bytes, kind: tuple[str, str]) -> None:
    for body in (content, MAGIC + content, envelope(kind[1], content, kind[0])):
        try:
            decode(body)
        except ValueError:
            continue


def test_kubernetes_own_kinds_are_known() -> None:
    missing = {
        resource.group
        for resource in BUILT_IN.values()
        for api_version in resource.served_versions
        if (api_version, resource.kind) not in KINDS and api_version != OLDER_VERSION
    }
    # Podium's own kinds and the older form of PodGroups have no messages.
    assert missing == {"podium.dev"}


def test_no_message_but_the_schemas_of_definitions_contains_itself() -> None:
    def depth(name: str) -> int:
        inner = [_innermost(one.type) for _, one in own_fields(name)]
        return 1 + max((depth(type_.name) for type_ in inner if isinstance(type_, Object)), default=0)

    assert max(map(depth, KINDS.values())) <= DEEPEST


def _innermost(type_: Type) -> Type:
    while isinstance(type_, ListOf | MapOf):
        type_ = type_.item if isinstance(type_, ListOf) else type_.value
    return type_


def test_no_two_fields_of_a_type_have_the_same_protobuf_number() -> None:
    for name in _types():
        numbers = [field.number for _, field in own_fields(name) if field.number is not None]
        assert len(set(numbers)) == len(numbers), name


def test_no_two_fields_of_a_type_have_the_same_name() -> None:
    for name in _types():
        inlined = [
            fields_of(one.type.name) for own, one in own_fields(name) if not own and isinstance(one.type, Object)
        ]
        names = [own for own, _ in own_fields(name) if own] + [own for fields in inlined for own in fields]
        assert len(set(names)) == len(names), name
