"""`podium scheduler` and `podium reschedule` as processes: start and end."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.app import forked
from tests.app.processes import START
from tests.live.cluster import Cluster
from tests.store.objects import node, pod
from tests.waiting import until

# Renewed often, and long enough for a slow machine, which would lose a shorter one.
LEASE = ("--leader-elect-lease-duration=10m", "--leader-elect-renew-deadline=8m", "--leader-elect-retry-period=200ms")


def start(
    cluster: Cluster, folder: Path, *options: str, command: str = "scheduler", real: bool = False
) -> subprocess.Popen[str]:
    kubeconfig = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{cluster.wire.port}"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test"}}],
    }
    kubeconfig.write_text(json.dumps(config))
    words = (command, "--kubeconfig", str(kubeconfig), "--log-format=json", *LEASE, *options)
    return forked.start(
        START, *words, real=real, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


async def log_of(process: subprocess.Popen[str]) -> str:
    """Return the log of a process once it has ended; this one serves the cluster meanwhile."""
    with process:
        _, said = await asyncio.to_thread(process.communicate)
    return said


def play(story: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Cluster() as cluster:
            cluster.add(node("n1"), pod("a"))
            await story(cluster)

    asyncio.run(run())


def holder(cluster: Cluster) -> str:
    stored = cluster.plane.store.find("Lease", "kube-system/kube-scheduler")
    return "" if stored is None else str(stored.raw["spec"]["holderIdentity"])


def test_a_process_that_is_killed_is_followed_by_another_which_goes_on_and_ends_with_0(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        first = start(cluster, tmp_path)
        await until(lambda: cluster.node_of("a"))
        was = holder(cluster)
        first.kill()
        await log_of(first)
        assert first.returncode == -signal.SIGKILL
        assert holder(cluster) == was

        cluster.expire_lease()
        cluster.add(pod("b"))
        second = start(cluster, tmp_path)
        await until(lambda: cluster.node_of("b"))
        second.send_signal(signal.SIGTERM)
        said = await log_of(second)

        assert second.returncode == 0
        assert holder(cluster) == ""
        messages = [json.loads(line)["msg"] for line in said.splitlines()]
        assert messages[-2:] == ["released the lease", "stopped"]

    play(story)


def test_a_process_that_loses_its_lease_ends_with_1(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        process = start(cluster, tmp_path)
        await until(lambda: cluster.node_of("a"))
        lease = cluster.plane.store.get("Lease", "kube-system/kube-scheduler").raw
        cluster.plane.store.update({**lease, "spec": {**lease["spec"], "holderIdentity": "other"}})
        said = await log_of(process)
        assert process.returncode == 1
        assert "the lease is lost: other holds it" in said

    play(story)


def test_a_rescheduler_gives_its_own_lease_back_and_ends_with_0(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        process = start(cluster, tmp_path, "--evict", command="reschedule")
        await until(lambda: cluster.plane.store.find("Lease", "kube-system/podium-rescheduler"))
        process.send_signal(signal.SIGTERM)
        said = await log_of(process)
        assert process.returncode == 0
        lease = cluster.plane.store.get("Lease", "kube-system/podium-rescheduler").raw
        assert lease["spec"]["holderIdentity"] == ""
        assert [json.loads(line)["msg"] for line in said.splitlines()][-1] == "stopped"

    play(story)


def test_a_process_that_is_aborted_leaves_its_stacks_and_does_not_run_on_uvloop(tmp_path: Path) -> None:
    """uvloop aborts the process where a connection attempt is cancelled at a bad moment."""

    async def story(cluster: Cluster) -> None:
        process = start(cluster, tmp_path, real=True)
        await until(lambda: cluster.node_of("a"))
        process.send_signal(signal.SIGABRT)
        said = await log_of(process)
        assert process.returncode == -signal.SIGABRT
        assert "Fatal Python error: Aborted" in said
        assert "uvloop" not in said.partition("Fatal Python error")[2].partition("Extension modules")[0]

    play(story)
