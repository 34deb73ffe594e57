"""Failed nodes: the fate of their pods with and without the controllers that handle them."""

from collections.abc import Callable

import pytest

from podium.api.pod import Pod
from podium.controllers.actions import DeleteObject, ReportStatus
from podium.controllers.controller import Controller
from podium.controllers.kubelets.host import KubeletSettings
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.nodes.node_lifecycle import NodeLifecycle
from podium.controllers.nodes.pod_deletion import PodGarbageCollector, TaintEviction
from podium.controllers.observations import ContainersExited, NodeStarted
from tests.controllers.cluster_rig import BROKEN, Rig
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, node, pod

ALL: tuple[Callable[[], Controller], ...] = (Kubelet, NodeLifecycle, TaintEviction, PodGarbageCollector)


def rig_of(*objects: Raw, make: tuple[Callable[[], Controller], ...] = (Kubelet,)) -> Rig:
    rig = Rig(*make)
    rig.apply(node("n1", cpu=4), node("n2", cpu=4), *objects)
    return rig


def failed_before_it_told_of_the_end(*, duration: int) -> Rig:
    """Pod a ended on n1 after so many seconds; the report failed, and half a second later the machine did."""
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/duration": f"{duration}s"}))
    rig.fault = lambda action: BROKEN
    rig.pass_to(duration + 0.5)
    rig.fault = lambda action: None
    rig.fail("n1")
    return rig


def restarts(rig: Rig, name: str) -> int:
    [status] = rig.pod(name)["status"]["containerStatuses"]
    return int(status["restartCount"])


# The kubelet alone


def test_a_node_that_is_down_admits_starts_and_ends_nothing_and_reports_nothing() -> None:
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/duration": "20s"}), pod("b", node="n1"))
    rig.pass_to(10)

    rig.fail("n1")
    rig.apply(pod("c", node="n1"))
    rig.delete("Pod", "b")
    rig.pass_to(100)

    assert rig.log == ["0 Running ready a", "0 Running ready b"]
    assert rig.pods() == {"a": "Running", "b": "Running terminating", "c": "Pending"}
    assert rig.is_at_rest()


