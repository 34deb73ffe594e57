"""A rescheduler with the rights of `deploy/` does all of its work at an API server other than Podium's."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podium.app.live.logs import Log
from podium.app.rescheduling.live_rescheduler import LiveRescheduler, ReschedulingSettings
from podium.client.credentials import ClusterAccess
from podium.framework.rescheduling.configuration import read_rescheduler
from podium.framework.settings.configuration import default_configuration
from podium.runtime.clock import SystemClock
from tests.app.live.running import LEASE, is_going
from tests.app.rescheduling.clusters import CONFIGURATION, OWNER
from tests.client.api_server import APIServer
from tests.deploy.guard import LEASE_RIGHTS, Guard
from tests.store.objects import Raw, budget, node, running
from tests.waiting import GUARD_SECONDS, until
from tools import rbac
from tools.asked_rights import Right

EVICTION = Right("", "pods/eviction", "create")
PATCH_NODES = Right("", "nodes", "patch")


def settings(steering: str, **fields: Any) -> ReschedulingSettings:
    own = {
        **CONFIGURATION,
        "policies": [{"name": "MoveToUnderusedNodes"}],
        "interval": "50ms",
        "budgets": {"reserve": 0, "reserveShare": 0},
        "steering": steering,
    }
    usual = ReschedulingSettings(
        rescheduling=read_rescheduler(own, "rescheduler.yaml"),
        configuration=default_configuration(),
        lease=LEASE,
        identity=LEASE.identity,
    )
    return msgspec.structs.replace(usual, **fields)


def objects(rate: str = "") -> list[Raw]:
    pods = [running(f"web-{number}", node="old", cpu=1, metadata={"ownerReferences": [OWNER]}) for number in range(4)]
    return [node("old", cpu=4), node("new", cpu=4), budget("web", allowed=1, rate=rate), *pods]


def play(guard: Guard, how: ReschedulingSettings, *given: Raw, done: Callable[[APIServer], object]) -> APIServer:
    """Return a rescheduler at a guarded server with these objects, until something is so."""

    async def story() -> APIServer:
        async with APIServer(before=guard) as server:
            guard.store = server.store
            server.add(*given)
            access = ClusterAccess(name="test", server=server.url)
            log = Log(SystemClock().now, "json", stream=io.StringIO())
            program = LiveRescheduler(access, how, log)
            task = asyncio.ensure_future(program.run())
            await until(lambda: done(server))
            program.stop()
            async with asyncio.timeout(GUARD_SECONDS):
                assert await task == 0
            return server

    return asyncio.run(story())


def has_moved(server: APIServer) -> bool:
    """Return whether a pod was evicted, and its event written."""
    return is_going(server, "web-0") and any(request.kind == "Event" for request in server.sent)


@pytest.mark.parametrize("steering", ["AvoidList", "SoftTaint"])
def test_pods_are_evicted_and_nodes_marked_with_nothing_refused(steering: str) -> None:
    guard = Guard(rbac.rescheduler_rights() | rbac.node_marking_rights() | LEASE_RIGHTS)

    server = play(guard, settings(steering), *objects(rate="5/1h"), done=has_moved)

    assert guard.refused == set()
    assert {EVICTION, PATCH_NODES} <= guard.used
    raw = server.store.get("Node", "old").raw
    assert "scheduler.alpha.kubernetes.io/preferAvoidPods" in raw["metadata"]["annotations"]
    taints = [taint["key"] for taint in raw.get("spec", {}).get("taints", ())]
    assert taints == (["podium.dev/moving-pods-away"] if steering == "SoftTaint" else [])


def test_a_rescheduler_that_writes_no_nodes_needs_no_right_to_patch_them() -> None:
    guard = Guard(rbac.rescheduler_rights() | LEASE_RIGHTS)

    play(guard, settings("ScoresAlone"), *objects(), done=has_moved)

    assert guard.refused == set()
    assert EVICTION in guard.used


def test_the_rescheduler_counts_budget_rates_if_no_other_component_does() -> None:
    guard = Guard(rbac.rescheduler_rights() | LEASE_RIGHTS)
    counted = Right("policy", "poddisruptionbudgets", "patch")

    play(guard, settings("ScoresAlone"), *objects(rate="5/1h"), done=lambda server: counted in guard.used)
    assert guard.refused == set()

    other = Guard(rbac.rescheduler_rights() | LEASE_RIGHTS)
    play(other, settings("ScoresAlone", counts_disruptions=False), *objects(rate="5/1h"), done=has_moved)
    assert counted not in other.used


def test_a_dry_run_does_with_the_rights_to_see() -> None:
    guard = Guard({right for right in rbac.rescheduler_rights() if right.verb in rbac.SEE})
    how = settings("SoftTaint", dry_run=True, lease=None, is_once=True)

    server = play(guard, how, *objects(), done=lambda server: server.watches)

    assert guard.refused == set()
    assert not is_going(server, "web-0")
