"""Measurements over HTTP: an API server alone, and `podium scheduler` with one, in the form of `podium bench`.

`python -m tools.server_bench [--nodes 5000] [--pods 5000]`. The server and the scheduler run in processes of their own,
the clients in this one. `apiserver-...` are CPU seconds of the server without its clients: pods are created and their
statuses updated with one watcher, listed ten times, and some are updated again with 100 watchers. `live` is wall time
from the first creation to the last binding.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing.connection import Connection
from time import perf_counter, perf_counter_ns, process_time

import msgspec

from podium.api.collector import collector_paused
from podium.api.node import ZONE_LABEL
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.app.bench.measurement import Measurement, measured, peak_memory_mib, write_measurements
from podium.app.console.output import new_page, show_page
from podium.runtime.clock import SystemClock
from podium.server.backend import Backend
from podium.server.http.server import Server, run, run_client
from podium.store.api_resources import APIResources
from podium.store.store import Store

_PODS = "/api/v1/namespaces/default/pods"
_WATCH = f"{_PODS}?watch=true&resourceVersion="
_BOUND = f"{_WATCH}0&fieldSelector=spec.nodeName%21%3D"
_CONNECTIONS = 8
_WATCHERS = 100
_LISTS = 10
# The longest wait until all pods are bound.
_PATIENCE_SECONDS = 600
# The number of updates that all watchers receive.
_WATCHED_UPDATES = 500


def measure_api_server(pods: int) -> list[Measurement]:
    """Measure the server's CPU seconds to create, update and list pods, and to send updates to many watchers."""
    with _process(_serve) as server:
        return asyncio.run(_measured(server, pods))


def measure_live(nodes: int, pods: int) -> Measurement:
    """Measure the wall time until a scheduler has bound all new pods to new nodes."""
    with _process(_serve) as server:
        asyncio.run(_ask_all(server.port, (_node_request(number, "POST") for number in range(nodes))))
        # No controller takes off the taint of new nodes.
        asyncio.run(_ask_all(server.port, (_node_request(number, "PUT") for number in range(nodes))))
        with _process(_schedule, server.port) as scheduler:
            server.lap()
            scheduler.lap()
            seconds = asyncio.run(_bound(server.port, pods))
            counts = {"server_cpu_ms": round(1000 * server.lap()), "scheduler_cpu_ms": round(1000 * scheduler.lap())}
    found = measured("live", pods, seconds, nodes=nodes, counts=counts)
    return msgspec.structs.replace(found, peak_memory_mib=scheduler.peak_mib)


class _Process:
    """A process that is measured from outside; ``port`` is its server's, 0 for none."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.port: int = pipe.recv()
        self._seconds = 0.0
        self.peak_mib = 0.0

    def lap(self) -> float:
        """Return the CPU seconds that the process has used since the last call."""
        self._pipe.send("usage")
        seconds, self.peak_mib = self._pipe.recv()
        self._seconds, before = seconds, self._seconds
        return float(seconds - before)


@contextmanager
def _process(target: Callable[..., None], *arguments: object) -> Iterator[_Process]:
    """Run a function in a process of its own until the end of the block; it reports through a pipe."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    try:
        yield _Process(ours)
    finally:
        ours.send("stop")
        process.join()


async def _report_usage(pipe: Connection, port: int = 0) -> None:
    """Report through a pipe that this process is ready, then its usage on each request, until it stops."""
    pipe.send(port)
    requested = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), requested.set)
    while True:
        await requested.wait()
        requested.clear()
        # The event may be set once more for a message that was read already; `recv` would then block the loop.
        while pipe.poll():
            if pipe.recv() == "stop":
                return
            pipe.send((process_time(), peak_memory_mib()))


class _Backend(Backend):
    """A store with the system clock, without controllers."""

    def __init__(self) -> None:
        self._router = Router(Store())
        self._clock = SystemClock()

    @property
    def resources(self) -> APIResources:
        return self._router.store.resources

    def answer(self, request: Request) -> Response:
        return self._router.answer(request, self._clock.now())

    def now(self) -> int:
        return self._clock.now()


def _serve(pipe: Connection) -> None:
    async def serve() -> None:
        server = Server(_Backend())
        with collector_paused():
            await server.start()
            await _report_usage(pipe, server.port)
        await server.stop()

    run(serve())


def _schedule(pipe: Connection, port: int) -> None:
    # The server's process does without these, which take memory.
    from podium.app.live.live_program import LiveSettings
    from podium.app.live.live_scheduler import LiveScheduler
    from podium.app.live.logs import Log
    from podium.client.credentials import ClusterAccess
    from podium.framework.settings.configuration import default_configuration

    async def schedule() -> None:
        access = ClusterAccess(name="bench", server=f"http://127.0.0.1:{port}")
        # What the scheduler reports is not part of the measurement.
        log = Log(SystemClock().now, stream=StringIO())
        program = LiveScheduler(access, LiveSettings(configuration=default_configuration()), log)
        task = asyncio.ensure_future(program.run())
        await program.leads.wait()
        await _report_usage(pipe)
        program.stop()
        await task

    with collector_paused():
        run_client(schedule())


