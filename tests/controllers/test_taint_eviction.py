"""The pods that taint eviction deletes, and when."""

from typing import Any

import pytest

from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.nodes.pod_deletion import TaintEviction
from podium.controllers.observations import Problem
from tests.controllers.cluster_rig import BROKEN, CONFLICT, CRASH_AFTER, CRASH_BEFORE, LOST, Rig
from tests.devices import allocated, claim, device, devices_of
from tests.pod_statuses import set_pod_status
from tests.store.objects import Raw, node, pod

GONE: Raw = {"key": "gone", "effect": "NoExecute"}
OTHER: Raw = {"key": "other", "effect": "NoExecute"}


def tolerating(name: str, *tolerations: Raw, **more: Any) -> Raw:
    status = {"phase": "Running"}
    return pod(name, node="n1", spec={"tolerations": [*DEFAULTS, *tolerations]}, status=status, **more)


def exists(key: str = "gone", seconds: int | None = None) -> Raw:
    toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


# Those that admission would fill in.
DEFAULTS = [
    exists("node.kubernetes.io/not-ready", 300),
    exists("node.kubernetes.io/unreachable", 300),
]


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(TaintEviction)
    rig.apply(node("n1"), *objects)
    return rig


def taint(rig: Rig, *taints: Raw) -> None:
    rig.patch("Node", "n1", {"spec": {"taints": list(taints)}})


def test_a_pod_that_does_not_tolerate_the_taint_goes_at_once_and_its_status_says_why_first() -> None:
    rig = rig_of(tolerating("a"), tolerating("b", exists()))

    taint(rig, GONE)

    assert rig.log == ["0 DeletionByTaintManager a", "0 delete a"]
    assert rig.pods() == {"a": "Running terminating", "b": "Running"}
    assert rig.is_at_rest()


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule"])
def test_taints_of_other_effects_evict_no_pod(effect: str) -> None:
    rig = rig_of(tolerating("a"))

    taint(rig, {"key": "gone", "effect": effect})

    assert rig.log == []


def test_a_pod_that_tolerates_for_some_time_goes_after_that() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)), tolerating("b", exists(seconds=-1)))
    rig.pass_to(5)

    taint(rig, GONE)
    rig.pass_to(100)

    assert rig.log == ["5 DeletionByTaintManager b", "5 delete b", "35 DeletionByTaintManager a", "35 delete a"]


def test_the_shortest_tolerated_taint_sets_the_eviction_time() -> None:
    rig = rig_of(tolerating("a", exists(seconds=100), exists("other", 20)), tolerating("b", exists(seconds=100)))

    taint(rig, GONE, OTHER)
    rig.pass_to(200)

    assert [one for one in rig.log if "delete" in one] == ["0 delete b", "20 delete a"]


@pytest.mark.parametrize("left", [[OTHER], [GONE, OTHER]])
def test_an_eviction_time_once_set_stands_while_other_tolerated_taints_come_and_go(left: list[Raw]) -> None:
    rig = rig_of(tolerating("a", exists(seconds=100), exists("other", 20)), tolerating("b", exists(seconds=100)))

    taint(rig, GONE)
    rig.pass_to(50)
    taint(rig, *left)
    rig.pass_to(200)

    assert [one for one in rig.log if "delete" in one] == ["50 delete b", "100 delete a"]


