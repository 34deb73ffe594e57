"""The observations of a kind over HTTP, whatever happens to the connection."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from podium.apirequests.observations import ObjectObservation
from podium.apirequests.request import Request
from podium.apirequests.router import Router
from podium.client import reflector_state as reflecting
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.reflector import Reflector
from podium.client.reflector_state import ReflectorState
from podium.client.session import Session
from podium.controllers.observations import Deleted
from podium.store.api_resources import BUILT_IN, APIResources
from podium.store.store import Store
from tests.client.api_server import CUT, APIServer, refusal
from tests.store.objects import node, pod
from tests.waiting import GUARD_SECONDS, until


class Rig:
    """A reflector of nodes; ``log`` are its observations."""

    def __init__(self, server: APIServer) -> None:
        self.server = server
        access = ClusterAccess(name="test", server=server.url)
        self.session = Session(access, Credentials(access, time.time_ns), APIResources(), timeout_s=GUARD_SECONDS)
        self.machine = ReflectorState(BUILT_IN["", "Node"])
        self.log: list[str] = []
        self.problems: list[str] = []
        self.reflector = Reflector(
            self.machine, self.session, time.time_ns, self._see, lambda kind, problem: self.problems.append(problem)
        )

    def _see(self, kind: str, seen: ObjectObservation) -> None:
        self.log.append(f"{'gone' if isinstance(seen, Deleted) else 'changed'} {seen.object.metadata.name}")

    async def __aenter__(self) -> "Rig":
        self.task = asyncio.ensure_future(self.reflector.run())
        async with asyncio.timeout(GUARD_SECONDS):
            await self.reflector.wait_synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.session.close()

    async def until(self, *report: str) -> None:
        await until(lambda: self.log == [*report])


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflecting, "FIRST_WAIT_NS", 10_000_000)


def play(story: Callable[[APIServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with APIServer() as server:
            server.add(node("n1"), node("n2"))
            await story(server)

    asyncio.run(run())


def once(answer: Callable[[], web.StreamResponse], *verbs: str) -> Any:
    left = [1]

    async def fault(request: Request) -> web.StreamResponse | None:
        if request.verb not in verbs or not left[0]:
            return None
        left[0] -= 1
        return answer()

    return fault


@pytest.mark.parametrize("serves", [True, False])
def test_objects_are_listed_and_followed_whether_the_server_knows_watch_lists_or_not(serves: bool) -> None:
    async def story(server: APIServer) -> None:
        server.serves_watch_lists = serves
        async with Rig(server) as rig:
            server.add(node("n3"))
            server.store.delete("Node", "n1", now=0)
            await rig.until("changed n1", "changed n2", "changed n3", "gone n1")
            assert any(request.verb == "list" for request in server.sent) is not serves

    play(story)


def test_a_list_of_several_pages_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflecting, "PAGE", 2)

    async def story(server: APIServer) -> None:
        server.serves_watch_lists = False
        server.add(*(node(f"n{number}") for number in range(3, 6)))
        async with Rig(server) as rig:
            await rig.until(*(f"changed n{number}" for number in range(1, 6)))
            assert len(server.sent) == 3

    play(story)


def test_a_watch_that_is_cut_goes_on_where_it_was_and_misses_nothing() -> None:
    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            server.cut_watches()
            server.store.delete("Node", "n1", now=0)
            server.add(node("n3"))
            await rig.until("changed n1", "changed n2", "gone n1", "changed n3")
            assert rig.machine.counts.lists == 1
            assert rig.machine.counts.broken == 1

    play(story)


def test_deletions_missed_by_an_expired_watch_are_reported() -> None:
    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            server.before = once(lambda: refusal(410, "Expired"), "watch")
            server.cut_watches()
            server.store.delete("Node", "n1", now=0)
            server.add(node("n3"))
            await rig.until("changed n1", "changed n2", "gone n1", "changed n3")
            assert rig.machine.counts.lists == 2

    play(story)


def test_a_server_whose_store_was_restored_is_listed_again() -> None:
    async def story(server: APIServer) -> None:
        server.add(*(pod(f"p{number}") for number in range(9)))
        async with Rig(server) as rig:
            restored = Store()
            restored.create(node("n3"), now=server.now)
            assert restored.version < rig.machine.version
            server.store, server.router = restored, Router(restored, takes_history=True)
            server.cut_watches()
            await rig.until("changed n1", "changed n2", "gone n1", "gone n2", "changed n3")
            assert rig.machine.version == restored.version

    play(story)


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        "[]\n",
        '{"type": "ADDED"}\n',
        '{"type": 3, "object": {}}\n',
        '{"type": "ADDED", "object": {"metadata": {"name": "half',
        '{"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError"}}\n',
        '{"type": "ERROR", "object": {}}\n',
        "[" * 100_000 + "\n",
    ],
)
def test_an_invalid_event_ends_only_the_watch(text: str) -> None:
    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            server.before = once(lambda: web.Response(text=text, content_type="application/json"), "watch")
            server.cut_watches()
            server.add(node("n3"))
            await rig.until("changed n1", "changed n2", "changed n3")
            assert any(rig.problems)

    play(story)


@pytest.mark.parametrize(
    "answer", [lambda: refusal(500, "InternalError"), lambda: CUT, lambda: refusal(429, "TooMany")]
)
def test_a_rejected_or_interrupted_first_list_is_retried(answer: Callable[[], web.StreamResponse]) -> None:
    async def story(server: APIServer) -> None:
        server.before = once(answer, "watch")
        async with Rig(server) as rig:
            await rig.until("changed n1", "changed n2")
            # All earlier observations are obsolete.
            assert rig.problems[-1:] in ([], [""])

    play(story)


def test_a_read_can_require_a_version_of_another_kind() -> None:
    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            server.add(pod("a"))
            version = server.store.version
            assert rig.machine.version < version
            await rig.reflector.at_least(version, patience_s=0.05)
            assert rig.machine.version >= version
            await rig.until("changed n1", "changed n2")

    play(story)


def test_an_event_that_is_too_long_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.session._MOST_LINE_BYTES", 10_000)

    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            long = web.Response(text="x" * 50_000, content_type="application/json")
            server.before = once(lambda: long, "watch")
            server.cut_watches()
            server.add(node("n3"))
            await rig.until("changed n1", "changed n2", "changed n3")
            assert any("more than 10000 bytes" in problem for problem in rig.problems)

    play(story)


@pytest.mark.parametrize("error", [BrokenPipeError("nobody reads"), TimeoutError("too slow"), OSError("no room")])
def test_an_error_of_the_observer_is_not_a_connection_fault(error: Exception) -> None:
    async def story(server: APIServer) -> None:
        async with Rig(server) as rig:
            await rig.until("changed n1", "changed n2")

            def fail(kind: str, seen: ObjectObservation) -> None:
                raise error

            rig.reflector.on_seen = fail
            server.add(node("n3"))
            with pytest.raises(type(error)) as raised:
                await asyncio.wait_for(asyncio.shield(rig.task), GUARD_SECONDS)
            assert raised.value is error
            assert rig.machine.counts.broken == 0

    play(story)