def test_other_nodes_go_on() -> None:
    rig = rig_of()

    rig.fail("n1")
    rig.apply(pod("a", node="n2"))

    assert rig.log == ["0 Running ready a"]


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_when_it_is_back_its_pods_are_started_again_in_their_places(policy: str) -> None:
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/duration": "20s"}, spec={"restartPolicy": policy}))
    rig.pass_to(10)

    rig.fail("n1")
    rig.pass_to(15)
    rig.recover("n1")
    rig.pass_to(100)

    # It runs for its full time once more.
    assert rig.log == ["0 Running ready a", "15 Running ready a", "35 Succeeded a"]
    assert restarts(rig, "a") == 1
    [status] = rig.pod("a")["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["reason"] == "Unknown"
    assert rig.pod("a")["status"]["startTime"] == "2026-01-01T12:00:00Z"


def test_pods_that_are_never_restarted_have_failed() -> None:
    rig = rig_of(pod("a", node="n1", cpu=4, spec={"restartPolicy": "Never"}), pod("b", node="n2"))
    rig.fail("n1")
    rig.apply(pod("c", node="n1", cpu=4))

    rig.recover("n1")

    assert rig.log[2:] == ["0 Failed a", "0 Running ready c"]


def test_pods_that_were_deleted_meanwhile_are_gone_at_once() -> None:
    rig = rig_of(pod("a", node="n1"), pod("b", node="n1", annotations={"podium.dev/termination": "never"}))
    rig.delete("Pod", "b")
    rig.fail("n1")
    rig.delete("Pod", "a")
    rig.pass_to(5)

    rig.recover("n1")

    assert rig.log[2:] == ["5 gone a", "5 gone b"]


@pytest.mark.failure(60)
def test_pods_that_have_ended_hold_nothing_when_the_node_is_back() -> None:
    rig = rig_of(*(pod(name, node="n1", cpu=4, annotations={"podium.dev/duration": "1s"}) for name in "ab"))
    rig.pass_to(5)
    assert rig.pods() == {"a": "Succeeded", "b": "Failed"}
    rig.fail("n1")
    rig.apply(pod("c", node="n1", cpu=4))

    rig.recover("n1")

    assert rig.log[-1] == "5 Running ready c"


def test_pods_that_ran_come_before_pods_that_wait_and_are_not_judged_by_taints_and_labels_again() -> None:
    rig = rig_of(pod("z", node="n1", cpu=3, spec={"nodeSelector": {"disk": "ssd"}}))
    assert rig.log == ["0 NodeAffinity z"]
    rig = Rig(Kubelet)
    rig.apply(node("n1", cpu=4, disk="ssd"), pod("z", node="n1", cpu=3, spec={"nodeSelector": {"disk": "ssd"}}))

    rig.fail("n1")
    rig.apply(pod("a", node="n1", cpu=3))
    taint = {"key": "gone", "effect": "NoExecute"}
    rig.patch("Node", "n1", {"metadata": {"labels": {"disk": "hdd"}}, "spec": {"taints": [taint]}})
    rig.recover("n1")

    assert sorted(rig.log[1:]) == ["0 OutOfcpu a", "0 Running ready z"]


def test_a_pod_is_rejected_when_its_node_has_shrunk() -> None:
    rig = rig_of(pod("a", node="n1", cpu=3), pod("b", node="n1"))
    rig.fail("n1")
    rig.patch("Node", "n1", {"status": {"allocatable": {"cpu": 2}}}, status=True)

    rig.recover("n1")

    assert sorted(rig.log[2:]) == ["0 OutOfcpu a", "0 Running ready b"]


def test_a_failure_loses_the_back_off_and_the_start_delay_is_for_new_pods() -> None:
    rig = rig_of(
        pod("a", node="n1", annotations={"podium.dev/crash-after": "5s"}),
        make=(lambda: Kubelet(KubeletSettings(start_delay_ns=2 * SECOND)),),
    )
    rig.pass_to(14)
    assert rig.pod_condition("a", "Ready")["status"] == "False"

    rig.fail("n1")
    rig.recover("n1")
    rig.pass_to(20)

    assert rig.log[-2:] == ["14 Running ready a", "19 Running ready a"]


def test_nothing_that_failed_to_be_written_is_written_by_a_machine_that_is_down() -> None:
    rig = rig_of()
    rig.fault = lambda action: BROKEN if rig.seconds < 5 else None
    rig.apply(pod("a", node="n1"))

    rig.fail("n1")
    rig.pass_to(10)

    assert rig.log == []
    assert rig.is_at_rest()


def test_an_unreported_end_is_reported_when_the_machine_recovers() -> None:
    rig = failed_before_it_told_of_the_end(duration=5)

    rig.pass_to(20)
    assert rig.log == ["0 Running ready a"]
    rig.recover("n1")

    assert rig.log[1:] == ["20 Succeeded a"]
    assert "containerStatuses" not in rig.pod("a")["status"]


def test_a_failed_machine_does_not_report_the_end_of_a_deletion() -> None:
    ended = pod("a", node="n1", annotations={"podium.dev/duration": "5s"}, metadata={"finalizers": ["x.io/hold"]})
    rig = rig_of(ended)
    rig.pass_to(5)
    asked = len(rig.actions)

    rig.fail("n1")
    rig.delete("Pod", "a")
    rig.patch("Pod", "a", {"metadata": {"labels": {"new": "yes"}}})
    assert len(rig.actions) == asked
    rig.recover("n1")

    assert [type(one) for one in rig.actions[asked:]] == [DeleteObject]


def test_a_deletion_that_ended_unreported_is_reported_when_the_machine_recovers() -> None:
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/duration": "5s"}))
    rig.pass_to(4)
    rig.fault = lambda action: BROKEN if isinstance(action, DeleteObject) else None
    rig.delete("Pod", "a")
    rig.pass_to(5.5)
    assert rig.pod("a")["status"]["phase"] == "Succeeded"

    rig.fail("n1")
    rig.pass_to(60)
    rig.fault = lambda action: None
    rig.recover("n1")

    assert rig.store.find("Pod", "default/a") is None


def test_a_restarted_kubelet_ignores_an_unwritten_condition_of_its_predecessor() -> None:
    rig = Rig(Kubelet)
    small = node("n1")
    small["status"]["allocatable"]["memory"] = "1Gi"
    rig.apply(small)
    rig.fault = lambda action: BROKEN if isinstance(action, ReportStatus) and action.kind == "Node" else None
    rig.apply(pod("a", node="n1", annotations={"podium.dev/memory-usage": "2Gi"}))
    rig.pass_to(1)
    assert rig.log[-1] == "1 Evicted a"

    rig.fail("n1")
    rig.recover("n1")
    rig.fault = lambda action: None
    rig.pass_to(100)

    assert rig.node_condition("n1", "MemoryPressure")["status"] == ""


def test_containers_of_a_node_that_is_down_cannot_be_let_exit() -> None:
    rig = rig_of(pod("a", node="n1"))
    kubelet = rig.places[0].controller
    stored = rig.store.get("Pod", "default/a").object
    assert isinstance(kubelet, Kubelet)
    assert isinstance(stored, Pod)

    rig.fail("n1")
    assert not kubelet.is_running(stored)
    assert kubelet.handle(ContainersExited("n1", stored.metadata.uid), rig.now) == []
    rig.recover("n1")
    assert kubelet.is_running(stored)
    kubelet.handle(ContainersExited("n1", stored.metadata.uid), rig.now)
    rig.settle()
    assert rig.pods()["a"] == "Succeeded"


def test_restarts_are_counted_without_observation_of_the_last_one() -> None:
    rig = rig_of(pod("a", node="n1"))

    with rig.holding("Pod"):
        for _ in range(3):
            rig.fail("n1")
            rig.recover("n1")

    assert restarts(rig, "a") == 3


def test_to_recover_a_node_that_was_not_down_changes_nothing() -> None:
    rig = rig_of(pod("a", node="n1"))

    rig.places[0].inbox.append(NodeStarted("n1"))
    rig.pass_to(10)

    assert rig.log == ["0 Running ready a"]


def test_a_node_of_unknown_state_reports_its_condition_when_it_returns() -> None:
    rig = rig_of()
    rig.fail("n1")
    for type_ in ("MemoryPressure", "PIDPressure", "Ready"):
        rig.condition("n1", type_, "Unknown")
    rig.condition("n1", "NetworkUnavailable", "Unknown")
    assert rig.log == []

    rig.recover("n1")

    assert rig.log == ["0 MemoryPressure False n1", "0 PIDPressure False n1", "0 Ready True n1"]


def test_pods_wait_for_a_failed_machine_though_their_kubelet_restarted() -> None:
    rig = rig_of(pod("a", node="n1"))
    rig.fail("n1")

    rig.restart()
    rig.pass_to(5)
    assert rig.log == ["0 Running ready a"]
    rig.recover("n1")

    assert rig.log[1:] == ["5 Running ready a"]
    assert restarts(rig, "a") == 1


# Nodes that are deleted


def test_the_machine_goes_with_its_node_and_the_kubelet_has_nothing_more_to_say() -> None:
    rig = rig_of(pod("a", node="n1", annotations={"podium.dev/duration": "20s"}))

    rig.delete("Node", "n1")
    rig.delete("Pod", "a", grace=5)
    rig.pass_to(100)

    assert rig.log == ["0 Running ready a"]
    assert rig.is_at_rest()


@pytest.mark.parametrize("hidden", [(), ("Node",)])
def test_b6_a_node_of_the_same_name_is_another_machine_that_starts_the_pods_again(hidden: tuple[str, ...]) -> None:
    rig = rig_of(pod("a", node="n1"))

    with rig.holding(*hidden):
        rig.delete("Node", "n1")
        rig.apply(node("n1"))

    assert rig.log == ["0 Running ready a", "0 Running ready a"]
    assert restarts(rig, "a") == 1


def test_b6_a_namesake_that_was_made_unseen_is_another_pod() -> None:
    rig = rig_of(pod("a", node="n1", cpu=4))

    with rig.holding("Pod"):
        rig.delete("Pod", "a", grace=0)
        rig.apply(pod("a", node="n1", cpu=4))

    assert rig.log == ["0 Running ready a", "0 Running ready a"]
    assert "containerStatuses" not in rig.pod("a")["status"]


def test_a_namesake_that_is_pending_has_nothing_to_do_with_the_node() -> None:
    rig = rig_of(pod("a", node="n1", cpu=4))

    with rig.holding("Pod"):
        rig.delete("Pod", "a", grace=0)
        rig.apply(pod("a"))
    rig.apply(pod("b", node="n1", cpu=4))

    assert rig.log[-1] == "0 Running ready b"


# All together


def test_pods_of_a_node_that_stays_away_are_evicted_after_5_minutes_and_go_when_it_is_back() -> None:
    rig = rig_of(pod("a", node="n1"), pod("b", node="n2"), make=ALL)

    rig.fail("n1")
    rig.pass_to(1000)
    assert rig.log[2:] == [
        "50 n1: no heartbeats",
        "50 n1: taint unreachable:NoExecute added, taint unreachable added",
        "50 a: its node is not ready",
        "350 DeletionByTaintManager a",
        "350 delete a",
    ]
    assert rig.is_at_rest()

    rig.recover("n1")
    assert rig.log[7:] == [
        "1000 Ready True n1",
        "1000 gone a",
        "1000 n1: taint unreachable:NoExecute removed, taint unreachable removed",
    ]
    assert rig.pods() == {"b": "Running"}


def test_pods_of_a_node_that_is_back_in_time_are_ready_again() -> None:
    rig = rig_of(pod("a", node="n1"), make=ALL)
    rig.fail("n1")
    rig.pass_to(349)
    assert rig.pod_condition("a", "Ready")["status"] == "False"

    rig.recover("n1")
    rig.pass_to(1000)

    assert rig.pods() == {"a": "Running"}
    assert rig.pod_condition("a", "Ready")["status"] == "True"
    assert rig.taints("n1") == []
    assert rig.is_at_rest()


def test_pods_that_run_on_a_node_that_says_it_is_not_ready_are_ready_when_it_is() -> None:
    rig = rig_of(pod("a", node="n1"), make=ALL)

    rig.condition("n1", "Ready", "False")
    rig.apply(pod("b", node="n1"))
    rig.restart()
    rig.pass_to(10)
    ready = [rig.pod_condition(name, "Ready") for name in "ab"]
    assert [(one["status"], one["reason"]) for one in ready] == [("False", "NodeNotReady")] * 2

    rig.condition("n1", "Ready", "True")

    assert [rig.pod_condition(name, "Ready")["status"] for name in "ab"] == ["True", "True"]
    assert rig.is_at_rest()


def test_pods_that_are_said_not_to_be_ready_though_their_node_is_say_that_they_are() -> None:
    rig = rig_of(pod("a", node="n1"))
    denied = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}

    set_pod_status(rig.store, "default/a", {}, [denied], now=rig.now)
    rig.settle()
    assert rig.pod_condition("a", "Ready")["status"] == "True"

    with rig.holding("Pod"):
        set_pod_status(rig.store, "default/a", {}, [denied], now=rig.now)
        rig.restart()
    assert rig.pod_condition("a", "Ready")["status"] == "True"


def test_pods_of_a_node_that_fails_and_is_deleted_are_collected() -> None:
    rig = rig_of(pod("a", node="n1"), make=ALL)
    rig.fail("n1")
    rig.pass_to(100)

    rig.delete("Node", "n1")
    rig.pass_to(1000)

    assert rig.log[-2:] == ["140 Failed a", "140 delete a: its node n1 is gone"]
    assert rig.is_at_rest()


def test_an_unobserved_failed_node_recovers_without_effects() -> None:
    rig = rig_of(pod("a", node="n1"), make=ALL)

    rig.fail("n1")
    rig.pass_to(20)
    rig.recover("n1")
    rig.pass_to(500)

    assert rig.log == ["0 Running ready a", "20 Running ready a"]
    assert restarts(rig, "a") == 1


def test_a_report_that_is_sent_again_when_the_node_is_back_is_not_tried_once_more() -> None:
    rig = failed_before_it_told_of_the_end(duration=20)

    rig.recover("n1")
    rig.pass_to(40)

    assert "20.5 Succeeded a" in rig.log
    assert len([action for action in rig.actions if isinstance(action, ReportStatus) and action.kind == "Pod"]) == 3
