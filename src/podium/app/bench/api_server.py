"""Measures the API server over HTTP: creations, updates, lists, and events to many watchers.

The server is alone in a process of its own, whose CPU seconds count; the clients are in this one.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import process_time

import msgspec

from podium.api.collector import collector_paused
from podium.app.bench.http_client import Watcher, ask_all, request
from podium.app.bench.measurement import Measurement, peak_memory_mib, percentiles_us, rate
from podium.driver.clock import SystemClock
from podium.requests.request import Request, Response
from podium.requests.router import Router
from podium.server.backend import Backend
from podium.server.http.loops import run
from podium.server.http.server import Server
from podium.store.api_resources import APIResources
from podium.store.store import Store

_PODS = "/api/v1/namespaces/default/pods"
_WATCH = f"{_PODS}?watch=true&resourceVersion="
_STATUS_PATCH = "application/strategic-merge-patch+json"
_CONNECTIONS = 8
_WATCHERS = 100
_LISTS = 10
# So many updates are told to all watchers.
_TOLD = 500


def measure_api_server(pods: int) -> list[Measurement]:
    """Create so many pods, update them, list them, and tell many watchers of updates."""
    with served() as server:
        return asyncio.run(_measured(server, pods))


class ServerProcess:
    """The server's process, from outside."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.port: int = pipe.recv()
        self._seconds = 0.0
        self.peak_mib = 0.0

    def lap(self) -> float:
        """The CPU seconds that the process has taken since it was last asked."""
        self._pipe.send("usage")
        seconds, self.peak_mib = self._pipe.recv()
        self._seconds, before = seconds, self._seconds
        return float(seconds - before)


@contextmanager
def served() -> Iterator[ServerProcess]:
    """A server in a process of its own, until the end of the block."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ServerProcess(ours)
    finally:
        ours.send("stop")
        process.join()


class _Backend(Backend):
    """A store by the clock, and nothing beside it."""

    def __init__(self) -> None:
        self._router = Router(Store())
        self._clock = SystemClock()

    @property
    def resources(self) -> APIResources:
        """The kinds that are served."""
        return self._router.store.resources

    def answer(self, request: Request) -> Response:
        """Ask the store."""
        return self._router.answer(request, self._clock.now())

    def now(self) -> int:
        """The clock's time."""
        return self._clock.now()


def _serve(pipe: Connection) -> None:
    """Serve until told to stop; tell how much it took when asked."""
    run(_serving(pipe))


async def _serving(pipe: Connection) -> None:
    server = Server(_Backend())
    with collector_paused():
        await server.start()
        pipe.send(server.port)
        await tell_use(pipe)
    await server.stop()


async def tell_use(pipe: Connection) -> None:
    """Tell through a pipe how much this process took, each time that somebody asks, until told to stop."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), asked.set)
    while True:
        await asked.wait()
        asked.clear()
        if pipe.recv() == "stop":
            return
        pipe.send((process_time(), peak_memory_mib()))


async def _measured(server: ServerProcess, pods: int) -> list[Measurement]:
    port = server.port
    watcher = Watcher(port, _WATCH)
    await watcher.open()
    server.lap()
    times = await ask_all(port, (pod_creation(number) for number in range(pods)), _CONNECTIONS)
    await watcher.until(pods)
    found = [_measurement("apiserver-create", pods, server, pods, times, watchers=1)]
    times = await ask_all(port, (_update(number, "Running") for number in range(pods)), _CONNECTIONS)
    await watcher.until(2 * pods)
    found.append(_measurement("apiserver-update", pods, server, pods, times, watchers=1))
    await watcher.close()
    times = await ask_all(port, [request("GET", _PODS)] * _LISTS, 1)
    found.append(_measurement("apiserver-list", pods, server, pods * _LISTS, times, lists=_LISTS))
    watchers = [Watcher(port, f"{_WATCH}{2 * pods}") for _ in range(_WATCHERS)]
    for each in watchers:
        await each.open()
    server.lap()
    told = min(_TOLD, pods)
    times = await ask_all(port, (_update(number, "Succeeded") for number in range(told)), _CONNECTIONS)
    for each in watchers:
        await each.until(told)
    events = sum(each.events for each in watchers)
    found.append(_measurement("apiserver-watch", pods, server, events, times, watchers=_WATCHERS))
    for each in watchers:
        await each.close()
    return found


def _measurement(
    workload: str, placed: int, server: ServerProcess, number: int, times: list[int], **counts: int
) -> Measurement:
    seconds = server.lap()
    return Measurement(
        workload=workload,
        nodes=0,
        placed=placed,
        pods=number,
        counts=counts,
        load_seconds=0.0,
        seconds=round(seconds, 3),
        pods_per_second=rate(number, seconds),
        peak_memory_mib=server.peak_mib,
        attempt_us=percentiles_us(times),
    )


def pod_creation(number: int) -> bytes:
    """A pod as a Deployment's, of some size."""
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


def _update(number: int, phase: str) -> bytes:
    """What a kubelet writes of a pod."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T09:30:00Z"}
    status = {"phase": phase, "conditions": [condition], "hostIP": "10.0.0.1", "podIP": "10.1.2.3"}
    path = f"{_PODS}/web-5d4f8c7b9-{number:05}/status"
    return request("PATCH", path, msgspec.json.encode({"status": status}), _STATUS_PATCH)
