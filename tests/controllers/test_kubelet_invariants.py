"""Invariants of kubelets while pods come and go, nodes and writes fail, watches lag, and kubelets restart.

The letters are those of the list of invariants that the project holds to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.pod import Pod
from podium.api.resource_requests import pod_requests
from podium.api.times import parse_time
from podium.controllers.actions import Action, ReportStatus
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.nodes.node_lifecycle import NodeLifecycle
from podium.controllers.nodes.pod_deletion import PodGarbageCollector, TaintEviction
from podium.controllers.observations import Problem
from podium.decide.kubelet import is_critical
from podium.store.errors import StoreError
from tests.controllers.cluster_rig import BROKEN, CONFLICT, CRASH_AFTER, CRASH_BEFORE, LOST, Rig
from tests.fuzzing import usual
from tests.store.objects import SECOND, Raw, node, pod

CPU = 4
PODS = 3
NAMES = [f"p{index}" for index in range(7)]
NODES = ["n1", "n2"]
PROBLEMS = [BROKEN, CONFLICT, LOST, CRASH_BEFORE, CRASH_AFTER]
SECONDS = st.integers(0, 40)
DURATIONS = SECONDS.map("{}s".format)

Change = Callable[["Rig"], None]


def cpu_of(one: Pod) -> int:
    """In milli."""
    return pod_requests(one.spec).get("cpu", 0)


@dataclass
class Watching:
    """Checks every write. ``running`` are the pods that the API shows to run, by uid."""

    rig: Rig
    version: int = 0
    phases: dict[str, str] = field(default_factory=dict)
    running: dict[str, Pod] = field(default_factory=dict)
    started: dict[str, str | None] = field(default_factory=dict)
    deletions: dict[str, int] = field(default_factory=dict)
    decided: list[Action] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)

    def decide(self, action: Action) -> None:
        """Request this as a controller, perhaps again."""
        if isinstance(action, ReportStatus) and action.kind == "Pod" and not any(one is action for one in self.decided):
            self.decided.append(action)
            self.check_turned_away(action)

    def check(self) -> None:
        for event in self.rig.store.events_since(self.version):
            self.version = event.version
            one = event.stored.object
            if isinstance(one, Pod):
                self.check_pod(one, event.stored.raw, is_gone=event.type == "DELETED")
        self.check_nodes()

    def check_pod(self, one: Pod, raw: Raw, *, is_gone: bool) -> None:
        uid, phase = one.metadata.uid, one.status.phase
        before = self.phases.get(uid, "Pending")
        # A10
        assert before not in ("Succeeded", "Failed") or phase == before
        self.phases[uid] = phase
        # A11
        if one.metadata.deletion_timestamp is not None:
            until = parse_time(one.metadata.deletion_timestamp)
            assert until <= self.deletions.get(uid, until)
            self.deletions[uid] = until
        else:
            assert uid not in self.deletions
        # B6: its containers start once, and again only after they have ended.
        if one.status.start_time is not None:
            assert self.started.setdefault(uid, one.status.start_time) == one.status.start_time
        self.check_restarts(uid, raw)
        if phase == "Running" and not is_gone:
            self.running[uid] = one
        else:
            self.running.pop(uid, None)

    def check_restarts(self, uid: str, raw: Raw) -> None:
        for status in raw["status"].get("containerStatuses", ()):
            assert status["restartCount"] >= self.restarts[uid]
            self.restarts[uid] = status["restartCount"]
            assert status["ready"] <= ("running" in status["state"])

    def check_turned_away(self, action: ReportStatus) -> None:
        """B4, B5: there is no room beside the pods that have not ended, as far as the API shows and kubelets see it."""
        stored = self.rig.store.find("Pod", action.key)
        if self.rig.held or stored is None or not isinstance(stored.object, Pod) or stored.uid != action.uid:
            return
        one = stored.object
        others = [
            other.object
            for other in self.rig.store.objects("Pod")
            if isinstance(other.object, Pod)
            and other.object.spec.node_name == one.spec.node_name
            and other.uid != one.metadata.uid
            and not other.object.is_terminal
        ]
        match action.fields.get("reason", ""):
            case "OutOfcpu":
                assert sum(map(cpu_of, others)) + cpu_of(one) > CPU * 1000
            case "OutOfpods":
                assert len(others) >= PODS
            case "UnexpectedAdmissionError":
                # A critical pod for which the removal of others would not be enough.
                assert is_critical(one)
                assert sum(map(cpu_of, others)) + cpu_of(one) > CPU * 1000 or len(others) >= PODS
            case "NodePorts":
                assert any(other.spec.containers[0].ports for other in others)
            case reason:
                assert reason in ("", "TaintToleration", "Preempting")

    def check_nodes(self) -> None:
        for name in NODES:
            pods = [one for one in self.running.values() if one.spec.node_name == name]
            # B1
            assert sum(map(cpu_of, pods)) <= CPU * 1000
            assert len(pods) <= PODS
            # B3
            assert sum(bool(one.spec.containers[0].ports) for one in pods) <= 1


# What happens


@st.composite
def pods_of(draw: st.DrawFn) -> Raw:
    values = {"duration": DURATIONS, "crash-after": DURATIONS, "ready-after": DURATIONS}
    values["termination"] = st.one_of(DURATIONS, st.just("never"))
    annotations = {f"podium.dev/{key}": draw(value) for key, value in values.items() if draw(st.booleans())}
    raw = pod(
        draw(st.sampled_from(NAMES)),
        cpu=draw(st.integers(0, 3)),
        node=draw(st.sampled_from(NODES)),
        priority=draw(st.sampled_from([0, 10, 2_000_000_000])),
        annotations=annotations,
        spec={
            "terminationGracePeriodSeconds": draw(st.sampled_from([0, 10, 30])),
            "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        },
    )
    if draw(st.booleans()):
        raw["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return raw


def there(name: str) -> Raw:
    return node(name, cpu=CPU, pods=PODS)


def changes() -> st.SearchStrategy[Change]:
    """Return a client's changes, without the impossible ones."""
    names, nodes = st.sampled_from(NAMES), st.sampled_from(NODES)
    return st.one_of(
        pods_of().map(lambda raw: lambda rig: rig.apply(raw)),
        st.builds(lambda name, grace: lambda rig: rig.delete("Pod", name, grace=grace), names, st.sampled_from([0, 5])),
        names.map(lambda name: lambda rig: rig.delete("Pod", name)),
        nodes.map(lambda name: lambda rig: None if name in rig.down else rig.fail(name)),
        nodes.map(lambda name: lambda rig: rig.recover(name) if name in rig.down else None),
        nodes.map(lambda name: lambda rig: rig.delete("Node", name)),
        nodes.map(lambda name: lambda rig: rig.apply(there(name))),
        st.just(lambda rig: rig.restart()),
        st.sampled_from(["Pod", "Node"]).map(lambda kind: lambda rig: rig.hold(kind)),
        st.just(lambda rig: rig.release()),
        SECONDS.map(lambda seconds: lambda rig: rig.pass_to(rig.seconds + seconds)),
    )


