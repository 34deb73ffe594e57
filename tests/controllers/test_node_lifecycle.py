"""The conditions, taints and pod readiness that follow from the state of nodes."""

import pytest

from podium.api.node import EXCLUDED, Node
from podium.controllers.actions import Action
from podium.controllers.nodes.node_lifecycle import NodeLifecycle
from podium.controllers.observations import Problem
from tests.controllers.cluster_rig import BROKEN, CONFLICT, LOST, Rig
from tests.store.objects import Raw, node, pod

ZONE = "topology.kubernetes.io/zone"


def nodes(count: int, zone: str = "a", label: str = ZONE) -> list[Raw]:
    found = [node(f"{zone}{index}") for index in range(count)]
    return [{**raw, "metadata": {**raw["metadata"], "labels": {label: zone}}} for raw in found]


def running(name: str, on: str = "n1", ready: str = "True") -> Raw:
    return pod(name, node=on, status={"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]})


def rig_of(*objects: Raw) -> Rig:
    """Return a node that is well beside those that are given, so that not all nodes are lost."""
    rig = Rig(NodeLifecycle)
    rig.apply(node("well"), *objects)
    return rig


# Conditions


@pytest.mark.parametrize(
    ("condition", "taint"),
    [
        ("MemoryPressure", "memory-pressure:NoSchedule"),
        ("DiskPressure", "disk-pressure:NoSchedule"),
        ("PIDPressure", "pid-pressure:NoSchedule"),
        ("NetworkUnavailable", "network-unavailable:NoSchedule"),
    ],
)
def test_a_condition_taints_the_node_while_it_holds(condition: str, taint: str) -> None:
    rig = rig_of(node("n1"))

    rig.condition("n1", condition, "True")
    assert rig.taints("n1") == [taint]

    rig.condition("n1", condition, "False")
    assert rig.taints("n1") == []


def test_a_cordoned_node_is_tainted() -> None:
    rig = rig_of(node("n1"))

    rig.patch("Node", "n1", {"spec": {"unschedulable": True}})
    assert rig.taints("n1") == ["unschedulable:NoSchedule"]

    rig.patch("Node", "n1", {"spec": {"unschedulable": False}})
    assert rig.taints("n1") == []


def test_other_taints_stay_where_they_are() -> None:
    own = [
        {"key": "gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "PreferNoSchedule"},
    ]
    rig = rig_of({**node("n1"), "spec": {"taints": own}})

    rig.condition("n1", "DiskPressure", "True")
    rig.condition("n1", "DiskPressure", "False")

    assert rig.taints("n1") == ["gpu:NoSchedule", "not-ready:PreferNoSchedule"]


def test_a_condition_change_missed_while_down_counts_after_a_restart() -> None:
    rig = rig_of(node("n1"))
    with rig.holding("Node"):
        rig.condition("n1", "DiskPressure", "True")
        rig.restart()

    assert rig.taints("n1") == ["disk-pressure:NoSchedule"]


def test_a_state_from_the_start_lasts_until_it_changes() -> None:
    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    given: dict[str, Node] = {}
    rig = Rig(lambda: NodeLifecycle(given=given))
    raw = node("n1")
    raw["metadata"]["uid"] = "one"
    raw["spec"] = {"taints": [unreachable]}
    raw["status"]["conditions"] = [{"type": "DiskPressure", "status": "True"}]
    stored = rig.store.create(raw, now=rig.now).object
    assert isinstance(stored, Node)
    given["one"] = stored

    rig.restart()
    rig.condition("n1", "PIDPressure", "True")
    rig.restart()
    assert rig.taints("n1") == ["unreachable:NoExecute", "pid-pressure:NoSchedule"]

    rig.condition("n1", "DiskPressure", "False")
    rig.condition("n1", "DiskPressure", "True")
    assert rig.taints("n1") == ["unreachable:NoExecute", "pid-pressure:NoSchedule", "disk-pressure:NoSchedule"]


def test_a_new_node_of_the_same_name_inherits_nothing() -> None:
    given: dict[str, Node] = {}
    rig = Rig(lambda: NodeLifecycle(given=given))
    pressed = node("n1")
    pressed["status"]["conditions"] = [{"type": "DiskPressure", "status": "True"}]
    old = {**pressed, "metadata": {"name": "n1", "uid": "one"}}
    stored = rig.store.create(old, now=rig.now)
    assert isinstance(stored.object, Node)
    given["one"] = stored.object
    rig.restart()
    assert rig.taints("n1") == []

    rig.store.delete("Node", "n1", now=rig.now)
    rig.skip()
    rig.apply(pressed)

    assert rig.taints("n1") == ["disk-pressure:NoSchedule"]


# Silence


def test_a_node_that_was_silent_for_50s_is_not_ready_and_neither_are_its_pods() -> None:
    rig = rig_of(node("n1"), running("a"), running("b", ready="False"), running("c", on="well"))
    rig.condition("n1", "DiskPressure", "False")
    rig.condition("n1", "NetworkUnavailable", "False")
    rig.pass_to(10)

    rig.fail("n1")
    rig.pass_to(59)
    assert rig.log == []
    rig.pass_to(60)

    ready = rig.node_condition("n1", "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert ready["lastTransitionTime"] == "2026-01-01T12:01:00Z"
    assert rig.node_condition("n1", "DiskPressure")["status"] == "Unknown"
    assert rig.node_condition("n1", "NetworkUnavailable")["status"] == "False"
    assert rig.taints("n1") == ["unreachable:NoExecute", "unreachable:NoSchedule"]
    assert [rig.pod_condition(name, "Ready")["status"] for name in "abc"] == ["False", "False", "True"]
    assert len(rig.log) == 3
    assert rig.is_at_rest()


def test_a_node_with_a_timely_heartbeat_was_never_lost() -> None:
    rig = rig_of(node("n1"))

    rig.fail("n1")
    rig.pass_to(49)
    rig.recover("n1")
    rig.pass_to(200)

    assert rig.log == []
    assert rig.is_at_rest()


def test_a_restart_does_not_make_silence_last_longer() -> None:
    rig = rig_of(node("n1"))
    rig.fail("n1")

    rig.pass_to(40)
    rig.restart()
    rig.pass_to(50)

    assert rig.node_condition("n1", "Ready")["status"] == "Unknown"


def test_a_node_that_is_ready_again_loses_its_taints() -> None:
    rig = rig_of(node("n1"))
    rig.fail("n1")
    rig.pass_to(60)

    rig.recover("n1")
    assert rig.taints("n1") == ["unreachable:NoExecute", "unreachable:NoSchedule"]
    rig.condition("n1", "Ready", "True")

    assert rig.taints("n1") == []


def test_a_pod_that_becomes_ready_on_a_lost_node_is_marked_not_ready() -> None:
    rig = rig_of(node("n1"))
    rig.fail("n1")
    rig.pass_to(60)

    rig.apply(running("late"))

    assert rig.pod_condition("late", "Ready")["status"] == "False"


def test_a_node_that_says_that_it_is_not_ready_is_tainted_so_and_not_as_unreachable() -> None:
    rig = rig_of(node("n1"), running("a"))

    rig.condition("n1", "Ready", "False")
    assert rig.taints("n1") == ["not-ready:NoExecute", "not-ready:NoSchedule"]
    assert rig.pod_condition("a", "Ready")["status"] == "False"

    rig.condition("n1", "Ready", "Unknown")
    assert rig.taints("n1") == ["unreachable:NoExecute", "unreachable:NoSchedule"]


def test_the_taint_that_evicts_says_since_when() -> None:
    rig = rig_of(node("n1"))
    rig.pass_to(7)

    rig.condition("n1", "Ready", "False")

    taints = rig.store.get("Node", "n1").raw["spec"]["taints"]
    assert {one["effect"]: one.get("timeAdded") for one in taints} == {
        "NoExecute": "2026-01-01T12:00:07Z",
        "NoSchedule": None,
    }


def test_a_restart_keeps_the_time_of_the_taint_that_evicts() -> None:
    rig = rig_of(node("n1"))
    rig.condition("n1", "Ready", "False")
    before = rig.store.get("Node", "n1").raw["spec"]["taints"]

    rig.pass_to(40)
    rig.restart()

    assert rig.store.get("Node", "n1").raw["spec"]["taints"] == before


def test_a_node_that_is_deleted_while_silent_is_forgotten() -> None:
    rig = rig_of(node("n1"))
    rig.fail("n1")

    rig.delete("Node", "n1")
    rig.pass_to(100)

    assert rig.log == []
    assert rig.is_at_rest()


# How fast nodes are given up


def given_up(rig: Rig) -> list[str]:
    names = [one.key for one in rig.store.objects("Node")]
    return [name for name in names if "unreachable:NoExecute" in rig.taints(name)]


def test_one_node_per_zone_is_tainted_every_10_s() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(8), *nodes(1, "b"))

    rig.fail("a0", "a1", "b0")
    rig.pass_to(50)
    assert given_up(rig) == ["a0", "b0"]
    assert rig.taints("a1") == ["unreachable:NoSchedule"]

    rig.pass_to(60)
    assert given_up(rig) == ["a0", "a1", "b0"]
    assert rig.is_at_rest()


def test_labels_of_the_older_names_tell_zones_apart_too() -> None:
    rig = Rig(NodeLifecycle)
    old = "failure-domain.beta.kubernetes.io/zone"
    rig.apply(*nodes(5, "a", old), *nodes(5, "b", old))

    rig.fail("a0", "a1", "b0")
    rig.pass_to(50)

    assert given_up(rig) == ["a0", "b0"]


def test_a_small_zone_in_which_most_nodes_fail_gives_none_up() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(5))

    rig.fail("a0", "a1", "a2")
    rig.pass_to(500)
    assert given_up(rig) == []
    assert rig.is_at_rest()

    rig.recover("a0")
    rig.condition("a0", "Ready", "True")
    rig.pass_to(600)
    assert given_up(rig) == ["a1", "a2"]


def test_nodes_excluded_from_disruption_do_not_count_for_the_rate_but_are_given_up_at_it() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(5), *nodes(1, "b"))
    for name in ("a2", "b0"):
        rig.patch("Node", name, {"metadata": {"labels": {EXCLUDED: ""}}})

    rig.fail("a0", "a1", "a2", "b0")
    rig.pass_to(50)
    assert given_up(rig) == ["a0", "b0"]

    rig.pass_to(70)
    assert given_up(rig) == ["a0", "a1", "a2", "b0"]


def test_a_cluster_whose_only_healthy_nodes_are_excluded_gives_none_up() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(3))
    rig.patch("Node", "a2", {"metadata": {"labels": {EXCLUDED: ""}}})

    rig.fail("a0", "a1")
    rig.pass_to(500)
    assert given_up(rig) == []

    rig.patch("Node", "a2", {"metadata": {"labels": {EXCLUDED: None}}})
    rig.pass_to(600)
    assert given_up(rig) == ["a0", "a1"]