def test_a_node_that_falls_silent_after_it_was_not_ready_does_not_give_its_pods_more_time() -> None:
    rig = rig_of(tolerating("a"))

    taint(rig, {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T12:00:00Z"})
    rig.pass_to(200)
    taint(rig, {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-01T12:03:20Z"})
    rig.pass_to(1000)

    assert rig.log[-1] == "300 delete a"


def test_a_pod_that_tolerates_its_taints_for_good_loses_its_eviction_time() -> None:
    rig = rig_of(tolerating("a", exists(), exists("other", 60)))

    taint(rig, GONE, OTHER)
    rig.pass_to(50)
    taint(rig, GONE)
    rig.pass_to(70)
    taint(rig, GONE, OTHER)
    rig.pass_to(200)

    assert rig.log[-1] == "130 delete a"


@pytest.mark.parametrize("seconds", [10, 1000])
def test_other_seconds_of_a_toleration_do_not_move_an_eviction_time(seconds: int) -> None:
    rig = rig_of(tolerating("a", exists(seconds=100)))

    taint(rig, GONE)
    rig.pass_to(50)
    rig.patch("Pod", "a", {"spec": {"tolerations": [*DEFAULTS, exists(seconds=seconds)]}})
    rig.pass_to(2000)

    assert rig.log[-1] == "100 delete a"


def test_the_first_matching_toleration_counts() -> None:
    rig = rig_of(tolerating("a", exists(seconds=50), exists(seconds=10)))

    taint(rig, GONE)
    rig.pass_to(100)

    assert rig.log[-1] == "50 delete a"


def test_a_taint_that_goes_in_time_has_no_consequence() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))

    taint(rig, GONE)
    rig.pass_to(29)
    taint(rig)
    assert rig.is_at_rest()
    rig.pass_to(35)
    taint(rig, GONE)
    rig.pass_to(100)

    assert rig.log[-1] == "65 delete a"


def test_a_pod_that_comes_late_has_all_of_its_time() -> None:
    rig = rig_of()

    taint(rig, {**GONE, "timeAdded": "2026-01-01T12:00:00Z"})
    rig.pass_to(20)
    rig.apply(tolerating("a", exists(seconds=30)))
    rig.pass_to(100)

    assert rig.log[-1] == "50 delete a"


def test_the_time_of_a_pod_that_came_late_counts_from_when_it_got_its_node_also_after_a_restart() -> None:
    rig = rig_of()
    taint(rig, {**GONE, "timeAdded": "2026-01-01T12:00:00Z"})
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T12:00:20Z"}
    late = tolerating("a", exists(seconds=30))
    late["metadata"]["creationTimestamp"] = "2026-01-01T12:00:00Z"
    late["status"]["conditions"] = [scheduled]

    rig.pass_to(20)
    rig.apply(late)
    rig.pass_to(40)
    rig.restart()
    rig.pass_to(100)

    assert rig.log[-1] == "51 delete a"


def test_time_counts_from_when_the_taint_was_added_also_after_a_restart() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))

    taint(rig, {**GONE, "timeAdded": "2026-01-01T12:00:00Z"})
    rig.pass_to(20)
    rig.restart()
    rig.pass_to(100)

    # Times are written in whole seconds: as a new machine cannot know better, it waits until the end of that second.
    assert rig.log[-1] == "31 delete a"


@pytest.mark.parametrize("text", ["soon", 5])
def test_an_unreadable_taint_time_counts_as_absent(text: object) -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))

    taint(rig, {**GONE, "timeAdded": text})
    rig.pass_to(100)

    assert rig.log[-1] == "30 delete a"


def test_pods_of_daemon_sets_stay_on_lost_nodes_for_their_tolerations() -> None:
    everywhere = [exists("node.kubernetes.io/unreachable"), exists("node.kubernetes.io/not-ready")]
    daemon = pod("daemon", node="n1", spec={"tolerations": everywhere}, status={"phase": "Running"})
    rig = rig_of(daemon, tolerating("a"))

    taint(rig, {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"})
    rig.pass_to(1000)

    assert rig.log == ["300 DeletionByTaintManager a", "300 delete a"]


def test_ended_pods_are_deleted_too() -> None:
    rig = rig_of({**tolerating("ended"), "status": {"phase": "Failed"}})

    taint(rig, GONE)

    assert rig.log == ["0 DeletionByTaintManager ended", "0 delete ended"]


def test_static_pods_and_those_that_are_ending_are_left_alone() -> None:
    static = tolerating("static", annotations={"kubernetes.io/config.mirror": "x"})
    rig = rig_of(static, tolerating("ending"))
    rig.delete("Pod", "ending")

    taint(rig, GONE)

    assert rig.log == []


def test_pods_elsewhere_stay() -> None:
    rig = rig_of(node("n2"), pod("a", node="n2", status={"phase": "Running"}), pod("pending"))

    taint(rig, GONE)

    assert rig.log == []


def test_a_namesake_has_its_own_time() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))
    taint(rig, GONE)

    with rig.holding("Pod"):
        rig.delete("Pod", "a", grace=0)
        rig.apply(tolerating("a", exists()))
    rig.pass_to(100)

    assert rig.log == []


def test_changes_of_the_node_do_not_make_it_longer() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))

    taint(rig, GONE)
    rig.pass_to(20)
    rig.patch("Node", "n1", {"metadata": {"labels": {"new": "yes"}}})
    rig.pass_to(100)

    assert rig.log[-1] == "30 delete a"


def test_a_taint_removed_and_added_unseen_does_not_restart_its_clock() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))
    taint(rig, {**GONE, "timeAdded": "2026-01-01T12:00:00Z"})
    rig.pass_to(20)

    taint(rig, {**GONE, "timeAdded": "2026-01-01T12:00:20Z"})
    rig.pass_to(100)

    assert rig.log[-1] == "30 delete a"


