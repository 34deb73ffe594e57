"""How `kubectl get pods` shows pods: by the state of their containers."""

from __future__ import annotations

from typing import Any

import pytest

from podium.server.tables.columns import table_of
from podium.store.api_resources import POD
from tests.server.tables.shown import NOW, columns, row
from tests.store.objects import Raw

RUNNING: Raw = {"state": {"running": {}}, "ready": True}
DONE: Raw = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


def ended(code: int, **more: Any) -> Raw:
    return {"state": {"terminated": {"exitCode": code, **more}}}


def waits(reason: str) -> Raw:
    return {"state": {"waiting": {"reason": reason}}}


def pod(*statuses: Raw, phase: str = "Running", inits: tuple[Raw, ...] = (), **more: Any) -> Raw:
    spec = {
        "containers": [{"name": f"c{index}"} for index in range(max(1, len(statuses)))],
        "initContainers": [{"name": f"i{index}", **status.get("spec", {})} for index, status in enumerate(inits)],
        **more.get("spec", {}),
    }
    status = {
        "phase": phase,
        "containerStatuses": [{"name": f"c{index}", **one} for index, one in enumerate(statuses)],
        "initContainerStatuses": [{"name": f"i{index}", **one} for index, one in enumerate(inits)],
        **more.get("status", {}),
    }
    return {"metadata": more.get("metadata", {}), "spec": spec, "status": status}


GOING = {"deletionTimestamp": "2027-01-15T08:00:00Z"}
INITIALIZED = {"conditions": [{"type": "Initialized", "status": "True"}]}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
GATED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
SIDECAR: Raw = {"spec": {"restartPolicy": "Always"}, "started": True, "ready": True}


@pytest.mark.parametrize(
    ("raw", "ready", "status"),
    [
        (pod(phase="Pending"), "0/1", "Pending"),
        (pod(phase="Pending", status=GATED), "0/1", "SchedulingGated"),
        (pod(RUNNING), "1/1", "Running"),
        (pod(RUNNING, waits("ContainerCreating")), "1/2", "ContainerCreating"),
        (pod(waits("CrashLoopBackOff")), "0/1", "CrashLoopBackOff"),
        (pod(ended(1, reason="Error"), phase="Failed"), "0/1", "Error"),
        (pod(ended(3), phase="Failed"), "0/1", "ExitCode:3"),
        (pod(ended(137, signal=9), phase="Failed"), "0/1", "Signal:9"),
        (pod(DONE, phase="Succeeded"), "0/1", "Completed"),
        (pod(DONE, RUNNING, status=READY), "1/2", "Running"),
        (pod(DONE, RUNNING), "1/2", "NotReady"),
        (pod(phase="Failed", status={"reason": "Evicted"}), "0/1", "Evicted"),
        (pod(RUNNING, metadata=GOING), "1/1", "Terminating"),
        (pod(RUNNING, metadata=GOING, status={"reason": "NodeLost"}), "1/1", "Unknown"),
        (pod(DONE, phase="Succeeded", metadata=GOING), "0/1", "Completed"),
        (pod(phase="Pending", inits=(waits("PodInitializing"), {})), "0/1", "Init:0/2"),
        (pod(phase="Pending", inits=(DONE, waits("ImagePullBackOff"))), "0/1", "Init:ImagePullBackOff"),
        (pod(phase="Pending", inits=(ended(1, reason="Error"),)), "0/1", "Init:Error"),
        (pod(phase="Pending", inits=(ended(1),)), "0/1", "Init:ExitCode:1"),
        (pod(RUNNING, inits=(SIDECAR,)), "2/2", "Running"),
        (pod(RUNNING, inits=({},), status=INITIALIZED), "1/1", "Init:0/1"),
    ],
)
def test_a_word_says_how_a_pod_is(raw: Raw, ready: str, status: str) -> None:
    found = row("Pod", raw)
    assert (found["Ready"], found["Status"]) == (ready, status)


def test_restarts_say_when_the_last_was() -> None:
    status = {
        "restartCount": 2,
        "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2027-01-15T07:57:00Z"}},
        **RUNNING,
    }
    assert row("Pod", pod(status))["Restarts"] == "2 (3m ago)"
    assert row("Pod", pod(RUNNING))["Restarts"] == "0"


def test_restarts_of_init_containers_count_while_they_run() -> None:
    init = {"restartCount": 3, **waits("CrashLoopBackOff")}
    assert row("Pod", pod(phase="Pending", inits=(init,)))["Restarts"] == "3"


def test_wide_shows_where_a_pod_is_and_where_room_is_made_for_it() -> None:
    status = {
        "podIPs": [{"ip": "10.0.0.1"}],
        "nominatedNodeName": "n2",
        "conditions": [{"type": "g", "status": "True"}],
    }
    gates = {"nodeName": "n1", "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]}
    found = row("Pod", pod(RUNNING, spec=gates, status=status))
    assert [found[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "10.0.0.1",
        "n1",
        "n2",
        "1/2",
    ]
    nothing = row("Pod", pod(phase="Pending"))
    assert {nothing[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")} == {"<none>"}


def test_most_columns_are_for_everybody() -> None:
    assert columns("Pod", wide=False) == ["Name", "Ready", "Status", "Restarts", "Age"]


def test_completed_pods_can_be_omitted() -> None:
    (found,) = table_of(POD, [pod(DONE, phase="Succeeded")], NOW)["rows"]
    assert found["conditions"][0]["type"] == "Completed"
    (other,) = table_of(POD, [pod(RUNNING)], NOW)["rows"]
    assert "conditions" not in other
