"""A Job runs pods until enough have succeeded, or too many have failed."""

import re
from typing import Any

import pytest

from podium.api.versions.release import read_version
from podium.api.workloads import JOB_TRACKING
from podium.controllers.actions import CreateObject, DeleteObject, PatchObject, ReplaceStatus
from podium.controllers.observations import Problem
from podium.controllers.workloads.job_pods import INDEX
from podium.controllers.workloads.jobs import Jobs
from tests.controllers.workload_rig import CRASH, LOST, UNSENT, Rig, failing, owned_by, template, workload
from tests.pod_statuses import set_pod_status
from tests.store.objects import Raw, quota


def job(*, status: Raw | None = None, **spec: Any) -> Raw:
    raw = workload("Job", "sum", {"template": template(restartPolicy="Never"), **spec})
    return raw if status is None else {**raw, "status": status}


def rig_of(*objects: Raw, **settings: Any) -> Rig:
    rig = Rig(Jobs, **settings)
    rig.apply(*objects)
    rig.log.clear()
    # What follows does not happen in the second in which the controller began.
    rig.pass_to(1)
    return rig


def status(rig: Rig) -> Raw:
    found: Raw = rig.get("Job", "sum")["status"]
    return found


def ending(rig: Rig) -> list[str]:
    """Return the conditions that are true."""
    return [one["type"] for one in status(rig).get("conditions", ()) if one["status"] == "True"]


def counts(rig: Rig) -> tuple[int, int]:
    """Return how many pods have succeeded, and how many have failed, as the status says."""
    found = status(rig)
    return found.get("succeeded", 0), found.get("failed", 0)


def indexes(rig: Rig) -> list[str]:
    return sorted(rig.pods()[name].metadata.annotations[INDEX] for name in rig.active())


# How many pods


def test_as_many_pods_run_at_once_as_allowed_until_enough_have_succeeded() -> None:
    rig = rig_of(job(completions=5, parallelism=2))

    for expected in (2, 2, 1):
        assert len(rig.active()) == expected
        rig.end(*rig.active(), phase="Succeeded")

    assert rig.active() == []
    assert counts(rig) == (5, 0)
    assert ending(rig) == ["SuccessCriteriaMet", "Complete"]


def test_a_job_that_says_nothing_runs_one_pod_once() -> None:
    rig = rig_of(job())
    (name,) = rig.active()
    assert re.fullmatch("sum-[a-z0-9]{5}", name)

    rig.end(name, phase="Succeeded")

    assert rig.active() == []
    assert "Complete" in ending(rig)


def test_without_completions_nothing_starts_after_the_first_success_and_the_rest_may_end() -> None:
    rig = rig_of(job(parallelism=3))
    first, second, third = rig.active()

    rig.end(first, phase="Succeeded")
    assert rig.active() == [second, third]
    assert ending(rig) == []

    rig.end(second)
    rig.end(third)

    assert counts(rig) == (1, 2)
    assert "Complete" in ending(rig)


def test_a_job_without_work_is_complete_at_once() -> None:
    assert "Complete" in ending(rig_of(job(completions=0)))


def test_pods_say_which_job_they_are_of() -> None:
    rig = rig_of(job())
    metadata = rig.get("Pod", rig.active()[0])["metadata"]

    assert metadata["labels"] == {
        "app": "web",
        "job-name": "sum",
        "controller-uid": "sum",
        "batch.kubernetes.io/job-name": "sum",
        "batch.kubernetes.io/controller-uid": "sum",
    }
    assert metadata["finalizers"] == [JOB_TRACKING]
    assert metadata["ownerReferences"][0]["kind"] == "Job"


def test_less_parallelism_gives_up_pods_that_do_not_count() -> None:
    rig = rig_of(job(completions=9, parallelism=3))

    rig.patch("Job", "sum", {"spec": {"parallelism": 1}})

    assert len(rig.active()) == 1
    assert counts(rig) == (0, 0)


def test_a_suspended_job_gives_up_its_pods_and_begins_again_when_it_is_resumed() -> None:
    rig = rig_of(job())
    began = status(rig)["startTime"]
    rig.pass_to(100)

    rig.patch("Job", "sum", {"spec": {"suspend": True}})
    assert (rig.active(), ending(rig), counts(rig)) == ([], ["Suspended"], (0, 0))

    rig.patch("Job", "sum", {"spec": {"suspend": None}})
    assert len(rig.active()) == 1
    assert ending(rig) == []
    assert status(rig)["startTime"] > began


