"""Budgets under races of evictions, watches, crashes and errors: rows 55 and 57, F3, F5, F9, failures 66, 74."""

from typing import Any

import pytest

from podium.controllers.actions import ReplaceStatus
from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.observations import ActionFinished, Changed, Deleted, Problem, Tick
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, UNREADY, Rig, pod, replica_set
from tests.sim.objects import budget, workload
from tests.store.objects import SECOND, Raw

NOT_FOUND, REFUSED = Problem(404, "NotFound", ""), Problem(422, "Invalid", "")
NOW = "2026-01-01T12:00:00Z"


def rig_of(*objects: Raw) -> Rig:
    rig = Rig(DisruptionController, *objects)
    rig.settle()
    return rig


def status(rig: Rig) -> Raw:
    found: Raw = rig.get("PodDisruptionBudget", "pdb")["status"]
    return found


def allowed(rig: Rig) -> int:
    found: int = status(rig)["disruptionsAllowed"]
    return found


def noted(rig: Rig) -> list[str]:
    """Return the pods whose accepted disruptions the status notes."""
    return list(status(rig).get("disruptedPods", {}))


def with_note(*names: str, accepted: str = NOW, **spec: Any) -> Raw:
    """Return a budget whose status notes disruptions of these pods."""
    return {**budget("pdb", **spec), "status": {"disruptedPods": dict.fromkeys(names, accepted)}}


# Writes that meet others


@pytest.mark.upstream(55)
@pytest.mark.failure(66)
def test_evictions_during_a_write_that_conflicts_are_not_lost() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("moe"), pod("larry"), pod("curly"))
    assert allowed(rig) == 2
    rig.delete("Pod", "moe")
    rig.see()

    def evict_both() -> None:
        rig.before_write = lambda: None
        assert rig.evict("larry")
        assert rig.evict("curly")

    rig.before_write = evict_both
    (stale,) = rig.controller.handle(Tick(), rig.now)
    assert isinstance(stale, ReplaceStatus)
    assert stale.raw["status"]["disruptionsAllowed"] == 1
    rig.carry_out([stale])

    assert rig.log[-1][1] is not None
    assert rig.log[-1][1].reason == "Conflict"
    assert allowed(rig) == 0
    rig.settle()
    assert allowed(rig) == 0
    rig.wait(3)
    assert allowed(rig) == 0


@pytest.mark.failure(66)
def test_after_a_conflict_the_status_is_computed_from_the_newer_version() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"), pod("c"), pod("d"))
    rig.held = {"PodDisruptionBudget"}
    assert rig.evict("a")

    rig.sync(pod("d", ready=False))
    assert [problem and problem.reason for _, problem in rig.writes[1:]] == ["Conflict"]
    assert allowed(rig) == 2
    rig.held = set()
    rig.settle()

    versions = [write.raw["metadata"]["resourceVersion"] for write, _ in rig.writes if isinstance(write, ReplaceStatus)]
    assert versions == sorted(set(versions), key=int)
    assert allowed(rig) == 1


def test_a_version_is_the_ground_of_one_write_that_does_not_fail() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), pod("a"), pod("b"))
    rig.held = {"PodDisruptionBudget"}

    rig.sync(pod("a", ready=False))
    rig.sync(pod("b", ready=False))
    assert len(rig.writes) == 2
    rig.held = set()
    rig.settle()

    assert len(rig.writes) == 3
    assert allowed(rig) == 0
    assert not [problem for _, problem in rig.writes if problem]


@pytest.mark.parametrize("problem", [CONFLICT, UNAVAILABLE, REFUSED])
def test_a_write_that_fails_for_no_visible_reason_is_made_again_after_a_while(problem: Problem) -> None:
    rig = Rig(DisruptionController, budget("pdb", minAvailable=0), pod("a"))
    rig.problems = [problem, problem, None]

    rig.settle()
    assert rig.controller.deadline().keeps_alive
    assert rig.controller.deadline().time_ns == rig.now + SECOND
    rig.wait(1)
    assert rig.controller.deadline().keeps_alive is not (problem is REFUSED)
    assert rig.controller.deadline().time_ns == rig.now + 2 * SECOND
    rig.wait(2)

    assert allowed(rig) == 1
    assert rig.controller.deadline().time_ns is None
    assert not rig.controller.deadline().keeps_alive


def test_the_status_of_a_deleted_budget_is_not_written_again() -> None:
    rig = Rig(DisruptionController, budget("pdb", minAvailable=0), pod("a"))
    rig.problems = [NOT_FOUND]

    rig.settle()

    assert rig.controller.deadline().time_ns is None


