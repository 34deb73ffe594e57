"""Whatever comes and goes leaves nothing behind: every size is where it was, found by walking the objects.

Rounds bring workloads, pods, nodes and all that belongs to them, under names of their own, and take them away again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.node import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from podium.api.pod import AWSElasticBlockStore, PersistentVolumeClaimVolumeSource, Pod, Volume
from podium.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
)
from podium.app.bench import BenchDriver
from podium.cluster import matchers, nodes
from podium.machines.observations import Changed, Gone
from podium.machines.scheduling.scheduler import Scheduler
from podium.sim.component import Component
from podium.sim.simulation import Simulation
from tests import builders as build
from tests.builders import HOSTNAME, ZONE
from tests.sim.objects import budget, documents, job, scenario
from tests.sim.played import simulation_of
from tests.sizes import grown, sizes
from tests.store.objects import Raw, node, pod, priority_class

ROUND_S = 3600
LONG = pytest.param(60, marks=pytest.mark.fuzz, id="long")


def node_in(zone: str, name: str, **labels: str) -> Raw:
    raw = node(name, cpu=8)
    raw["metadata"]["labels"] = {HOSTNAME: name, ZONE: zone, **labels}
    return raw


BASE = [node_in(f"z{n}", f"base-{n}") for n in range(3)]


@pytest.mark.parametrize("rounds", [pytest.param(9, id="short"), LONG])
def test_a_simulated_cluster_is_as_large_after_many_rounds_as_after_few(rounds: int) -> None:
    steps = [step for number in range(rounds) for step in round_of(number)]
    simulation = simulation_of(
        *BASE,
        priority_class("high", 1000),
        scenario(*steps, autoscaler=AUTOSCALER, until=f"{rounds * ROUND_S + 60}s"),
        schedulers=[Component("default-scheduler", Scheduler, waits=True)],
    )

    def play(number: int) -> Counter[str]:
        until = ((number + 1) * ROUND_S - 1) * 10**9
        while simulation.elapsed_ns < until:
            assert simulation.step()
        assert names(simulation) == {one["metadata"]["name"] for one in BASE}
        machines = {f"machine {one.name}": one.machine for one in simulation.components}
        return sizes(simulation=simulation, **machines)

    assert_bounded(play, rounds)


def names(simulation: Simulation) -> set[str]:
    return {one.key for kind in ("Node", "Pod", "Deployment") for one in simulation.store.objects(kind)}


def assert_bounded(play: Callable[[int], Counter[str]], rounds: int) -> None:
    """No size is larger after the last round than it ever was in the first two thirds of them."""
    most: Counter[str] = Counter()
    now: Counter[str] = Counter()
    for number in range(rounds):
        now = play(number)
        if number < 2 * rounds // 3:
            most |= now
    larger = [f"{path}: {before} to {after}" for path, (before, after) in grown(most, now).items()]
    assert not larger, "\n".join(larger)


@pytest.fixture(autouse=True)
def few_are_kept_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is dropped after some time without a question is dropped soon, so that short runs reach their limits."""
    for module in (matchers, nodes):
        monkeypatch.setattr(module, "AT_LEAST", 1)


@pytest.mark.parametrize("args", [{}, {"DefaultPreemption": {"equalPriorityPreemption": True}}], ids=["plain", "fair"])
@pytest.mark.parametrize("rounds", [pytest.param(12, id="short"), LONG])
def test_a_scheduler_is_as_large_after_many_rounds_as_after_few(rounds: int, args: dict[str, Any]) -> None:
    scheduler = Scheduler(build.configuration(args))
    driver = BenchDriver(scheduler)
    for one in BASE:
        driver.scheduler.handle(Changed(typed(one)), driver.now)

    def play(number: int) -> Counter[str]:
        others = surroundings(number)
        for other in others:
            scheduler.handle(Changed(other), driver.now)
        for one in busy_pods(number):
            driver.show(one)
        while driver.attempt():
            pass
        for uid in sorted(driver.pods):
            driver.end(uid)
        for other in reversed(others):
            scheduler.handle(Gone(other), driver.now)
        driver.bound.clear()
        driver.attempt_ns.clear()
        return sizes(scheduler=scheduler)

    assert_bounded(play, rounds)


