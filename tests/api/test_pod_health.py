"""The health of a pod's containers, read from its status."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.times import parse_time
from podium.api.use import WELL, PodHealth, pod_health

ENDED = "2026-01-31T09:30:00Z"
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": ENDED}}
CRASHED = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": ENDED}}
BACKS_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}


def pod(*containers: dict[str, Any], **further: Any) -> dict[str, Any]:
    return {"status": {"phase": "Running", "containerStatuses": list(containers), **further}}


def test_restarts_of_all_containers_are_added_up() -> None:
    found = pod_health(pod({"restartCount": 2}, {"restartCount": 3}, initContainerStatuses=[{"restartCount": 1}]))
    assert found == PodHealth(restarts=6)


def test_a_container_that_waits_after_failures_is_in_a_crash_loop() -> None:
    found = pod_health(pod({"restartCount": 4, "state": BACKS_OFF, "lastState": CRASHED}))
    assert found == PodHealth(4, 0, True, parse_time(ENDED))


def test_restarts_after_a_kill_for_memory_are_counted_as_such() -> None:
    found = pod_health(pod({"restartCount": 4, "state": {"running": {}}, "lastState": KILLED}, {"restartCount": 1}))
    assert found == PodHealth(5, 4, False, parse_time(ENDED))


def test_a_first_kill_for_memory_counts_before_the_restart() -> None:
    assert pod_health(pod({"restartCount": 0, "state": KILLED})).out_of_memory_kills == 1


def test_only_the_last_termination_explains_a_restart() -> None:
    found = pod_health(pod({"restartCount": 4, "state": CRASHED, "lastState": KILLED}))
    assert found.out_of_memory_kills == 0


def test_a_successful_end_is_not_a_failure() -> None:
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": ENDED}}
    assert pod_health(pod({"restartCount": 1, "lastState": ended})).failure_ns is None


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"status": None},
        {"status": []},
        {"status": {"containerStatuses": {}}},
        pod(None, 3),  # type: ignore[arg-type]
        pod({"restartCount": True, "state": [], "lastState": {"terminated": "yes"}}),
        pod({"restartCount": -5, "state": {"waiting": ["CrashLoopBackOff"]}}),
        pod({"lastState": {"terminated": {"exitCode": 1, "finishedAt": "yesterday"}}}),
        pod({"lastState": {"terminated": {"exitCode": 1, "finishedAt": 7}}}),
    ],
)
def test_an_unreadable_status_says_nothing_about_health(raw: dict[str, Any]) -> None:
    assert pod_health(raw) == WELL


def test_counts_that_no_container_reaches_are_cut() -> None:
    assert pod_health(pod({"restartCount": 10**30}, {"restartCount": 10**30})).restarts == 2**31 - 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "status",
                        "containerStatuses",
                        "state",
                        "lastState",
                        "terminated",
                        "waiting",
                        "reason",
                        "restartCount",
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_every_status_is_read(status: Any) -> None:
    pod_health({"status": status})
    pod_health({"status": {"containerStatuses": [status]}})
