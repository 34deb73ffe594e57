"""Watches over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from podium.api.meta import Raw
from podium.server.http.security import ServerLimits
from podium.server.http.server import run
from podium.server.kubernetes_documents import KubernetesDocuments
from tests.server import serving
from tests.server.serving import NOW, PODS, Client, LocalBackend, until_closed, with_server
from tests.store.objects import pod
from tests.store.test_definitions import definition, widget
from tests.waiting import GUARD_SECONDS


@pytest.fixture(params=[asyncio.run, run], ids=["asyncio", "quickest"], autouse=True)
def on_each_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test on Python's own event loop, and on uvloop where it is installed."""
    monkeypatch.setattr(serving, "RUN", request.param)


def create(client: Client, *names: str, size: int = 0) -> None:
    for name in names:
        client.backend.store.create(pod(name, annotations={"padding": "x" * size}), now=NOW)


def test_a_watch_reports_existing_objects_and_events() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=true") as watcher:
            assert watcher.response.headers["Content-Type"] == "application/json"
            assert await watcher.names(1) == [("ADDED", "a")]
            create(client, "b")
            client.backend.store.delete("Pod", "default/a", now=NOW)
            assert await watcher.names(2) == [("ADDED", "b"), ("DELETED", "a")]

    with_server(check, pod("a"))


def test_a_watch_goes_on_from_a_version() -> None:
    async def check(client: Client) -> None:
        version = client.backend.store.version
        create(client, "b", "c")
        async with client.watch(f"{PODS}?watch=true&resourceVersion={version}") as watcher:
            assert await watcher.names(2) == [("ADDED", "b"), ("ADDED", "c")]

    with_server(check, pod("a"))


def test_a_watch_list_ends_its_beginning_with_a_bookmark() -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?{query}") as watcher:
            assert await watcher.names(2) == [("ADDED", "a"), ("ADDED", "b")]
            bookmark = await watcher.next()
            assert bookmark["type"] == "BOOKMARK"
            metadata = bookmark["object"]["metadata"]
            assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert metadata["resourceVersion"] == str(client.backend.store.version)

    with_server(check, pod("a"), pod("b"))


def test_a_watch_list_has_no_tables() -> None:
    path = f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    async def check(client: Client) -> None:
        async with client.watch(path, Accept=f"{table},application/json") as watcher:
            assert (await watcher.next())["object"]["kind"] == "Pod"
        async with client.watch(path, Accept=table) as watcher:
            assert watcher.response.status == 406

    with_server(check, pod("a"))


def test_bookmarks_report_the_version_of_a_watch() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1&resourceVersion=1&allowWatchBookmarks=true") as watcher:
            event = await watcher.next()
        assert event["type"] == "BOOKMARK"
        assert event["object"]["metadata"]["resourceVersion"] == str(client.backend.store.version)

    with_server(check, pod("a"), limits=ServerLimits(bookmark_seconds=0.02))


def test_bookmarks_are_sent_only_to_watches_that_request_them() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1&resourceVersion=1") as watcher:
            with pytest.raises(EOFError):
                await watcher.next()

    with_server(check, pod("a"), limits=ServerLimits(bookmark_seconds=0.005, watch_seconds=0.03))


def test_a_watch_ends_when_its_time_is_over() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1") as watcher:
            assert await watcher.names(1) == [("ADDED", "a")]
            with pytest.raises(EOFError):
                await watcher.next()

    with_server(check, pod("a"), limits=ServerLimits(watch_seconds=0.02))


def test_a_watch_from_a_version_that_is_forgotten_ends_with_gone() -> None:
    async def check(client: Client) -> None:
        create(client, *(f"p{index}" for index in range(300)))
        client.backend.store.log.compact(200)
        async with client.watch(f"{PODS}?watch=1&resourceVersion=5") as watcher:
            assert watcher.response.status == 200
            event = await watcher.next()
            assert event["type"] == "ERROR"
            assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
            with pytest.raises(EOFError):
                await watcher.next()

    with_server(check)


def test_a_watch_from_a_future_version_is_rejected_with_the_cause() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1&resourceVersion=900") as watcher:
            event = await watcher.next()
        assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

    with_server(check)


def test_a_watch_of_one_object_reports_no_other_object() -> None:
    async def check(client: Client) -> None:
        async with client.watch("/api/v1/watch/namespaces/default/pods/b") as watcher:
            create(client, "c", "b")
            assert await watcher.names(1) == [("ADDED", "b")]

    with_server(check, pod("a"))


def test_a_watch_reports_an_object_that_leaves_its_selector_as_deleted() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1&labelSelector=app%3Dweb") as watcher:
            assert await watcher.names(1) == [("ADDED", "a")]
            patch = {"metadata": {"labels": {"app": "other"}}}
            client.backend.store.patch("Pod", "default/a", patch, "merge")
            assert await watcher.names(1) == [("DELETED", "a")]

    with_server(check, pod("a", labels={"app": "web"}), pod("b"))


