"""Failed containers: when they restart, and the resulting status."""

from itertools import pairwise

import pytest

from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.kubelets.pod_run import CrashBackOff
from tests.controllers.cluster_rig import Rig
from tests.store.objects import SECOND, Raw, node, pod

MINUTE = 60
RUNNING = {"running": {"startedAt": "2026-01-01T12:00:00Z"}}


def crashing(after: str, policy: str = "Always", **annotations: str) -> Raw:
    named = {f"podium.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return pod(
        "a",
        node="n1",
        annotations={"podium.dev/crash-after": after, **named},
        spec={"restartPolicy": policy, "containers": [{"name": "main", "image": "app:1"}]},
    )


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(Kubelet)
    rig.apply(node("n1"), *objects)
    return rig


def container(rig: Rig) -> Raw:
    [status] = rig.pod("a")["status"]["containerStatuses"]
    assert isinstance(status, dict)
    return status


def starts(report: list[str]) -> list[int]:
    return [int(one.split()[0]) for one in report if "Running ready" in one]


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_the_first_restart_is_immediate_and_each_next_one_waits_twice_as_long(policy: str) -> None:
    rig = rig_of(crashing("5s", policy))

    rig.pass_to(30 * MINUTE)

    waits = [0, 10, 20, 40, 80, 160, 300, 300]
    begun = starts(rig.log)
    assert [later - earlier - 5 for earlier, later in pairwise(begun)][:8] == waits


def test_a_pod_waiting_for_container_restarts_is_reported_not_ready() -> None:
    rig = rig_of(crashing("5s"))

    rig.pass_to(12)

    ready = rig.pod_condition("a", "Ready")
    assert (rig.pods()["a"], ready["status"], ready["reason"]) == ("Running", "False", "ContainersNotReady")
    status = container(rig)
    assert (status["name"], status["ready"], status["restartCount"]) == ("main", False, 1)
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["lastState"]["terminated"] == {
        "exitCode": 1,
        "reason": "Error",
        "finishedAt": "2026-01-01T12:00:10Z",
    }


def test_when_they_run_again_it_is_ready_again() -> None:
    rig = rig_of(crashing("5s"))

    rig.pass_to(21)

    assert rig.pod_condition("a", "Ready")["status"] == "True"
    status = container(rig)
    assert (status["ready"], status["restartCount"]) == (True, 2)
    assert status["state"] == {"running": {"startedAt": "2026-01-01T12:00:20Z"}}
    # When the pod started has not changed.
    assert rig.pod("a")["status"]["startTime"] == "2026-01-01T12:00:00Z"


def test_a_pod_becomes_ready_some_time_after_each_start() -> None:
    rig = rig_of(crashing("30s", ready_after="20s"))

    rig.pass_to(75)

    assert rig.log == [
        "0 Running a",
        "20 Running ready a",
        "30 Running a",
        "50 Running ready a",
        "60 Running a",
        "70 Running a",
    ]


def test_a_pod_that_is_never_restarted_fails() -> None:
    rig = rig_of(crashing("5s", "Never"))

    rig.pass_to(100)

    assert rig.log == ["0 Running ready a", "5 Failed a"]
    assert "reason" not in rig.pod("a")["status"]
    status = container(rig)
    assert (status["restartCount"], status["state"]["terminated"]["reason"]) == (0, "Error")


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_successful_exit_ends_the_pod_under_every_restart_policy(policy: str) -> None:
    rig = rig_of(crashing("30s", policy, duration="20s"))

    rig.pass_to(100)

    assert rig.log == ["0 Running ready a", "20 Succeeded a"]


def test_the_duration_counts_from_the_last_start() -> None:
    rig = rig_of(crashing("5s", duration="6s"))

    rig.pass_to(12)

    assert "Succeeded a" not in " ".join(rig.log)


def test_a_pod_that_is_deleted_while_its_containers_wait_goes_at_once() -> None:
    rig = rig_of(crashing("5s"))
    rig.pass_to(12)

    rig.delete("Pod", "a")

    assert rig.log[-1] == "12 gone a"


def test_containers_that_fail_while_their_pod_is_killed_end_it() -> None:
    rig = rig_of(crashing("20s"))
    rig.pass_to(10)

    rig.delete("Pod", "a", grace=30)
    rig.pass_to(100)

    assert rig.log == ["0 Running ready a", "20 Failed a", "20 gone a"]


