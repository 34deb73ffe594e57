"""Nodes on which containers fail, and containers that exceed their memory limit."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.node import MAINTENANCE_TIME, Node
from podium.api.pod import Pod, ResourceRequirements
from podium.api.use import PodHealth, pod_health
from podium.controllers.actions import ReportStatus
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.kubelets.pod_run import (
    TROUBLE,
    node_problems,
    read_trouble,
    trouble_after_ns,
)
from podium.controllers.observations import ActionFinished, Changed, Tick
from tests import builders
from tests.controllers.kubelet_rig import SECOND, pod


def node(name: str = "n1", trouble: str = "") -> Node:
    plain = builders.node(name)
    annotations = {TROUBLE: trouble} if trouble else {}
    return replace(plain, metadata=replace(plain.metadata, annotations=annotations))


class Played:
    """A kubelet whose reports become pod statuses; ``log`` are the states, as `seconds pod what`."""

    def __init__(self, **settings: Any) -> None:
        self.kubelet = Kubelet(KubeletSettings(**settings))
        self.now = 0
        self.status: dict[str, dict[str, Any]] = {}
        self.log: list[str] = []

    def show(self, *objects: Node | Pod) -> None:
        for each in objects:
            raw = {"status": self.status.get(each.key, {})} if isinstance(each, Pod) else {}
            self._do(self.kubelet.handle(Changed(each, raw), self.now))
        self._tick()

    def pass_to(self, seconds: int) -> None:
        while (deadline := self.kubelet.deadline().time_ns) is not None and deadline <= seconds * SECOND:
            self.now = max(self.now, deadline)
            self._tick()
        self.now = seconds * SECOND

    def health(self, name: str) -> PodHealth:
        return pod_health({"status": self.status[f"default/{name}"]})

    def _tick(self) -> None:
        while (deadline := self.kubelet.deadline().time_ns) is not None and deadline <= self.now:
            self._do(self.kubelet.handle(Tick(), self.now))

    def _do(self, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, ReportStatus) and action.kind == "Pod":
                status = self.status.setdefault(action.key, {})
                status.update(json.loads(json.dumps(dict(action.fields))))
                report = status.get("reason", "runs")
                for container in status.get("containerStatuses", []):
                    report = next(iter(container["state"]))
                self.log.append(f"{self.now // SECOND} {action.key.partition('/')[2]} {report}")
            self._do(self.kubelet.handle(ActionFinished(action, None), self.now))


def test_on_a_troubled_node_containers_fail_so_long_after_each_start() -> None:
    played = Played()
    played.show(node(trouble="20s"), pod("a"))
    played.pass_to(45)
    assert played.log == ["0 a runs", "20 a running", "40 a waiting"]
    played.pass_to(60)
    assert played.log[3:] == ["50 a running"]
    assert played.health("a").restarts == 2


def test_trouble_may_be_that_of_some_pods_alone() -> None:
    played = Played()
    played.show(node(trouble="20s app=web"), pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}))
    played.pass_to(25)
    assert played.log == ["0 a runs", "0 b runs", "20 a running"]


def test_when_trouble_begins_containers_that_run_fail_so_long_after() -> None:
    played = Played()
    played.show(node(), pod("a"))
    played.pass_to(100)
    played.show(node(trouble="20s"))
    played.pass_to(110)
    # A node that changes otherwise changes nothing.
    played.show(replace(node(trouble="20s"), spec=replace(node().spec, unschedulable=True)))
    played.pass_to(125)
    assert played.log == ["0 a runs", "120 a running"]


def test_when_trouble_is_over_containers_fail_no_more() -> None:
    played = Played()
    played.show(node(trouble="20s"), pod("a"))
    played.pass_to(10)
    played.show(node())
    played.pass_to(1_000)
    assert played.log == ["0 a runs"]


def test_when_trouble_is_over_a_pods_own_failures_go_on() -> None:
    played = Played()
    played.show(node(trouble="20s"), pod("a", annotations={"crash-after": "30s"}))
    played.pass_to(10)
    played.show(node())
    played.pass_to(35)
    assert played.log == ["0 a runs", "30 a running"]


def test_trouble_again_and_again_is_no_news() -> None:
    played = Played()
    played.show(node(trouble="20s"), pod("a"))
    played.pass_to(60)
    deadline = played.kubelet.deadline()
    assert deadline.time_ns is not None
    assert not deadline.keeps_alive


def test_a_pod_that_is_never_started_again_fails_for_good() -> None:
    played = Played()
    played.show(node(trouble="20s"), pod("a", spec={"restart_policy": "Never"}))
    played.pass_to(25)
    assert played.status["default/a"]["phase"] == "Failed"


def test_containers_that_use_more_memory_than_they_may_are_killed_and_started_again() -> None:
    played = Played()
    hungry = pod("a", annotations={"memory-usage": "2Gi"}, limits={"memory": "1Gi"})
    played.show(node(), hungry)
    played.pass_to(5)
    assert played.log == ["0 a runs", "0 a running", "0 a waiting"]
    (container,) = played.status["default/a"]["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert container["lastState"]["terminated"]["exitCode"] == 137
    played.pass_to(12)
    found = played.health("a")
    assert (found.restarts, found.out_of_memory_kills, found.is_crash_looping) == (2, 2, True)


def test_pods_are_killed_as_soon_as_their_usage_exceeds_their_limit() -> None:
    played = Played()
    limits = {"memory": "1Gi"}
    played.show(node(), pod("a", annotations={"memory-usage": "1Gi"}, limits=limits))
    played.pass_to(30)
    assert played.log == ["0 a runs"]
    played.show(pod("a", annotations={"memory-usage": "1025Mi"}, limits=limits))
    assert played.log[1:] == ["30 a running", "30 a waiting"]
    played.show(pod("a", annotations={"memory-usage": "512Mi"}, limits=limits))
    played.pass_to(1_000)
    assert played.log[3:] == ["40 a running"]


def test_the_limit_of_the_whole_pod_holds_as_well() -> None:
    resources = ResourceRequirements(limits={"memory": "1Gi"})
    played = Played()
    played.show(node(), pod("a", annotations={"memory-usage": "2Gi"}, spec={"resources": resources}))
    assert played.health("a").out_of_memory_kills == 1


def test_without_a_memory_limit_no_container_is_killed() -> None:
    played = Played()
    played.show(node(), pod("a", annotations={"memory-usage": "2Gi"}))
    played.pass_to(100)
    assert played.log == ["0 a runs"]


def test_a_restarted_kubelet_finds_waiting_containers() -> None:
    played = Played()
    hungry = pod("a", annotations={"memory-usage": "2Gi"}, limits={"memory": "1Gi"})
    played.show(node(), hungry)
    played.pass_to(5)
    played.kubelet = Kubelet()
    waiting = replace(hungry, status=replace(hungry.status, phase="Running"))
    played.show(node(), waiting)
    assert played.log[3:] == ["5 a running", "5 a running", "5 a waiting"]
    assert played.health("a").restarts == 3


# The annotation


def test_the_shortest_of_several_troubles_is_that_of_a_pod() -> None:
    annotations = {TROUBLE: "1m; 20s app=web ; 5s app in (db,cache)"}
    assert trouble_after_ns(annotations, pod("a")) == 60 * SECOND
    assert trouble_after_ns(annotations, pod("a", labels={"app": "web"})) == 20 * SECOND
    assert trouble_after_ns(annotations, pod("a", labels={"app": "cache"})) == 5 * SECOND
    assert trouble_after_ns({}, pod("a")) is None


@pytest.mark.parametrize("text", ["", "soon", "-5s", "20s ==", "20s;", ";".join(["1s"] * 101), "20s " + "(" * 99])
def test_unreadable_trouble_is_ignored_and_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_trouble(text)
    assert node_problems({TROUBLE: text})[TROUBLE]
    assert trouble_after_ns({TROUBLE: text}, pod("a")) is None


def test_a_kubelet_turns_pods_away_for_its_nodes_sake_so_long_after_they_came() -> None:
    played = Played()
    played.show(node(trouble="reject 20s app=web"), pod("a", labels={"app": "web"}), pod("b", labels={"app": "db"}))
    played.pass_to(19)
    assert played.log == ["0 b runs"]
    played.pass_to(20)
    assert played.log == ["0 b runs", "20 a UnexpectedAdmissionError"]


@pytest.mark.parametrize("text", ["reject", "reject soon", "reject 0s", "reject -1s", "reject 20s =="])
def test_unreadable_trouble_rejects_no_pods(text: str) -> None:
    assert node_problems({TROUBLE: text})[TROUBLE]
    assert trouble_after_ns({TROUBLE: text}, pod("a"), is_rejection=True) is None


def test_crashes_and_rejections_are_distinguished() -> None:
    annotations = {TROUBLE: "20s; reject 5s app=web"}

    assert trouble_after_ns(annotations, pod("a", labels={"app": "web"})) == 20 * SECOND
    assert trouble_after_ns(annotations, pod("a", labels={"app": "web"}), is_rejection=True) == 5 * SECOND
    assert trouble_after_ns(annotations, pod("a"), is_rejection=True) is None


def test_a_node_that_says_nothing_has_no_problem() -> None:
    assert node_problems({}) == {}
    assert node_problems({TROUBLE: "20s", MAINTENANCE_TIME: "2026-01-31T09:30:00Z"}) == {}


@pytest.mark.parametrize("text", ["", "soon", "2026-01-31", "2026-13-01T00:00:00Z", "9" * 100_000])
def test_an_invalid_maintenance_time_is_reported(text: str) -> None:
    assert "time" in node_problems({MAINTENANCE_TIME: text})[MAINTENANCE_TIME]
