"""Measures scheduling end to end over HTTP: pods are created at an API server, and bound there by `podium scheduler`.

The server is a process, and so is the scheduler; who creates the pods, and watches them being bound, is this one. What
counts is the clock's time, from the first creation to the last binding.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import perf_counter

import msgspec

from podium.api.collector import collector_paused
from podium.app.bench.api_server import pod_creation, served, tell_use
from podium.app.bench.http_client import Watcher, ask_all, request
from podium.app.bench.measurement import Measurement, rate
from podium.app.live.live_scheduler import LiveScheduler
from podium.app.live.logs import Log
from podium.app.live.settings import LiveSettings
from podium.client.access.cluster_access import ClusterAccess
from podium.driver.clock import SystemClock
from podium.framework.settings.configuration import default_configuration
from podium.server.http.loops import run

_NODES = "/api/v1/nodes"
_BOUND = "/api/v1/namespaces/default/pods?watch=true&resourceVersion=0&fieldSelector=spec.nodeName%21%3D"
_CONNECTIONS = 8


def measure_live(nodes: int, pods: int) -> Measurement:
    """Create so many nodes, then pods, and wait until all are bound."""
    with served() as server:
        asyncio.run(_create_nodes(server.port, nodes))
        with _scheduling(server.port) as scheduler:
            server.lap()
            before, _ = _usage(scheduler)
            seconds = asyncio.run(_bound(server.port, pods))
            scheduler_seconds, peak_mib = _usage(scheduler)
            server_seconds = server.lap()
    return Measurement(
        workload="live",
        nodes=nodes,
        placed=0,
        pods=pods,
        counts={
            "server_cpu_ms": round(1000 * server_seconds),
            "scheduler_cpu_ms": round(1000 * (scheduler_seconds - before)),
        },
        load_seconds=0.0,
        seconds=round(seconds, 3),
        pods_per_second=rate(pods, seconds),
        peak_memory_mib=peak_mib,
    )


async def _create_nodes(port: int, nodes: int) -> None:
    await ask_all(port, (_node_creation(number) for number in range(nodes)), _CONNECTIONS)


async def _bound(port: int, pods: int) -> float:
    """How long it takes until so many pods are created and bound."""
    watcher = Watcher(port, _BOUND)
    await watcher.open()
    began = perf_counter()
    await ask_all(port, (pod_creation(number) for number in range(pods)), _CONNECTIONS)
    await watcher.until(pods)
    seconds = perf_counter() - began
    await watcher.close()
    return seconds


def _node_creation(number: int) -> bytes:
    status = {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}}
    zone = f"zone-{number % 3}"
    metadata = {"name": f"node-{number:05}", "labels": {"topology.kubernetes.io/zone": zone}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    return request("POST", _NODES, msgspec.json.encode(node))


# The scheduler's process


@contextmanager
def _scheduling(port: int) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_schedule, args=(theirs, port), daemon=True)
    process.start()
    try:
        ours.recv()
        yield ours
    finally:
        ours.send("stop")
        process.join()


def _usage(pipe: Connection) -> tuple[float, float]:
    """The CPU seconds that the process has taken, and its peak of memory."""
    pipe.send("usage")
    seconds, peak_mib = pipe.recv()
    return float(seconds), float(peak_mib)


def _schedule(pipe: Connection, port: int) -> None:
    with collector_paused():
        run(_running(pipe, port))


async def _running(pipe: Connection, port: int) -> None:
    access = ClusterAccess(name="bench", server=f"http://127.0.0.1:{port}")
    log = Log(SystemClock().now, quiet=True)
    program = LiveScheduler(access, LiveSettings(configuration=default_configuration()), log)
    task = asyncio.ensure_future(program.run())
    await program.leads.wait()
    pipe.send("ready")
    await tell_use(pipe)
    program.stop()
    await task
