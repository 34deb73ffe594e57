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
from tests.live.test_process import log_of, start
from tests.sim.test_volume_claims import disks, with_cache
from tests.store.objects import Raw, node, pod, priority_class
from tests.waiting import GUARD_SECONDS, until

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
        process = start(cluster, tmp_path, "--kubernetes-version", "1.34.1")
        await until(lambda: reason(cluster, "a"))
        process.send_signal(signal.SIGTERM)
        await log_of(process)
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
            rescheduling=default_rescheduler(),
            configuration=default_configuration(),
            dry_run=True,
            drain_s=GUARD_SECONDS,
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


def nominations(cluster: Cluster, name: str) -> list[str]:
    """Return the nominated nodes of a pod, one after the other."""
    history = [event.stored.raw for event in cluster.plane.store.log.since(0, "Pod") if event.stored.key == name]
    nominated = [str(raw.get("status", {}).get("nominatedNodeName", "")) for raw in history]
    return [node for place, node in enumerate(nominated) if place == 0 or node != nominated[place - 1]]


def first_version(cluster: Cluster, name: str, happened: Callable[[Raw], bool]) -> int:
    """Return the version at which something happened to a pod."""
    events = cluster.plane.store.log.since(0, "Pod")
    return next(each.stored.version for each in events if each.stored.key == name and happened(each.stored.raw))


def ended(raw: Raw) -> bool:
    return "deletionTimestamp" in raw["metadata"]


def nominated(raw: Raw) -> bool:
    return bool(raw.get("status", {}).get("nominatedNodeName"))


@pytest.mark.parametrize(
    ("server", "asked", "found"),
    [("1.36", "1.34", ["", "n1", ""]), ("1.36", "1.36", ["", "n1", ""]), ("1.34", "1.34", ["", "n1"])],
)
def test_a_preemptor_is_nominated_before_its_last_victim_goes_and_until_a_newer_server_binds_it(
    server: str, asked: str, found: list[str]
) -> None:
    """1.33 and later delete victims in the background; the API server ends nominations at binding since 1.35."""

    async def story(cluster: Cluster) -> None:
        short = {"terminationGracePeriodSeconds": 1}
        victims = [pod(name, cpu=2, node="n1", spec=short) for name in ("a", "b")]
        cluster.add(node("n1", cpu=4), priority_class("high", 10), *victims)
        cluster.add(pod("high", cpu=4, spec={"priorityClassName": "high"}))
        instance = Instance(cluster, release=read_choice(asked))
        await until(lambda: cluster.node_of("high"))
        assert await instance.stop() == 0
        deletions = sorted(first_version(cluster, f"default/{name}", ended) for name in ("a", "b"))
        assert first_version(cluster, "default/high", nominated) < deletions[-1]
        assert nominations(cluster, "default/high") == found

    play(server, story)


def test_an_older_scheduler_deletes_all_victims_before_it_nominates() -> None:
    async def story(cluster: Cluster) -> None:
        victims = [pod(name, cpu=2, node="n1", spec={"terminationGracePeriodSeconds": 1}) for name in ("a", "b")]
        cluster.add(node("n1", cpu=4), priority_class("high", 10), *victims)
        cluster.add(pod("high", cpu=4, spec={"priorityClassName": "high"}))
        instance = Instance(cluster, release=read_choice("1.32"))
        await until(lambda: cluster.node_of("high"))
        assert await instance.stop() == 0
        deletions = [first_version(cluster, f"default/{name}", ended) for name in ("a", "b")]
        assert max(deletions) < first_version(cluster, "default/high", nominated)

    play("1.36", story)


@pytest.mark.parametrize(("asked", "found"), [("1.34", [""]), ("1.36", ["", "n1", ""])])
def test_a_pod_with_volumes_is_nominated_before_it_is_bound_since_1_35(asked: str, found: list[str]) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(node("n1"), disks(), with_cache("web"))
        instance = Instance(cluster, release=read_choice(asked))
        await until(lambda: cluster.node_of("web"))
        assert await instance.stop() == 0
        assert nominations(cluster, "default/web") == found

    play("1.36", story)


@pytest.mark.parametrize("asked", ["1.34", "1.36"])
def test_a_failed_attempt_ends_a_nomination(asked: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(node("n1", cpu=4), pod("big", cpu=8))
        stored = cluster.plane.store.get("Pod", "default/big")
        status = {**stored.raw["status"], "nominatedNodeName": "n1"}
        cluster.plane.store.update_status({**stored.raw, "status": status})
        instance = Instance(cluster, release=read_choice(asked))
        await until(lambda: reason(cluster, "big"))
        assert await instance.stop() == 0
        assert nominations(cluster, "default/big") == ["", "n1", ""]

    play("1.36", story)
