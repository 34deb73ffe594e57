"""The cost of an event does not depend on unrelated objects: four times as many cost the same operations.

Arrays over nodes, classes and pods are single operations here, however long they are: they are what scheduling is made
of. What is counted is everything that is done entry by entry.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.input.codec import load_text
from podium.api.input.documents import Document
from podium.api.meta import Kubernetes, ObjectMeta
from podium.api.pod import Pod
from podium.api.storage import PersistentVolumeClaim
from podium.apirequests.observations import observation_of
from podium.app.bench.measurement import operations
from podium.app.bench.scheduling import BenchDriver
from podium.cluster.cluster import Cluster
from podium.controllers.controller import Controller, is_watched_kind
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.endpoints import ServiceEndpoints
from podium.controllers.nodes.node_lifecycle import NodeLifecycle
from podium.controllers.observations import Changed, Deleted, Tick
from podium.controllers.scheduling.scheduler import Scheduler
from podium.controllers.workloads.daemon_sets import DaemonSets, target_node
from podium.controllers.workloads.replica_sets import ReplicaSets
from podium.controlplane.population import create_objects
from podium.store.store import Store
from tests import builders as build
from tests.api.dumps import dump, dumped_pod
from tests.builders import HOSTNAME, ZONE
from tests.controllers import cluster_rig, store_rig, workload_rig
from tests.pod_statuses import set_pod_status
from tests.sim import objects as sim_objects
from tests.store import objects

FEW, MANY = 40, 160
# Calls that come and go with the sizes of dictionaries and buffers.
SLACK = 40


class Surrounded:
    """A scheduler of a cluster with so many nodes, and workloads in so many namespaces, all different."""

    def __init__(self, number: int) -> None:
        self.driver = BenchDriver(Scheduler())
        for one in range(number):
            name = f"w{one}"
            self.deliver(build.node(f"node-{one}", zone=f"z{one % 3}"), build.namespace(name, team=name))
            self.deliver(
                build.replica_set(name, f"app={name}", namespace=name), build.service(name, namespace=name, app=name)
            )
            self.deliver(build.budget(name, f"app={name}", 1, namespace=name), claim(name))
            self.driver.show(workload_pod(name))
        self.settle()

    def deliver(self, *objects: Kubernetes) -> None:
        for one in objects:
            self.driver.scheduler.handle(Changed(one), self.driver.now)

    def lose(self, one: Kubernetes) -> None:
        self.driver.scheduler.handle(Deleted(one), self.driver.now)

    def settle(self) -> None:
        while self.driver.attempt():
            pass


def workload_pod(name: str, suffix: str = "", **labels: str) -> Pod:
    """Return a pod of a workload that keeps its pods apart, and near what it belongs to."""
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
    there.deliver(build.node("new", zone="z9"))


def a_node_that_changes(there: Surrounded) -> None:
    there.deliver(build.node("node-1", zone="z9", labels={"more": "labels"}, taints=["one=more:NoSchedule"]))


def a_node_that_goes(there: Surrounded) -> None:
    there.lose(build.node("node-1"))


def a_budget_that_changes(there: Surrounded) -> None:
    there.deliver(build.budget("w1", "app=w1", 0, namespace="w1"))


def a_claim_that_changes(there: Surrounded) -> None:
    there.deliver(replace(claim("w1"), metadata=replace(claim("w1").metadata, labels={"a": "b"})))


def a_service_that_changes(there: Surrounded) -> None:
    there.deliver(build.service("w1", namespace="w1", app="else"))


def a_namespace_that_is_relabelled(there: Surrounded) -> None:
    there.deliver(build.namespace("w1", team="else"))


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
    # First uses fill caches.
    event(Surrounded(FEW))

    few, many = (operations(lambda there=there: event(there)) for there in map(Surrounded, (FEW, MANY)))  # type: ignore[misc]

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


class Waiting:
    """A scheduler whose nodes are full, and two pods that fit on none: one of them also has to be spread over zones."""

    def __init__(self, nodes: int, **more: Any) -> None:
        self.driver = BenchDriver(Scheduler())
        for one in range(nodes):
            self.put_node(one)
            self.driver.show(build.pod(f"low-{one}", on=f"node-{one}", cpu=2, priority=one % 3))
        spread = [build.spread_over(ZONE, "app=web")]
        self.driver.show(build.pod("plain", cpu=3, priority=10))
        self.driver.show(build.pod("spread", cpu=3, priority=10, labels={"app": "web"}, spread=spread, **more))
        self.attempt_all()
        self.lose_node(0)

    def put_node(self, one: int, *taints: str) -> None:
        self.driver.scheduler.handle(
            Changed(build.node(f"node-{one}", cpu=2, zone=f"z{one % 3}", taints=taints)), self.driver.now
        )

    def lose_node(self, one: int, *more: str) -> None:
        """Taint a node, and attempt all pods that wait."""
        self.put_node(one, "gone=yes:NoExecute", *more)
        self.driver.scheduler.queue.activate(list(self.driver.scheduler.queue.uids), self.driver.now)
        self.attempt_all()

    def attempt_all(self) -> None:
        while self.driver.attempt():
            pass


def test_a_failed_attempt_costs_the_rows_that_have_changed() -> None:
    """Not all nodes, and no preemption on each of them."""
    few, many = (operations(lambda there=there: there.lose_node(1)) for there in map(Waiting, (FEW, MANY)))  # type: ignore[misc]

    assert many.total() <= few.total() + SLACK, (few.total(), (many - few).most_common(12))
    assert not few["Trials._try"]
    assert few["DerivedFailures.derive"]


def test_no_row_is_examined_after_a_further_taint_of_a_node_that_keeps_pods_off() -> None:
    there = Waiting(FEW)

    found = operations(lambda: there.lose_node(0, "down=yes:NoSchedule"))

    assert found["DerivedFailures.derive"]
    assert not found["DerivedFailures._update"]


def test_a_taint_does_not_end_what_labels_say_about_domains() -> None:
    there = Waiting(FEW, needs_nodes=[build.node_term(f"{ZONE} in (z1)")])

    found = operations(lambda: there.lose_node(1))

    assert found["DerivedFailures.derive"]
    assert not found["_domains"]


def reaction(rig: Any, controller: Controller, change: Callable[[], object]) -> Counter[str]:
    """Return the operations that it takes a controller to see what a change writes, and to act on that."""
    version = rig.store.version
    change()
    events = [
        event for event in rig.store.events_since(version) if is_watched_kind(event.stored.kind, controller.watches)
    ]
    seen = [*map(observation_of, events), Tick()]
    return operations(lambda: [controller.handle(one, rig.now) for one in seen])


def daemons(nodes: int, *, is_filled_in: bool = False) -> Counter[str]:
    """Make a DaemonSet's pod unready, among as many pods as there are other nodes.

    With ``is_filled_in`` the revision has more fields than the template, so that the newest pod determines its name.
    """
    rig = workload_rig.Rig(DaemonSets, runs=False)
    daemon_set = workload_rig.workload("DaemonSet", "log", {"template": workload_rig.template()})
    rig.apply(*(objects.node(f"n{number}") for number in range(nodes)), daemon_set)
    for name, pod in rig.pods().items():
        rig.run(name, node=target_node(pod))
    if is_filled_in:
        (revision,) = rig.names("ControllerRevision")
        rig.patch("ControllerRevision", revision, {"data": {"spec": {"template": {"spec": {"more": "x"}}}}})
    (first,) = (name for name, pod in rig.pods().items() if pod.spec.node_name == "n0")
    return reaction(
        rig,
        rig.machines[0],
        lambda: set_pod_status(rig.store, f"default/{first}", {}, [{"type": "Ready", "status": "False"}], now=rig.now),
    )


def filled_in_daemons(nodes: int) -> Counter[str]:
    return daemons(nodes, is_filled_in=True)


def failed_nodes(nodes: int) -> Counter[str]:
    """One of the nodes of a zone is given up, while the others wait for that."""
    rig = cluster_rig.Rig(NodeLifecycle)
    names = [f"n{number}" for number in range(nodes)]
    rig.apply(objects.node("well"), *(zoned(name) for name in names))
    rig.fail(*names)
    rig.pass_to(60)
    rig.now += 10 * 10**9
    return reaction(rig, rig.places[0].controller, lambda: None)


def zoned(name: str) -> dict[str, Any]:
    raw = objects.node(name)
    return {**raw, "metadata": {**raw["metadata"], "labels": {ZONE: "z"}}}


def budgets(number: int) -> Counter[str]:
    """Make a pod unready, among other pods of its budget and other budgets."""
    others = [
        sim_objects.budget(f"other-{one}", minAvailable=0, selector={"matchLabels": {"app": f"{one}"}})
        for one in range(number)
    ]
    pods = [store_rig.pod(f"{one}") for one in range(number)]
    rig = store_rig.Rig(DisruptionController, sim_objects.budget("pdb", minAvailable=0), *others, *pods)
    rig.settle()
    return reaction(rig, rig.controller, lambda: rig.put({**store_rig.pod("0"), "status": store_rig.UNREADY}))


def endpoints(number: int) -> Counter[str]:
    """Make a pod of a Service unready, among other Services and their pods."""
    services = [a_service(f"{one}") for one in range(number)]
    pods = [an_endpoint(f"{one}") for one in range(number)]
    rig = store_rig.Rig(ServiceEndpoints, *services, *pods)
    rig.wait(1)
    return reaction(rig, rig.controller, lambda: rig.put(an_endpoint("0", ready=False)))


def a_service(name: str) -> Any:
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def an_endpoint(name: str, *, ready: bool = True) -> Any:
    raw = store_rig.pod(name, ready=ready, labels={"app": name})
    return {**raw, "status": {**raw["status"], "podIP": "10.0.0.1"}}


def orphans(number: int) -> Counter[str]:
    """Create a pod without a controller that a workload selects, among other workloads and such pods."""

    def labelled(raw: Any, app: int) -> Any:
        return {**raw, "metadata": {**raw["metadata"], "labels": {"app": f"{app}"}, "ownerReferences": []}}

    rig = workload_rig.Rig(partial(ReplicaSets, adopts=True), runs=False)
    sets = [
        workload_rig.workload("ReplicaSet", f"w{one}", {"replicas": 0, "selector": {"matchLabels": {"app": f"{one}"}}})
        for one in range(number)
    ]
    for one, raw in enumerate(sets):
        look = workload_rig.template()
        raw["spec"]["template"] = {**look, "metadata": {"labels": {"app": f"{one}"}}}
    pods = [labelled(workload_rig.owned_by(sets[0], f"p{one}"), one + 10_000) for one in range(number)]
    rig.apply(*sets, *pods)
    new = labelled(workload_rig.owned_by(sets[0], "new"), 0)
    return reaction(rig, rig.machines[0], lambda: rig.store.create(new, now=rig.now))


@pytest.mark.parametrize("cost", [daemons, filled_in_daemons, failed_nodes, budgets, endpoints, orphans])
def test_a_change_costs_a_controller_what_it_concerns(cost: Callable[[int], Counter[str]]) -> None:
    few, many = cost(FEW), cost(MANY)

    assert few.total() > SLACK
    assert many.total() <= few.total() + SLACK, (few.total(), (many - few).most_common(12))


def dumped_pods(number: int) -> list[Document]:
    """Return the pods of one owner, as they are read from a dump."""
    pods = [dumped_pods_of_owner(each % 8) for each in range(number)]
    for place, pod in enumerate(pods):
        pod["metadata"] |= {"name": f"web-5d4f-{place:05}", "uid": f"u-{place:05}"}
    return load_text(json.dumps(dump(*pods)), "dump")


def dumped_pods_of_owner(number: int) -> dict[str, Any]:
    pod = dumped_pod(number, schedulerName="default-scheduler", priority=0, terminationGracePeriodSeconds=30)
    # kubectl does not show them.
    del pod["metadata"]["managedFields"]
    return pod


def creation(number: int) -> int:
    documents, store = dumped_pods(number), Store(seed=0)
    return operations(lambda: create_objects(store, documents, 0)).total()


def reading_of_classes(number: int) -> int:
    pods = [document.object for document in dumped_pods(number) if isinstance(document.object, Pod)]
    cluster = Cluster()
    return operations(lambda: [cluster.read(pod) for pod in pods]).total()


def cost_of_one_more(cost: Callable[[int], int]) -> float:
    return (cost(MANY) - cost(FEW)) / (MANY - FEW)


@pytest.mark.parametrize(("cost", "at_most"), [(creation, 350), (reading_of_classes, 170)], ids=["creation", "class"])
def test_one_more_similar_pod_of_a_dump_costs_few_operations(cost: Callable[[int], int], at_most: int) -> None:
    assert cost_of_one_more(cost) < at_most
