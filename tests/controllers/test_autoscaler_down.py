"""The autoscaler removes nodes: which, when, how, and what may intervene."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.meta import Raw
from podium.controllers.actions import Action, DeleteObject, Evict, PatchObject
from podium.controllers.autoscaling.autoscaler import Autoscaler, AutoscalerSettings
from podium.controllers.observations import Problem
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.autoscaling import REMOVAL_TAINT, NodeGroup, ScaleDownSettings
from tests.controllers.node_rig import (
    BROKEN,
    LOST,
    MINUTE,
    SECOND,
    Fault,
    Rig,
    budget,
    crash_after,
    in_group,
    pod,
)
from tests.store.objects import node

TEMPLATE: Raw = {"status": {"allocatable": {"cpu": 10, "memory": "1Ti", "pods": 110}}}
WEB = {"app": "web"}


def healthy(action: Action) -> Problem | None:
    return None


def autoscaled(*given: Raw, minimum: int = 0, fault: Fault = healthy, **settings: Any) -> Rig:
    """Return an autoscaler of the group `pool`, which looks every 10 s and removes what was unneeded for 10 minutes."""
    pool = NodeGroup("pool", minimum, 5, 40 * SECOND, TEMPLATE)
    rig = Rig(lambda: Autoscaler([pool], AutoscalerSettings(scale_down=ScaleDownSettings(**settings))))
    rig.fault = fault
    rig.apply(*given)
    return rig


def autoscaler_of(rig: Rig) -> Autoscaler:
    machine = rig.machines[0]
    assert isinstance(machine, Autoscaler)
    return machine


def marked(rig: Rig, since: int) -> Raw:
    """Return a node that has been in removal since a time (seconds)."""
    raw = in_group("n1")
    value = str(rig.now // SECOND + since)
    return {**raw, "spec": {"taints": [{"key": REMOVAL_TAINT, "value": value, "effect": "NoSchedule"}]}}


STAYS = [node("n2"), pod("full", node="n2", cpu=4)]
BEGUN = "patch n1: scale-down: it is not needed"


def test_a_node_is_removed_that_was_unneeded_for_some_time() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1", cpu=1), *STAYS)
    rig.rest()

    assert rig.log == [f"610 {BEGUN}", "610 evict web-1", "640 delete n1"]
    assert sorted(rig.nodes()) == ["n2"]


def test_the_mark_keeps_pods_off_and_says_since_when() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1", cpu=1), *STAYS)
    rig.pass_to(620)

    (taint,) = rig.nodes()["n1"].spec.taints
    assert (taint.key, taint.effect, int(taint.value)) == (REMOVAL_TAINT, "NoSchedule", rig.now // SECOND - 10)


def test_taints_that_a_node_has_stay_on_it() -> None:
    spec = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    rig = autoscaled({**in_group("n1"), "spec": spec}, pod("web-1", node="n1"), *STAYS)
    rig.pass_to(615)

    assert rig.taints("n1") == ["gpu", REMOVAL_TAINT]


def test_a_node_that_is_needed_again_meanwhile_starts_from_the_beginning() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1", cpu=1), *STAYS)
    rig.pass_to(500)
    rig.apply(pod("web-2", node="n1", cpu=5))
    rig.pass_to(520)
    rig.delete("Pod", "default/web-2", grace=0)
    rig.pass_to(1_000)

    assert rig.log == []

    rig.pass_to(1_130)
    assert rig.log[0] == f"1130 {BEGUN}"


def test_nothing_is_removed_soon_after_a_node_was_added() -> None:
    rig = autoscaled(in_group("n1"), unneeded_time_ns=MINUTE, delay_after_add_ns=5 * MINUTE)
    rig.pass_to(200)
    rig.apply(in_group("n3"))
    rig.rest()

    assert rig.log == [f"500 {BEGUN}", f"500 {BEGUN.replace('n1', 'n3')}", "500 delete n1", "500 delete n3"]


def test_empty_nodes_go_together_and_others_one_at_a_time() -> None:
    nodes = [in_group(f"n{number}") for number in (1, 3, 4, 5)]
    rig = autoscaled(*nodes, pod("a", node="n1", cpu="100m"), pod("b", node="n3", cpu="200m"), *STAYS)
    rig.rest()

    assert [one for one in rig.log if "patch" not in one] == [
        "610 delete n4",
        "610 delete n5",
        "610 evict a",
        "640 delete n1",
        "650 evict b",
        "680 delete n3",
    ]


def test_no_more_nodes_are_removed_at_a_time_than_the_setting_says() -> None:
    rig = autoscaled(*(in_group(f"n{number}") for number in (1, 3, 4)), max_removals=2)
    rig.rest()

    assert [one for one in rig.log if "patch" not in one] == ["610 delete n1", "610 delete n3", "620 delete n4"]


def test_a_group_keeps_its_minimum() -> None:
    rig = autoscaled(in_group("n1"), in_group("n3"), minimum=1)
    rig.rest()

    assert sorted(rig.nodes()) == ["n3"]


def test_nodes_of_no_group_are_left_alone_marked_or_not() -> None:
    rig = autoscaled()
    foreign = marked(rig, 0)
    del foreign["metadata"]["labels"]["podium.dev/node-group"]
    rig.apply(foreign, node("n3"))
    rig.rest()

    assert rig.log == []


def test_pods_of_daemon_sets_do_not_hold_a_node() -> None:
    rig = autoscaled(in_group("n1"), pod("agent-1", node="n1", owner="DaemonSet/agent", cpu=1))
    rig.rest()

    assert rig.log == [f"610 {BEGUN}", "610 delete n1"]


def test_expendable_pods_are_evicted_without_a_place_elsewhere() -> None:
    rig = autoscaled(in_group("n1"), pod("cheap", node="n1", cpu=9, priority=-11, owner=""))
    rig.rest()

    assert rig.log == [f"610 {BEGUN}", "610 evict cheap", "640 delete n1"]


def test_pods_get_their_grace_period_up_to_the_longest_that_is_allowed() -> None:
    slow = pod("slow", node="n1", spec={"terminationGracePeriodSeconds": 500})
    rig = autoscaled(in_group("n1"), slow, *STAYS, max_graceful_termination_ns=100 * SECOND)
    rig.rest()

    assert rig.log[-2:] == ["610 evict slow", "710 delete n1"]


# What comes between


@pytest.mark.failure(83)
def test_a_pod_that_was_bound_before_the_mark_was_seen_and_may_not_be_moved_ends_the_removal() -> None:
    rig = autoscaled(in_group("n1"), pod("job", owner="Job/job", annotations={_SAFE: "false"}), *STAYS)
    rig.pass_to(609)
    rig.fault = _bound_before_the_mark(rig, "job")
    rig.pass_to(615)

    assert rig.log == [
        f"610 {BEGUN}",
        f"610 patch n1: scale-down is canceled: default/job is annotated {_SAFE}: false",
    ]
    assert rig.taints("n1") == []


@pytest.mark.failure(83)
def test_a_pod_that_was_bound_before_the_mark_was_seen_is_moved_only_if_it_fits_elsewhere() -> None:
    rig = autoscaled(in_group("n1"), pod("large", cpu=8), pod("small", cpu=1), *STAYS)
    rig.pass_to(609)
    rig.fault = _bound_before_the_mark(rig, "large")
    rig.pass_to(615)

    assert rig.log[1:] == ["610 patch n1: scale-down is canceled: default/large fits on no other node"]

    rig = autoscaled(in_group("n1"), pod("large", cpu=8), pod("small", cpu=1), *STAYS)
    rig.pass_to(609)
    rig.fault = _bound_before_the_mark(rig, "small")
    rig.pass_to(650)

    assert rig.log[1:] == ["610 evict small", "640 delete n1"]


@pytest.mark.failure(83)
def test_a_pod_that_comes_while_others_are_evicted_is_asked_about_too() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1"), pod("bare", owner=""), *STAYS)
    rig.pass_to(620)
    rig.bind("bare", "n1")

    assert rig.log[-1] == ("620 patch n1: scale-down is canceled: default/bare has no controller that replaces it")
    assert rig.taints("n1") == []


def test_a_removal_is_taken_back_when_its_pods_fit_nowhere_any_more() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1", cpu=2, labels=WEB), *STAYS)
    rig.pass_to(609)
    rig.fault = _when(PatchObject, lambda: rig.store.delete("Node", "n2", now=rig.now))
    rig.pass_to(615)

    assert rig.log[1:] == ["610 patch n1: scale-down is canceled: default/web-1 fits on no other node"]


def test_a_removal_is_taken_back_that_would_leave_too_few_nodes() -> None:
    rig = autoscaled(minimum=1)
    rig.apply(marked(rig, 0))
    rig.pass_to(1)

    assert rig.log == [
        "0 patch n1: scale-down is canceled: its group would have 0 nodes, and 1 are its minimum",
    ]


def test_refused_evictions_are_repeated_for_some_time_and_then_the_removal_is_taken_back() -> None:
    rig = autoscaled(
        in_group("n1"),
        pod("web-1", node="n1", labels=WEB),
        budget("web", 1, **WEB),
        *STAYS,
        fault=lambda action: _BUSY if isinstance(action, Evict) else None,
        max_eviction_time_ns=25 * SECOND,
    )
    rig.pass_to(700)

    assert rig.log == [
        f"610 {BEGUN}",
        "610 evict web-1 (429)",
        "620 evict web-1 (429)",
        "630 evict web-1 (429)",
        "635 patch n1: scale-down is canceled: default/web-1 could not be evicted: the budget is used up",
    ]
    assert rig.taints("n1") == []


def test_a_removal_that_fails_again_and_again_does_not_keep_a_simulation_going() -> None:
    rig = autoscaled(
        in_group("n1"),
        pod("web-1", node="n1", labels=WEB),
        *STAYS,
        fault=lambda action: _BUSY if isinstance(action, Evict) else None,
    )
    rig.rest()

    assert sum(BEGUN in one for one in rig.log) == 2
    assert rig.taints("n1") == []
    assert autoscaler_of(rig).deadline().time_ns is not None


def test_a_removal_is_cancelled_when_a_pod_does_not_end() -> None:
    stuck = pod("stuck", node="n1", metadata={"finalizers": ["example.com/wait"]})
    rig = autoscaled(in_group("n1"), stuck, *STAYS, max_graceful_termination_ns=MINUTE)
    rig.pass_to(900)

    assert rig.log == [
        f"610 {BEGUN}",
        "610 evict stuck",
        "820 patch n1: scale-down is canceled: its pods take too long to end",
    ]


def test_a_budget_that_is_used_up_keeps_the_node_from_the_start() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1", labels=WEB), budget("web", 0, **WEB), *STAYS)
    rig.rest()
    assert rig.log == []

    rig.allow("web", 1)
    rig.rest()
    assert rig.log[-1].endswith("delete n1")


def test_a_node_for_which_a_pending_pod_is_meant_is_kept() -> None:
    rig = autoscaled(in_group("n1"))
    rig.pass_to(300)
    unschedulable = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    rig.apply(pod("p", cpu=6, owner="", status={"phase": "Pending", "conditions": unschedulable}))
    rig.pass_to(2_000)

    assert rig.log == []


def test_errors_are_met_with_a_back_off() -> None:
    rig = autoscaled(in_group("n1"), fault=lambda action: BROKEN if isinstance(action, DeleteObject) else None)
    rig.pass_to(620)

    assert rig.log[1:] == [f"{seconds} delete n1 (500)" for seconds in (610, 611, 613, 617)]

    rig.rest()
    assert "n1" in rig.nodes()
    rig.fault = healthy
    rig.pass_to(rig.seconds + 300)
    assert "n1" not in rig.nodes()


def test_writes_without_an_answer_that_took_place_are_not_repeated() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1"), *STAYS, fault=lambda action: LOST)
    rig.rest()

    assert rig.log == [f"610 {BEGUN} (0)", "610 evict web-1 (0)", "640 delete n1 (0)"]


def test_a_failed_mark_is_decided_again() -> None:
    rig = autoscaled(in_group("n1"), fault=lambda action: BROKEN if rig.seconds < 615 else None)
    rig.rest()

    assert rig.log == [f"610 {BEGUN} (500)", f"620 {BEGUN}", "620 delete n1"]


def test_a_mark_that_fails_again_and_again_does_not_keep_a_simulation_going() -> None:
    rig = autoscaled(in_group("n1"), fault=lambda action: BROKEN)
    rig.rest()

    assert rig.log == [f"610 {BEGUN} (500)", f"620 {BEGUN} (500)"]


def test_a_mark_loses_against_another_write_and_wins_once_that_is_seen() -> None:
    rig = autoscaled(in_group("n1"))
    rig.pass_to(609)
    rig.fault = _when(PatchObject, lambda: rig.patch("Node", "n1", {"metadata": {"labels": {"a": "b"}}}))
    rig.rest()

    assert rig.log == [f"610 {BEGUN} (409)", f"620 {BEGUN}", "620 delete n1"]


# Started anew


def test_a_restarted_autoscaler_continues_a_removal() -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1"), pod("web-2", node="n1"), *STAYS)
    rig.pass_to(615)
    rig.restart()
    rig.rest()

    assert rig.log == [f"610 {BEGUN}", "610 evict web-1", "610 evict web-2", "640 delete n1"]


def test_a_restarted_autoscaler_cancels_a_removal_that_takes_too_long() -> None:
    rig = autoscaled(*STAYS)
    rig.apply(pod("web-1", node="n1"), marked(rig, -600))
    rig.pass_to(1)

    assert rig.log == ["0 patch n1: scale-down is canceled: default/web-1 could not be evicted: no answer"]


@pytest.mark.parametrize("after", range(6))
def test_a_crash_between_two_actions_leaves_a_removal_that_ends(after: int) -> None:
    rig = autoscaled(in_group("n1"), pod("web-1", node="n1"), pod("web-2", node="n1"), *STAYS)
    rig.fault = crash_after(after)
    rig.pass_to(610)
    rig.fault = healthy
    rig.restart()
    rig.rest()

    assert sorted(rig.nodes()) == ["n2"]


# With a scheduler


def test_nodes_added_for_a_peak_are_removed_afterwards() -> None:
    pool = NodeGroup("pool", 0, 5, 40 * SECOND, TEMPLATE)
    rig = Rig(lambda: Autoscaler([pool]), Scheduler)
    rig.apply(node("n1", cpu=2), *(pod(f"p{number}", cpu=4) for number in range(6)))
    rig.pass_to(120)

    assert sorted(rig.nodes()) == ["n1", "pool-0", "pool-1", "pool-2"]
    assert all(one.spec.node_name for one in rig.pods().values())

    for number in range(6):
        rig.delete("Pod", f"default/p{number}", grace=0)
    rig.rest()

    assert sorted(rig.nodes()) == ["n1"]
    assert rig.seconds < 120 + 11 * 60


_SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_BUSY = Problem(429, "TooManyRequests", "the budget is used up")


def _when(kind: type[Action], what: Any) -> Fault:
    """Something happens just before the first action of a kind is carried out."""
    waiting = [what]

    def fault(action: Action) -> Problem | None:
        if isinstance(action, kind) and waiting:
            waiting.pop()()
        return None

    return fault


def _bound_before_the_mark(rig: Rig, name: str) -> Fault:
    """Return a scheduler that has yet to see the mark binds a pod."""
    return _when(PatchObject, lambda: rig.store.bind(f"default/{name}", "n1", now=rig.now))
