"""The kubelet: invariants B1 to B8 on a node whose machine runs."""

import pytest
from msgspec.structs import replace

from podium.api.node import NodeFeatures
from podium.api.pod import Pod, PodCondition, PodSecurityContext
from podium.api.versions.release import read_version
from podium.controllers.actions import DeleteObject, ReportStatus
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.observations import ActionFinished, Changed, Problem, Tick
from tests.builders import node
from tests.controllers.kubelet_rig import SECOND, Rig, pod

CRITICAL = 2_000_000_000


# Admission


def test_a_pod_that_fits_starts_after_the_start_delay() -> None:
    rig = Rig(node("n1"), start_delay_ns=3 * SECOND)

    rig.show(pod("a"))
    rig.pass_to(10)

    assert rig.log == ["3 Running ready a"]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (pod("b", cpu=6), "OutOfcpu"),
        (pod("b", ports=[80]), "NodePorts"),
        (pod("b", node_selector={"disk": "ssd"}), "NodeAffinity"),
    ],
)
def test_b4_a_pod_that_does_not_fit_fails_never_starts_and_holds_nothing(second: Pod, reason: str) -> None:
    rig = Rig(node("n1", cpu=8))

    rig.show(pod("a", cpu=4, ports=[80]), second, pod("c", cpu=4))
    rig.pass_to(600)

    assert rig.log == ["0 Running ready a", f"0 {reason} b", "0 Running ready c"]


@pytest.mark.parametrize(
    ("version", "is_supported", "report"),
    [
        ("1.32", False, "0 Running ready a"),
        ("1.33", False, "0 SupplementalGroupsPolicyNotSupported a"),
        ("1.33", True, "0 Running ready a"),
    ],
)
def test_a_strict_groups_policy_needs_the_support_of_the_node_since_1_33(
    version: str, is_supported: bool, report: str
) -> None:
    machine = node("n1")
    features = NodeFeatures(supplemental_groups_policy=is_supported)
    rig = Rig(replace(machine, status=replace(machine.status, features=features)), release=read_version(version))
    strict = PodSecurityContext(supplemental_groups_policy="Strict")

    rig.show(pod("a", spec={"security_context": strict}))

    assert rig.log == [report]


@pytest.mark.failure(61)
def test_a_rejected_pod_does_not_make_the_next_one_rejected() -> None:
    rig = Rig(node("n1", pods=2))

    rig.show(pod("a"), pod("b"), pod("c"))
    rig.delete("a", grace=0)
    rig.show(pod("d"))

    assert rig.log == ["0 Running ready a", "0 Running ready b", "0 OutOfpods c", "0 gone a", "0 Running ready d"]


def test_b1_pods_that_are_being_killed_hold_their_resources_until_they_are_gone() -> None:
    rig = Rig(node("n1", cpu=4))
    rig.show(pod("a", cpu=4))

    rig.delete("a", grace=10)
    rig.pass_to(9)
    rig.show(pod("b", cpu=4))
    rig.pass_to(10)
    rig.show(pod("c", cpu=4))

    assert rig.log == ["0 Running ready a", "9 OutOfcpu b", "10 gone a", "10 Running ready c"]


# The end of a pod


@pytest.mark.failure(59)
def test_b5_the_end_of_a_pod_frees_its_room_once_observed() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1", cpu=1)), 0)
    kubelet.handle(Changed(pod("a", cpu=1, annotations={"duration": "5s"})), 0)
    kubelet.handle(Tick(), 0)

    [ended] = kubelet.handle(Tick(), 5 * SECOND)
    assert isinstance(ended, ReportStatus)
    assert ended.fields["phase"] == "Succeeded"
    # A pod whose scheduler sees the end at once may count on the room, but starts when all may have seen it.
    assert kubelet.handle(Changed(pod("b", cpu=1)), 5 * SECOND) == []
    assert kubelet.handle(Tick(), 5 * SECOND) == []
    kubelet.handle(ActionFinished(ended), 5 * SECOND)
    [started] = kubelet.handle(Tick(), 5 * SECOND)
    assert isinstance(started, ReportStatus)
    assert (started.key, started.fields["phase"]) == ("default/b", "Running")