def typed(raw: Raw) -> Kubernetes:
    (document,) = documents(raw)
    assert document.object is not None
    return document.object


def surroundings(number: int) -> list[Kubernetes]:
    """What schedulers look at besides pods, under names of the round."""
    name = f"r{number}"
    return [
        build.namespace(name, team=name),
        build.node(
            f"{name}-node",
            zone=f"z-{name}",
            taints=[f"dedicated-{name}=yes:PreferNoSchedule"],
            images={f"image-{name}": 10**9},
            avoids=[f"ReplicaSet/{name}"],
            **gpu(number),
        ),
        build.budget(name, f"app={name}", 1, namespace=name),
        build.service(name, namespace=name, app=name),
        build.replica_set(name, f"app={name}", namespace=name),
        StorageClass(metadata=ObjectMeta(name=f"{name}-class"), provisioner=f"{name}.example.com"),
        PersistentVolume(
            metadata=ObjectMeta(name=f"{name}-volume", labels={ZONE: "z1"}),
            spec=PersistentVolumeSpec(capacity={"storage": "1Gi"}, storage_class_name=f"{name}-class"),
        ),
        PersistentVolumeClaim(
            metadata=ObjectMeta(name="data", namespace=name),
            spec=PersistentVolumeClaimSpec(volume_name=f"{name}-volume", storage_class_name=f"{name}-class"),
        ),
        CSINode(
            metadata=ObjectMeta(name="base-1"),
            spec=CSINodeSpec(
                drivers=(
                    CSINodeDriver(name="ebs.csi.aws.com", allocatable=VolumeNodeResources(count=1)),
                    CSINodeDriver(name=f"{name}.example.com", allocatable=VolumeNodeResources(count=1)),
                )
            ),
        ),
    ]


def busy_pods(number: int) -> list[Pod]:
    """Pods with terms, constraints, ports and needs of their own, and some that preempt others."""
    name = f"r{number}"
    labels = {"app": name, f"own-{name}": "yes"}
    term = build.term(f"app={name}", HOSTNAME)
    wide = build.term(f"app={name}", ZONE, in_namespaces=f"team={name}")
    common: dict[str, Any] = {"namespace": name, "labels": labels}
    return [
        build.pod("apart", **common, apart=[term, wide]),
        build.pod("near", **common, near=[wide]),
        build.pod("likes", **common, likes=[(number + 1, term)], dislikes=[(number + 2, wide)]),
        build.pod(
            "spread",
            **common,
            spread=[build.spread_over(ZONE, f"app={name}"), build.spread_over(HOSTNAME, f"app={name}", soft=True)],
        ),
        build.pod("gpu", **common, **gpu(number)),
        build.pod("port", **common, ports=[1000 + number]),
        build.pod("selects", **common, node_selector={ZONE: f"z-{name}"}),
        build.pod("selects-in-vain", **common, node_selector={f"key-{name}": name}),
        build.pod("mounts", **common, spec={"volumes": volumes(number)}),
        build.pod("mounts-too", **common, spec={"volumes": volumes(number)}),
        build.pod("owned", **common, owner=f"ReplicaSet/{name}"),
        *(build.pod(f"low-{one}", **common, cpu=6) for one in range(4)),
        *(build.pod(f"high-{one}", **common, cpu=6, priority=10 + number) for one in range(2)),
    ]


def gpu(number: int) -> dict[str, Any]:
    return {f"example_com__gpu_{number}": 1}


def volumes(number: int) -> tuple[Volume, ...]:
    return (
        Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name="data")),
        Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStore(volume_id=f"volume-{number}")),
    )