def test_two_nodes_are_never_too_many() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(3))

    rig.fail("a0", "a1")
    rig.pass_to(60)

    assert given_up(rig) == ["a0", "a1"]


def test_a_zone_goes_on_when_nodes_that_failed_are_removed() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(5))
    rig.fail("a0", "a1", "a2")
    rig.pass_to(100)
    assert given_up(rig) == []

    rig.delete("Node", "a0")
    rig.pass_to(120)

    assert given_up(rig) == ["a1", "a2"]


def test_a_large_zone_in_which_most_nodes_fail_gives_one_up_every_100s() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(51))

    rig.fail(*(f"a{index}" for index in range(29)))
    rig.pass_to(50 + 200)

    assert len(given_up(rig)) == 3


def test_a_zone_without_any_ready_node_is_given_up_at_the_usual_pace() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(4), *nodes(1, "b"))

    rig.fail("a0", "a1", "a2", "a3")
    rig.pass_to(50 + 20)

    assert given_up(rig) == ["a0", "a1", "a2"]


def test_when_no_node_of_the_cluster_is_ready_none_is_given_up_any_more() -> None:
    rig = Rig(NodeLifecycle)
    rig.apply(*nodes(2), *nodes(1, "b"))
    rig.fail("a0")
    rig.pass_to(100)
    assert given_up(rig) == ["a0"]

    rig.fail("a1", "b0")
    rig.pass_to(1000)

    assert given_up(rig) == []
    assert rig.taints("a0") == ["unreachable:NoSchedule"]
    assert rig.is_at_rest()


