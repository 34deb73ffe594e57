"""The parts of the server that handle no connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.server.http.exchange import read_json, read_target
from podium.server.http.handler import audit_id
from podium.server.http.metrics import READING, WRITING, InFlightLimits
from podium.server.http.replies import PLAIN_FORM, ResponseForm, negotiated
from podium.server.http.security import ServerSettings
from podium.server.http.server import Server
from podium.server.http.streams import Frames, chunked, error_chunk
from podium.store.errors import StoreError, expired
from podium.store.stored import encoded
from tests.server.serving import NOW, LocalBackend
from tests.store.objects import pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", ResponseForm()),
        ("*/*", ResponseForm()),
        ("application/json", ResponseForm()),
        ("application/*;q=0.8", ResponseForm()),
        ("application/yaml, application/json", ResponseForm("application/yaml")),
        ("application/vnd.kubernetes.protobuf,application/json", ResponseForm()),
        (TABLE, ResponseForm(kind="Table")),
        (TABLE.replace("v=v1", "v=v1beta1"), ResponseForm(kind="Table", version="v1beta1")),
        (f"application/json;as=Table;v=v9;g=meta.k8s.io,{TABLE}", ResponseForm(kind="Table")),
        ("application/json;as=Table;v=v1;g=example.com,application/json", ResponseForm()),
        (TABLE.replace("Table", "PartialObjectMetadataList"), ResponseForm(kind="PartialObjectMetadataList")),
    ],
)
def test_the_first_form_that_can_be_given_is(accept: str, form: ResponseForm) -> None:
    assert negotiated(accept) == form


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Row", ","])
def test_an_unsatisfiable_accept_header_is_reported(accept: str) -> None:
    with pytest.raises(StoreError) as caught:
        negotiated(accept)
    assert (caught.value.code, caught.value.reason) == (406, "NotAcceptable")


@given(JSON_VALUES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert read_json(encoded(value)).value == value


@pytest.mark.parametrize(
    ("text", "value", "repeated"),
    [
        (b'{"a":1,"a":2}', {"a": 2}, ('duplicate field "a"',)),
        (b'{"a":[{"b":1,"b":2}],"c":null}', {"a": [{"b": 2}], "c": None}, ('duplicate field "a[0].b"',)),
        (b'{"n":100000000000000000000000 , "e": 1e3}', {"n": 10**23, "e": 1000.0}, ()),
        (b'{"n":1e3}', {"n": 1000.0}, ()),
        (b' {"a" : "\\u00e9\\/"} ', {"a": "\u00e9/"}, ()),
    ],
)
def test_unusually_formatted_json_takes_the_full_parser(text: bytes, value: Any, repeated: tuple[str, ...]) -> None:
    assert read_json(text) == (value, repeated)


@pytest.mark.parametrize(
    ("raw", "path", "query"),
    [
        ("/api/v1/pods?a=1&b=&a=%20x+y", "/api/v1/pods", [("a", "1"), ("b", ""), ("a", " x y")]),
        ("/a%2fb%00?", "/a/b\0", []),
        ("http://localhost:1/api?x=1", "/api", [("x", "1")]),
        ("http://localhost", "/", []),
        ("*", "/", []),
        ("/%zz%ff", "/%zz\ufffd", []),
    ],
)
def test_a_path_and_a_query_are_decoded(raw: str, path: str, query: list[tuple[str, str]]) -> None:
    assert read_target(raw) == (path, query)


def test_flights_of_one_sort_do_not_hold_up_the_other() -> None:
    flights = InFlightLimits({READING: 1, WRITING: 1})
    with flights.flight(READING):
        with pytest.raises(StoreError) as caught, flights.flight(READING):
            raise AssertionError
        assert (caught.value.code, caught.value.details["retryAfterSeconds"]) == (429, 1)
        with flights.flight(WRITING):
            assert flights.in_flight == {READING: 1, WRITING: 1}
    assert flights.in_flight == {READING: 0, WRITING: 0}


def test_ids_look_like_uuids_and_come_once() -> None:
    first, second = audit_id({}), audit_id({})
    assert [len(part) for part in first.split("-")] == [8, 4, 4, 4, 12]
    assert first != second
    assert audit_id({"Audit-ID": "x" * 100}) == "x" * 64
    assert audit_id({"Audit-ID": "a\u00e9"}) != "a\u00e9"


def test_an_event_is_encoded_once_for_all_watchers() -> None:
    backend = LocalBackend()
    first, second = backend.store.watch("Pod"), backend.store.watch("Pod")
    backend.store.create(pod("a"), now=NOW)
    frames = Frames()
    (one,), (other,) = first.pull(), second.pull()
    assert frames.chunk(one) is frames.chunk(other)
    assert frames.chunk(one) == chunked(one.encoded())


def test_a_chunk_is_a_line_with_its_length_before_it() -> None:
    size, rest = error_chunk(expired(1, 2), PLAIN_FORM).split(b"\r\n", 1)
    assert int(size, 16) == len(rest) - 2
    assert rest.endswith(b"}\n\r\n")
    assert rest.startswith(b'{"type":"ERROR","object":{"kind":"Status"')


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "::1", "[::1]"])
def test_a_server_is_found_at_its_address(host: str) -> None:
    async def check() -> None:
        server = Server(LocalBackend(), settings=ServerSettings(host=host))
        await server.start()
        try:
            address = server.address.removeprefix("http://").rpartition(":")
            _, writer = await asyncio.open_connection(address[0].strip("[]"), int(address[2]))
            writer.close()
            await writer.wait_closed()
        finally:
            await server.stop()
            await server.stop()

    asyncio.run(check())
