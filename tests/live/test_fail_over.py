"""State that must survive a change of leader: it is stored in objects, and the next leader continues from it."""

import asyncio
from typing import Any

import pytest

from podium.api.pod import Pod
from podium.apirequests.request import Request
from podium.controllers.scheduling.futile_preemptions import note_of
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from tests.live.cluster import Cluster, Instance
from tests.store.objects import node, pod, priority_class, replicated
from tests.waiting import until

BEARING = read_configuration(
    {"apiVersion": API_VERSION, "kind": KIND, "maxFutilePreemptions": 3, "podMaxBackoffSeconds": 1}, "test"
)


# Where the rival is quicker than the scheduler sees, the kubelet turns the pod away, and its controller makes another.
URGENT = replicated("ReplicaSet", "urgent", 1, pod("urgent", cpu=4, spec={"priorityClassName": "high"})["spec"])


class Rival:
    """Another scheduler, which is quicker: as soon as one of its pods goes, the next one is on the node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.number = 0
        self.refill()

    def refill(self) -> None:
        name = f"batch-{self.number}"
        spec = {"schedulerName": "rival", "priorityClassName": "low", "terminationGracePeriodSeconds": 1}
        self.cluster.add(pod(name, cpu=4, node="n1", spec=spec))

    async def run(self) -> None:
        while True:
            if self.cluster.pod(f"batch-{self.number}") is None:
                self.number += 1
                self.refill()
            await asyncio.sleep(0.01)


@pytest.mark.failure(12)
def test_a_failover_does_not_restart_a_preemption_loop() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.add(priority_class("high", 1_000), priority_class("low", 10), node("n1", cpu=4))
        rival = Rival(cluster)
        running = asyncio.ensure_future(rival.run())
        # The rival sees a pod go long before the scheduler does.
        cluster.wire.latency_s = 0.1
        first = Instance(cluster, "first", configuration=BEARING)
        await until(first.program.leads.is_set)
        cluster.add(URGENT)
        await until(lambda: rival.number >= 2 and has_note_of_one(cluster))
        await first.kill()
        # Otherwise the next leader waits until the lease is over.
        cluster.delete("Lease", "kube-system/kube-scheduler")
        second = Instance(cluster, "second", configuration=BEARING)
        await until(lambda: backoffs(cluster))
        # It has borne three in all, not three of its own.
        assert rival.number == 3
        assert backoffs(cluster)[0]["message"].startswith("3 preemptions were futile")
        running.cancel()
        assert await second.stop() == 0

    async def run() -> None:
        async with Cluster() as cluster:
            cluster.writes.scheduler_names = frozenset(("default-scheduler", "rival"))
            await story(cluster)

    asyncio.run(run())


def has_note_of_one(cluster: Cluster) -> bool:
    """Return whether some pod says that a preemption was futile, and that another one has begun."""
    pods = (stored.object for stored in cluster.plane.store.objects("Pod"))
    notes = (note_of(found) for found in pods if isinstance(found, Pod))
    return any(note is not None and note.futile >= 1 and note.round is not None for note in notes)


def backoffs(cluster: Cluster) -> list[dict[str, Any]]:
    answer = cluster.plane.answer(Request(verb="list", kind="Event"))
    return [raw for raw in answer.objects() if raw["reason"] == "PreemptionBackoff"]