@pytest.mark.parametrize(("version", "is_kept"), [("1.35", True), ("1.36", False)])
def test_a_suspended_job_loses_its_start_time_since_1_36(version: str, is_kept: bool) -> None:
    rig = Rig(lambda: Jobs(read_version(version)))
    rig.apply(job())
    assert "startTime" in status(rig)

    rig.patch("Job", "sum", {"spec": {"suspend": True}})

    assert ("startTime" in status(rig)) is is_kept


def test_a_job_managed_by_another_controller_is_left_alone() -> None:
    rig = rig_of(job(managedBy="example.com/queue"))

    assert rig.active() == []
    assert "status" not in rig.get("Job", "sum")


@pytest.mark.parametrize(
    "before", [{"succeeded": 1}, {"conditions": [{"type": "Complete", "status": "True"}]}, {"failed": 7}]
)
def test_a_job_that_was_done_before_stays_done(before: Raw) -> None:
    rig = rig_of(job(status=before))

    assert rig.active() == []
    assert {"Complete", "Failed"} & set(ending(rig))


# Indexes


def test_with_indexes_each_is_run_until_it_has_succeeded_the_lowest_first() -> None:
    rig = rig_of(job(completions=4, parallelism=2, completionMode="Indexed"))
    assert indexes(rig) == ["0", "1"]
    pod = rig.get("Pod", rig.active()[1])
    assert pod["metadata"]["labels"][INDEX] == "1"
    assert pod["metadata"]["generateName"] == "sum-1-"
    assert pod["spec"]["hostname"] == "sum-1"

    rig.end(rig.active()[1], phase="Succeeded")
    assert indexes(rig) == ["0", "2"]
    assert status(rig)["completedIndexes"] == "1"
    rig.end(rig.active()[0])
    rig.rest()
    assert indexes(rig) == ["0", "2"]
    while rig.active():
        rig.end(rig.active()[0], phase="Succeeded")

    assert status(rig)["completedIndexes"] == "0-3"
    assert counts(rig) == (4, 1)
    assert "Complete" in ending(rig)


def test_the_names_of_pods_keep_the_index_of_a_job_with_a_long_name() -> None:
    name = "sum-of-many-many-many-many-many-many-many-many-many-numbers"
    spec = {"template": template(restartPolicy="Never"), "completions": 2, "parallelism": 2}
    rig = rig_of(workload("Job", name, {**spec, "completionMode": "Indexed"}))

    assert sorted(pod[:-5] for pod in rig.active()) == [f"{name[:55]}-{index}-" for index in range(2)]


def test_a_pod_without_an_index_of_its_own_is_given_up() -> None:
    work = job(completions=3, parallelism=3, completionMode="Indexed")
    strays = [owned_by(work, "none", nodeName="n1"), owned_by(work, "twice", nodeName="n1")]
    strays[1]["metadata"]["annotations"] = {INDEX: "1"}
    rig = rig_of(work)

    rig.apply(*strays)

    assert indexes(rig) == ["0", "1", "2"]
    assert counts(rig) == (0, 0)


def test_of_two_pods_with_an_index_the_running_one_stays() -> None:
    work = job(completions=1, parallelism=1, completionMode="Indexed")
    pods = [owned_by(work, "a-waiting"), owned_by(work, "running", nodeName="n1")]
    for pod in pods:
        pod["metadata"]["annotations"] = {INDEX: "0"}
    rig = Rig(Jobs, runs=False)

    rig.apply(*pods, work)

    assert rig.active() == ["running"]


# Failures


def test_a_pod_that_failed_is_replaced_after_a_wait_that_grows_with_each_failure() -> None:
    rig = rig_of(job(backoffLimit=9))
    rig.pass_to(100)

    for _ in range(4):
        rig.end(*rig.active())
        rig.skip()

    assert rig.log == [f"{seconds} create sum-" for seconds in (110, 130, 170, 250)]