async def _measured(server: _Process, pods: int) -> list[Measurement]:
    found = []

    def note(workload: str, number: int, times: list[int], **counts: int) -> None:
        each = measured(workload, number, server.lap(), placed=pods, counts=counts, times_ns=times)
        found.append(msgspec.structs.replace(each, peak_memory_mib=server.peak_mib))

    port = server.port
    watcher = Watcher(port, _WATCH)
    await watcher.open()
    server.lap()
    times, _ = await asyncio.gather(_ask_all(port, map(_pod_creation, range(pods))), watcher.until(pods))
    note("apiserver-create", pods, times, watchers=1)
    changes = (_update(number, "Running") for number in range(pods))
    times, _ = await asyncio.gather(_ask_all(port, changes), watcher.until(2 * pods))
    note("apiserver-update", pods, times, watchers=1)
    await watcher.close()
    times = await _ask_all(port, [request("GET", _PODS)] * _LISTS, 1)
    note("apiserver-list", pods * _LISTS, times, lists=_LISTS)
    watchers = [Watcher(port, f"{_WATCH}{2 * pods}") for _ in range(_WATCHERS)]
    for each in watchers:
        await each.open()
    server.lap()
    updates = min(_WATCHED_UPDATES, pods)
    changes = (_update(number, "Succeeded") for number in range(updates))
    changing = asyncio.ensure_future(_ask_all(port, changes))
    await asyncio.gather(changing, *(each.until(updates) for each in watchers))
    note("apiserver-watch", sum(each.events for each in watchers), changing.result(), watchers=_WATCHERS)
    for each in watchers:
        await each.close()
    return found


async def _bound(port: int, pods: int) -> float:
    watcher = Watcher(port, _BOUND)
    await watcher.open()
    began = perf_counter()
    async with asyncio.timeout(_PATIENCE_SECONDS):
        await asyncio.gather(_ask_all(port, map(_pod_creation, range(pods))), watcher.until(pods))
    seconds = perf_counter() - began
    await watcher.close()
    return seconds


def _pod_creation(number: int) -> bytes:
    container = {
        "name": "main",
        "image": "registry.example.com/team/app:1.2.3",
        "env": [{"name": f"SETTING_{index}", "value": "a value of some length"} for index in range(8)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    }
    labels = {"app": "web", "pod-template-hash": "5d4f8c7b9", "team": "shop"}
    metadata = {"name": f"web-5d4f8c7b9-{number:05}", "namespace": "default", "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    return request("POST", _PODS, msgspec.json.encode(pod))


def _node_request(number: int, method: str) -> bytes:
    """Return the request that creates a node (POST), or replaces it (PUT)."""
    status, name = {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}}, f"node-{number:05}"
    metadata = {"name": name, "labels": {ZONE_LABEL: f"zone-{number % 3}"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    return request(method, f"/api/v1/nodes/{name}" if method == "PUT" else "/api/v1/nodes", msgspec.json.encode(node))


def _update(number: int, phase: str) -> bytes:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T09:30:00Z"}
    status = {"phase": phase, "conditions": [condition], "hostIP": "10.0.0.1", "podIP": "10.1.2.3"}
    path = f"{_PODS}/web-5d4f8c7b9-{number:05}/status"
    return request("PATCH", path, msgspec.json.encode({"status": status}), "application/strategic-merge-patch+json")


# A client that does little, so that it takes little of the machine.

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"Content-Length: "
_LIMIT = 64 * 1024 * 1024


def request(method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
    """Return a request as bytes."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n"
    if body:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


async def _ask_all(port: int, requests: Iterable[bytes], connections: int = _CONNECTIONS) -> list[int]:
    """Send each request as soon as one of the connections is free. Return the nanoseconds that each took.

    Raises RuntimeError if one is refused.
    """
    waiting = iter(requests)
    times: list[int] = []

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LIMIT)
        for data in waiting:
            began = perf_counter_ns()
            writer.write(data)
            head = await reader.readuntil(_HEAD_END)
            if not head.startswith(b"HTTP/1.1 2"):
                raise RuntimeError(f"the server refused a request: {head[:100]!r}")
            begin = head.index(_LENGTH) + len(_LENGTH)
            await reader.readexactly(int(head[begin : head.index(b"\r\n", begin)]))
            times.append(perf_counter_ns() - began)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(work() for _ in range(connections)))
    return times


@dataclass(slots=True)
class Watcher:
    """A watch that counts its events."""

    port: int
    path: str
    events: int = 0
    _reader: asyncio.StreamReader = field(init=False)
    _writer: asyncio.StreamWriter = field(init=False)

    async def open(self) -> None:
        """Begin to watch."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=_LIMIT)
        self._writer.write(request("GET", self.path))
        await self._reader.readuntil(_HEAD_END)

    async def until(self, events: int) -> None:
        """Read until so many events have arrived. Raises ConnectionError if the watch ends before."""
        while self.events < events:
            data = await self._reader.read(1024 * 1024)
            if not data:
                raise ConnectionError(f"the watch of {self.path} ended after {self.events} of {events} events")
            # An event is a line, and no object has a line's end in it.
            self.events += data.count(b"\n\r\n")

    async def close(self) -> None:
        """End the watch."""
        self._writer.close()
        await self._writer.wait_closed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000, help="the nodes of the scheduler")
    parser.add_argument("--pods", type=int, default=5000)
    given = parser.parse_args()
    page = new_page()
    write_measurements(page, [*measure_api_server(given.pods), measure_live(given.nodes, given.pods)])
    show_page(page)


if __name__ == "__main__":
    main()
