"""An API server for lists: pages, refusals, and answers that fail at first."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from podium.api.kinds import KEPT_KINDS, KINDS, Kind
from tests.waiting import GUARD_SECONDS

Raw = dict[str, Any]


class FakeAPIServer:
    """Serves lists of objects. Kinds of `forbidden` are refused, those of `absent` not served.

    `failures` are codes that the first requests for a kind get, one each; for 0 the connection ends. `asked` counts
    requests by method and path.
    """

    def __init__(
        self,
        objects: Iterable[Raw] = (),
        *,
        forbidden: Iterable[str] = (),
        absent: Iterable[str] = (),
        failures: dict[str, list[int]] | None = None,
        page: int = 500,
    ) -> None:
        self.asked: Counter[tuple[str, str]] = Counter()
        self._objects: dict[str, list[Raw]] = {}
        for raw in objects:
            self._objects.setdefault(raw["kind"], []).append(raw)
        self._forbidden, self._absent = set(forbidden), set(absent)
        self._failures = failures or {}
        self._page = page

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/version", self._version)
        for kind in (*KINDS.values(), *KEPT_KINDS):
            group = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
            application.router.add_get(f"{group}/{kind.plural}", self._lister(kind))
        return application

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.36.2"})

    def _lister(self, kind: Kind) -> Callable[[web.Request], Any]:
        async def list_(request: web.Request) -> web.Response:
            self.asked[request.method, request.path] += 1
            if self._failures.get(kind.name):
                return _failure(self._failures[kind.name].pop(0), request)
            if kind.name in self._forbidden:
                return _refusal(403, f"{kind.plural} is forbidden: User cannot list resource")
            if kind.name in self._absent:
                return web.Response(status=404, text="404 page not found")
            return web.json_response(self._list(kind, request))

        return list_

    def _list(self, kind: Kind, request: web.Request) -> Raw:
        objects = self._objects.get(kind.name, [])
        start = int(request.query.get("continue", "0"))
        end = start + min(int(request.query.get("limit", "0")) or len(objects), self._page) if objects else 0
        # As kube-apiserver has it, the items of a list do not say what they are.
        items = [{name: raw[name] for name in raw if name not in ("apiVersion", "kind")} for raw in objects[start:end]]
        metadata: Raw = {"resourceVersion": "7"}
        if end < len(objects):
            metadata["continue"] = str(end)
        return {"apiVersion": kind.api_version, "kind": f"{kind.name}List", "metadata": metadata, "items": items}


def _failure(code: int, request: web.Request) -> web.Response:
    if not code and request.transport is not None:
        request.transport.abort()
    return _refusal(code or 500, "not now")


def _refusal(code: int, message: str) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return web.json_response(status, status=code)


@contextmanager
def serving(server: FakeAPIServer, folder: Path) -> Iterator[str]:
    """Provide the server on loopback, in a thread of its own; gives a kubeconfig for it, with the context `test`."""
    loop = asyncio.new_event_loop()
    started: Future[int] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        stops.append(stop)
        runner = web.AppRunner(server.application())
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        started.set_result(runner.addresses[0][1])
        await stop.wait()
        await runner.cleanup()

    stops: list[asyncio.Event] = []
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        yield str(kubeconfig(folder, f"http://127.0.0.1:{started.result(timeout=GUARD_SECONDS)}"))
    finally:
        loop.call_soon_threadsafe(stops[0].set)
        thread.join(timeout=GUARD_SECONDS)
        loop.close()


def kubeconfig(folder: Path, url: str) -> Path:
    """Return a kubeconfig whose one context, `test`, is the server at the URL."""
    file = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return file