def test_the_wait_is_ten_minutes_at_most() -> None:
    rig = rig_of(job(backoffLimit=20))
    for _ in range(9):
        rig.end(*rig.active())
        rig.skip()
    rig.log.clear()
    before = rig.seconds

    rig.end(*rig.active())
    rig.skip()

    assert rig.seconds - before == 600


def test_a_success_ends_the_wait() -> None:
    rig = rig_of(job(completions=3, parallelism=2, backoffLimit=9))
    first, second = rig.active()

    rig.end(first)
    rig.pass_to(2)
    rig.end(second, phase="Succeeded")

    assert len(rig.active()) == 2


def test_a_job_fails_when_more_pods_have_failed_than_may() -> None:
    rig = rig_of(job(backoffLimit=1, completions=3, parallelism=3))
    first, second, third = rig.active()

    rig.end(first)
    assert ending(rig) == []
    rig.end(second)

    assert ending(rig) == ["FailureTarget", "Failed"]
    assert third not in rig.pods()
    assert counts(rig) == (0, 3)
    (_, failed) = status(rig)["conditions"]
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )


@pytest.mark.parametrize(("restarts", "fails"), [(1, False), (2, True)])
def test_restarts_of_containers_count_as_failures_of_pods_that_are_restarted(restarts: int, fails: bool) -> None:
    rig = rig_of(job(backoffLimit=2, template=template(restartPolicy="OnFailure")))
    (name,) = rig.active()

    restarted = {"containerStatuses": [{"name": "main", "restartCount": restarts}]}
    set_pod_status(rig.store, f"default/{name}", restarted, [], now=rig.now)
    rig.settle()

    assert ("Failed" in ending(rig)) is fails


def test_a_job_fails_when_it_was_active_for_too_long() -> None:
    rig = rig_of(job(activeDeadlineSeconds=60))

    rig.rest()

    assert rig.seconds == 60
    assert rig.pods() == {}
    assert ending(rig) == ["FailureTarget", "Failed"]
    assert status(rig)["conditions"][1]["reason"] == "DeadlineExceeded"


def test_a_met_deadline_wakes_no_controller() -> None:
    rig = rig_of(job(activeDeadlineSeconds=60))

    rig.end(*rig.active(), phase="Succeeded")

    assert rig.machines[0].deadline().time_ns is None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_job_is_deleted_after_its_time_to_live(phase: str) -> None:
    rig = rig_of(job(ttlSecondsAfterFinished=60, backoffLimit=0))
    rig.pass_to(10)
    rig.end(*rig.active(), phase=phase)

    deadline = rig.machines[0].deadline()
    assert deadline.time_ns is not None
    assert not deadline.keeps_alive
    rig.pass_to(69)
    assert rig.names("Job") == ["sum"]
    rig.pass_to(71)

    assert rig.names("Job") == []


def test_the_time_to_live_counts_from_the_end_of_the_job_and_not_from_an_earlier_condition() -> None:
    rig = rig_of(job(ttlSecondsAfterFinished=60, suspend=True))
    rig.pass_to(100)
    rig.patch("Job", "sum", {"spec": {"suspend": None}})
    rig.pass_to(200)
    rig.end(*rig.active(), phase="Succeeded")

    rig.pass_to(259)
    assert rig.names("Job") == ["sum"]
    rig.pass_to(261)

    assert rig.names("Job") == []


def test_a_job_with_a_time_to_live_of_zero_is_deleted_at_its_end_and_one_without_any_stays() -> None:
    gone, kept = rig_of(job(ttlSecondsAfterFinished=0)), rig_of(job())

    for rig in (gone, kept):
        rig.end(*rig.active(), phase="Succeeded")
        rig.rest()

    assert gone.names("Job") == []
    assert kept.names("Job") == ["sum"]


def test_an_expired_job_that_a_user_deletes_is_not_deleted_again() -> None:
    raw = job(ttlSecondsAfterFinished=60)
    rig = rig_of({**raw, "metadata": {**raw["metadata"], "finalizers": ["example.com/kept"]}})
    rig.end(*rig.active(), phase="Succeeded")
    rig.delete("Job", "sum")

    rig.pass_to(100)

    assert rig.names("Job") == ["sum"]
    assert not [one for one in rig.actions if isinstance(one, DeleteObject) and one.kind == "Job"]


