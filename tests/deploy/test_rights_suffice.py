"""A scheduler with the rights of `deploy/` does all of its work."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests import devices
from tests.app.live.running import LEASE, SETTINGS, Running, is_going, node_of
from tests.client.api_server import APIServer
from tests.deploy.guard import LEASE_RIGHTS, Guard
from tests.store.objects import Raw, node, pod, priority_class, running
from tests.waiting import until
from tools.asked_rights import Right
from tools.rbac import preemption_rights, scheduler_rights

CLAIM: Raw = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
VOLUMES: tuple[Raw, ...] = (
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {**CLAIM, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**CLAIM, "resources": {"requests": {"storage": "1Gi"}}},
    },
)
# One node has room after a preemption, the other for a small pod.
CROWDED: tuple[Raw, ...] = (
    node("n1"),
    node("n2"),
    running("victim", node="n1", cpu=10),
    running("other", node="n2", cpu=9, priority=5_000),
)
MOUNTS = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def play(guard: Guard, *objects: Raw, done: Any) -> APIServer:
    """Return a scheduler that elects a leader, at a guarded server with these objects, until something is so."""

    async def story() -> APIServer:
        async with APIServer(before=guard) as server:
            guard.store = server.store
            server.add(*objects)
            settings = msgspec.structs.replace(SETTINGS, lease=LEASE)
            async with Running(server, settings):
                await until(lambda: done(server))
            return server

    return asyncio.run(story())


def test_the_granted_rights_suffice_to_bind_preempt_and_report() -> None:
    guard = Guard(scheduler_rights() | preemption_rights() | LEASE_RIGHTS)

    play(
        guard,
        priority_class("high", 1_000),
        *CROWDED,
        pod("small"),
        pod("huge", cpu=1_000),
        pod("wants", cpu=8, priority=1_000, spec={"priorityClassName": "high"}),
        done=lambda server: (
            is_going(server, "victim")
            and node_of(server, "small") == "n2"
            and "status" in server.store.get("Pod", "default/huge").raw
            and any(request.kind == "Event" for request in server.sent)
        ),
    )

    assert guard.refused == set()
    assert {Right("", "pods", "delete"), Right("", "pods/binding", "create")} <= guard.used


def test_without_the_role_for_it_no_pod_is_preempted_and_all_else_is_done() -> None:
    guard = Guard(scheduler_rights() | LEASE_RIGHTS)

    server = play(
        guard,
        priority_class("high", 1_000),
        *CROWDED,
        pod("wants", cpu=8, priority=1_000, spec={"priorityClassName": "high"}),
        pod("small"),
        done=lambda server: node_of(server, "small") == "n2" and Right("", "pods", "delete") in guard.refused,
    )

    assert guard.refused == {Right("", "pods", "delete")}
    assert not is_going(server, "victim")


DEVICES: tuple[Raw, ...] = (
    node("n1"),
    devices.device_class(),
    devices.devices_of("n1", devices.device("gpu-0")),
    devices.claim("gpu"),
)
BINDING = Right("resource.k8s.io", "resourceclaims/binding", "update")


def test_a_pod_with_a_claim_for_devices_is_bound_with_nothing_refused() -> None:
    guard = Guard(scheduler_rights() | LEASE_RIGHTS)

    play(
        guard,
        *DEVICES,
        devices.using(pod("trains"), "gpu"),
        done=lambda server: node_of(server, "trains") == "n1",
    )

    assert guard.refused == set()
    assert BINDING in guard.used


def test_no_more_victims_go_for_a_pod_whose_devices_may_not_be_reserved() -> None:
    guard = Guard((scheduler_rights() | preemption_rights() | LEASE_RIGHTS) - {BINDING})
    wants = devices.using(pod("trains", cpu=8, priority=1_000, spec={"priorityClassName": "high"}), "gpu")

    def knows_why(server: APIServer) -> bool:
        """Return whether the pod's message says why it preempts no pod, after another pod has taken the room of its
        victim.
        """
        if BINDING in guard.refused and server.store.find("Pod", "default/next") is None:
            server.add(running("next", node="n1", cpu=10))
        conditions = server.store.get("Pod", "default/trains").raw.get("status", {}).get("conditions", [])
        why = "preemption: the API server refuses to reserve the pod's devices"
        return any(why in condition.get("message", "") for condition in conditions)

    async def story() -> None:
        async with APIServer(before=guard) as server:
            guard.store = server.store
            victim = running("victim", node="n1", cpu=10, spec={"terminationGracePeriodSeconds": 0})
            server.add(priority_class("high", 1_000), *DEVICES, victim, wants)
            async with Running(server, msgspec.structs.replace(SETTINGS, lease=LEASE)) as scheduler:
                await until(lambda: knows_why(server))
                assert scheduler.said("the binding of a pod is refused; the pod preempts no pods until this changes")
            assert guard.refused == {BINDING}
            assert is_going(server, "victim")
            assert not is_going(server, "next")

    asyncio.run(story())


def test_volumes_are_bound_with_nothing_refused() -> None:
    guard = Guard(scheduler_rights() | LEASE_RIGHTS)

    play(
        guard,
        *VOLUMES,
        node("n1"),
        pod("mounts", spec=MOUNTS),
        done=lambda server: "claimRef" in server.store.get("PersistentVolume", "disk").raw["spec"],
    )

    assert guard.refused == set()
    assert Right("", "persistentvolumes", "patch") in guard.used
