"""The rules for the status of a Job."""

from __future__ import annotations

from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"
ENDING = {"startTime": NOON, "completionTime": LATER}


def job(**spec: Any) -> Raw:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}}
    spec = {"template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": spec}


def true(*types: str) -> list[Raw]:
    return [{"type": type_, "status": "True"} for type_ in types]


DONE: Raw = {**ENDING, "succeeded": 1, "conditions": true("SuccessCriteriaMet", "Complete")}
LOST: Raw = {"startTime": NOON, "failed": 2, "conditions": true("FailureTarget", "Failed")}
INDEXED: Raw = {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 1}


def written(before: Raw, after: Raw, **spec: Any) -> Raw:
    """Return the status of a Job after two updates of its status."""
    store = Store()
    store.create(job(**spec), now=0)
    for status in (before, after):
        store.patch("Job", "default/web", [{"op": "add", "path": "/status", "value": status}], "json", "status")
    found: Raw = store.get("Job", "default/web").raw["status"]
    return found


@pytest.mark.parametrize(
    ("before", "after", "spec"),
    [
        ({}, {"startTime": NOON, "active": 2, "ready": 1}, {}),
        ({"startTime": NOON}, {"startTime": LATER}, {"suspend": True}),
        ({"startTime": NOON, "succeeded": 1}, DONE, {}),
        ({}, LOST, {}),
        ({"completedIndexes": "0-3", "succeeded": 4}, {"completedIndexes": "0,2-3", "failedIndexes": "1"}, INDEXED),
        ({"succeeded": 4}, {"succeeded": 3}, {**INDEXED, "completions": 2}),
    ],
)
def test_a_status_that_a_controller_writes_is_stored(before: Raw, after: Raw, spec: Raw) -> None:
    if "completedIndexes" in before:
        after = {**after, "succeeded": 4}
    assert written(before, after, **spec) == after


@pytest.mark.parametrize(
    ("before", "after", "spec", "problem"),
    [
        ({}, {**DONE, "active": 1}, {}, "active: Invalid value: 1: active>0 is invalid for finished job"),
        ({}, {**DONE, "terminating": 1}, {}, "terminating>0 is invalid for finished job"),
        ({}, {**LOST, "uncountedTerminatedPods": {"failed": ["a"]}}, {}, "needs to be empty for finished job"),
        ({}, {**LOST, "startTime": None}, {}, "startTime: Required value: startTime is required for finished job"),
        ({}, {**DONE, "completionTime": None}, {}, "completionTime is required for Complete jobs"),
        ({}, ENDING, {}, "cannot be set when there is no Complete=True condition"),
        ({}, {**DONE, "startTime": LATER, "completionTime": NOON}, {}, "cannot be set before startTime"),
        (DONE, {**DONE, "completionTime": NOON}, {}, "completionTime cannot be mutated"),
        ({}, {**LOST, "conditions": true("Failed")}, {}, "Failed=True condition without the FailureTarget=true"),
        ({}, {**DONE, "conditions": true("Complete")}, {}, "Complete=True condition without the SuccessCriteriaMet"),
        (LOST, {**LOST, "conditions": true("FailureTarget")}, {}, "cannot disable the terminal Failed=True condition"),
        (LOST, {**LOST, "failed": 1}, {}, "failed: Invalid value: 1: cannot decrease the failed counter"),
        ({"succeeded": 2}, {"succeeded": 1}, INDEXED, "cannot decrease the succeeded counter"),
        ({"startTime": NOON}, {"startTime": LATER}, {}, "startTime cannot be removed for unsuspended job"),
        ({}, {"ready": 1}, {}, "cannot set more ready pods than active"),
        ({}, {"conditions": true("SuccessCriteriaMet", "FailureTarget")}, {}, "SuccessCriteriaMet=True and FailureTar"),
        ({}, {"completedIndexes": "1"}, {}, "requires indexed completion mode"),
        ({}, {"failedIndexes": "1"}, {"completions": 3}, "requires backoffLimitPerIndex"),
        ({}, {"completedIndexes": "1,x"}, INDEXED, 'cannot convert to an interval of indexes: "x"'),
        ({}, {"completedIndexes": "5"}, INDEXED, 'error parsing completedIndexes: too large index: "5"'),
        ({}, {"failedIndexes": "3,1"}, INDEXED, "non-increasing order, previous: 3, current"),
        ({}, {"failedIndexes": "1-2-3"}, INDEXED, "cannot convert to an interval of indexes"),
        ({}, {"failedIndexes": "2-4", "completedIndexes": "0,3"}, INDEXED, "overlap at index: 3"),
    ],
)
def test_a_status_that_contradicts_itself_or_the_one_before_is_refused(
    before: Raw, after: Raw, spec: Raw, problem: str
) -> None:
    after = {name: value for name, value in after.items() if value is not None}
    with pytest.raises(StoreError) as refused:
        written(before, after, **spec)

    assert refused.value.code == 422
    assert problem in refused.value.message


def test_a_problem_that_was_there_before_does_not_stop_other_changes() -> None:
    store = Store()
    broken = {"conditions": true("Complete"), "active": 3}
    store.create({**job(), "status": broken}, now=0)

    after = {**broken, "startTime": NOON}
    store.patch("Job", "default/web", [{"op": "add", "path": "/status", "value": after}], "json", "status")

    assert store.get("Job", "default/web").raw["status"] == after
