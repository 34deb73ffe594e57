"""Pods whose disruption did not happen: row 57 of the scenarios, invariant F11."""

from typing import Any

import pytest

from podium.controllers.actions import ReplaceStatus
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.observations import Changed, Deleted
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, READY, Rig, pod
from tests.store.objects import SECOND, Raw

START = "2026-01-01T12:00:00Z"


def target(**fields: Any) -> Raw:
    """Return the condition of a pod that became the target of a disruption at the start."""
    condition = {"status": "True", "reason": "EvictionByEvictionAPI", "message": "", "lastTransitionTime": START}
    return {"type": "DisruptionTarget", **condition, **fields}


def doomed(name: str = "a", *, phase: str = "Running", **fields: Any) -> Raw:
    """Return a pod with that condition."""
    return pod(name, status={"phase": phase, "conditions": [*READY["conditions"], target(**fields)]})


def condition(rig: Rig, name: str = "a") -> Raw:
    found: Raw = next(one for one in rig.get("Pod", name)["status"]["conditions"] if one["type"] == "DisruptionTarget")
    return found


@pytest.mark.upstream(57)
def test_f11_a_pod_not_deleted_for_two_minutes_loses_its_disruption_target() -> None:
    rig = Rig(DisruptionController, doomed())
    before = rig.get("Pod", "a")

    rig.wait(119)
    assert condition(rig) == target()
    assert rig.controller.deadline().keeps_alive
    rig.wait(1)

    assert condition(rig) == {
        "type": "DisruptionTarget",
        "status": "False",
        "lastTransitionTime": "2026-01-01T12:02:00Z",
    }
    after = rig.get("Pod", "a")
    assert after["status"]["conditions"][0] == READY["conditions"][0]
    assert after["spec"] == before["spec"]
    assert not rig.controller.deadline().keeps_alive
    assert rig.controller.deadline().time_ns is None


@pytest.mark.upstream(57)
@pytest.mark.parametrize(
    "raw",
    [
        doomed(reason="TerminationByKubelet"),
        doomed(phase="Failed"),
        doomed(phase="Succeeded"),
        doomed(status="False"),
        pod("a"),
    ],
)
def test_kubelet_terminations_ended_pods_and_non_targets_keep_their_condition(raw: Raw) -> None:
    rig = Rig(DisruptionController, raw)

    rig.wait(600)

    assert rig.log == []


@pytest.mark.upstream(57)
def test_a_pod_that_is_terminating_stays_a_target() -> None:
    rig = Rig(DisruptionController, doomed())

    rig.wait(60)
    rig.delete("Pod", "a", grace_seconds=3_600)
    rig.wait(600)

    assert rig.log == []
    assert rig.controller.deadline().time_ns is None


def test_a_pod_that_does_not_say_since_when_is_a_target_no_more_at_once() -> None:
    rig = Rig(DisruptionController, doomed("a", lastTransitionTime=None), doomed("b", lastTransitionTime="yesterday"))

    rig.settle()

    assert condition(rig, "a")["status"] == condition(rig, "b")["status"] == "False"


def test_another_disruption_begins_another_two_minutes() -> None:
    rig = Rig(DisruptionController, doomed())
    rig.problems = [CONFLICT]
    rig.wait(120)
    assert rig.controller.deadline().time_ns == rig.now + SECOND

    rig.put(doomed(lastTransitionTime="2026-01-01T12:02:00Z"))
    rig.wait(119)
    assert condition(rig)["status"] == "True"
    rig.wait(1)

    assert condition(rig)["status"] == "False"


def test_a_pod_changed_meanwhile_is_checked_again() -> None:
    rig = Rig(DisruptionController, doomed())
    rig.wait(119)
    rig.before_write = lambda: rig.put({**doomed(), "metadata": {**doomed()["metadata"], "labels": {"app": "other"}}})

    rig.wait(1)
    assert rig.log[0][1] is not None
    assert rig.log[0][1].reason == "Conflict"
    assert condition(rig)["status"] == "False"
    assert rig.get("Pod", "a")["metadata"]["labels"] == {"app": "other"}


@pytest.mark.parametrize("problem", [CONFLICT, NO_ANSWER])
def test_a_write_that_failed_is_tried_again_until_it_is_seen(problem: Any) -> None:
    rig = Rig(DisruptionController, doomed())
    rig.problems = [problem, problem]

    rig.wait(119)
    rig.held = {"Pod"}
    rig.wait(1)
    assert rig.controller.deadline().keeps_alive
    rig.wait(10)
    rig.held = set()
    rig.wait(600)

    assert condition(rig)["status"] == "False"
    assert rig.controller.deadline().time_ns is None
    assert not rig.controller.deadline().keeps_alive


def test_one_version_of_a_stale_condition_is_written_once() -> None:
    rig = Rig(DisruptionController, doomed())
    seen = rig.store.get("Pod", "default/a")
    rig.held = {"Pod"}
    rig.wait(121)

    rig.controller.handle(Changed(seen.object, seen.raw), rig.now)
    rig.wait(300)

    assert [type(action) for action, _ in rig.log] == [ReplaceStatus]


def test_a_pod_that_is_gone_is_forgotten() -> None:
    rig = Rig(DisruptionController, doomed())
    rig.settle()
    old = rig.store.get("Pod", "default/a").object

    rig.delete("Pod", "a")
    rig.settle()
    assert rig.controller.deadline().time_ns is None
    rig.put(doomed())
    rig.settle()
    rig.controller.handle(Deleted(old), rig.now)

    rig.wait(120)
    assert condition(rig)["status"] == "False"
