"""The live scheduler under faults of the connection and the API server: its writes follow the rules throughout."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.live.cluster import Cluster, Instance, lease
from tests.store.objects import node, pod, priority_class
from tests.waiting import GUARD_SECONDS, until

QUICK = {"terminationGracePeriodSeconds": 1}


def play(story: Callable[[Cluster], Awaitable[None]], seed: int = 0) -> None:
    async def run() -> None:
        async with Cluster(seed) as cluster:
            cluster.add(priority_class("high", 1_000), priority_class("low", 10))
            cluster.add(*(node(f"n{number}", cpu=4) for number in range(4)))
            await story(cluster)

    asyncio.run(run())


@pytest.mark.parametrize("seed", [1, 2])
def test_every_pod_gets_one_node_and_nodes_are_not_overfull_under_network_faults(seed: int) -> None:
    """Connections are cut in the middle of watches and answers; writes are refused, or done without an answer."""

    async def story(cluster: Cluster) -> None:
        random = Random(seed)
        instance = Instance(cluster)
        await until(instance.program.leads.is_set)
        cluster.set_faults(0.15)
        number = 0
        # However fast the machine is: until there were faults of some kinds.
        while number < 40 or len(cluster.backend.refused) < 4:
            asked = cluster.backend.asked
            cluster.add(pod(f"p{number}", cpu=1 if number % 4 else 2, spec=QUICK))
            if number % 5 == 4:
                cluster.delete("Pod", f"default/p{random.randrange(number)}")
            if number % 10 == 9:
                cluster.wire.cut_all()
            await until(partial(has_asked, cluster, asked))
            number += 1
        cluster.set_faults(0.0)
        # What fits is placed; what waits does so because nothing fits.
        await until(lambda: all("status" in (cluster.pod(name) or {}) for name in cluster.waiting()))
        await until(lambda: not cluster.waiting() or is_full(cluster))
        assert cluster.wire.cuts > 0
        assert await instance.stop() == 0

    play(story, seed)


def has_asked(cluster: Cluster, before: int) -> bool:
    """Return whether another request has arrived since there were so many."""
    return cluster.backend.asked > before


def is_full(cluster: Cluster) -> bool:
    """Return whether less than the smallest pod is left on every node."""
    used = {f"n{number}": 0.0 for number in range(4)}
    for each in cluster.pods():
        if each.spec.node_name:
            used[each.spec.node_name] += float(each.spec.containers[0].resources.requests["cpu"])
    return all(amount > 3 for amount in used.values()) or all(
        float(each.spec.containers[0].resources.requests["cpu"]) + min(used.values()) > 4
        for each in cluster.pods()
        if not each.spec.node_name
    )


def test_a_preemption_completes_under_network_faults() -> None:
    async def story(cluster: Cluster) -> None:
        instance = Instance(cluster)
        cluster.add(*(pod(f"low{number}", cpu=4, spec={**QUICK, "priorityClassName": "low"}) for number in range(4)))
        await until(lambda: not cluster.waiting())
        cluster.set_faults(0.2)
        cluster.add(*(pod(f"high{number}", cpu=3, spec={**QUICK, "priorityClassName": "high"}) for number in range(3)))
        await until(lambda: all(cluster.node_of(f"high{number}") for number in range(3)))
        cluster.set_faults(0.0)
        # No more victims than there had to be.
        await until(lambda: len(cluster.pods()) == 4)
        assert await instance.stop() == 0

    play(story)


def test_a_pause_file_stops_preemption_until_it_is_removed(tmp_path: Path) -> None:
    pause = tmp_path / "pause"
    pause.touch()

    async def story(cluster: Cluster) -> None:
        instance = Instance(cluster, pause_file=str(pause))
        cluster.add(*(pod(f"low{number}", cpu=4, spec={**QUICK, "priorityClassName": "low"}) for number in range(4)))
        await until(lambda: not cluster.waiting())
        cluster.add(pod("high", cpu=3, spec={**QUICK, "priorityClassName": "high"}))
        await until(lambda: "status" in (cluster.pod("high") or {}))
        cluster.add(node("more", cpu=3), pod("other", cpu=1))
        await until(lambda: cluster.node_of("high") or cluster.node_of("other"))
        assert len(cluster.pods()) == 6

        cluster.add(pod("urgent", cpu=4, spec={**QUICK, "priorityClassName": "high"}))
        pause.unlink()
        await until(lambda: cluster.node_of("urgent"))
        assert await instance.stop() == 0

    play(story)


def test_when_the_leader_is_killed_another_takes_over_and_nothing_is_done_twice() -> None:
    async def story(cluster: Cluster) -> None:
        first = Instance(cluster, "first")
        await until(first.program.leads.is_set)
        second = Instance(cluster, "second")
        await until(lambda: second.said("waiting for the lease"))
        cluster.add(*(pod(f"p{number}", cpu="100m") for number in range(30)))
        await until(lambda: len(cluster.waiting()) < 20)
        await first.kill()
        cluster.expire_lease()
        await until(second.program.leads.is_set)
        await until(lambda: not cluster.waiting())
        assert await second.stop() == 0

    play(story)


def test_a_leader_that_is_cut_off_ends_before_another_begins() -> None:
    async def story(cluster: Cluster) -> None:
        first = Instance(cluster, "first", lease=lease("first", 2))
        await until(first.program.leads.is_set)
        cluster.backend.rate = 1.0
        async with asyncio.timeout(GUARD_SECONDS):
            assert await first.task == 1
        assert first.said("the lease is lost")
        cluster.backend.rate = 0.0
        second = Instance(cluster, "second")
        await until(second.program.leads.is_set)
        assert await second.stop() == 0

    play(story)