AUTOSCALER: Raw = {
    "nodeGroups": [
        {"name": "pool", "min": 0, "max": 3, "startUp": "30s", "template": {"status": {"allocatable": {"cpu": "8"}}}}
    ],
    "scaleDown": {"unneededTime": "2m", "delayAfterAdd": "2m"},
}


def round_of(number: int) -> list[Raw]:
    """Everything comes under names of the round, lives through some trouble, and is taken away."""
    things = round_objects(number)
    begin, name = number * ROUND_S, f"r{number}"
    extra = f"{name}-node"
    return [
        {"at": f"{begin}s", "apply": things},
        {"at": f"{begin + 200}s", "drain": {"name": "base-0", "timeout": "2m"}},
        {"at": f"{begin + 300}s", "nodeDown": {"name": extra}},
        {"at": f"{begin + 400}s", "uncordon": {"name": "base-0"}},
        {"at": f"{begin + 500}s", "nodeUp": {"name": extra}},
        {"at": f"{begin + 900}s", "scale": {"kind": "Deployment", "namespace": "default", "name": name, "replicas": 1}},
        *({"at": f"{begin + 1200 + 60 * (one['kind'] == 'Node')}s", "delete": target_of(one)} for one in things),
        {"at": f"{begin + ROUND_S - 1}s", "uncordon": {"name": "base-0"}},
    ]


def target_of(one: Raw) -> Raw:
    meta = one["metadata"]
    return {"kind": one["kind"], **{field: meta[field] for field in ("namespace", "name") if field in meta}}


def round_objects(number: int) -> list[Raw]:
    name = f"r{number}"
    labels = {"app": name, f"own-{name}": "yes"}
    near = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    affinity: Raw = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]},
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {**near, "topologyKey": ZONE}}
            ]
        },
    }
    ports = {"containers": [{"name": "main", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1000 + number}]}]}
    where = {"nodeSelector": {f"label-{name}": name}}
    inner = {"metadata": {"labels": labels}, "spec": pod("")["spec"]}
    picky = {
        "metadata": {"labels": labels},
        "spec": {**inner["spec"], "affinity": affinity, "topologySpreadConstraints": [spread]},
    }
    short = {
        "metadata": {"labels": labels, "annotations": {"podium.dev/duration": "20s"}},
        "spec": {**inner["spec"], "restartPolicy": "Never"},
    }
    set_of: Raw = {"selector": {"matchLabels": labels}, "template": inner}
    extra = node_in(f"z-{name}", f"{name}-node", **{f"label-{name}": name})
    extra["spec"] = {"taints": [{"key": f"taint-{name}", "value": name, "effect": "PreferNoSchedule"}]}
    return [
        extra,
        {"apiVersion": "v1", "kind": "Service", **meta(name), "spec": {"selector": labels}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            **meta(name),
            "spec": {**set_of, "replicas": 2, "template": picky},
        },
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", **meta(f"{name}-set"), "spec": {**set_of, "replicas": 2}},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            **meta(f"{name}-numbered"),
            "spec": {**set_of, "replicas": 2, "serviceName": name},
        },
        {"apiVersion": "apps/v1", "kind": "DaemonSet", **meta(f"{name}-daemon"), "spec": set_of},
        {**job(f"{name}-job", template=short, completions=2), **meta(f"{name}-job")},
        budget(name, selector={"matchLabels": labels}, maxUnavailable=1),
        pod(f"{name}-port", spec=ports, labels={"app": f"{name}-port"}),
        pod(f"{name}-where", spec=where),
        pod(f"{name}-nowhere", cpu=1000),
        *(pod(f"{name}-low-{one}", cpu=7, labels={"app": f"{name}-low"}) for one in range(6)),
        *(pod(f"{name}-high-{one}", cpu=7, priority=1000, spec={"priorityClassName": "high"}) for one in range(2)),
    ]


def meta(name: str) -> Raw:
    return {"metadata": {"name": name, "namespace": "default"}}
