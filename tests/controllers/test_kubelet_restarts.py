"""A restart of the kubelet process does not affect running pods (faults K2 and K4)."""

import random
from contextlib import suppress

import pytest

from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.kubelets import node_kubelet
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.observations import Problem
from podium.store.errors import StoreError
from tests.controllers.cluster_rig import BROKEN, CRASH_AFTER, CRASH_BEFORE, LOST, Rig
from tests.store.objects import SECOND, Raw, node, pod

CRITICAL = 2_000_000_000


def rig_of(*objects: Raw, there: Raw | None = None, **settings: bool | int) -> Rig:
    rig = Rig(lambda: Kubelet(KubeletSettings(**settings)))  # type: ignore[arg-type]
    rig.apply(there or node("n1", cpu=4), *objects)
    return rig


def lasting(name: str, duration: str, cpu: int = 1) -> Raw:
    return pod(name, node="n1", cpu=cpu, annotations={"podium.dev/duration": duration})


def small(memory: str) -> Raw:
    raw = node("n1")
    return {**raw, "status": {"allocatable": {**raw["status"]["allocatable"], "memory": memory}}}


def using(name: str, memory: str, **more: int) -> Raw:
    return pod(name, node="n1", annotations={"podium.dev/memory-usage": memory}, **more)


def test_pods_run_on_from_when_they_started() -> None:
    rig = rig_of(lasting("a", "20s"))
    rig.pass_to(15)

    rig.restart()
    rig.pass_to(30)

    assert rig.log == ["0 Running ready a", "20 Succeeded a"]


def test_a_pod_becomes_ready_when_it_would_have() -> None:
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/ready-after": "20s"}))
    rig.pass_to(15)

    rig.restart()
    rig.pass_to(30)

    assert rig.log == ["0 Running a", "20 Running ready a"]


def test_a_pod_that_ended_during_downtime_has_ended() -> None:
    rig = rig_of(lasting("a", "20s", cpu=4))
    rig.fault = lambda action: BROKEN
    rig.pass_to(20.5)
    rig.store.create(pod("b", node="n1", cpu=4), now=rig.now)

    rig.fault = lambda action: None
    rig.restart()

    # Its room is free when the next pod is looked at.
    assert rig.log == ["0 Running ready a", "20.5 Succeeded a", "20.5 Running ready b"]


@pytest.mark.failure(60)
def test_running_pods_keep_their_places_in_every_observation_order() -> None:
    rig = rig_of(pod("z", node="n1", cpu=3), lasting("ended", "0s", cpu=1))
    with rig.holding("Pod"):
        rig.apply(pod("a", node="n1", cpu=3), pod("y", node="n1", cpu=1))
        rig.restart()

    assert rig.log[-2:] == ["0 OutOfcpu a", "0 Running ready y"]
    assert rig.pods() == {"a": "Failed", "ended": "Succeeded", "y": "Running", "z": "Running"}


def test_a_pod_that_waits_for_its_victims_waits_again() -> None:
    rig = rig_of(pod("victim", node="n1", cpu=4), waits_for_victims=True)
    rig.delete("Pod", "victim", grace=30)
    rig.apply(pod("preemptor", node="n1", cpu=3))
    rig.pass_to(10)

    rig.restart()
    rig.pass_to(60)

    assert rig.log == ["0 Running ready victim", "30 gone victim", "30 Running ready preemptor"]


def test_a_critical_pod_has_others_end_for_it_again() -> None:
    rig = rig_of(pod("a", node="n1", cpu=4, spec={"terminationGracePeriodSeconds": 20}))
    rig.apply(pod("critical", node="n1", cpu=4, priority=CRITICAL))
    rig.pass_to(15)

    rig.restart()
    rig.pass_to(60)

    assert rig.log == ["0 Running ready a", "35 Preempting a", "35 Running ready critical"]


def test_a_start_that_was_planned_is_planned_again() -> None:
    rig = rig_of(pod("a", node="n1"), start_delay_ns=10 * SECOND)
    rig.pass_to(6)

    rig.restart()
    rig.pass_to(60)

    assert rig.log == ["16 Running ready a"]


@pytest.mark.parametrize("annotation", [{}, {"podium.dev/termination": "25s"}])
def test_b7_grace_periods_go_on(annotation: dict[str, str]) -> None:
    rig = rig_of(pod("a", node="n1", annotations=annotation))
    rig.pass_to(10)
    rig.delete("Pod", "a", grace=30)
    rig.pass_to(20)

    rig.restart()
    rig.pass_to(100)

    assert rig.log[-1] == ("35 gone a" if annotation else "40 gone a")


