"""An event costs what it concerns: with four times as much of everything else around, it takes as many operations.

Arrays over nodes, classes and pods are single operations here, however long they are: they are what scheduling is made
of. What is counted is everything that is done entry by entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.app.bench.driver import BenchDriver
from podium.app.bench.operations import operations
from podium.machines.observations import Changed, Gone
from podium.machines.scheduling.scheduler import Scheduler
from tests import builders as build
from tests.builders import HOSTNAME, ZONE

FEW, MANY = 40, 160
# Calls that come and go with the sizes of dictionaries and buffers.
SLACK = 40


class Surrounded:
    """A scheduler of a cluster with so many nodes, and workloads in so many namespaces, all different."""

    def __init__(self, number: int) -> None:
        self.driver = BenchDriver(Scheduler())
        for one in range(number):
            name = f"w{one}"
            self.tell(build.node(f"node-{one}", zone=f"z{one % 3}"), build.namespace(name, team=name))
            self.tell(
                build.replica_set(name, f"app={name}", namespace=name), build.service(name, namespace=name, app=name)
            )
            self.tell(build.budget(name, f"app={name}", 1, namespace=name), claim(name))
            self.driver.show(workload_pod(name))
        self.settle()

    def tell(self, *objects: Kubernetes) -> None:
        for one in objects:
            self.driver.scheduler.handle(Changed(one), self.driver.now)

    def lose(self, one: Kubernetes) -> None:
        self.driver.scheduler.handle(Gone(one), self.driver.now)

    def settle(self) -> None:
        while self.driver.attempt():
            pass


def workload_pod(name: str, suffix: str = "", **labels: str) -> Pod:
    """A pod of a workload that keeps its pods apart, and near what it belongs to."""
    own = build.term(f"app={name}", HOSTNAME)
    wide = build.term(f"app={name}", ZONE, in_namespaces=f"team={name}")
    return build.pod(
        f"{name}{suffix}",
        namespace=name,
        owner=f"ReplicaSet/{name}",
        labels={"app": name, **labels},
        cpu="10m",
        apart=[own],
        likes=[(1, wide)],
        spread=[build.spread_over(ZONE, f"app={name}", soft=True)] if labels else [],
    )


def claim(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace=name))


def a_pod_of_a_new_workload(there: Surrounded) -> None:
    there.driver.show(workload_pod("new"))
    there.settle()


def a_pod_of_another_revision(there: Surrounded) -> None:
    there.driver.show(workload_pod("w1", "-2", revision="2"))
    there.settle()


def a_pod_that_ends(there: Surrounded) -> None:
    there.driver.end("w1/w1")


def a_pod_that_changes(there: Surrounded) -> None:
    pod = there.driver.pods["w1/w1"]
    there.driver.show(replace(pod, metadata=replace(pod.metadata, labels={"app": "else"})))


def a_node_that_comes(there: Surrounded) -> None:
    there.tell(build.node("new", zone="z9"))


def a_node_that_changes(there: Surrounded) -> None:
    there.tell(build.node("node-1", zone="z9", labels={"more": "labels"}, taints=["one=more:NoSchedule"]))


def a_node_that_goes(there: Surrounded) -> None:
    there.lose(build.node("node-1"))


def a_budget_that_changes(there: Surrounded) -> None:
    there.tell(build.budget("w1", "app=w1", 0, namespace="w1"))


def a_claim_that_changes(there: Surrounded) -> None:
    there.tell(replace(claim("w1"), metadata=replace(claim("w1").metadata, labels={"a": "b"})))


def a_service_that_changes(there: Surrounded) -> None:
    there.tell(build.service("w1", namespace="w1", app="else"))


def a_namespace_that_is_relabelled(there: Surrounded) -> None:
    there.tell(build.namespace("w1", team="else"))


def counted(event: Callable[[Surrounded], None], number: int) -> Counter[str]:
    """The operations of the event. The fewer of twice: what is kept for all may have been full, and forgotten, once."""
    return min((_operations(event, Surrounded(number)) for _ in range(2)), key=Counter.total)


def _operations(event: Callable[[Surrounded], None], there: Surrounded) -> Counter[str]:
    return operations(lambda: event(there))


@pytest.mark.parametrize(
    "event",
    [
        a_pod_of_a_new_workload,
        a_pod_of_another_revision,
        a_pod_that_ends,
        a_pod_that_changes,
        a_node_that_comes,
        a_node_that_changes,
        a_node_that_goes,
        a_budget_that_changes,
        a_claim_that_changes,
        a_service_that_changes,
        a_namespace_that_is_relabelled,
    ],
)
def test_an_event_costs_what_it_concerns(event: Callable[[Surrounded], None]) -> None:
    few, many = counted(event, FEW), counted(event, MANY)

    assert many.total() <= few.total() + SLACK, (few.total(), (many - few).most_common(12))


class Full:
    """A scheduler whose nodes are full of less important pods, and that has preempted before."""

    def __init__(self, nodes: int) -> None:
        self.driver = BenchDriver(Scheduler())
        for one in range(nodes):
            self.driver.scheduler.handle(Changed(build.node(f"node-{one}", cpu=2)), self.driver.now)
            for number in range(2):
                low = build.pod(f"low-{one}-{number}", on=f"node-{one}", cpu=1, priority=one % 3, started=one)
                self.driver.show(low)
        for name in ("first", "second"):
            self.preempt(name)

    def preempt(self, name: str) -> None:
        self.driver.show(build.pod(name, cpu=2, priority=10))
        while self.driver.attempt():
            pass


def test_a_preemption_costs_what_it_changes() -> None:
    """Not what there is of nodes that might be preempted on."""
    few, many = (operations(lambda there=there: there.preempt("third")) for there in map(Full, (FEW, MANY)))  # type: ignore[misc]

    assert many.total() <= few.total() + SLACK, (few.total(), (many - few).most_common(12))
