"""The victims, DELETEs and patches of preemptions by the live scheduler while the API server fails.

kube-scheduler needs one mark and one DELETE for each victim, and sends a write that failed once more. So with ``f``
writes about victims that failed, at most ``victims + f`` DELETEs and as many marks are sent. A restart costs nothing:
nominations and marks are in the API.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from podium.apirequests.request import Request, Response
from podium.store.errors import StoreError
from tests.live.cluster import Cluster, Instance
from tests.store.objects import node, pod, priority_class
from tests.waiting import until

NODES, PREEMPTORS = 6, 9
# Each preemptor takes the room of two pods. Half of the preemptors share their nodes with another one.
VICTIMS = 2 * PREEMPTORS
SPEC = {"terminationGracePeriodSeconds": 1}


class VictimWrites:
    """Counts the marks and DELETEs of victims that reach the API server, and answers some of them wrongly.

    ``fault`` is what happens to every third of them: `refused` before anything is done, `lost` after it is done, or
    `repeated` by a proxy.
    """

    def __init__(self, cluster: Cluster, fault: str = "") -> None:
        self.sent: Counter[str] = Counter()
        self.victims: set[str] = set()
        self.faults = 0
        self._fault = fault
        self._answer = cluster.backend.answer
        cluster.backend.answer = self.answer  # type: ignore[method-assign]

    def answer(self, request: Request) -> Response:
        what = self._what(request)
        if not what:
            return self._answer(request)
        self.sent[what] += 1
        if what == "DELETE":
            self.victims.add(request.key)
        if not self._fault or self.sent.total() % 3:
            return self._answer(request)
        self.faults += 1
        if self._fault == "refused":
            return Response(code=500, error=StoreError(500, "InternalError", "by way of a test"))
        answered = self._answer(request)
        if self._fault == "lost":
            return Response(code=504, error=StoreError(504, "Timeout", "by way of a test"))
        self._answer(request)
        return answered

    def _what(self, request: Request) -> str:
        if request.kind != "Pod" or not request.key.startswith("default/low"):
            return ""
        if request.verb == "delete":
            return "DELETE"
        is_mark = request.verb == "patch" and "PreemptionByScheduler" in str(request.body)
        return "mark" if is_mark else ""


async def filled(cluster: Cluster) -> Instance:
    """Return a scheduler at a cluster full of pods that may be preempted."""
    cluster.add(priority_class("high", 1_000), priority_class("low", 10))
    cluster.add(*(node(f"n{number}", cpu=4) for number in range(NODES)))
    lows = range(4 * NODES)
    cluster.add(*(pod(f"low{number}", spec={**SPEC, "priorityClassName": "low"}) for number in lows))
    instance = Instance(cluster)
    await until(lambda: all((cluster.pod(f"low{number}") or {})["status"].get("startTime") for number in lows))
    return instance


def add_preemptors(cluster: Cluster) -> None:
    numbers = range(PREEMPTORS)
    cluster.add(*(pod(f"high{number}", cpu=2, spec={**SPEC, "priorityClassName": "high"}) for number in numbers))


async def bound(cluster: Cluster) -> None:
    await until(lambda: all(cluster.node_of(f"high{number}") for number in range(PREEMPTORS)))


@pytest.mark.parametrize("fault", ["", "refused", "lost", "repeated", "delayed"])
def test_each_victim_costs_one_mark_and_one_delete_and_one_more_for_each_write_that_failed(fault: str) -> None:
    async def story() -> None:
        async with Cluster() as cluster:
            instance = await filled(cluster)
            writes = VictimWrites(cluster, "" if fault == "delayed" else fault)
            cluster.wire.latency_s = 0.05 if fault == "delayed" else 0.0
            add_preemptors(cluster)
            await bound(cluster)
            assert await instance.stop() == 0

            assert len(writes.victims) == VICTIMS
            # A write whose answer was lost is looked for, and one that a proxy repeats was sent once.
            failed = writes.faults if fault == "refused" else 0
            assert VICTIMS <= writes.sent["DELETE"] <= VICTIMS + failed
            assert VICTIMS <= writes.sent["mark"] <= VICTIMS + failed
            assert bool(writes.faults) == (fault in ("refused", "lost", "repeated"))

    asyncio.run(story())


@pytest.mark.parametrize("deletes", [1, 7, VICTIMS - 1])
def test_a_restart_in_the_middle_costs_no_victim_no_mark_and_no_delete(deletes: int) -> None:
    async def story() -> None:
        async with Cluster() as cluster:
            instance = await filled(cluster)
            writes = VictimWrites(cluster)
            add_preemptors(cluster)
            await until(lambda: writes.sent["DELETE"] >= deletes)
            await instance.kill()
            instance = Instance(cluster)
            await bound(cluster)
            assert await instance.stop() == 0

            assert len(writes.victims) == VICTIMS
            assert writes.sent["DELETE"] == VICTIMS
            assert writes.sent["mark"] == VICTIMS

    asyncio.run(story())