def test_a_reading_from_before_the_end_does_not_start_a_pod_again() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1", cpu=1)), 0)
    one = pod("a", cpu=2)
    kubelet.handle(Changed(one), 0)
    [turned_away] = kubelet.handle(Tick(), 0)
    assert isinstance(turned_away, ReportStatus)

    assert kubelet.handle(Changed(replace(one, metadata=replace(one.metadata, labels={"new": "yes"}))), 0) == []
    assert kubelet.handle(Tick(), 0) == []
    assert kubelet.deadline().time_ns is None


@pytest.mark.failure(65)
@pytest.mark.parametrize(("shorter", "gone"), [(15, 15), (0, 10), (90, 60)])
def test_b7_a_later_shorter_grace_period_counts_from_when_the_pod_was_deleted(shorter: int, gone: int) -> None:
    rig = Rig(node("n1"))
    rig.show(pod("a"))

    rig.delete("a", grace=60)
    rig.pass_to(10)
    rig.delete("a", grace=shorter)
    rig.pass_to(200)

    assert rig.log[-1] == f"{gone} gone a"


def test_a_pod_becomes_ready_some_time_after_its_start() -> None:
    rig = Rig(node("n1"))

    rig.show(pod("a", annotations={"ready-after": "20s"}))
    rig.pass_to(60)

    assert rig.log == ["0 Running a", "20 Running ready a"]


def test_pods_that_ran_before_the_kubelet_looked_keep_their_places() -> None:
    ran = [pod(name, cpu=1) for name in "ab"]
    rig = Rig(node("n1", cpu=1))

    rig.show(*(replace(one, status=replace(one.status, phase="Running")) for one in ran))

    assert rig.log == []
    rig.show(pod("c", cpu=1))
    assert rig.log == ["0 OutOfcpu c"]


def test_a_pod_that_was_not_ready_when_the_kubelet_looked_stays_so() -> None:
    not_ready = PodCondition(type="Ready", status="False", reason="ContainersNotReady")
    one = pod("a")
    rig = Rig(node("n1"))

    rig.show(replace(one, status=replace(one.status, phase="Running", conditions=(not_ready,))))
    rig.show(node("n1", labels={"new": "yes"}))

    assert rig.log == []


def test_b6_a_namesake_that_takes_a_pod_s_place_unseen_is_another_pod() -> None:
    rig = Rig(node("n1", cpu=1))
    rig.show(pod("a", uid="1", cpu=1))

    rig.show(pod("a", uid="2", cpu=1))

    assert rig.log == ["0 Running ready a", "0 Running ready a"]


def test_b6_a_node_of_another_uid_is_another_machine() -> None:
    rig = Rig(node("n1"))
    rig.show(pod("a"))

    there = node("n1")
    rig.show(replace(there, metadata=replace(there.metadata, uid="another")))

    assert rig.log == ["0 Running ready a", "0 Running ready a"]


def test_an_answer_to_an_earlier_report_does_not_free_the_room() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1", cpu=1)), 0)
    kubelet.handle(Changed(pod("a", cpu=1, annotations={"duration": "5s"})), 0)
    [started] = kubelet.handle(Tick(), 0)
    kubelet.handle(Changed(pod("b", cpu=1)), 5 * SECOND)
    [ended] = kubelet.handle(Tick(), 5 * SECOND)

    kubelet.handle(ActionFinished(started), 5 * SECOND)
    assert kubelet.handle(Tick(), 5 * SECOND) == []

    kubelet.handle(ActionFinished(ended), 5 * SECOND)
    assert len(kubelet.handle(Tick(), 5 * SECOND)) == 1


# Critical pods


@pytest.mark.upstream(59)
@pytest.mark.failure(64)
def test_a_critical_pod_has_others_end_and_starts_when_they_are_gone() -> None:
    rig = Rig(node("n1", cpu=4))
    rig.show(pod("a", cpu=2, spec={"termination_grace_period_seconds": 20}), pod("b", cpu=2))

    rig.show(pod("critical", cpu=2, priority=CRITICAL))
    rig.pass_to(60)

    assert rig.log[2:] == ["20 Preempting a", "20 Running ready critical"]
    assert rig.phase("b") == "Running"


