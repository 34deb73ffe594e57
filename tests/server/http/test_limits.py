"""The limits of one client, and the answers beyond them."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from podium.server.http.security import ServerLimits
from podium.server.http.server import run
from tests.server import serving
from tests.server.serving import PODS, Client, until_closed, with_server
from tests.store.objects import pod
from tests.waiting import GUARD_SECONDS

HEAD = f"POST {PODS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(params=[asyncio.run, run], ids=["asyncio", "quickest"], autouse=True)
def on_each_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test on Python's own event loop, and on uvloop where it is installed."""
    monkeypatch.setattr(serving, "RUN", request.param)


class Raw:
    """A client that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, text: str) -> None:
        self.writer.write(text.encode())

    async def code(self) -> int:
        """Return the code of the answer."""
        line = await asyncio.wait_for(self.reader.readline(), GUARD_SECONDS)
        return int(line.split()[1])

    async def head(self) -> list[bytes]:
        """Return the lines of an answer before its body."""
        text = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), GUARD_SECONDS)
        return text.splitlines()

    async def all(self) -> bytes:
        """Everything until the connection ends."""
        return await asyncio.wait_for(self.reader.read(), GUARD_SECONDS)

    async def close(self) -> None:
        self.writer.close()


async def connected(client: Client) -> Raw:
    return Raw(*await asyncio.open_connection("127.0.0.1", client.server.port))


def test_an_unfinished_request_head_closes_the_connection() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(HEAD)
        assert await raw.all() == b""
        await raw.close()

    with_server(check, limits=ServerLimits(header_seconds=0.02))


def test_a_silent_connection_is_closed() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        assert await raw.all() == b""
        await raw.close()

    with_server(check, limits=ServerLimits(idle_seconds=0.02))


def test_an_unfinished_request_body_times_out_with_an_error() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(f"{HEAD}Content-Length: 100\r\n\r\n{{")
        answer = await raw.all()
        assert b" 504 " in answer.splitlines()[0]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["reason"] == "Timeout"
        await raw.close()

    with_server(check, limits=ServerLimits(request_seconds=0.02))


def test_a_client_may_say_that_it_waits_no_longer() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(HEAD.replace(PODS, f"{PODS}?timeout=20ms") + "Content-Length: 100\r\n\r\n{")
        assert await raw.code() == 504
        await raw.close()

    with_server(check)


@pytest.mark.parametrize("head", ["X-Long: " + "x" * 300_000, "\r\n".join(f"X-{n}: x" for n in range(2_000))])
def test_a_head_that_is_too_long_is_refused(head: str) -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(f"GET {PODS} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n")
        assert await raw.code() in (400, 431)
        await raw.close()
        assert (await client.ask("GET", PODS))[0] == 200

    with_server(check, limits=ServerLimits(header_bytes=200_000))


def test_a_head_without_end_is_refused_though_no_line_is_long() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        for number in range(450):
            raw.send(f"X-{number}: {'x' * 5_000}\r\n" if number else f"GET {PODS} HTTP/1.1\r\n")
        assert await raw.code() in (400, 431)
        await raw.close()

    with_server(check, limits=ServerLimits(header_bytes=100_000))


def test_long_selectors_are_read() -> None:
    async def check(client: Client) -> None:
        selector = ",".join(f"label-{number}=value" for number in range(2_000))
        assert (await client.ask("GET", f"{PODS}?labelSelector={selector}"))[0] == 200

    with_server(check)


@pytest.mark.parametrize(
    "bytes_", [b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 100, b"HELO there\r\n\r\n", b"GET\r\n\r\n"]
)
def test_a_request_that_is_not_http_is_reported(bytes_: bytes) -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.writer.write(bytes_)
        assert await raw.code() == 400
        await raw.close()

    with_server(check)


def test_a_body_in_chunks_is_counted_as_it_comes() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n")
        raw.send("400\r\n" + " " * 1024 + "\r\n")
        raw.send("1\r\n \r\n")
        assert await raw.code() == 413
        await raw.close()

    with_server(check, limits=ServerLimits(body_bytes=1024))


def test_a_body_in_chunks_is_read() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        body = json.dumps(pod("a"))
        raw.send(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n")
        for part in (body[:10], body[10:]):
            raw.send(f"{len(part):x}\r\n{part}\r\n")
        raw.send("0\r\n\r\n")
        assert await raw.code() == 201
        await raw.close()

    with_server(check)


def test_chunks_that_are_none_are_a_bad_request() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(f"{HEAD}Transfer-Encoding: chunked\r\n\r\nxyz\r\n")
        assert await raw.code() == 400
        await raw.close()

    with_server(check)


def test_the_server_sends_100_continue_to_a_waiting_client() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        body = json.dumps(pod("a"))
        raw.send(f"{HEAD}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n")
        assert (await raw.head())[0] == b"HTTP/1.1 100 Continue"
        raw.send(body)
        assert await raw.code() == 201
        await raw.close()

    with_server(check)


def test_more_writes_than_may_be_are_sent_away_and_reads_are_not() -> None:
    async def check(client: Client) -> None:
        waiting = [await connected(client) for _ in range(2)]
        for raw in waiting:
            raw.send(f"{HEAD}Content-Length: 100\r\n\r\n")
        while (await client.ask("POST", PODS, pod("a")))[0] == 201:
            await client.ask("DELETE", f"{PODS}/a")
        response, data = await client.reply("POST", PODS, pod("b"))
        assert (response.status, response.headers["Retry-After"]) == (429, "1")
        assert json.loads(data)["reason"] == "TooManyRequests"
        assert (await client.ask("GET", PODS))[0] == 200
        for raw in waiting:
            await raw.close()
        while (await client.ask("POST", PODS, pod("c")))[0] != 201:
            await asyncio.sleep(0)

    with_server(check, limits=ServerLimits(writes_in_flight=2))


def test_requests_that_come_without_waiting_for_answers_are_answered_in_order() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        names = ["a", "b"] * 20
        raw.send("".join(f"GET {PODS}/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n" for name in names))
        for name in names:
            lines = await raw.head()
            (length,) = (int(line.split()[1]) for line in lines if line.startswith(b"Content-Length"))
            assert json.loads(await raw.reader.readexactly(length))["metadata"]["name"] == name
        await raw.close()

    with_server(check, pod("a"), pod("b"))


def test_an_unread_long_list_blocks_no_other_client() -> None:
    async def check(client: Client) -> None:
        raw = Raw(*await asyncio.open_connection("127.0.0.1", client.server.port, limit=1024))
        raw.send(f"GET {PODS} HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await raw.code() == 200
        assert (await client.ask("GET", f"{PODS}/a"))[0] == 200
        while await in_flight(client):
            await asyncio.sleep(0.01)
        await raw.close()

    objects = [pod(f"p{number}", annotations={"padding": "x" * 200_000}) for number in range(60)]
    with_server(check, pod("a"), *objects, limits=ServerLimits(stall_seconds=0.2))


def test_a_client_that_never_reads_its_replies_is_disconnected() -> None:
    async def check(client: Client) -> None:
        raw = Raw(*await asyncio.open_connection("127.0.0.1", client.server.port, limit=1024))
        raw.send(f"GET {PODS}/a HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000)
        with pytest.raises(ConnectionError):
            await until_closed(raw.writer)

    with_server(check, pod("a", annotations={"padding": "x" * 100_000}), limits=ServerLimits(stall_seconds=0.2))


async def in_flight(client: Client) -> int:
    """Return how many other reads are answered now."""
    _, text = await client.ask("GET", "/metrics")
    (line,) = (line for line in text.splitlines() if 'inflight_requests{request_kind="readOnly"}' in line)
    return int(float(line.split()[-1])) - 1


def test_when_the_server_stops_what_is_under_way_does_not_hold_it_up() -> None:
    async def check(client: Client) -> None:
        raw = await connected(client)
        raw.send(f"{HEAD}Content-Length: 100\r\n\r\n")
        idle = await connected(client)
        await client.server.stop()
        await raw.all()
        assert await idle.all() == b""
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.ask("GET", PODS)
        for one in (raw, idle):
            await one.close()

    with_server(check, limits=ServerLimits(stop_seconds=0.02))