@pytest.mark.failure(65)
def test_a_shorter_grace_period_given_meanwhile_counts() -> None:
    rig = rig_of(pod("a", node="n1"))
    rig.delete("Pod", "a", grace=60)
    rig.pass_to(10)

    rig.restart()
    rig.delete("Pod", "a", grace=15)
    rig.pass_to(100)

    assert rig.log[-1] == "15 gone a"


def test_b8_pressure_lasts_as_long_as_the_node_s_condition_says_and_for_the_transition_period() -> None:
    rig = rig_of(using("a", "2Gi"), there=small("1Gi"), pressure_transition_ns=60 * SECOND)
    rig.pass_to(1)
    assert rig.log[1:] == ["0 MemoryPressure True n1", "1 Evicted a"]
    rig.pass_to(30)

    rig.restart()
    rig.apply(pod("b", node="n1", cpu=0))
    rig.pass_to(500)

    assert rig.log[3:] == ["30 Evicted b", "90 MemoryPressure False n1"]


def test_b8_at_most_one_pod_is_evicted_per_cycle() -> None:
    rig = rig_of(*(using(name, "2Gi") for name in "abc"), there=small("3Gi"))
    rig.pass_to(2)
    assert rig.log[-1] == "1 Evicted a"

    rig.restart()
    rig.pass_to(100)

    assert [one for one in rig.log if "Evicted" in one] == ["1 Evicted a", "13 Evicted b"]


def test_the_end_of_a_deletion_is_reported_once_where_a_finalizer_holds_the_pod() -> None:
    held = lasting("a", "5s")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    rig = rig_of(held)
    rig.pass_to(5)

    rig.delete("Pod", "a")
    rig.patch("Pod", "a", {"metadata": {"labels": {"new": "yes"}}})
    rig.pass_to(100)

    assert len([one for one in rig.actions if isinstance(one, DeleteObject)]) == 1


# Containers that cannot be killed


def stuck() -> Raw:
    return pod("a", node="n1", cpu=4, annotations={"podium.dev/termination": "never"})


def test_a_pod_that_cannot_be_killed_holds_its_place_until_it_is_deleted_by_force() -> None:
    rig = rig_of(stuck())
    rig.delete("Pod", "a", grace=30)
    rig.pass_to(1000)
    rig.restart()
    rig.apply(pod("b", node="n1"))
    assert rig.log[1:] == ["1000 OutOfcpu b"]

    rig.delete("Pod", "a", grace=0)
    rig.apply(pod("c", node="n1"))

    assert rig.log[2:] == ["1000 Running ready c"]


def test_a_finalizer_does_not_keep_containers_of_a_pod_that_is_deleted_by_force() -> None:
    held = stuck()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    rig = rig_of(held)
    rig.delete("Pod", "a", grace=30)
    rig.pass_to(100)

    rig.delete("Pod", "a", grace=0)
    rig.apply(pod("b", node="n1"))

    assert rig.log[-1] == "100 Running ready b"


def test_a_pod_that_cannot_be_killed_may_exit_by_itself() -> None:
    exiting = stuck()
    exiting["metadata"]["annotations"]["podium.dev/duration"] = "50s"
    rig = rig_of(exiting)

    rig.delete("Pod", "a", grace=30)
    rig.pass_to(100)

    assert rig.log[1:] == ["50 Succeeded a", "50 gone a"]


def test_b8_a_node_short_of_memory_goes_on_to_the_next_pod_where_one_cannot_be_killed() -> None:
    greedy = using("a", "2Gi")
    greedy["metadata"]["annotations"]["podium.dev/termination"] = "never"
    rig = rig_of(greedy, using("b", "1Gi"), there=small("2Gi"))

    rig.pass_to(100)

    assert [one for one in rig.log if "Evicted" in one] == ["11 Evicted b"]


# Crashes in the middle


@pytest.mark.parametrize("kind", [ReportStatus, DeleteObject])
@pytest.mark.parametrize("problem", [CRASH_BEFORE, CRASH_AFTER, LOST, BROKEN])
@pytest.mark.parametrize("number", [0, 1])
def test_a_kubelet_reaches_the_same_end_after_a_crash_at_any_point(
    kind: type[Action], problem: Problem, number: int
) -> None:
    rig = rig_of(there=small("3Gi"), pressure_transition_ns=20 * SECOND)
    asked = rig.fail_once(kind, problem, number)

    rig.apply(using("a", "2Gi"), using("b", "2Gi", priority=5), using("c", "1Gi", priority=9), lasting("d", "7s"))
    rig.pass_to(5)
    rig.delete("Pod", "c", grace=10)
    rig.apply(using("e", "0"))
    rig.delete("Pod", "e", grace=3)
    rig.pass_to(100)

    assert len(asked) > number
    assert rig.pods() == {"a": "Failed", "b": "Running", "d": "Succeeded"}
    assert rig.node_condition("n1", "MemoryPressure")["status"] == "False"
    assert rig.is_at_rest()