def test_a_pod_whose_containers_fail_keeps_its_place() -> None:
    rig = rig_of(crashing("5s"))
    rig.patch("Node", "n1", {"status": {"allocatable": {"pods": 1}}}, status=True)
    rig.pass_to(12)

    rig.apply(pod("b", node="n1"))

    assert rig.log[-1] == "12 OutOfpods b"


def test_a_crash_loop_is_settled_once_it_has_been_seen_to_be_one() -> None:
    rig = rig_of(crashing("5s"))
    [place] = rig.places
    settled = []

    for second in (1, 6, 12, 21):
        rig.pass_to(second)
        settled.append(not place.controller.deadline().keeps_alive)

    assert settled == [False, False, True, True]
    rig.delete("Pod", "a", grace=4)
    assert place.controller.deadline().keeps_alive


def test_the_crash_backoff_resets_after_ten_minutes_of_running() -> None:
    backoff = CrashBackOff()
    failures = [0, 1, 20, 50, 50 + 20 + 600, 50 + 20 + 1300]

    waits = [(backoff.next_start_ns(second * SECOND) - second * SECOND) // SECOND for second in failures]

    assert waits == [0, 10, 20, 40, 80, 0]
    assert backoff.crashes == 1


# The kubelet itself starts anew


def test_a_new_kubelet_keeps_containers_running_since_their_last_start() -> None:
    rig = rig_of(crashing("8s", ready_after="3s"))
    rig.pass_to(10)

    rig.restart()
    rig.pass_to(20)

    assert rig.log == [
        "0 Running a",
        "3 Running ready a",
        "8 Running a",
        "11 Running ready a",
        "16 Running a",
        "19 Running ready a",
    ]
    status = container(rig)
    assert (status["restartCount"], status["ready"]) == (2, True)


def test_a_new_kubelet_that_sees_a_restarted_pod_ready_reports_its_containers() -> None:
    rig = rig_of(crashing("8s", ready_after="3s"))
    rig.pass_to(10)

    rig.restart()
    rig.pass_to(12)

    status = container(rig)
    assert (status["restartCount"], status["ready"]) == (1, True)
    assert status["state"] == {"running": {"startedAt": "2026-01-01T12:00:08Z"}}
    assert status["lastState"]["terminated"]["reason"] == "Error"


def test_a_new_kubelet_starts_containers_that_waited_at_once_and_its_back_off_is_a_new_one() -> None:
    rig = rig_of(crashing("5s"))
    rig.pass_to(12)

    rig.restart()
    rig.pass_to(20)

    assert rig.log[-2:] == ["12 Running ready a", "17 Running ready a"]
    assert container(rig)["restartCount"] == 3


@pytest.mark.parametrize(
    "wrong", [[{"restartCount": "two"}], [{"restartCount": 2, "state": {"running": {"startedAt": "x"}}}]]
)
def test_unreadable_container_statuses_are_ignored(wrong: object) -> None:
    broken = crashing("5s")
    broken["status"] = {"phase": "Running", "startTime": "2026-01-01T12:00:00Z", "containerStatuses": wrong}

    rig = rig_of(broken)
    rig.pass_to(6)

    assert container(rig)["restartCount"] == 1


def test_a_pod_that_was_never_restarted_runs_since_its_own_start_time() -> None:
    later = {"running": {"startedAt": "2026-01-01T12:00:08Z"}}
    given = crashing("10s")
    given["status"] = {
        "phase": "Running",
        "startTime": "2026-01-01T12:00:00Z",
        "containerStatuses": [{"name": "main", "restartCount": 0, "state": later}],
    }

    rig = rig_of(given)
    rig.pass_to(11)

    assert rig.log == ["10 Running ready a"]


def test_container_statuses_written_by_others_are_kept() -> None:
    known = {"name": "main", "image": "app:1", "imageID": "sha256:5", "restartCount": 7, "state": RUNNING}
    given = crashing("5s")
    given["status"] = {"phase": "Running", "startTime": "2026-01-01T12:00:00Z", "containerStatuses": [known]}

    rig = rig_of(given)
    rig.pass_to(6)

    assert container(rig)["imageID"] == "sha256:5"
    assert container(rig)["restartCount"] == 8
