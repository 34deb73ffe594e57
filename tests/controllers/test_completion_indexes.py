"""The indexes of Indexed Jobs: their text form, their limits, and success policies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.reading import read
from podium.api.times import parse_time
from podium.api.workloads import Job
from podium.controllers.workloads import job_pods
from podium.controllers.workloads.job_pods import FAILURES, INDEX, free_indexes, read_indexes, write_indexes
from podium.controllers.workloads.jobs import Jobs, failure_of
from tests.controllers.workload_rig import Rig, template, workload
from tests.store.objects import Raw


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((1, 2), "1,2"), ((5, 1, 3, 4), "1,3-5"), ((0, 2, 4), "0,2,4")]
)
def test_runs_of_more_than_two_are_written_as_ranges(indexes: tuple[int, ...], text: str) -> None:
    assert write_indexes(indexes) == text


@given(st.sets(st.integers(0, 60)))
def test_a_written_avoid_list_is_read_back(indexes: set[int]) -> None:
    assert read_indexes(write_indexes(indexes), 100) == indexes


def test_indexes_that_a_job_no_longer_has_are_left_out() -> None:
    assert read_indexes("1,3-8", 5) == {1, 3, 4}
    assert read_indexes("0-999999999999", 3) == {0, 1, 2}


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-b", "b-1", "5-3", ","])
def test_unreadable_completion_indexes_are_skipped(text: str) -> None:
    assert read_indexes(text, 10) <= {1}


def test_the_lowest_free_indexes_come_first() -> None:
    assert free_indexes(2, 6, {0, 2}) == [1, 3]
    assert free_indexes(9, 4, {1}) == [0, 2, 3]


def test_containers_have_the_index_in_their_environment_unless_they_have_such_a_variable() -> None:
    own = {"name": "JOB_COMPLETION_INDEX", "value": "7"}
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "env": [own]}]

    rig = indexed(template=template(restartPolicy="Never", containers=containers))

    first, second = rig.get("Pod", pod_of(rig, 0))["spec"]["containers"]
    (variable,) = first["env"]
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    assert second["env"] == [own]


@pytest.mark.parametrize("completed", [2, 0])
def test_an_elastic_job_forgets_the_indexes_that_it_does_not_have_any_more(completed: int) -> None:
    """[TestElasticIndexedJob]"""
    rig = indexed()
    rig.end(pod_of(rig, completed), phase="Succeeded")
    assert status(rig)["completedIndexes"] == str(completed)

    rig.patch("Job", "sum", {"spec": {"completions": 2, "parallelism": 2}})

    counted = status(rig).get("completedIndexes", ""), status(rig).get("succeeded", 0)
    assert counted == (("", 0) if completed == 2 else ("0", 1))
    assert len(rig.active()) == (2 if completed == 2 else 1)


# Limits for each index, and success policies


def indexed(**spec: Any) -> Rig:
    """Return a rig with an indexed Job of 3 completions, whose pods run."""
    rig = Rig(Jobs, runs=False)
    counts = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
    rig.apply(workload("Job", "sum", {**counts, "template": template(restartPolicy="Never"), **spec}))
    return rig


def pod_of(rig: Rig, index: int) -> str:
    (name,) = (name for name in rig.active() if rig.pods()[name].metadata.annotations[INDEX] == str(index))
    return name


def status(rig: Rig) -> Raw:
    found: Raw = rig.get("Job", "sum")["status"]
    return found


def ends(rig: Rig) -> list[tuple[str, str]]:
    return [(one["type"], one["reason"]) for one in status(rig).get("conditions", ())]


def test_an_index_fails_after_too_many_failures_and_the_others_go_on() -> None:
    rig = indexed(backoffLimitPerIndex=1, backoffLimit=2**31 - 1)
    assert rig.pods()[pod_of(rig, 0)].metadata.annotations[FAILURES] == "0"

    rig.end(pod_of(rig, 0))
    assert len(rig.active()) == 2
    rig.pass_to(11)
    assert rig.pods()[pod_of(rig, 0)].metadata.annotations[FAILURES] == "1"
    assert status(rig)["failedIndexes"] == ""

    rig.end(pod_of(rig, 0))
    rig.pass_to(100)
    assert status(rig)["failedIndexes"] == "0"
    assert len(rig.active()) == 2

    rig.end(pod_of(rig, 1), pod_of(rig, 2), phase="Succeeded")
    rig.pass_to(200)
    assert status(rig)["completedIndexes"] == "1,2"
    assert ends(rig) == [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]


def test_each_index_has_a_backoff_of_its_own() -> None:
    rig = indexed(backoffLimitPerIndex=5, backoffLimit=2**31 - 1)

    rig.end(pod_of(rig, 0))
    rig.pass_to(5)
    rig.end(pod_of(rig, 1))
    rig.pass_to(11)
    assert len(rig.active()) == 2
    rig.restart()
    rig.pass_to(16)

    assert len(rig.active()) == 3
    assert rig.pods()[pod_of(rig, 1)].metadata.annotations[FAILURES] == "1"


def test_the_backoff_of_an_index_begins_when_its_pod_has_ended() -> None:
    limits = {"backoffLimitPerIndex": 5, "backoffLimit": 2**31 - 1}
    rig = indexed(**limits, completions=1, parallelism=1, podReplacementPolicy="Failed")
    name = pod_of(rig, 0)
    rig.run(name)
    rig.pass_to(1)
    rig.delete("Pod", name)
    rig.log.clear()
    rig.pass_to(100)

    rig.end(name)
    rig.pass_to(200)

    assert rig.log == ["110 create sum-0-"]


def test_a_job_fails_with_more_failed_indexes_than_allowed() -> None:
    rig = indexed(backoffLimitPerIndex=0, backoffLimit=2**31 - 1, maxFailedIndexes=1)

    rig.end(pod_of(rig, 0))
    assert len(rig.active()) == 2
    rig.end(pod_of(rig, 1))
    rig.finish(*(name for name, pod in rig.pods().items() if pod.is_terminating))

    assert rig.active() == []
    assert ends(rig) == [("FailureTarget", "MaxFailedIndexesExceeded"), ("Failed", "MaxFailedIndexesExceeded")]


@pytest.mark.parametrize("replacement", ["TerminatingOrFailed", "Failed"])
def test_pods_that_a_failing_job_deletes_fail_no_index(replacement: str) -> None:
    limits = {"backoffLimitPerIndex": 0, "backoffLimit": 2**31 - 1, "maxFailedIndexes": 1}
    rig = indexed(**limits, podReplacementPolicy=replacement)

    rig.end(pod_of(rig, 0))
    rig.end(pod_of(rig, 1))
    rig.finish(*(name for name, pod in rig.pods().items() if pod.is_terminating))

    assert rig.active() == []
    assert status(rig)["failedIndexes"] == "0,1"
    assert ends(rig)[-1] == ("Failed", "MaxFailedIndexesExceeded")


def test_a_failure_policy_fails_an_index_at_once_or_ignores_the_failure() -> None:
    rules = [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]
    rig = indexed(backoffLimitPerIndex=1, backoffLimit=2**31 - 1, podFailurePolicy={"rules": rules})

    rig.end(pod_of(rig, 0), exit_code=42)
    rig.end(pod_of(rig, 1), exit_code=7)
    rig.pass_to(30)

    assert status(rig)["failedIndexes"] == "0"
    assert rig.pods()[pod_of(rig, 1)].metadata.annotations[FAILURES] == "0"


def test_an_ignored_failure_delays_the_next_pod_of_its_index_and_is_counted_apart() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}]
    policy = {"podFailurePolicy": {"rules": rules}}
    rig = indexed(backoffLimitPerIndex=0, backoffLimit=2**31 - 1, completions=1, parallelism=1, **policy)
    rig.log.clear()

    for _ in range(2):
        rig.end(pod_of(rig, 0), exit_code=7)
        rig.skip()

    assert rig.log == ["10 create sum-0-", "30 create sum-0-"]
    annotations = rig.pods()[pod_of(rig, 0)].metadata.annotations
    assert (annotations[FAILURES], annotations[job_pods.IGNORED_FAILURES]) == ("0", "2")


def test_a_deadline_is_the_reason_of_a_failure_before_the_number_of_failed_indexes() -> None:
    limits = {"backoffLimitPerIndex": 0, "backoffLimit": 2**31 - 1, "maxFailedIndexes": 0, "activeDeadlineSeconds": 10}
    job = read(workload("Job", "sum", {**limits, "completionMode": "Indexed", "completions": 3}), Job)
    job = replace(job, status=replace(job.status, start_time="2026-01-01T00:00:00Z"))
    progress = job_pods.Progress({"succeeded": 0, "failed": 1}, frozenset(), set(), failed={0})

    ends = [failure_of(job, progress, 0, parse_time(f"2026-01-01T00:00:{second:02}Z")) for second in (9, 10)]

    assert [end.reason for end in ends if end is not None] == ["MaxFailedIndexesExceeded", "DeadlineExceeded"]


@pytest.mark.parametrize(
    ("rule", "indexes"),
    [
        ({"succeededIndexes": "0,2"}, (0, 2)),
        ({"succeededCount": 1}, (1,)),
        ({"succeededIndexes": "1-2", "succeededCount": 1}, (2,)),
    ],
)
def test_a_job_succeeds_by_its_success_policy(rule: Raw, indexes: tuple[int, ...]) -> None:
    rig = indexed(successPolicy={"rules": [rule]})

    for index in indexes:
        assert ends(rig) == []
        rig.end(pod_of(rig, index), phase="Succeeded")
    rig.finish(*(name for name, pod in rig.pods().items() if pod.is_terminating))

    assert rig.active() == []
    assert ends(rig) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert status(rig)["succeeded"] == len(indexes)
    # The pods that the policy makes superfluous are deleted, and are no failures.
    assert "failed" not in status(rig)


def test_a_job_whose_indexes_have_all_ended_fails_by_a_failed_one_before_its_success_policy() -> None:
    rig = indexed(completions=2, backoffLimitPerIndex=0, successPolicy={"rules": [{"succeededCount": 1}]})

    rig.end(pod_of(rig, 0), phase="Failed")
    assert ends(rig) == []
    rig.end(pod_of(rig, 1), phase="Succeeded")

    assert ends(rig) == [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")]


def test_a_complete_job_has_reached_its_completions() -> None:
    rig = indexed()

    rig.end(*rig.active(), phase="Succeeded")

    assert ends(rig) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