@pytest.mark.failure(64)
def test_the_victims_of_a_critical_pod_end_though_one_of_them_cannot_be_killed() -> None:
    rig = Rig(node("n1", cpu=4))
    rig.show(pod("stuck", cpu=2, annotations={"termination": "never"}), pod("b", cpu=2))

    rig.show(pod("critical", cpu=4, priority=CRITICAL))
    rig.pass_to(60)
    assert rig.log[2:] == ["30 Preempting b"]

    rig.delete("stuck", grace=0)
    assert rig.log[3:] == ["60 Preempting stuck", "60 gone stuck", "60 Running ready critical"]


@pytest.mark.upstream(59)
def test_a_critical_pod_is_rejected_when_no_preemption_helps() -> None:
    rig = Rig(node("n1", cpu=4))
    rig.show(pod("a", cpu=4, priority=CRITICAL), pod("b", ports=[80]))

    rig.show(pod("c", cpu=1, priority=CRITICAL), pod("d", ports=[80], priority=CRITICAL))

    assert rig.log[2:] == ["0 UnexpectedAdmissionError c", "0 NodePorts d"]


@pytest.mark.upstream(59)
def test_a_critical_pod_that_lacks_more_than_resources_is_rejected_for_that_and_no_pod_ends() -> None:
    rig = Rig(node("n1", cpu=4))
    rig.show(pod("a", cpu=4))

    rig.show(pod("c", cpu=1, node_selector={"disk": "ssd"}, priority=CRITICAL))
    rig.pass_to(60)

    assert rig.log == ["0 Running ready a", "0 NodeAffinity c"]


# Waiting for victims


def test_a_pod_may_wait_on_its_node_for_those_that_are_ending() -> None:
    rig = Rig(node("n1", cpu=4), waits_for_victims=True)
    rig.show(pod("victim", cpu=4))
    rig.delete("victim", grace=30)

    rig.show(pod("preemptor", cpu=3))
    rig.pass_to(60)

    assert rig.log == ["0 Running ready victim", "30 gone victim", "30 Running ready preemptor"]


def test_a_pod_that_waits_counts_as_if_it_ran() -> None:
    rig = Rig(node("n1", cpu=4), waits_for_victims=True)
    rig.show(pod("victim", cpu=4))
    rig.delete("victim", grace=30)

    rig.show(pod("preemptor", cpu=3), pod("late", cpu=2), pod("small", cpu=1))
    rig.pass_to(60)

    assert rig.log[1:] == [
        "0 OutOfcpu late",
        "30 gone victim",
        "30 Running ready preemptor",
        "30 Running ready small",
    ]


def test_a_pod_that_waits_and_is_deleted_goes_at_once() -> None:
    rig = Rig(node("n1", cpu=4), waits_for_victims=True)
    rig.show(pod("victim", cpu=4))
    rig.delete("victim", grace=30)
    rig.show(pod("preemptor", cpu=3))

    rig.delete("preemptor", grace=30)
    rig.pass_to(60)

    assert rig.log[1:] == ["0 gone preemptor", "30 gone victim"]


def test_a_waiting_pod_is_rejected_when_the_node_becomes_too_small() -> None:
    rig = Rig(node("n1", cpu=4), waits_for_victims=True)
    rig.show(pod("victim", cpu=4))
    rig.delete("victim", grace=30)
    rig.show(pod("preemptor", cpu=3))

    rig.show(node("n1", cpu=2))
    rig.pass_to(60)

    assert rig.log[1:] == ["0 OutOfcpu preemptor", "30 gone victim"]


# Memory


@pytest.mark.upstream(60)
def test_b8_one_pod_goes_per_cycle_until_there_is_room_enough() -> None:
    rig = Rig(node("n1", memory="2Gi"))

    rig.show(*(pod(name, cpu="10m", annotations={"memory-usage": "1Gi"}) for name in "abcd"))
    rig.pass_to(100)

    evicted = [one for one in rig.log if "Evicted" in one]
    assert evicted == ["1 Evicted a", "11 Evicted b"]
    assert [rig.phase(name) for name in "cd"] == ["Running", "Running"]


@pytest.mark.upstream(60)
def test_b8_an_evicted_pod_fails_with_the_condition_of_a_disruption() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1", memory="1Gi")), 0)
    kubelet.handle(Changed(pod("a", annotations={"memory-usage": "2Gi"})), 0)

    kubelet.handle(Tick(), 0)
    actions = kubelet.handle(Tick(), SECOND)

    evicted = actions[-1]
    assert isinstance(evicted, ReportStatus)
    assert (evicted.fields["phase"], evicted.fields["reason"]) == ("Failed", "Evicted")
    target = next(one for one in evicted.conditions if one.type == "DisruptionTarget")
    assert (target.status, target.reason, target.message) == ("True", "TerminationByKubelet", evicted.fields["message"])


