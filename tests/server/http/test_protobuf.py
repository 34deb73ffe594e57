"""Answers in protobuf over HTTP: objects, lists, watches and refusals."""

from __future__ import annotations

from podium.server.protobuf import MAGIC, decode, fields
from tests.server.serving import PODS, Client, LocalBackend, with_server
from tests.store.objects import pod
from tests.store.test_definitions import definition

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"Accept": PROTOBUF}
PARTIAL = {"Accept": f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


def test_an_object_is_answered_in_protobuf_if_a_client_asks_for_it() -> None:
    async def check(client: Client) -> None:
        response, body = await client.reply("GET", f"{PODS}/a", headers=ACCEPT)
        _, as_json = await client.ask("GET", f"{PODS}/a")

        assert response.content_type == PROTOBUF
        assert decode(body) == as_json

    with_server(check, pod("a", cpu="1"))


def test_a_list_is_answered_in_protobuf_if_a_client_asks_for_it() -> None:
    async def check(client: Client) -> None:
        response, body = await client.reply("GET", PODS, headers=ACCEPT)
        _, partial = await client.reply("GET", PODS, headers=PARTIAL)

        assert response.content_type == PROTOBUF
        assert [kind_of(one) for one in (body, partial)] == ["PodList", "PartialObjectMetadataList"]

    with_server(check, pod("a"), pod("b"))


def test_a_watch_in_protobuf_sends_events_and_the_error_that_ends_it() -> None:
    async def check(client: Client) -> None:
        url = f"{client.server.address}{PODS}?watch=true"
        async with client.session.get(url, headers=ACCEPT) as watched:
            assert watched.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
            size = int.from_bytes(await watched.content.readexactly(4), "big")
            event = {number: value for number, _, value in fields(await watched.content.readexactly(size))}
            assert event[1] == b"ADDED"
            assert isinstance(event[2], bytes)
            assert decode(event[2][event[2].index(MAGIC) :])["metadata"]["name"] == "a"
        client.backend.store.log.compact(1)
        client.backend.store.create(pod("b"), now=0)
        client.backend.store.log.compact(2)
        async with client.session.get(f"{url}&resourceVersion=1", headers=ACCEPT) as watched:
            body = await watched.content.read()
            assert decode(body[body.index(MAGIC) :])["code"] == 410

    with_server(check, pod("a"))


def test_a_refusal_is_a_status_in_protobuf() -> None:
    async def check(client: Client) -> None:
        response, body = await client.reply("GET", f"{PODS}/none", headers=ACCEPT)

        assert (response.status, response.content_type) == (404, PROTOBUF)
        assert decode(body)["reason"] == "NotFound"

    with_server(check)


def test_what_has_no_protobuf_form_is_answered_in_another_accepted_format_or_406() -> None:
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    table = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"

    async def check(client: Client) -> None:
        for path, accept, answer in (
            (widgets, PROTOBUF, (406, PROTOBUF)),
            (widgets, f"{PROTOBUF}, application/json", (200, "application/json")),
            (widgets, PARTIAL["Accept"], (200, PROTOBUF)),
            (PODS, table, (406, "application/json")),
            (PODS, f"{PROTOBUF}, application/json", (200, PROTOBUF)),
        ):
            response, _ = await client.reply("GET", path, headers={"Accept": accept})
            assert (response.status, response.content_type) == answer, (path, accept)

    backend = LocalBackend()
    backend.store.create(definition(), now=0)
    with_server(check, backend=backend)


def test_a_long_list_is_answered_in_json_if_the_client_accepts_it() -> None:
    async def check(client: Client) -> None:
        for accept, answered in ((PROTOBUF, PROTOBUF), (f"{PROTOBUF}, */*", "application/json")):
            response, _ = await client.reply("GET", PODS, headers={"Accept": accept})
            assert response.content_type == answered

    with_server(check, *(pod(f"p{number}") for number in range(501)))


def kind_of(body: bytes) -> str:
    envelope = {number: value for number, _, value in fields(body.removeprefix(MAGIC))}
    types = envelope[1]
    assert isinstance(types, bytes)
    return next(str(value, "utf-8") for number, _, value in fields(types) if number == 2 and isinstance(value, bytes))