# Writes that fail


@pytest.mark.parametrize("problem", [BROKEN, CONFLICT, LOST])
def test_failed_writes_are_retried_from_the_current_state(problem: Problem) -> None:
    rig = rig_of(node("n1"), running("a"))
    failed: set[str] = set()

    def once_each(action: Action) -> Problem | None:
        what = f"{getattr(action, 'key', '')} {getattr(action, 'subresource', '')}"
        if what in failed:
            return None
        failed.add(what)
        return problem

    rig.fault = once_each
    rig.fail("n1")
    rig.pass_to(70)

    assert len(failed) == 3
    assert sorted(rig.taints("n1")) == ["unreachable:NoExecute", "unreachable:NoSchedule"]
    assert rig.pod_condition("a", "Ready")["status"] == "False"


def test_the_back_off_after_failures_ends_with_the_first_success() -> None:
    rig = rig_of(node("n1"))
    problems = [BROKEN, BROKEN, None, BROKEN, None]
    asked: list[float] = []

    def fault(action: Action) -> Problem | None:
        asked.append(rig.seconds)
        return problems.pop(0)

    rig.fault = fault
    rig.condition("n1", "DiskPressure", "True")
    rig.pass_to(10)
    rig.condition("n1", "DiskPressure", "False")
    rig.pass_to(20)

    assert asked == [0, 1, 3, 10, 11]


