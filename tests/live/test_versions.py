"""Live programs decide as the named Kubernetes version, or else as that of the API server."""

from __future__ import annotations

import asyncio
import io
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from podium.api.versions.choice import read_choice
from podium.api.versions.release import read_version
from podium.app.live.logs import Log
from podium.app.rescheduling.live_rescheduler import LiveRescheduler, ReschedulingSettings
from podium.client.credentials import ClusterAccess
from podium.framework.rescheduling.configuration import default_rescheduler
from podium.framework.settings.configuration import default_configuration
from tests.live.cluster import Cluster, Instance
from tests.live.test_process import start
from tests.store.objects import node, pod, priority_class
from tests.waiting import until

TAINTED = node("n1") | {"spec": {"taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}]}}
NAMED = "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: a}. "
UNNAMED = "0/1 nodes are available: 1 node(s) had untolerated taint(s). "


def play(version: str, story: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Cluster(release=read_version(version)) as cluster:
            await story(cluster)

    asyncio.run(run())


def reason(cluster: Cluster, name: str) -> str:
    """Return the message of a pod's condition PodScheduled."""
    conditions = (cluster.pod(name) or {}).get("status", {}).get("conditions", [])
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


@pytest.mark.parametrize(
    ("server", "asked", "message"),
    [("1.36", "1.33", NAMED), ("1.33", "1.34", UNNAMED), ("1.33", "", NAMED), ("1.36", "", UNNAMED)],
)
def test_a_scheduler_decides_as_the_version_that_is_named_or_that_of_the_server(
    server: str, asked: str, message: str
) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(TAINTED, pod("a"))
        instance = Instance(cluster, release=read_choice(asked))
        await until(lambda: reason(cluster, "a"))
        assert reason(cluster, "a").startswith(message)
        (line,) = [line for line in instance.log if line["msg"] == "scheduling"]
        assert line["version"] == str(read_version(asked or server))
        assert await instance.stop() == 0

    play(server, story)


def test_the_command_decides_as_the_version_that_is_named(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(TAINTED, pod("a"))
        process = await start(cluster, tmp_path, "--kubernetes-version", "1.34.1")
        await until(lambda: reason(cluster, "a"))
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert reason(cluster, "a").startswith(NAMED)

    play("1.36", story)


@pytest.mark.parametrize(("server", "zones"), [("1.34", {}), ("1.35", {"topology.kubernetes.io/zone": "z"})])
def test_the_server_copies_topology_labels_at_binding_since_1_35(server: str, zones: dict[str, str]) -> None:
    async def story(cluster: Cluster) -> None:
        labels: dict[str, Any] = {"topology.kubernetes.io/zone": "z"}
        cluster.add(node("n1", **labels), pod("a"))
        instance = Instance(cluster)
        await until(lambda: cluster.node_of("a"))
        assert await instance.stop() == 0
        bound = (cluster.pod("a") or {})["metadata"].get("labels", {})
        assert {name: value for name, value in bound.items() if "topology" in name} == zones

    play(server, story)


def test_gates_that_the_servers_version_refuses_end_the_program() -> None:
    async def story(cluster: Cluster) -> None:
        instance = Instance(cluster, release=read_choice(gates="PodTopologyLabelsAdmission=true"))
        with pytest.raises(Exception, match=r"1\.32 does not know it"):
            await instance.task

    play("1.32", story)


def test_a_rescheduler_decides_as_the_version_of_the_server() -> None:
    async def story(cluster: Cluster) -> None:
        access = ClusterAccess(name="test", server=f"http://127.0.0.1:{cluster.wire.port}")
        settings = ReschedulingSettings(
            rescheduling=default_rescheduler(), configuration=default_configuration(), dry_run=True, drain_s=2.0
        )
        text = io.StringIO()
        program = LiveRescheduler(access, settings, Log(cluster.clock.now, "json", stream=text))
        task = asyncio.ensure_future(program.run())
        await until(lambda: "planning moves without evicting pods" in text.getvalue())
        program.stop()
        assert await task == 0
        assert '"version": "v1.33.13"' in text.getvalue()

    play("1.33", story)


def test_kubelets_and_the_server_say_the_version() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(node("n1"), priority_class("high", 10))
        await until(lambda: _kubelet_version(cluster))
        assert _kubelet_version(cluster) == "v1.34.9"
        assert cluster.backend.release == read_version("1.34")

    play("1.34", story)


def _kubelet_version(cluster: Cluster) -> str:
    (stored,) = cluster.plane.store.objects("Node")
    return str(stored.raw["status"].get("nodeInfo", {}).get("kubeletVersion", ""))