STORIES = st.lists(changes(), min_size=5, max_size=25)
FAULTS = st.lists(st.sampled_from([None, None, None, *PROBLEMS]), max_size=30)


def play(rig: Rig, story: list[Change], faults: list[Problem | None]) -> None:
    """Let the story happen, with the faults as actions come up, and then let all be well for a long time."""
    watching = Watching(rig)
    coming = list(faults)

    def fault(action: Action) -> Problem | None:
        watching.decide(action)
        return coming.pop(0) if coming else None

    rig.fault = fault
    rig.after_each = watching.check
    rig.apply(*(there(name) for name in NODES))
    for change in story:
        # The client names a missing object, or creates an existing one.
        with suppress(StoreError):
            change(rig)
        watching.check()
    coming.clear()
    rig.release()
    for name in NODES:
        if rig.store.find("Node", name) is None:
            rig.apply(there(name))
        if name in rig.down:
            rig.recover(name)
    rig.pass_to(rig.seconds + 900)
    watching.check()


def is_stuck(raw: Raw) -> bool:
    annotations: Raw = raw["metadata"].get("annotations", {})
    return annotations.get("podium.dev/termination") == "never"


def check_rest(rig: Rig) -> None:
    """L5: deleted pods are gone, and all others run or have ended, but for nodes with containers that nothing ends."""
    pods = [stored.raw for stored in rig.store.objects("Pod")]
    stuck = {raw["spec"]["nodeName"] for raw in pods if is_stuck(raw)}
    for raw in pods:
        if raw["spec"]["nodeName"] not in stuck:
            assert "deletionTimestamp" not in raw["metadata"]
            assert raw["status"]["phase"] != "Pending"


@settings(max_examples=usual(100))
@given(story=STORIES, faults=FAULTS, delay=st.integers(0, 3), waits=st.booleans())
def test_nodes_are_never_overfull_and_pods_end_once_under_kubelet_faults(
    story: list[Change], faults: list[Problem | None], delay: int, waits: bool
) -> None:
    kubelets = KubeletSettings(start_delay_ns=delay * SECOND, waits_for_victims=waits)
    rig = Rig(lambda: Kubelet(kubelets))

    play(rig, story, faults)

    check_rest(rig)
    assert not all(place.controller.deadline().keeps_alive for place in rig.places)


@settings(max_examples=usual(60))
@given(story=STORIES, faults=FAULTS)
def test_with_the_controllers_around_them_all_comes_to_rest(story: list[Change], faults: list[Problem | None]) -> None:
    rig = Rig(Kubelet, NodeLifecycle, TaintEviction, PodGarbageCollector)

    play(rig, story, faults)

    check_rest(rig)
    assert not all(place.controller.deadline().keeps_alive for place in rig.places)
    for name in NODES:
        assert rig.taints(name) == []
        assert rig.node_condition(name, "Ready")["status"] in ("", "True")