def test_the_deletion_of_an_expired_job_is_repeated_after_a_failure() -> None:
    rig = rig_of(job(ttlSecondsAfterFinished=5))
    rig.fault = failing(DeleteObject, UNSENT)
    rig.end(*rig.active(), phase="Succeeded")

    rig.rest()

    assert rig.names("Job") == []


def test_a_pod_that_was_deleted_has_failed_and_is_replaced_while_it_is_still_terminating() -> None:
    rig = rig_of(job(), runs=False)
    (first,) = rig.active()
    rig.run(first)

    rig.delete("Pod", first)
    assert counts(rig) == (0, 1)
    assert status(rig)["terminating"] == 1

    rig.pass_to(12)
    assert rig.log == ["11 create sum-"]
    assert rig.pods()[first].metadata.finalizers == ()


@pytest.mark.parametrize("spec", [{"podReplacementPolicy": "Failed"}, {"podFailurePolicy": {"rules": []}}])
def test_a_deleted_pod_is_replaced_after_its_end_if_the_job_requires_it(spec: Raw) -> None:
    rig = rig_of(job(**spec), runs=False)
    (first,) = rig.active()
    rig.run(first)
    rig.delete("Pod", first)
    rig.pass_to(30)
    assert (rig.log, counts(rig)) == ([], (0, 0))

    rig.store.delete("Pod", f"default/{first}", now=rig.now, grace_seconds=0)
    rig.settle()
    assert (rig.log, counts(rig), status(rig)["terminating"]) == ([], (0, 0), 1)

    rig.finish(first)

    assert counts(rig) == (0, 1)
    assert rig.log == ["30 create sum-"]
    assert first not in rig.pods()


def test_a_pod_that_succeeds_while_it_is_terminating_has_succeeded() -> None:
    rig = rig_of(job(podReplacementPolicy="Failed"), runs=False)
    (name,) = rig.active()
    rig.run(name)
    rig.delete("Pod", name)

    rig.end(name, phase="Succeeded")

    assert counts(rig) == (1, 0)


def test_disruptions_that_the_policy_ignores_do_not_count_and_are_waited_for() -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    rig = rig_of(job(backoffLimit=0, podFailurePolicy={"rules": rules}))
    rig.pass_to(100)

    rig.end(*rig.active(), condition="DisruptionTarget")
    assert (counts(rig), ending(rig), rig.active()) == ((0, 0), [], [])
    rig.rest()
    assert rig.log == ["110 create sum-"]

    rig.end(*rig.active())
    assert "Failed" in ending(rig)


def test_disruptions_for_ever_do_not_keep_it_from_being_settled() -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    rig = rig_of(job(podFailurePolicy={"rules": rules}))
    for _ in range(9):
        assert not rig.machines[0].deadline().time_ns
        rig.end(*rig.active(), condition="DisruptionTarget")
        if not rig.machines[0].deadline().keeps_alive:
            break
        rig.skip()

    assert not rig.machines[0].deadline().keeps_alive
    rig.skip()
    assert len(rig.active()) == 1


def test_an_exit_code_can_end_the_job() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    rig = rig_of(job(completions=2, parallelism=2, podFailurePolicy={"rules": rules}))
    first, second = rig.active()

    rig.end(first, exit_code=42)

    assert ending(rig) == ["FailureTarget", "Failed"]
    assert status(rig)["conditions"][0]["reason"] == "PodFailurePolicy"
    assert second not in rig.pods()
    assert counts(rig) == (0, 2)


# Counting


def test_a_pod_has_its_finalizer_until_it_is_in_the_status() -> None:
    rig = rig_of(job(completions=2))
    (name,) = rig.active()
    uid = rig.get("Pod", name)["metadata"]["uid"]
    seen = []

    def look() -> None:
        uncounted = status(rig)["uncountedTerminatedPods"].get("succeeded", [])
        seen.append((JOB_TRACKING in rig.get("Pod", name)["metadata"].get("finalizers", ()), uncounted, counts(rig)))

    rig.after_each = look
    rig.end(name, phase="Succeeded")

    steps = [one for number, one in enumerate(seen) if one not in seen[:number]]
    assert steps[-3:] == [(True, [uid], (0, 0)), (False, [uid], (0, 0)), (False, [], (1, 0))]