def test_with_a_pod_that_is_gone_its_time_is_forgotten() -> None:
    rig = rig_of(tolerating("a", exists(seconds=30)))
    taint(rig, GONE)

    rig.delete("Pod", "a", grace=0)

    assert rig.is_at_rest()


# Writes that fail


@pytest.mark.parametrize("kind", [ReportStatus, DeleteObject])
@pytest.mark.parametrize("problem", [BROKEN, CONFLICT, LOST, CRASH_BEFORE, CRASH_AFTER])
def test_a_pod_is_deleted_only_after_its_condition_is_written_under_any_failure(
    kind: type[Action], problem: Problem
) -> None:
    rig = rig_of(tolerating("a"))
    asked = rig.fail_once(kind, problem)

    def check() -> None:
        metadata = rig.pod("a")["metadata"]
        assert "deletionTimestamp" not in metadata or rig.pod_condition("a", "DisruptionTarget")["status"] == "True"

    rig.after_each = check
    taint(rig, GONE)
    rig.pass_to(10)

    assert asked
    assert rig.pods() == {"a": "Running terminating"}
    assert rig.is_at_rest()


def test_a_taint_that_goes_before_the_deletion_saves_the_pod() -> None:
    rig = rig_of(tolerating("a"))
    rig.fault = lambda action: BROKEN if isinstance(action, DeleteObject) else None

    taint(rig, GONE)
    rig.pass_to(0.5)
    taint(rig)
    rig.pass_to(10)

    assert rig.pods() == {"a": "Running"}
    assert rig.is_at_rest()


def test_a_pod_that_was_saved_is_marked_again_when_it_has_to_go_after_all() -> None:
    rig = rig_of(tolerating("a"))
    rig.fault = lambda action: BROKEN if isinstance(action, DeleteObject) else None
    taint(rig, GONE)
    rig.pass_to(0.5)
    taint(rig)
    rig.pass_to(10)
    # The disruption controller takes back what has not happened.
    target = {"type": "DisruptionTarget", "status": "False"}
    set_pod_status(rig.store, "default/a", {}, [target], now=rig.now)
    rig.settle()

    rig.fault = lambda action: None
    taint(rig, GONE)

    assert rig.log[-2:] == ["10 DeletionByTaintManager a", "10 delete a"]


def test_consecutive_eviction_steps_need_no_observation() -> None:
    rig = rig_of(tolerating("a"))

    with rig.holding("Pod"):
        taint(rig, GONE)
        taint(rig, GONE, OTHER)
        rig.pass_to(10)

    assert len(rig.actions) == 2


def test_a_restarted_controller_does_not_mark_a_pod_again() -> None:
    rig = rig_of(tolerating("a"))
    rig.fault = lambda action: BROKEN if isinstance(action, DeleteObject) else None
    taint(rig, GONE)

    rig.fault = lambda action: None
    rig.restart()

    assert len([one for one in rig.actions if isinstance(one, ReportStatus)]) == 1
    assert rig.pods() == {"a": "Running terminating"}


def test_a_missing_node_is_not_retried() -> None:
    rig = rig_of(tolerating("a"))
    rig.fault = lambda action: Problem(404, "", "")

    taint(rig, GONE)

    assert rig.is_at_rest()


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_rejected_lifecycle_write_is_retried_and_keeps_nothing_alive(code: int) -> None:
    rig = rig_of(tolerating("a"))
    rig.fault = lambda action: Problem(code, "", "")

    taint(rig, GONE)
    rig.pass_to(20)
    assert rig.is_settled()
    rig.fault = lambda action: None
    rig.pass_to(60)

    assert rig.pods() == {"a": "Running terminating"}


# Devices

BROKEN_DEVICE: Raw = {"key": "broken", "value": "yes", "effect": "NoExecute"}
BRIEFLY: list[Raw] = [{"operator": "Exists", "tolerationSeconds": 30}]


def user_of(name: str, *devices: str, **result: Any) -> tuple[Raw, Raw]:
    """Return a running pod, and its claim with devices of its node."""
    return tolerating(name, metadata={"uid": f"uid-{name}"}), claim(
        f"of-{name}", status=allocated("n1", *devices, to=[name], **result)
    )


