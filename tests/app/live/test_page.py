"""The page of a scheduler at a cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from podium.api.errors import InputError
from podium.app.live.metrics import HealthSettings
from podium.app.serving.page.live_page import HEADER, HEADERS
from tests.app.live.running import SETTINGS, Running, play
from tests.client.api_server import APIServer
from tests.store.objects import node, pod
from tests.waiting import GUARD_SECONDS

TOKEN = "0123456789abcdef"
OURS = {HEADER: "1"}
WITH_PAGE = msgspec.structs.replace(SETTINGS, health=HealthSettings(port=0, has_page=True))


class Asker:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        method = "GET" if body is None else "POST"
        data = None if body is None else json.dumps(body)
        async with self.session.request(method, f"{self.url}{path}", data=data, headers=headers) as response:
            if path.startswith("/ui"):
                assert {name: response.headers.get(name) for name, _ in HEADERS} == dict(HEADERS)
            return response.status, await response.read()

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[Callable[[], Awaitable[dict[str, Any]]]]:
        async with self.session.get(f"{self.url}{path}", headers=OURS) as response:

            async def following() -> dict[str, Any]:
                line = await asyncio.wait_for(response.content.readuntil(b"\n"), GUARD_SECONDS)
                found: dict[str, Any] = json.loads(line)
                return found

            yield following


def show(story: Callable[[Asker, APIServer], Awaitable[None]], health: HealthSettings = WITH_PAGE.health) -> None:
    """Play a story with a scheduler that shows a page, at a cluster with the node n1."""

    async def played(server: APIServer) -> None:
        settings = msgspec.structs.replace(WITH_PAGE, health=health)
        async with Running(server, settings) as running, aiohttp.ClientSession() as session:
            await asyncio.wait_for(running.program.leads.wait(), GUARD_SECONDS)
            await story(Asker(session, running.program.url), server)

    play(played)


def test_the_page_is_read_only() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        code, page = await asker.ask("/ui/")
        assert (code, b"<script" in page) == (200, True)
        code, report = await asker.ask("/ui/about", **OURS)
        about = json.loads(report)
        assert (about["mode"], about["readOnly"], about["title"]) == ("component", True, "podium scheduler")
        assert (await asker.ask("/ui/nothing", **OURS))[0] == 404
        assert (await asker.ask("/api/v1/pods", **OURS))[0] in (403, 404)

    show(story)


def test_the_page_receives_current_and_changed_nodes_and_pods_without_secrets() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        async with asker.watch("/ui/watch/nodes") as following:
            first = await following()
            assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "n1")
            assert isinstance(first["object"]["status"]["allocatable"]["cpu"], int)
            end = await following()
            assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        async with asker.watch("/ui/watch/pods") as following:
            assert (await following())["type"] == "BOOKMARK"
            raw = pod("a")
            raw["metadata"]["annotations"] = {"note": "secret"}
            raw["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "secret"}]
            server.add(raw)
            report = await following()
            while "node" not in report["object"]:
                assert "secret" not in json.dumps(report)
                report = await following()
            assert report["object"]["workload"] == "Pod default/a"
            server.store.delete("Pod", "default/a", now=0, grace_seconds=0)
            while report["type"] != "DELETED":
                report = await following()
            assert report["object"]["name"] == "default/a"

    show(story)


def test_the_page_watch_rejects_resource_versions_and_unknown_kinds() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        assert (await asker.ask("/ui/watch/pods?resourceVersion=1", **OURS))[0] == 410
        assert (await asker.ask("/ui/watch/secrets", **OURS))[0] == 404

    show(story)


def test_a_question_is_answered_about_what_is_known() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        server.add(node("n2"))
        async with asker.watch("/ui/watch/nodes") as following:
            seen = {(await following())["object"]["metadata"].get("name") for _ in range(3)}
            while "n2" not in seen:
                seen.add((await following())["object"]["metadata"].get("name"))
        body = {"question": "nodes", "values": {"remove": "n1"}}
        code, lines = await asker.ask("/ui/ask", body, **OURS)
        answer = json.loads(lines.splitlines()[-1])["answer"]
        assert code == 200
        assert answer["picture"]["headline"].startswith("removing n1")

    show(story)


def test_requests_from_pages_of_other_origins_are_rejected() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        for headers in ({}, {**OURS, "Origin": "http://evil"}, {**OURS, "Host": "evil"}):
            for path in ("/ui/about", "/ui/watch/pods"):
                assert (await asker.ask(path, **headers))[0] == 403
            assert (await asker.ask("/ui/ask", {}, **headers))[0] == 403

    show(story)


def test_with_a_token_unauthenticated_requests_get_no_data(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)

    async def story(asker: Asker, server: APIServer) -> None:
        assert (await asker.ask("/ui/"))[0] == 200
        assert (await asker.ask("/ui/about", **OURS))[0] == 401
        assert (await asker.ask("/ui/watch/pods", **OURS))[0] == 401
        assert (await asker.ask("/ui/about", **OURS, Authorization=f"Bearer {TOKEN}"))[0] == 200

    show(story, HealthSettings(port=0, has_page=True, page_token_file=str(file)))


def test_the_page_is_off_by_default() -> None:
    async def story(asker: Asker, server: APIServer) -> None:
        async with asker.session.get(f"{asker.url}/ui/") as response:
            assert response.status == 404

    show(story, HealthSettings(port=0))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (HealthSettings(has_page=True), "--page needs a port"),
        (
            HealthSettings(host="0.0.0.0", port=0, certificate_file="a", key_file="b", token_file="c", has_page=True),
            "--page-token-file",
        ),
    ],
)
def test_a_page_visible_to_others_requires_a_token(settings: HealthSettings, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        settings.check()
