"""Simulations of the longest times and durations that Kubernetes accepts."""

from typing import Any

import pytest

import podium
from podium.api.errors import InputError
from tests.store.objects import Raw, node, pod

FOR_EVER = 2**63 - 1
LONG = 999_999_999_999


def containers(cpu: int = 1) -> list[Raw]:
    return [{"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}]


def running(name: str, **spec: Any) -> Raw:
    return pod(name, metadata={"uid": name}, spec={"nodeName": "n1", "containers": containers(), **spec})


def waiting(**spec: Any) -> Raw:
    return pod("waits", spec={"priority": 9, "containers": containers(4), **spec})


@pytest.mark.parametrize("seconds", [LONG, FOR_EVER])
def test_a_victim_whose_grace_period_outlasts_all_times_never_ends(seconds: int) -> None:
    objects = [node("n1", cpu="4"), running("a", terminationGracePeriodSeconds=seconds), waiting()]

    result = podium.simulate(objects)

    assert {one["pod"]: one["endedAt"] for one in result.pods} == {"default/a": None, "default/waits": None}
    assert "Preempted" in {event.reason for event in result.events}


@pytest.mark.parametrize("seconds", [LONG, FOR_EVER])
def test_a_taint_tolerated_beyond_all_times_evicts_no_pod(seconds: int) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
    tainted = node("n1", cpu="4")
    tainted["spec"] = {"taints": [{"key": "a", "effect": "NoExecute"}]}

    result = podium.simulate([tainted, running("a", tolerations=[toleration])])

    assert [one["endedAt"] for one in result.pods] == [None]


@pytest.mark.parametrize("seconds", [LONG, FOR_EVER])
def test_a_deadline_beyond_all_times_ends_no_job(seconds: int) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": containers()}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web"},
        "spec": {"activeDeadlineSeconds": seconds, "template": template},
    }

    result = podium.simulate([node("n1", cpu="4"), job])

    assert "DeadlineExceeded" not in {event.reason for event in result.events}


def test_a_pod_that_was_deleted_with_such_a_period_is_taken_as_it_is() -> None:
    deleted = running("a")
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": LONG}

    assert podium.simulate([node("n1", cpu="4"), deleted, waiting()], until="1h").summary["end"] == 3_600


@pytest.mark.parametrize(
    ("until", "start", "problem"),
    [
        ("1h", "9999-01-01T00:00:00Z", "start: .* is out of range; times are up to 2262"),
        ("99999999h", None, "until: .* is too long"),
    ],
)
def test_a_run_is_within_all_times(until: str, start: str | None, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        podium.simulate([node("n1")], until=until, start=start)


def test_a_binding_that_takes_longer_than_all_times_never_comes() -> None:
    result = podium.simulate([node("n1", cpu="4"), waiting(), waiting_too()], bind_delay="2562047h")

    assert [one["scheduledAt"] for one in result.pods] == [None, None]


def test_a_run_that_is_asked_to_go_on_longer_ends_with_the_last_time() -> None:
    result = podium.simulate([node("n1")], start="2262-04-11T23:00:00Z", until="2562047h")

    assert 2_800 < result.summary["end"] < 3_600


def test_a_run_near_the_last_time_ends_with_it() -> None:
    result = podium.simulate([node("n1", cpu="4"), waiting(), waiting_too()], start="2262-04-11T23:00:00Z")

    assert result.summary["end"] < 3_600


def waiting_too() -> Raw:
    return pod(
        "waits-too", metadata={"annotations": {"podium.dev/duration": "2562047h"}}, spec={"containers": containers()}
    )