def taint_device(rig: Rig, name: str, *taints: Raw) -> None:
    """Taint one of the devices of the node."""
    devices = [device(one, taints=list(taints) if one == name else []) for one in ("x", "y")]
    rig.store.patch("ResourceSlice", "n1-gpus", {"spec": {"devices": devices}}, "merge")
    rig.settle()


def deletions(rig: Rig) -> list[str]:
    return [one for one in rig.log if "delete" in one]


def test_a_pod_whose_device_is_tainted_goes_and_its_status_says_why_first() -> None:
    rig = rig_of(devices_of("n1", device("x"), device("y")), *user_of("a", "x"), *user_of("b", "y"))
    assert rig.log == []

    taint_device(rig, "x", BROKEN_DEVICE)

    assert rig.log == ["0 DeletionByDeviceTaintManager a", "0 delete a"]
    assert rig.pods() == {"a": "Running terminating", "b": "Running"}


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_device_taints_of_other_effects_evict_no_pod(effect: str) -> None:
    rig = rig_of(devices_of("n1", device("x"), device("y")), *user_of("a", "x"))

    taint_device(rig, "x", {**BROKEN_DEVICE, "effect": effect})

    assert rig.log == []


@pytest.mark.parametrize(
    ("seconds", "log"), [((), []), ((30,), ["35 delete a"]), ((30, 0), ["5 delete a"]), ((30, None), [])]
)
def test_a_claim_tolerates_device_taints_for_its_shortest_time(seconds: tuple[int | None, ...], log: list[str]) -> None:
    tolerations = [{"operator": "Exists", **({} if one is None else {"tolerationSeconds": one})} for one in seconds]
    pod_and_claim = user_of("a", "x", tolerations=tolerations or [{"key": "broken", "value": "yes"}])
    rig = rig_of(devices_of("n1", device("x"), device("y")), *pod_and_claim)
    rig.pass_to(5)

    taint_device(rig, "x", {**BROKEN_DEVICE, "timeAdded": "2026-01-01T12:00:05Z"})
    rig.pass_to(100)

    assert deletions(rig) == log


def test_the_first_device_taint_that_a_pod_no_longer_tolerates_sets_the_eviction_time() -> None:
    tolerations = [
        {"key": key, "operator": "Exists", "tolerationSeconds": seconds}
        for key, seconds in (("late", 60), ("soon", 30))
    ]
    rig = rig_of(devices_of("n1", device("x"), device("y")), *user_of("a", "x", "y", tolerations=tolerations))

    taint_device(rig, "x", *({"key": key, "effect": "NoExecute"} for key in ("late", "soon")))
    rig.pass_to(100)

    assert deletions(rig) == ["30 delete a"]


def test_a_rule_without_a_time_counts_from_when_it_is_observed_first() -> None:
    rig = rig_of(devices_of("n1", device("x")), *user_of("a", "x", tolerations=BRIEFLY))
    rig.pass_to(100)

    rule = {"deviceSelector": {"pool": "n1"}, "taint": BROKEN_DEVICE}
    rig.apply({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": rule})
    rig.pass_to(200)

    assert deletions(rig) == ["130 delete a"]


def test_a_rule_taints_the_devices_that_it_selects_until_it_is_gone() -> None:
    rig = rig_of(devices_of("n1", device("x"), device("y")), *user_of("a", "x"), *user_of("b", "y", tolerations=[]))
    rule = {"deviceSelector": {"pool": "n1", "device": "y"}, "taint": BROKEN_DEVICE}
    rig.apply({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": rule})
    assert deletions(rig) == ["0 delete b"]

    rig.store.delete("DeviceTaintRule", "r", now=rig.now)
    rig.apply(*user_of("c", "y"))

    assert deletions(rig) == ["0 delete b"]


def test_only_the_pods_that_a_claim_is_reserved_for_are_evicted() -> None:
    rig = rig_of(devices_of("n1", device("x", taints=[BROKEN_DEVICE]), device("y")), *user_of("a", "y"))
    assert rig.log == []

    rig.patch("ResourceClaim", "of-a", {"status": allocated("n1", "x", to=["other"])}, status=True)
    assert rig.log == []

    rig.patch("ResourceClaim", "of-a", {"status": allocated("n1", "x", to=["a"])}, status=True)
    assert deletions(rig) == ["0 delete a"]


def test_a_pod_that_is_observed_after_its_claim_is_evicted_too() -> None:
    (made, used), rig = user_of("a", "x"), Rig(TaintEviction)

    rig.apply(node("n1"), devices_of("n1", device("x", taints=[BROKEN_DEVICE])), used)
    rig.apply(made)

    assert deletions(rig) == ["0 delete a"]