def test_pods_that_are_deleted_after_they_ended_are_counted() -> None:
    rig = rig_of(job(completions=3, parallelism=2))
    rig.lags = True
    first, second = rig.active()
    rig.end(first, phase="Succeeded")
    rig.end(second)
    rig.delete("Pod", first)
    rig.delete("Pod", second)

    rig.lags = False
    rig.settle()

    assert counts(rig) == (1, 1)
    assert {first, second}.isdisjoint(rig.pods())


@pytest.mark.parametrize("count", range(1, 12))
def test_each_pod_is_counted_once_wherever_the_controller_crashes(count: int) -> None:
    rig = rig_of(job(completions=4, parallelism=2, backoffLimit=9))
    left = [count]

    def crash(action: object) -> Problem | None:
        left[0] -= 1
        return CRASH if left[0] == 0 else None

    rig.fault = crash
    first, second = rig.active()
    rig.end(first, phase="Succeeded")
    rig.end(second)
    rig.restart()
    rig.rest()

    assert counts(rig) == (1, 1)
    assert len(rig.active()) == 2


def restart_behind(rig: Rig, behind: int) -> None:
    """Restart the controller: it observes objects as they were ``behind`` writes ago, then the Job before pods."""
    rig.lags = True
    rig.restart(behind=behind)
    rig.show("Job")
    rig.settle()
    rig.lags = False
    rig.rest()


@pytest.mark.parametrize("behind", range(12))
def test_each_pod_is_counted_once_when_an_old_state_is_seen_after_a_crash(behind: int) -> None:
    rig = rig_of(job(completions=4, parallelism=2, backoffLimit=9))
    first, second = rig.active()
    rig.end(first, phase="Succeeded")
    rig.end(second)
    rig.pass_to(20)

    restart_behind(rig, behind)

    assert counts(rig) == (1, 1)


@pytest.mark.parametrize("behind", range(12))
def test_each_pod_is_counted_once_when_a_controller_begins_in_the_second_of_its_creation(behind: int) -> None:
    rig = Rig(Jobs)
    rig.apply(job(completions=4, parallelism=2, backoffLimit=9))
    first, second = rig.active()
    rig.end(first, phase="Succeeded")
    rig.end(second)

    restart_behind(rig, behind)

    assert counts(rig) == (1, 1)


def test_pods_that_ended_before_there_was_a_controller_are_counted_once() -> None:
    work = job(completions=4, parallelism=1, backoffLimit=9)
    old = [owned_by(work, name, status={"phase": phase}) for name, phase in (("a", "Succeeded"), ("b", "Failed"))]

    rig = rig_of(*old, work)
    assert counts(rig) == (1, 1)

    rig.restart()
    rig.end(*rig.active(), phase="Succeeded")
    assert counts(rig) == (2, 1)


def test_pods_that_others_gave_the_job_are_counted() -> None:
    work = job(completions=2)
    rig = rig_of(owned_by(work, "first", nodeName="n1"), work)
    assert rig.active() == ["first"]
    assert rig.pods()["first"].metadata.finalizers == (JOB_TRACKING,)

    rig.end("first", phase="Succeeded")

    assert counts(rig) == (1, 0)


def test_pods_of_a_cluster_that_had_a_controller_are_not_counted_again() -> None:
    work = job(completions=3, status={"startTime": "2025-12-31T00:00:00Z", "succeeded": 1, "failed": 1})
    old = [owned_by(work, name, status={"phase": phase}) for name, phase in (("a", "Succeeded"), ("b", "Failed"))]

    rig = rig_of(*old, work)

    assert counts(rig) == (1, 1)
    assert len(rig.active()) == 1


def test_a_pod_that_is_named_by_the_status_and_nowhere_to_be_seen_is_counted_after_a_minute() -> None:
    before = {"startTime": "2025-12-31T00:00:00Z", "uncountedTerminatedPods": {"succeeded": ["gone"]}}
    rig = rig_of(job(completions=2, status=before))
    assert counts(rig) == (0, 0)

    rig.pass_to(61)

    assert counts(rig) == (1, 0)


