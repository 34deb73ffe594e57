"""Victims that are not yet bound when a pod of higher priority preempts them."""

from __future__ import annotations

import pytest

from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, BindClaim
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.plugin import ClaimBinding, PermitResult
from podium.framework.verdicts import Code, Status
from tests.builders import node, pod
from tests.controllers.driving import (
    NOT_FOUND,
    REFUSED,
    SECOND,
    Driver,
    all_of,
    deletions,
    nominated,
    on,
    terminating,
    the,
    with_plugins,
)
from tests.controllers.preempting import HIGH, N1

VICTIM = pod("victim", cpu=8, priority=1)
CLAIM = ClaimBinding("default/data", "claim-uid", "volume", "n1")


def advance_binding(stage: str) -> tuple[Driver, list[Action]]:
    """Bring the victim, which holds the only room, to Permit, PreBind (its claim) or its own binding."""
    driver = Driver(N1, settings=with_plugins("Spy"))
    spy = driver.plugin("Spy")
    if stage == "Permit":
        spy.answers["permit"] = PermitResult(Status(Code.WAIT), 600 * SECOND)
    elif stage == "PreBind":
        spy.claims = (CLAIM,)
    driver.see(VICTIM)
    actions = driver.tick()
    spy.answers.clear()
    spy.claims = ()
    return driver, actions


def points(driver: Driver, one: Pod) -> list[str]:
    """At which points a plugin was called for a pod."""
    return [call.point for call in driver.plugin("Spy").calls if call.pod == one.metadata.name]


@pytest.mark.upstream(16, 23)
@pytest.mark.parametrize("stage", ["Permit", "PreBind"])
def test_a_victim_in_binding_returns_to_the_queue_and_lands_on_a_smaller_node(stage: str) -> None:
    driver, _ = advance_binding(stage)
    driver.see(nominated(VICTIM, "n1"), HIGH)

    actions = driver.tick()

    assert deletions(actions) == []
    assert (driver.holds(VICTIM), driver.where(VICTIM)) == ("", QueuePlace.BACKOFF)
    assert points(driver, VICTIM)[-1] == "unreserve"
    assert the(Bind, driver.tick()).pod == "default/high"
    driver.see(node("n2", cpu=8))
    driver.wait(3)
    assert the(Bind, driver.tick()) == Bind("default/victim", "default/victim", "n2")


@pytest.mark.upstream(23)
@pytest.mark.parametrize("problem", [None, REFUSED])
def test_the_claim_of_a_cancelled_victim_has_no_effect(problem: Problem | None) -> None:
    driver, before = advance_binding("PreBind")
    driver.see(HIGH)
    driver.tick()

    assert driver.answer(the(BindClaim, before), problem) == []

    assert driver.where(VICTIM) is QueuePlace.BACKOFF


@pytest.mark.upstream(21)
@pytest.mark.parametrize("end", ["is gone", "terminates"])
@pytest.mark.parametrize("stage", ["Permit", "PreBind", "Bind"])
def test_a_victim_deleted_by_a_user_is_forgotten_at_once_with_its_reservation(stage: str, end: str) -> None:
    """Nothing is still held when the preemptor is tried next, so that it need not wait for anything else."""
    driver, before = advance_binding(stage)
    other = pod("other", cpu=8, priority=1)
    driver.see(other)
    driver.tick()
    assert driver.where(other) is QueuePlace.UNSCHEDULABLE

    driver.miss(VICTIM) if end == "is gone" else driver.see(terminating(VICTIM, preempted=False))

    assert driver.holds(VICTIM) == ""
    assert points(driver, VICTIM)[-1] == "unreserve"
    assert the(Bind, driver.tick()).pod == "default/other"
    assert not [line for one in all_of(Bind, before) for line in driver.answer(one, NOT_FOUND)]


@pytest.mark.upstream(21)
@pytest.mark.parametrize("end", ["is gone", "terminates", "is bound, then terminates, then is gone"])
def test_a_victim_with_a_sent_binding_is_deleted_and_its_room_taken(end: str) -> None:
    """The binding may be carried out before the deletion, or not at all; a finalizer may keep the pod."""
    driver, before = advance_binding("Bind")
    driver.see(HIGH)
    assert deletions(driver.carry_out(driver.tick())) == ["mark default/victim", "delete default/victim"]
    driver.see(nominated(HIGH, "n1"))

    if end == "terminates":
        driver.see(terminating(VICTIM))
    elif end.startswith("is bound"):
        driver.answer(the(Bind, before))
        driver.see(on(VICTIM, "n1"), terminating(on(VICTIM, "n1")))
        driver.wait(2)
        assert not all_of(Bind, driver.tick())
        driver.miss(VICTIM)
    else:
        driver.miss(VICTIM)

    assert the(Bind, driver.tick()) == Bind("default/high", "default/high", "n1")