@pytest.mark.upstream(60)
def test_a_deleted_pod_that_a_finalizer_keeps_shows_that_it_runs_no_more() -> None:
    """[invariant B5]"""
    rig = Rig(node("n1", cpu=2))
    kept = pod("a", cpu=2)
    rig.show(replace(kept, metadata=replace(kept.metadata, finalizers=("example.com/keep",))))

    rig.delete("a", grace=5)
    rig.pass_to(5)

    assert rig.log[-2:] == ["5 Failed a", "5 gone a"]


def test_pods_that_are_never_preempted_are_evicted_as_others_are() -> None:
    rig = Rig(node("n1", memory="1Gi"))

    rig.show(pod("a", annotations={"memory-usage": "2Gi", "preemption-policy": "NonPreemptible"}))
    rig.pass_to(1)

    assert rig.log[-1] == "1 Evicted a"


def test_b8_critical_and_terminating_pods_are_not_evicted() -> None:
    rig = Rig(node("n1", memory="1Gi"))
    rig.show(pod("ending", annotations={"memory-usage": "1Gi"}))
    rig.delete("ending", grace=60)

    rig.show(pod("critical", priority=CRITICAL, annotations={"memory-usage": "5Gi"}))
    rig.pass_to(50)

    assert rig.log == ["0 Running ready ending", "0 Running ready critical", "0 MemoryPressure True"]


@pytest.mark.upstream(60)
def test_pressure_is_over_when_memory_has_been_enough_for_the_transition_period() -> None:
    rig = Rig(node("n1", memory="1Gi"), pressure_transition_ns=60 * SECOND)

    rig.show(pod("a", annotations={"memory-usage": "2Gi"}))
    rig.pass_to(30)
    rig.show(pod("b", memory="1Mi", annotations={"memory-usage": "2Gi"}))
    rig.pass_to(300)

    assert rig.log == [
        "0 Running ready a",
        "0 MemoryPressure True",
        "1 Evicted a",
        "30 Running ready b",
        "31 Evicted b",
        "91 MemoryPressure False",
    ]


def test_the_transition_period_begins_when_memory_was_short_last() -> None:
    rig = Rig(node("n1", memory="1Gi"), pressure_transition_ns=60 * SECOND)
    rig.show(pod("critical", priority=CRITICAL, annotations={"memory-usage": "5Gi", "duration": "100s"}))

    rig.pass_to(300)

    assert rig.log[1:] == ["0 MemoryPressure True", "100 Succeeded critical", "160 MemoryPressure False"]


@pytest.mark.upstream(60)
@pytest.mark.failure(63)
def test_a_node_under_pressure_takes_no_besteffort_pods() -> None:
    rig = Rig(node("n1", memory="1Gi"))
    rig.show(pod("a", annotations={"memory-usage": "2Gi"}))

    rig.show(pod("b"), pod("c", cpu="10m"))

    assert rig.log[-2:] == ["0 Evicted b", "0 Running ready c"]


def test_a_node_whose_disk_or_process_ids_run_short_takes_no_pods_but_critical_ones() -> None:
    full = node("n1")
    pressed = PodCondition(type="DiskPressure", status="True")
    rig = Rig(replace(full, status=replace(full.status, conditions=(pressed,))))

    rig.show(pod("a", cpu="10m"), pod("critical", priority=CRITICAL))

    assert rig.log == ["0 Evicted a", "0 Running ready critical"]


def test_less_than_the_threshold_is_short() -> None:
    annotated = pod("a", annotations={"memory-usage": "950Mi"})
    plain, careful = Rig(node("n1", memory="1Gi")), Rig(node("n1", memory="1Gi"), memory_threshold_bytes=100 << 20)

    for rig in (plain, careful):
        rig.show(annotated)
        rig.pass_to(1)

    assert plain.log == ["0 Running ready a"]
    assert careful.log == ["0 Running ready a", "0 MemoryPressure True", "1 Evicted a"]