def test_a_hundred_watchers_all_hear_everything() -> None:
    names = [f"p{index}" for index in range(40)]

    async def hear(client: Client, begun: asyncio.Semaphore) -> list[tuple[str, str]]:
        async with client.watch(f"{PODS}?watch=1&resourceVersion=0") as watcher:
            assert await watcher.names(1) == [("ADDED", "first")]
            begun.release()
            return await watcher.names(len(names))

    async def check(client: Client) -> None:
        begun = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(hear(client, begun)) for _ in range(100)]
        for _ in tasks:
            await begun.acquire()
        for name in names:
            create(client, name)
            await asyncio.sleep(0)
        for heard in await asyncio.gather(*tasks):
            assert heard == [("ADDED", name) for name in names]

    with_server(check, pod("first"))


def test_a_watcher_that_does_not_read_is_dropped_and_others_go_on() -> None:
    limits = ServerLimits(pending_bytes=64 * 1024, stall_seconds=0.2)

    async def check(client: Client) -> None:
        path = f"{PODS}?watch=1&resourceVersion=1"
        async with client.watch(path) as good:
            reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port, limit=1024)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            for index in range(400):
                create(client, f"p{index}", size=50_000)
                assert await good.names(1) == [("ADDED", f"p{index}")]
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(until_closed(writer), GUARD_SECONDS)
            create(client, "after")
            assert await good.names(1) == [("ADDED", "after")]

    with_server(check, pod("a"), limits=limits)


def test_a_watcher_that_reads_late_misses_nothing() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1&resourceVersion=1") as watcher:
            names = [f"p{index}" for index in range(300)]
            for name in names:
                create(client, name, size=20_000)
                await asyncio.sleep(0)
            assert await watcher.names(len(names)) == [("ADDED", name) for name in names]
            create(client, "after")
            assert await watcher.names(1) == [("ADDED", "after")]

    with_server(check, pod("a"), limits=ServerLimits(pending_bytes=64 * 1024))


def test_when_the_server_stops_watches_end_as_they_should() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1") as first, client.watch("/api/v1/nodes?watch=1") as second:
            assert await first.names(1) == [("ADDED", "a")]
            await client.server.stop()
            for watcher in (first, second):
                with pytest.raises(EOFError):
                    await watcher.next()

    with_server(check, pod("a"))


@pytest.mark.parametrize("objects", [1, 150])
def test_a_custom_watch_ends_with_its_definition_after_all_events(objects: int) -> None:
    async def check(client: Client) -> None:
        store = client.backend.store
        store.create(definition(), now=NOW, is_new=True)
        for number in range(objects):
            store.create(widget(f"w{number:03}"), now=NOW, is_new=True)
        path = "/apis/example.com/v1/widgets?watch=true"
        async with client.watch(path) as watcher, client.watch(f"{path}&resourceVersion={store.version}") as late:
            await watcher.names(objects)
            store.delete("CustomResourceDefinition", "widgets.example.com", now=NOW)
            for report in (watcher, late):
                assert await report.names(objects) == [("DELETED", f"w{number:03}") for number in range(objects)]
                with pytest.raises(EOFError):
                    await report.next()
        code, _ = await client.ask("GET", path)
        assert code == 404

    with_server(check)


def test_watches_beyond_the_limit_are_rejected() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1"):
            code, status = await client.ask("GET", f"{PODS}?watch=1")
            assert (code, status["reason"]) == (429, "TooManyRequests")
            assert (await client.ask("GET", PODS))[0] == 200

    with_server(check, limits=ServerLimits(watches=1))


def test_a_watch_whose_client_has_gone_is_forgotten() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1") as watcher:
            await watcher.names(1)
        while (await watches_open(client)) != 0:
            await asyncio.sleep(0)

    with_server(check, pod("a"))


async def watches_open(client: Client) -> int:
    _, text = await client.ask("GET", "/metrics")
    (line,) = (line for line in text.splitlines() if line.startswith("apiserver_longrunning_requests{"))
    return int(float(line.split()[-1]))


class _NoTables(KubernetesDocuments):
    def table(self, *_: object) -> Raw:
        raise LookupError("by way of a test")


def test_a_watch_over_which_the_server_stumbles_ends_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    path = f"{PODS}?watch=1&resourceVersion=1"
    as_table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}

    async def check(client: Client) -> None:
        async with client.watch(path, **as_table) as stumbling, client.watch(path) as other:
            create(client, "b")
            event = await stumbling.next()
            assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
            assert await other.names(1) == [("ADDED", "b")]
            with pytest.raises(EOFError):
                await stumbling.next()
            create(client, "c")
            assert await other.names(1) == [("ADDED", "c")]

    with_server(check, pod("a"), documents=_NoTables(LocalBackend()))

    assert [record.getMessage() for record in caplog.records] == ["a watch cannot go on"]
