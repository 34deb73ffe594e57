"""Invariants of kubelets in random runs in which pods are bound without checks.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.times import parse_time
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.kubelet import is_critical
from podium.sim.simulation import Simulation
from podium.store.watch_log import WatchEvent
from tests.fuzzing import usual
from tests.sim.objects import scenario
from tests.sim.played import simulation_of
from tests.store.objects import SECOND, Raw, node, pod

NAMES = [f"p{index}" for index in range(8)]
REFUSED = ("OutOfcpu", "OutOfpods", "NodePorts", "NodeAffinity", "TaintToleration", "Evicted")
ENDED = ("Evicted", "Preempting")
SECONDS = st.integers(0, 40).map("{}s".format)
MEMORY = st.sampled_from(["0", "1Gi", "2Gi", "3Gi"])
CYCLE_NS = 10 * SECOND


@st.composite
def bound_pods(draw: st.DrawFn, name: str) -> Raw:
    annotations = {
        f"podium.dev/{key}": draw(values)
        for key, values in {
            "duration": SECONDS,
            "termination": SECONDS,
            "ready-after": SECONDS,
            "memory-usage": MEMORY,
        }.items()
        if draw(st.booleans())
    }
    raw = pod(
        name,
        cpu=draw(st.integers(0, 3)),
        priority=draw(st.sampled_from([0, 10, 2_000_000_000])),
        node=draw(st.sampled_from(["n1", "n2", "n3"])),
        annotations=annotations,
        spec={"terminationGracePeriodSeconds": draw(st.sampled_from([0, 10, 30]))},
        status={"phase": "Pending"},
    )
    if draw(st.booleans()):
        raw["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return raw


@st.composite
def stories(draw: st.DrawFn) -> list[Raw]:
    found: list[Raw] = [{"at": draw(SECONDS), "apply": [draw(bound_pods(name))]} for name in NAMES]
    for _ in range(draw(st.integers(0, 10))):
        target = {"name": draw(st.sampled_from(NAMES))}
        changes: list[Raw] = [
            {"delete": {"kind": "Pod", **target}},
            {"finish": target},
            {"usage": {**target, "memory": draw(MEMORY)}},
            {"apply": [node_of("n3", cpu=3)]},
            {"cordon": {"name": "n1"}},
        ]
        found.append({"at": f"{draw(st.integers(41, 90))}s", **draw(st.sampled_from(changes))})
    return found


def node_of(name: str, *, cpu: int) -> Raw:
    raw = node(name, cpu=cpu, pods=3)
    return {**raw, "status": {"allocatable": {**raw["status"]["allocatable"], "memory": "4Gi"}}}


@dataclass
class Watching:
    """Checks every write. ``holding`` are the pods that have started and not ended, by uid."""

    simulation: Simulation
    version: int = 0
    holding: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    evicted_ns: dict[str, int] = field(default_factory=dict)

    def check(self) -> None:
        for event in self.simulation.store.events_since(self.version):
            self.version = event.version
            if isinstance(event.stored.object, Node):
                self.nodes[event.stored.key] = event.stored.object
            elif isinstance(event.stored.object, Pod):
                self.check_pod(event, event.stored.object)
        self.check_nodes()

    def check_pod(self, event: WatchEvent, one: Pod) -> None:
        uid, old = one.metadata.uid, event.previous.object if event.previous else None
        before = old.status.phase if isinstance(old, Pod) else ""
        if one.status.phase == "Running" and before != "Running":
            # B6: it starts once, on its own node.
            self.started[uid] += 1
            assert self.started[uid] == 1
            self.holding[uid] = one
        if event.type == "DELETED" or one.is_terminal:
            self.holding.pop(uid, None)
        if one.status.phase == "Failed" and before != "Failed":
            self.check_failed(event, one)
        if event.type == "DELETED" and not one.is_terminal and self.started[uid]:
            # B7
            assert isinstance(old, Pod)
            if old.metadata.deletion_timestamp is None:
                assert one.spec.termination_grace_period_seconds == 0
                return
            ends_ns = parse_time(old.metadata.deletion_timestamp)
            assert self.simulation.now <= ends_ns
            if "podium.dev/termination" not in one.metadata.annotations:
                assert self.simulation.now == ends_ns

    def check_failed(self, event: WatchEvent, one: Pod) -> None:
        target = one.status.condition("DisruptionTarget")
        if target is not None and target.reason == "DeletionByPodGC":
            # Its node is gone, and no kubelet reports it.
            return
        reason = event.stored.raw["status"]["reason"]
        if not self.started[one.metadata.uid]:
            # B4
            assert reason in REFUSED or reason == ("UnexpectedAdmissionError" if is_critical(one) else "Preempting")
            return
        # B8
        assert reason in ENDED
        assert target is not None
        assert target.reason == "TerminationByKubelet"
        assert not is_critical(one)
        if reason == "Evicted":
            last_ns = self.evicted_ns.get(one.spec.node_name)
            assert last_ns is None or self.simulation.now - last_ns >= CYCLE_NS
            self.evicted_ns[one.spec.node_name] = self.simulation.now

    def check_nodes(self) -> None:
        for name, there in self.nodes.items():
            pods = [one for one in self.holding.values() if one.spec.node_name == name]
            offered = node_allocatable(there.status)
            # B1, B5: whatever the API shows as ended has left its room.
            held: Counter[str] = sum((Counter(pod_requests(one.spec)) for one in pods), Counter())
            assert all(amount <= offered.get(resource, 0) for resource, amount in held.items())
            assert len(pods) <= offered["pods"]
            # B3
            assert sum(bool(one.spec.containers[0].ports) for one in pods) <= 1


@settings(max_examples=usual(120))
@given(story=stories(), start_delay=st.integers(0, 5), waits=st.booleans())
def test_nodes_are_never_overfull_and_pods_end_as_they_should(story: list[Raw], start_delay: int, waits: bool) -> None:
    nodes = [node_of("n1", cpu=4), node_of("n2", cpu=3)]
    played = scenario(*story, until="20m", kubelets={"waitForVictims": waits})
    simulation = simulation_of(*nodes, played, schedulers=[Scheduler()], start_delay_ns=start_delay * SECOND)
    watching = Watching(simulation)
    watching.check()
    while simulation.step():
        watching.check()

    # At rest nothing is short of memory, but for what only critical pods use.
    for stored in simulation.store.objects("Node"):
        pods = [one for one in watching.holding.values() if one.spec.node_name == stored.key]
        used = [one.metadata.annotations.get("podium.dev/memory-usage", "0") for one in pods if not is_critical(one)]
        assert sum(int(text.removesuffix("Gi")) for text in used) <= 4
