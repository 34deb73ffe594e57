"""When the CronJob controller creates Jobs, and when it deletes ended ones (pkg/controller/cronjob)."""

from typing import Any

import pytest

from podium.controllers.actions import CreateObject, ReplaceStatus
from podium.controllers.observations import Problem
from podium.controllers.workloads.cron_jobs import SCHEDULED_AT, CronJobs
from tests.controllers.workload_rig import CRASH, LOST, UNSENT, Rig, failing
from tests.store.objects import Raw

MINUTE = 60
# The minutes from 1970 to the start.
START = 29_453_760


def cron(schedule: str = "*/10 * * * *", name: str = "sum", **spec: Any) -> Raw:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(CronJobs)
    rig.apply(*objects)
    return rig


def jobs(rig: Rig) -> list[int]:
    """For which minute since the start each Job was made."""
    return [int(name.removeprefix("sum-")) - START for name in rig.names("Job")]


def end(rig: Rig, minute: int, type_: str = "Complete") -> None:
    """End a Job."""
    types = (type_, "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget")
    conditions = [{"type": name, "status": "True"} for name in types]
    status: Raw = {"conditions": conditions, "startTime": "2026-01-01T00:00:00Z", "active": 0, "ready": 0}
    if type_ == "Complete":
        status["completionTime"] = "2026-01-01T00:01:00Z"
    rig.patch("Job", f"sum-{START + minute}", {"status": status}, status=True)


def by_hand(rig: Rig, name: str) -> None:
    """Create a Job of the CronJob as another client."""
    owner = rig.get("CronJob", "sum")
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "sum", "controller": True}
    metadata = {"name": name, "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}]}
    rig.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, **owner["spec"]["jobTemplate"]})


def status(rig: Rig) -> Raw:
    found: Raw = rig.get("CronJob", "sum").get("status", {})
    return found


def test_a_job_is_made_when_its_time_has_come_and_named_for_it() -> None:
    rig = rig_of(cron())
    assert jobs(rig) == []

    rig.pass_to(25 * MINUTE)

    assert jobs(rig) == [10, 20]
    job = rig.get("Job", f"sum-{START + 20}")
    assert job["metadata"]["annotations"] == {SCHEDULED_AT: "2026-01-01T00:20:00Z"}
    assert job["metadata"]["ownerReferences"][0]["name"] == "sum"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert status(rig)["lastScheduleTime"] == "2026-01-01T00:20:00Z"
    assert [one["name"] for one in status(rig)["active"]] == [f"sum-{START + 10}", f"sum-{START + 20}"]