def test_nothing_is_written_twice_from_one_version() -> None:
    rig = rig_of(node("n1"), running("a"))
    rig.fail("n1")
    rig.pass_to(49)

    with rig.holding("Node", "Pod"):
        rig.pass_to(60)
        rig.recover("n1")
        rig.fail("n1")
        rig.pass_to(120)
        assert len(rig.actions) == 1
    with rig.holding("Pod"):
        rig.patch("Node", "n1", {"metadata": {"labels": {"new": "yes"}}})

    versions = [(action.kind, action.patch["metadata"]["resourceVersion"]) for action in rig.actions]  # type: ignore[union-attr]
    assert len(set(versions)) == len(versions) == 3


def test_a_taint_set_meanwhile_by_another_client_is_kept() -> None:
    rig = rig_of(node("n1"))
    mine = {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}}

    def meddle(action: Action) -> None:
        if rig.taints("n1") == []:
            rig.store.patch("Node", "n1", mine, "merge")

    rig.fault = meddle
    rig.condition("n1", "DiskPressure", "True")
    rig.pass_to(10)

    assert rig.taints("n1") == ["mine:NoSchedule", "disk-pressure:NoSchedule"]


def test_a_missing_node_is_not_retried() -> None:
    rig = rig_of(node("n1"))
    rig.fault = lambda action: Problem(404, "", "")

    rig.condition("n1", "DiskPressure", "True")

    assert rig.is_at_rest()


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_rejected_lifecycle_write_is_retried_and_keeps_nothing_alive(code: int) -> None:
    rig = rig_of(node("n1"))
    rig.fault = lambda action: Problem(code, "", "")

    rig.condition("n1", "DiskPressure", "True")
    rig.pass_to(20)
    assert rig.is_settled()
    rig.fault = lambda action: None
    rig.pass_to(60)

    assert rig.taints("n1") == ["disk-pressure:NoSchedule"]