def test_a_node_without_evictable_pods_waits_for_a_change() -> None:
    rig = Rig(node("n1", memory="1Gi"))

    rig.show(pod("critical", priority=CRITICAL, annotations={"memory-usage": "5Gi"}))

    assert rig.kubelet.deadline().time_ns is None


# Nodes


def test_b6_a_pod_runs_on_its_own_node_alone() -> None:
    rig = Rig(node("n1", cpu=1), node("n2", cpu=1))

    rig.show(pod("a", on="n1", cpu=1), pod("b", on="n2", cpu=1), pod("c", on="n2", cpu=1))

    assert rig.log == ["0 Running ready a", "0 Running ready b", "0 OutOfcpu c"]


def test_a_kubelet_holds_pods_until_their_node_is_known() -> None:
    rig = Rig()
    rig.show(pod("a"))

    rig.show(node("n1"))

    assert rig.log == ["0 Running ready a"]


# Writes that fail


@pytest.mark.parametrize(
    "problem",
    [
        Problem(0, "Timeout", ""),
        Problem(409, "Conflict", ""),
        Problem(429, "TooManyRequests", ""),
        Problem(500, "InternalError", ""),
    ],
)
def test_a_report_that_failed_is_sent_again(problem: Problem) -> None:
    rig = Rig(node("n1"))
    rig.problem = problem
    rig.show(pod("a"))
    rig.pass_to(2.5)

    rig.problem = None
    rig.pass_to(10)

    assert rig.log == ["3 Running ready a"]


def test_a_report_is_not_sent_again_once_there_is_a_newer_one() -> None:
    rig = Rig(node("n1"))
    rig.problem = Problem(500, "InternalError", "")
    rig.show(pod("a", annotations={"duration": "500ms"}))
    rig.pass_to(0.7)

    rig.problem = None
    rig.pass_to(10)

    assert rig.log == ["1 Succeeded a"]


def test_a_report_is_sent_again_when_the_server_says() -> None:
    rig = Rig(node("n1"))
    rig.problem = Problem(429, "TooManyRequests", "", retry_after_ns=5 * SECOND)
    rig.show(pod("a"))

    rig.problem = None
    rig.pass_to(10)

    assert rig.log == ["5 Running ready a"]


def test_a_pod_that_is_gone_needs_no_report() -> None:
    rig = Rig(node("n1"))
    rig.problem = Problem(404, "", "")

    rig.show(pod("a"))

    assert rig.kubelet.deadline().time_ns is None


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_rejected_kubelet_write_is_retried_and_keeps_nothing_alive(code: int) -> None:
    rig = Rig(node("n1"))
    rig.problem = Problem(code, "", "")

    rig.show(pod("a"))
    rig.pass_to(2)
    assert not rig.kubelet.deadline().keeps_alive
    rig.problem = None
    rig.pass_to(100)

    assert rig.log == ["3 Running ready a"]


def test_the_end_of_a_deletion_is_sent_until_it_is_seen() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1")), 0)
    one = pod("a")
    meta = replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=0)
    kubelet.handle(Changed(replace(one, metadata=meta)), 0)

    [lost] = kubelet.handle(Tick(), 0)
    kubelet.handle(ActionFinished(lost, Problem(0, "Timeout", "")), 0)

    assert isinstance(lost, DeleteObject)
    assert kubelet.handle(Tick(), SECOND) == [lost]


def test_the_late_answer_to_an_earlier_report_does_not_end_the_tries_of_what_came_after() -> None:
    kubelet = Kubelet()
    kubelet.handle(Changed(node("n1")), 0)
    one = pod("a")
    [started] = kubelet.handle(Changed(one), 0) + kubelet.handle(Tick(), 0)
    meta = replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=0)
    kubelet.handle(Changed(replace(one, metadata=meta)), 0)
    [ended] = kubelet.handle(Tick(), 0)
    assert isinstance(started, ReportStatus)
    assert isinstance(ended, DeleteObject)

    kubelet.handle(ActionFinished(ended, Problem(500, "InternalError", "")), 0)
    kubelet.handle(ActionFinished(started), 0)

    assert kubelet.handle(Tick(), SECOND) == [ended]
    kubelet.handle(ActionFinished(ended), SECOND)
    kubelet.handle(Tick(), SECOND)
    assert kubelet.deadline().time_ns is None
    assert not kubelet._failed