def test_labels_and_annotations_of_the_template_are_the_jobs() -> None:
    raw = cron()
    raw["spec"]["jobTemplate"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    rig = rig_of(raw)
    rig.pass_to(10 * MINUTE)

    metadata = rig.get("Job", f"sum-{START + 10}")["metadata"]

    assert metadata["labels"] == {"a": "b"}
    assert metadata["annotations"]["c"] == "d"


def test_times_are_by_the_clocks_of_the_time_zone() -> None:
    rig = rig_of(cron("30 5 * * *", timeZone="Asia/Kolkata"))
    rig.pass_to(24 * 60 * MINUTE)

    assert jobs(rig) == [24 * 60]
    written = rig.get("Job", f"sum-{START + 24 * 60}")["metadata"]["annotations"][SCHEDULED_AT]
    assert written == "2026-01-02T05:30:00+05:30"


def test_jobs_of_every_hour_count_from_the_creation_and_then_from_the_last() -> None:
    rig = Rig(CronJobs)
    rig.pass_to(7 * MINUTE)
    rig.apply(cron("@every 1h"))
    rig.pass_to(150 * MINUTE)

    assert jobs(rig) == [67, 127]


def test_nothing_is_made_while_it_is_suspended() -> None:
    rig = rig_of(cron(suspend=True))
    rig.pass_to(25 * MINUTE)
    assert jobs(rig) == []

    rig.patch("CronJob", "sum", {"spec": {"suspend": False}})

    # Of the times that were missed the last one counts.
    assert jobs(rig) == [20]


@pytest.mark.parametrize(
    ("before", "after", "next_minute"),
    [
        (cron("0 5 1 * *"), cron("0 * * * *"), 180),
        (cron("0 1 * * *", timeZone="Asia/Kolkata"), cron("0 1 * * *", timeZone="Etc/UTC"), 25 * 60),
    ],
    ids=["schedule", "zone"],
)
def test_another_schedule_makes_up_for_no_time_before_the_change(before: Raw, after: Raw, next_minute: int) -> None:
    rig = rig_of(before)
    rig.pass_to(130 * MINUTE)

    rig.apply(after)
    assert jobs(rig) == []

    rig.pass_to((next_minute + 5) * MINUTE)
    assert jobs(rig) == [next_minute]


def test_forbid_waits_for_the_last_job_with_an_event_for_each_time() -> None:
    rig = rig_of(cron(concurrencyPolicy="Forbid"))
    rig.pass_to(35 * MINUTE)
    assert jobs(rig) == [10]
    assert [line.partition(" ")[0] for line in rig.recorded if "JobAlreadyActive" in line] == ["1200", "1800"]
    assert [line for line in rig.recorded if line.startswith("1200 ")] == [
        "1200 JobAlreadyActive CronJob default/sum: "
        "Not starting job because prior execution is running and concurrency policy is Forbid"
    ]

    end(rig, 10)

    assert jobs(rig) == [10, 30]


def test_replace_deletes_the_job_that_still_runs() -> None:
    rig = rig_of(cron(concurrencyPolicy="Replace"))
    rig.pass_to(25 * MINUTE)

    assert jobs(rig) == [20]


def test_a_cron_job_skips_starts_past_their_deadline() -> None:
    raw = cron(startingDeadlineSeconds=120, concurrencyPolicy="Forbid")
    rig = rig_of(raw)
    rig.pass_to(21 * MINUTE)
    end(rig, 10)
    assert jobs(rig) == [10, 20]
    rig.pass_to(33 * MINUTE)

    end(rig, 20)

    assert jobs(rig) == [10, 20]
    rig.pass_to(40 * MINUTE)
    assert jobs(rig) == [10, 20, 40]


def test_the_oldest_jobs_that_have_ended_are_deleted() -> None:
    rig = rig_of(cron(successfulJobsHistoryLimit=2))
    for minute in range(10, 80, 10):
        rig.pass_to(minute * MINUTE)
        end(rig, minute, "Failed" if minute % 20 == 0 else "Complete")

    assert jobs(rig) == [50, 60, 70]
    assert "active" not in status(rig)
    assert status(rig)["lastSuccessfulTime"] == "2026-01-01T00:01:00Z"


def test_active_jobs_created_by_other_clients_for_a_cron_job_do_not_count() -> None:
    rig = rig_of(cron(concurrencyPolicy="Forbid"))
    by_hand(rig, "by-hand")

    rig.pass_to(10 * MINUTE)

    assert f"sum-{START + 10}" in rig.names("Job")
    assert [one["name"] for one in status(rig)["active"]] == [f"sum-{START + 10}"]


def test_ended_jobs_of_other_clients_count_for_the_history_and_the_last_success() -> None:
    rig = rig_of(cron(successfulJobsHistoryLimit=2))

    for second, name in enumerate(("c", "b", "a")):
        by_hand(rig, name)
        conditions = [{"type": type_, "status": "True"} for type_ in ("SuccessCriteriaMet", "Complete")]
        times = {"startTime": f"2026-01-01T00:00:0{second}Z", "completionTime": f"2026-01-01T00:01:0{second}Z"}
        rig.patch("Job", name, {"status": {"conditions": conditions, **times}}, status=True)

    assert rig.names("Job") == ["a", "b"]
    assert status(rig)["lastSuccessfulTime"] == "2026-01-01T00:01:02Z"


def test_active_jobs_of_other_clients_are_reported_once() -> None:
    rig = rig_of(cron())
    for name in ("b", "a"):
        by_hand(rig, name)

    rig.pass_to(25 * MINUTE)

    text = "UnexpectedJob CronJob default/sum: Saw a job that the controller did not create or forgot: "
    assert rig.recorded == [f"0 {text}b", f"0 {text}a, b"]


def test_many_missed_times_are_reported_and_only_the_last_is_made_up() -> None:
    raw = cron("* * * * *")
    raw["metadata"]["creationTimestamp"] = "2025-12-31T00:00:30Z"
    rig = rig_of(raw)

    assert jobs(rig) == [0]
    message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert rig.recorded == [f"0 TooManyMissedTimes CronJob default/sum: {message}"]


@pytest.mark.parametrize("schedule", ["TZ=Mars/Base * * * * *", "61 * * * *"])
def test_an_unreadable_schedule_creates_no_job_and_is_reported(schedule: str) -> None:
    rig = rig_of({**cron(schedule), "metadata": {"name": "sum", "namespace": "default", "uid": "was-let-in-once"}})
    rig.pass_to(100)

    assert jobs(rig) == []
    assert "UnparseableSchedule" in rig.recorded[0]
    assert len(rig.recorded) == 1


@pytest.mark.parametrize("problem", [LOST, UNSENT, CRASH, Problem(500, "InternalError", "")])
@pytest.mark.parametrize("kind", [CreateObject, ReplaceStatus])
def test_each_time_of_a_cron_job_has_one_job_under_any_failure(kind: type, problem: Problem) -> None:
    rig = Rig(CronJobs)
    rig.fault = failing(kind, problem)
    made: set[str] = set()

    def note() -> None:
        made.update(rig.names("Job"))

    rig.after_each = note
    rig.apply(cron(concurrencyPolicy="Forbid"))
    rig.pass_to(15 * MINUTE)
    rig.restart()
    rig.pass_to(19 * MINUTE)

    assert jobs(rig) == [10]
    assert made == set(rig.names("Job"))
    assert status(rig)["lastScheduleTime"] == "2026-01-01T00:10:00Z"


def test_a_job_that_is_gone_is_not_made_again() -> None:
    rig = rig_of(cron())
    rig.pass_to(10 * MINUTE)

    rig.delete("Job", f"sum-{START + 10}")
    rig.restart()
    rig.pass_to(15 * MINUTE)

    assert jobs(rig) == []


def test_recurring_jobs_do_not_keep_a_simulation_alive() -> None:
    rig = rig_of(cron())
    rig.pass_to(10 * MINUTE)

    assert not rig.machines[0].deadline().keeps_alive
    assert rig.machines[0].deadline().time_ns is not None


def test_a_deleted_cron_job_leaves_no_jobs_and_no_deadline() -> None:
    rig = rig_of(cron())
    rig.pass_to(25 * MINUTE)

    rig.delete("CronJob", "sum")

    assert jobs(rig) == []
    assert rig.machines[0].deadline().time_ns is None


def test_a_schedule_that_never_comes_is_reported() -> None:
    rig = rig_of(cron(schedule="0 0 30 2 *"))

    assert jobs(rig) == []
    assert [line.split()[1] for line in rig.recorded] == ["InvalidSchedule"]