def test_after_a_failure_that_another_controller_has_made_good_nothing_is_left_to_do() -> None:
    rig = Rig(DisruptionController, budget("pdb", minAvailable=0), pod("a"))
    rig.problems = [UNAVAILABLE]
    rig.settle()
    assert rig.controller.deadline().keeps_alive

    (write,) = [action for action, _ in rig.writes if isinstance(action, ReplaceStatus)]
    rig.store.update_status(write.raw)
    rig.settle()

    assert not rig.controller.deadline().keeps_alive
    rig.wait(600)
    assert len(rig.writes) == 1


def test_an_unanswered_write_counts_as_neither_done_nor_undone() -> None:
    rig = Rig(DisruptionController, budget("pdb", minAvailable=0), pod("a"))
    rig.held = {"PodDisruptionBudget"}
    rig.problems = [NO_ANSWER]

    rig.wait(2)
    assert allowed(rig) == 1
    assert [problem and problem.reason for _, problem in rig.writes] == ["", "Conflict"]
    rig.held = set()
    rig.wait(600)

    assert len(rig.writes) == 2
    assert rig.controller.deadline().time_ns is None


def test_an_answer_that_comes_after_the_next_version_changes_nothing() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), pod("a"))
    write = rig.writes[0][0]
    rig.put(pod("a", ready=False))
    rig.see()
    (second,) = rig.controller.handle(Tick(), rig.now)

    rig.controller.handle(ActionFinished(write, CONFLICT), rig.now)

    assert rig.controller.deadline().time_ns is None
    rig.carry_out([second])
    rig.settle()
    assert allowed(rig) == 0


# Accepted disruptions


@pytest.mark.upstream(56)
def test_notes_go_when_their_pods_are_terminating_or_the_time_is_over() -> None:
    notes = {"p1": NOW, "p2": "2026-01-01T11:57:00Z", "p3": "2026-01-01T11:59:00Z", "unseen": NOW}
    created = {"creationTimestamp": "2026-01-01T11:00:00Z"}
    rig = Rig(DisruptionController, *(pod(name, metadata=created) for name in ("p1", "p2", "p3")))
    rig.delete("Pod", "p1", grace_seconds=30)
    rig.sync({**budget("pdb", minAvailable=1), "status": {"disruptedPods": notes}})

    assert (status(rig)["currentHealthy"], allowed(rig)) == (1, 0)
    assert noted(rig) == ["p3", "unseen"]
    rig.wait(60)
    assert (status(rig)["currentHealthy"], allowed(rig)) == (2, 1)
    rig.wait(60)
    assert noted(rig) == []


def test_f5_an_eviction_counts_until_its_pod_is_seen_terminating() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"), pod("c"))
    rig.held = {"Pod"}
    assert rig.evict("a")

    rig.settle()
    assert noted(rig) == ["a"]
    assert allowed(rig) == 1
    rig.held = set()
    rig.settle()

    assert noted(rig) == []
    assert allowed(rig) == 1


def test_f5_a_pod_that_is_not_deleted_after_all_gives_its_unit_back_after_two_minutes() -> None:
    rig = rig_of(with_note("a", minAvailable=1), pod("a"), pod("b"))
    assert allowed(rig) == 0
    assert rig.controller.deadline().keeps_alive

    rig.wait(119)
    assert allowed(rig) == 0
    rig.wait(1)

    assert allowed(rig) == 1
    assert noted(rig) == []
    assert not rig.controller.deadline().keeps_alive


def test_f5_an_eviction_of_a_pod_that_was_never_seen_counts() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"))
    rig.held = {"Pod"}
    rig.put(pod("new"))
    alive = rig.store.get("Pod", "default/new")
    assert rig.evict("new")

    rig.settle()
    assert noted(rig) == ["new"]
    rig.controller.handle(Changed(alive.object, alive.raw), rig.now)
    rig.settle()

    assert allowed(rig) == 1
    rig.held = set()
    rig.settle()
    assert (noted(rig), allowed(rig)) == ([], 1)


def test_notes_without_effect_do_not_keep_the_controller_busy() -> None:
    rig = rig_of(with_note("unseen", minAvailable=1), pod("a"))

    assert not rig.controller.deadline().keeps_alive
    rig.wait(120)
    assert noted(rig) == []


def test_f3_a_newer_pod_before_an_older_budget_makes_the_write_fail() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"), pod("c"))
    rig.held = {"PodDisruptionBudget"}
    assert rig.evict("a")

    rig.settle()
    assert [problem and problem.reason for _, problem in rig.writes] == [None, "Conflict"]
    rig.held = set()
    rig.settle()

    assert (allowed(rig), status(rig)["currentHealthy"]) == (1, 2)


# Replacements of the same name


def web(name: str, **fields: Any) -> Raw:
    return pod(name, owner=workload("StatefulSet", "web", 2, uid="web"), **fields)


