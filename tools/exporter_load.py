"""The age of an exporter's answers while a large cluster changes, and the CPU time that it takes.

`.venv/bin/python -m tools.exporter_load --nodes 5000 --rate 50 --seconds 180` makes a cluster like an EKS cluster of
that size, and lets the exporter follow so many changes a second in real time. No API server takes part. A change is the
deletion of a pod, the creation of its replacement, its binding, or a change of its readiness.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from podium.api.collector import settle_collector
from podium.api.input.codec import decode
from podium.api.input.json import without_nulls
from podium.api.pod import Pod
from podium.api.versions.release import DEFAULT_RELEASE
from podium.app.bench.eks_cluster import EKSCluster
from podium.app.exporter.exporter import ExporterSettings, LiveExporter
from podium.app.live.followed_cluster import FollowedCluster
from podium.app.live.logs import Log
from podium.client.credentials import ClusterAccess
from podium.controllers.observations import Changed, Deleted, Observation
from podium.framework.settings.configuration import default_configuration

_MOST_PODS = 5_000
_SECOND = 10**9


@dataclass
class Load:
    """What was measured: ages of answers in seconds, once a second after the first evaluation."""

    nodes: list[float] = field(default_factory=list)
    groups: list[float] = field(default_factory=list)
    handling_s: float = 0
    most_late_s: float = 0


def changes_of(pods: list[Pod], draw: Random) -> Iterator[Observation]:
    """Yield changes without end: a pod is replaced in four of them, and another's readiness changes twice."""
    for number in range(10**9):
        at, other = draw.randrange(len(pods)), draw.randrange(len(pods))
        before = pods[at]
        yield Deleted(before)
        metadata = replace(before.metadata, name=f"{before.metadata.name[:40]}-{number}", uid=f"new-{number}")
        pending = replace(before, metadata=metadata, spec=replace(before.spec, node_name=""))
        yield Changed(replace(pending, status=replace(before.status, phase="Pending", conditions=())))
        bound = replace(pending, spec=before.spec, status=replace(before.status, conditions=()))
        yield Changed(bound)
        pods[at] = replace(bound, status=before.status)
        yield Changed(pods[at])
        status = pods[other].status
        unready = tuple(replace(each, status="False") for each in status.conditions if each.type == "Ready")
        yield Changed(replace(pods[other], status=replace(status, conditions=unready)))
        yield Changed(pods[other])


def _follow(cluster: FollowedCluster, nodes: int) -> list[Pod]:
    """Let the cluster follow the objects of a generated one; return some pods of ReplicaSets."""
    pods: list[Pod] = []
    for raw in EKSCluster(nodes).objects():
        item = decode(without_nulls(raw))
        if item is None:
            continue
        cluster.handle(Changed(item), time.time_ns())
        controller = item.metadata.controller
        if isinstance(item, Pod) and item.spec.node_name and controller is not None and controller.kind == "ReplicaSet":
            pods.append(item)
    cluster.is_complete = True
    settle_collector()
    return Random(1).sample(pods, min(_MOST_PODS, len(pods)))


async def measure(nodes: int, rate: float, seconds: float, settings: ExporterSettings) -> None:
    """Print what a run has measured."""
    exporter = LiveExporter(ClusterAccess(name="load", server="http://localhost"), settings, Log(time.time_ns))
    exporter.followed = cluster = FollowedCluster(settings.configuration, DEFAULT_RELEASE, exporter.now())
    load, changes = Load(), changes_of(_follow(cluster, nodes), Random(2))
    evaluating = asyncio.ensure_future(exporter._evaluate_repeatedly())
    while exporter.metrics.latest is None:
        await asyncio.sleep(0.2)
    latest = exporter.metrics.latest
    print(
        f"first evaluation: {latest.seconds:.1f} s, {_children_s():.1f} s of CPU time, {len(latest.failures)} failures"
    )
    own_s, copies_s, began, number, sampled = time.process_time(), _children_s(), time.monotonic(), 0, 0.0
    evaluations = exporter.metrics.evaluations._value.get()
    while (passed := time.monotonic() - began) < seconds:
        while number < passed * rate:
            before = time.process_time()
            cluster.handle(next(changes), exporter.now())
            load.handling_s += time.process_time() - before
            load.most_late_s = max(load.most_late_s, time.monotonic() - began - number / rate)
            number += 1
        if passed >= sampled:
            sampled, latest, now = passed + 1, exporter.metrics.latest, exporter.now()
            load.nodes.append((now - latest.at_ns) / _SECOND)
            load.groups.append((now - min(at for at, _ in latest.groups.values())) / _SECOND)
        await asyncio.sleep(0.02)
    evaluating.cancel()
    made = int(exporter.metrics.evaluations._value.get() - evaluations)
    print(f"{number} changes, at most {load.most_late_s:.1f} s late: {load.handling_s:.1f} s of CPU time")
    print(f"process that follows: {time.process_time() - own_s:.1f} s of CPU time")
    print(f"{made} evaluations: {(_children_s() - copies_s) / max(made, 1):.1f} s of CPU time each")
    for noun, ages in (("nodes", load.nodes), ("zones and pools", load.groups)):
        median_s = sorted(ages)[len(ages) // 2]
        print(f"oldest answer about {noun}: median {median_s:.0f} s, at most {max(ages):.0f} s")


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=50, help="changes a second")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--interval", type=float, default=30, help="seconds")
    given = parser.parse_args()
    interval_ns = round(given.interval * _SECOND)
    settings = ExporterSettings(
        configuration=default_configuration(), interval_ns=interval_ns, processes=given.processes
    )
    asyncio.run(measure(given.nodes, given.rate, given.seconds, settings))


if __name__ == "__main__":
    main()