class Fleet:
    """Random changes of two nodes and their pods, with restarts of the kubelet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rig = Rig(Kubelet)
        self.rig.apply(node("n1", cpu=6), node("n2", cpu=6))

    def run(self) -> list[str]:
        """Return what the kubelet did, and the pods at the end."""
        deeds = [self.arrive, self.arrive, self.go, self.change, self.restart, self.restart, self.change_node]
        for _ in range(60):
            with suppress(StoreError):
                self.random.choice(deeds)()
            self.rig.pass_to(self.rig.seconds + self.random.choice((0, 1, 15)))
        return [*self.rig.log, *(f"{stored.raw}" for stored in self.rig.store.objects("Pod"))]

    def arrive(self) -> None:
        annotations = {} if self.random.random() < 0.9 else {"podium.dev/memory-usage": "1Gi"}
        spec: Raw = {} if self.random.random() < 0.9 else {"activeDeadlineSeconds": 20}
        where = self.random.choice(("n1", "n2"))
        name, cpu = f"p{self.random.randrange(6)}", self.random.randrange(3)
        self.rig.apply(pod(name, node=where, cpu=cpu, annotations=annotations, spec=spec))

    def go(self) -> None:
        self.rig.delete("Pod", f"p{self.random.randrange(6)}", grace=self.random.choice((0, 5)))

    def change(self) -> None:
        name = f"p{self.random.randrange(6)}"
        if self.random.random() < 0.95:
            ready = [{"type": "Ready", "status": "False", "reason": self.random.choice(("", "NodeNotReady"))}]
            self.rig.store.patch("Pod", f"default/{name}", {"status": {"conditions": ready}}, "merge", "status")
        else:
            self.rig.patch("Pod", name, {"metadata": {"annotations": QUIRK}})
        if self.random.random() < 0.5:
            self.rig.restart()

    def restart(self) -> None:
        self.rig.restart()

    def change_node(self) -> None:
        name, trouble = self.random.choice(("n1", "n2")), self.random.choice(("5s", "5s app=web"))
        if self.random.random() < 0.5:
            self.rig.restart()
            self.rig.fail(name)
            self.rig.recover(name)
        else:
            self.rig.patch("Node", name, {"metadata": {"annotations": {"podium.dev/trouble": trouble}}})
            self.rig.pass_to(self.rig.seconds + self.random.choice((2, 8)))
            self.rig.patch("Node", name, {"metadata": {"annotations": {"podium.dev/trouble": None}}})


QUIRK = {"podium.dev/crash-after": "10s"}


@pytest.mark.parametrize("seed", range(10))
def test_pods_that_run_undisturbed_fare_as_if_a_new_kubelet_took_in_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Fleet(seed).run()

    monkeypatch.setattr(node_kubelet, "_runs_undisturbed", lambda _: False)

    assert found == Fleet(seed).run()


def test_a_new_kubelet_takes_in_no_pod_before_anything_concerns_its_node() -> None:
    rig = rig_of(pod("a", node="n1"), pod("b", node="n2"))
    rig.apply(node("n2", cpu=4))
    rig.restart()
    nodes = rig.places[0].controller._nodes  # type: ignore[attr-defined]
    assert not any(each._pods.runs for each in nodes.values())

    rig.delete("Pod", "a", grace=5)

    assert [list(each._pods.runs) != [] for each in nodes.values()] == [True, False]


def test_a_new_kubelet_continues_the_count_of_restarts() -> None:
    rig = rig_of(pod("a", node="n1"))
    for restarts in (1, 2):
        rig.patch("Node", "n1", {"metadata": {"annotations": {"podium.dev/trouble": "5s"}}})
        rig.pass_to(rig.seconds + 6)
        rig.patch("Node", "n1", {"metadata": {"annotations": {"podium.dev/trouble": None}}})
        rig.pass_to(rig.seconds + 60)
        rig.restart()

        assert rig.pod("a")["status"]["containerStatuses"][0]["restartCount"] == restarts