def test_the_pods_of_a_job_that_is_deleted_go_with_it() -> None:
    rig = rig_of(job(completions=3, parallelism=2))
    rig.end(rig.active()[0])

    rig.delete("Job", "sum", propagation="Background")

    assert rig.names("Pod") == rig.names("Job") == []


def test_the_pods_of_a_job_that_waits_for_them_go_before_it() -> None:
    rig = rig_of(job(completions=3, parallelism=2))

    rig.delete("Job", "sum", propagation="Foreground")

    assert rig.names("Pod") == rig.names("Job") == []
    assert rig.log == []


def test_a_pod_with_a_missing_job_is_released_after_a_minute() -> None:
    pod = owned_by(job(), "left", nodeName="n1")
    pod["metadata"]["finalizers"] = [JOB_TRACKING, "example.com/kept"]
    rig = rig_of(pod)
    rig.delete("Pod", "left")
    assert rig.pods()["left"].metadata.finalizers == (JOB_TRACKING, "example.com/kept")

    rig.pass_to(70)

    assert rig.pods()["left"].metadata.finalizers == ("example.com/kept",)


def test_a_pod_unknown_at_job_completion_ends_uncounted() -> None:
    rig = rig_of()
    rig.lags = True
    rig.store.create(job(), now=rig.now)
    rig.show("Job")
    rig.fault = failing(CreateObject, LOST)
    rig.settle()
    rig.show("Job")
    rig.pass_to(2)
    rig.settle()
    first, second = rig.active()
    rig.end(second, phase="Succeeded")
    rig.lags = False

    rig.settle()

    assert rig.active() == []
    assert counts(rig)[0] == 1
    assert "Complete" in ending(rig)
    assert first not in rig.pods()


# Status, and what goes wrong


def test_the_status_says_what_runs() -> None:
    rig = Rig(Jobs, runs=False)
    rig.apply(job(completions=5, parallelism=3))

    rig.run(rig.active()[0])

    expected = {"active": 3, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}}
    assert status(rig) == {**expected, "startTime": "2026-01-01T00:00:00Z"}


def test_one_pod_takes_four_writes_of_the_status() -> None:
    rig = rig_of(job())
    rig.end(*rig.active(), phase="Succeeded")

    assert sum(isinstance(one, ReplaceStatus) for one in rig.actions) == 4


def test_a_lagging_watch_makes_no_surplus_pods() -> None:
    rig = rig_of()
    rig.lags = True
    rig.store.create(job(completions=5, parallelism=3), now=rig.now)
    for _ in range(4):
        rig.show("Job")
        rig.show("Pod", 1)
        rig.settle()

    assert len(rig.active()) == 3


def test_a_refused_creation_is_tried_again() -> None:
    rig = rig_of(quota("none", {"pods": "0"}), job())
    rig.pass_to(4)
    assert rig.log == ["1 create sum- (Forbidden)", "3 create sum- (Forbidden)"]

    rig.patch("ResourceQuota", "none", {"spec": {"hard": {"pods": "1"}}})

    assert len(rig.active()) == 1


def test_after_a_refusal_one_pod_is_tried_at_a_time() -> None:
    rig = rig_of(quota("none", {"pods": "0"}), job(completions=3, parallelism=3))

    rig.pass_to(4)

    assert rig.log == ["1 create sum- (Forbidden)", "3 create sum- (Forbidden)"]


@pytest.mark.parametrize("problem", [LOST, UNSENT, Problem(409, "Conflict", ""), Problem(500, "InternalError", "")])
@pytest.mark.parametrize("kind", [PatchObject, ReplaceStatus])
def test_writes_that_fail_are_made_again(kind: type, problem: Problem) -> None:
    rig = rig_of(job(completions=2))
    rig.fault = failing(kind, problem, times=2)

    rig.end(*rig.active(), phase="Succeeded")
    rig.rest()

    assert counts(rig) == (1, 0)
    assert len(rig.active()) == 1


def test_nothing_is_written_when_nothing_has_changed() -> None:
    rig = rig_of(job(completions=2))
    rig.end(*rig.active(), phase="Succeeded")
    rig.actions.clear()

    rig.restart()
    rig.rest()

    assert rig.actions == []
    assert not rig.machines[0].deadline().keeps_alive