@pytest.mark.failure(74)
@pytest.mark.parametrize("seconds", [0, 1])
@pytest.mark.parametrize("skips_the_end", [True, False])
def test_the_replacement_of_a_pod_is_not_taken_for_the_disrupted_one(seconds: int, skips_the_end: bool) -> None:
    owner = workload("StatefulSet", "web", 2, uid="web")
    rig = rig_of(owner, budget("pdb", maxUnavailable=1), web("web-0"), web("web-1"))
    assert rig.evict("web-0", grace_seconds=30)
    rig.see()
    rig.delete("Pod", "web-0")
    rig.now += seconds * SECOND
    rig.put(web("web-0"))
    if skips_the_end:
        new = rig.store.get("Pod", "default/web-0")
        rig.controller.handle(Changed(new.object, new.raw), rig.now)

    rig.settle()

    assert noted(rig) == []
    assert allowed(rig) == 1


@pytest.mark.failure(74)
def test_a_pod_that_is_younger_than_a_disruption_is_a_replacement() -> None:
    rig = rig_of(with_note("web-0", minAvailable=0), pod("web-1"))
    rig.now += SECOND

    rig.sync(pod("web-0"))

    assert noted(rig) == []
    assert allowed(rig) == 2


def test_f3_the_disruption_of_a_replacement_is_not_over_because_the_pod_before_it_is_terminating() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), web("web-0"), web("web-1"), web("web-2"))
    assert rig.evict("web-0")
    rig.settle()
    rig.held = {"Pod"}
    rig.now += SECOND
    rig.delete("Pod", "web-0")
    rig.put(web("web-0"))
    alive = rig.store.get("Pod", "default/web-0")
    rig.now += SECOND
    assert rig.evict("web-0")

    rig.settle()
    assert noted(rig) == ["web-0"]
    rig.controller.handle(Changed(alive.object, alive.raw), rig.now)
    rig.settle()

    assert allowed(rig) == 1


def test_f3_a_replacement_disruption_counts_in_the_same_second_as_its_predecessor() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), web("web-0"), web("web-1"), web("web-2"))
    assert rig.evict("web-0", grace_seconds=0)
    rig.put(web("web-0"))
    rig.see()
    rig.held = {"Pod"}
    assert rig.evict("web-0", grace_seconds=0)

    rig.settle()

    assert noted(rig) == ["web-0"]
    assert (status(rig)["currentHealthy"], allowed(rig)) == (2, 1)


def test_a_replaced_pod_is_not_confused_with_its_namesake() -> None:
    rig = rig_of(budget("pdb", minAvailable=0), pod("a"))
    old = rig.store.get("Pod", "default/a").object
    rig.held = {"Pod"}
    rig.delete("Pod", "a")
    rig.put(pod("a", ready=False))
    new = rig.store.get("Pod", "default/a")

    rig.controller.handle(Changed(new.object, new.raw), rig.now)
    rig.settle()
    assert allowed(rig) == 0
    rig.controller.handle(Deleted(old), rig.now)
    rig.settle()

    assert status(rig)["expectedPods"] == 1


# Crashes


def test_a_new_controller_writes_nothing_where_the_status_is_right() -> None:
    owner = replica_set("rs", 4)
    rig = rig_of(owner, budget("pdb", maxUnavailable=1), *(pod(f"{number}", owner=owner) for number in range(4)))
    assert rig.evict("0")
    rig.held = {"Pod"}
    rig.settle()
    assert noted(rig) == ["0"]
    rig.held = set()
    rig.settle()
    written = len(rig.log)

    for seconds in (0, 1, 30, 200):
        rig.now += seconds * SECOND
        rig.restart()
        rig.settle()

    assert len(rig.log) == written


@pytest.mark.parametrize("is_done", [False, True])
def test_a_crash_at_a_write_leaves_no_work_unfinished(is_done: bool) -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"), pod("c"))
    assert rig.evict("a")
    rig.see()
    (write,) = rig.controller.handle(Tick(), rig.now)
    assert isinstance(write, ReplaceStatus)
    if is_done:
        rig.store.update_status(write.raw)

    rig.restart()
    rig.settle()

    assert (noted(rig), allowed(rig), status(rig)["currentHealthy"]) == ([], 1, 2)


def test_repeated_observations_count_one_disruption() -> None:
    rig = rig_of(budget("pdb", minAvailable=1), pod("a"), pod("b"))

    for kind, key in (("Pod", "default/a"), ("PodDisruptionBudget", "default/pdb"), ("Pod", "default/a")):
        one = rig.store.get(kind, key)
        rig.controller.handle(Changed(one.object, one.raw), rig.now)
    rig.settle()

    assert len(rig.writes) == 1
    rig.sync({**pod("a"), "status": UNREADY})
    assert allowed(rig) == 0
