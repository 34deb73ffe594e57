"""Whatever comes and goes leaves nothing behind in any component but the schedulers, which have tests of their own."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from enum import Enum
from typing import Any

from podium.sim.run import RunOptions, schedulers_of
from podium.sim.scenario import Scenario
from podium.sim.simulation import Simulation
from tests.sim.objects import budget, job, scenario, workload
from tests.sim.played import simulation_of
from tests.store.objects import SECOND, Raw, node, pod

ROUND = 1_800
ROUNDS = 5


def containers(root: object, name: str) -> Iterator[tuple[str, int]]:
    """The containers that can be reached from an object, with a name for each and its size."""
    seen: set[int] = set()
    left: deque[tuple[str, Any]] = deque([(name, root)])
    while left:
        path, one = left.popleft()
        if id(one) in seen or isinstance(one, str | bytes | int | float | Enum | type) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, dict | Counter):
            yield path, len(one)
            left.extend((f"{path}[]", value) for value in one.values())
        elif isinstance(one, set | frozenset | list | tuple | deque):
            yield path, len(one)
            left.extend((f"{path}[]", value) for value in one)
        else:
            names = [*getattr(one, "__dict__", ()), *getattr(type(one), "__slots__", ())]
            left.extend((f"{path}.{field}", getattr(one, field, None)) for field in names)


def sizes(simulation: Simulation) -> Counter[str]:
    found: Counter[str] = Counter()
    roots: dict[str, object] = {one.name: one.machine for one in simulation.components if not one.waits}
    roots |= {"garbage": simulation.server._garbage, "namespaces": simulation.server._namespaces}
    for name, root in roots.items():
        # What the store holds is no component's.
        for path, size in containers(root, name):
            if "._store" not in path:
                found[path] += size
    return found


def named(raw: Raw, name: str, namespace: str) -> Raw:
    return {**raw, "metadata": {**raw["metadata"], "name": name, "namespace": namespace}}


def inhabitants(number: int) -> list[Raw]:
    """A namespace with something of each kind in it, and a node."""
    namespace = f"shop-{number}"
    often = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job("", backoffLimit=1)["spec"]}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {}, "spec": often}
    daemons = workload("DaemonSet", "", 1)
    del daemons["spec"]["replicas"]
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {}, "spec": {"hard": {"pods": "9"}}}
    inside = [
        workload("Deployment", "", 2),
        workload("ReplicaSet", "", 8),
        workload("StatefulSet", "", 2),
        daemons,
        job("", completions=2),
        cron,
        budget("", maxUnavailable=1),
        quota,
        pod(""),
    ]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        node(f"extra-{number}", cpu=3),
        *(named(raw, f"web-{number}-{index}", namespace) for index, raw in enumerate(inside)),
    ]


def steps() -> Iterator[Raw]:
    for number in range(ROUNDS + 1):
        start = number * ROUND
        yield {"at": f"{start + 1}s", "apply": inhabitants(number)}
        yield {"at": f"{start + 100}s", "evict": {"namespace": f"shop-{number}", "name": f"web-{number}-8"}}
        yield {"at": f"{start + 150}s", "nodeDown": {"name": f"extra-{number}"}}
        yield {"at": f"{start + 250}s", "nodeUp": {"name": f"extra-{number}"}}
        yield {"at": f"{start + 300}s", "delete": {"kind": "Namespace", "name": f"shop-{number}"}}
        yield {"at": f"{start + 400}s", "delete": {"kind": "Node", "name": f"extra-{number}"}}


def test_what_has_come_and_gone_leaves_nothing_behind() -> None:
    scheduler = schedulers_of(Scenario(), RunOptions())
    story = scenario(*steps(), until=f"{ROUND * (ROUNDS + 1)}s")
    simulation = simulation_of(node("n1", cpu=12), story, schedulers=scheduler)
    found = []
    for number in range(1, ROUNDS + 1):
        while simulation.elapsed_ns < (number * ROUND - 1) * SECOND and simulation.step():
            pass
        found.append(sizes(simulation))

    assert [one.key for one in simulation.store.objects("Pod")] == []
    grown = {path: [one[path] for one in found] for path in found[-1] if found[-1][path] > found[1][path]}
    assert grown == {}, grown.items()
