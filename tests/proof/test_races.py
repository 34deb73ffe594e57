"""Races during a preemption: at every moment, and for every victim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podium.controllers.actions import Action, Bind, DeleteObject, ReportStatus
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from tests.builders import node, pod
from tests.controllers.driving import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    REFUSED,
    Driver,
    all_of,
    nominated,
    on,
    terminating,
)
from tests.controllers.preempting import HIGH, N1, A, B

OTHERS = [pod(f"other-{number:02}", cpu=1, priority=500) for number in range(20)]
MOMENTS = 11


def disrupting(driver: Driver, actions: list[Action]) -> Iterator[list[Action]]:
    """Answer the requests among the actions that disrupt victims, and those that follow; yields what follows each."""
    coming: list[Action] = [one for one in actions if isinstance(one, ReportStatus)]
    while coming:
        answers = driver.answer(coming.pop(0))
        coming += [one for one in answers if isinstance(one, ReportStatus | DeleteObject)]
        yield answers


def reported(driver: Driver) -> Iterator[list[Action]]:
    """Yield a preemption of two victims, moment by moment; yields what was asked for at each."""
    yield []
    driver.see(HIGH)
    coming = driver.tick()
    yield coming
    yield driver.see(nominated(HIGH, "n1"))
    yield from disrupting(driver, coming)
    yield driver.see(terminating(A))
    yield driver.see(terminating(B))
    driver.miss(B)
    yield driver.attempts()
    driver.miss(A)
    yield driver.attempts()


@pytest.mark.upstream(9, 18)
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_none_of_twenty_pods_that_come_at_any_moment_gets_the_room(moment: int) -> None:
    """Kubernetes repeats this five times and hopes to hit the moment (k/k#72124)."""
    driver, bound = Driver(N1, A, B), list[Bind]()

    for number, actions in enumerate(reported(driver)):
        bound += all_of(Bind, actions)
        if number == moment:
            driver.see(*OTHERS)
            for _ in OTHERS:
                attempted = driver.tick()
                bound += all_of(Bind, attempted)
                assert not [one for answers in disrupting(driver, attempted) for one in all_of(Bind, answers)]

    # Pods that came first have asked for the status and the deletion of both victims already.
    asked_before = 4 if moment == 0 else 0
    assert number == MOMENTS - 1 - asked_before
    assert [one.pod for one in bound] == ["default/high"]
    driver.answer(bound[0])
    driver.see(on(HIGH, "n1"))
    driver.wait(400)
    assert not [one for _ in OTHERS for one in all_of(Bind, driver.tick())]


VICTIMS = range(1, 5)


def carried_out(count: int, failing: int | None, action: type[Action], problem: Problem) -> tuple[Driver, list[str]]:
    """Return a preemption of so many victims, in which something about one of them fails; and who was deleted."""
    there = [pod(f"v{number}", cpu=60 // count, priority=-number, on="n1") for number in range(count)]
    preemptor = pod("high", cpu=60, priority=1000)
    driver = Driver(node("n1", cpu=60), *there, preemptor)
    coming, deleted = driver.tick(), list[str]()
    while coming:
        one = coming.pop(0)
        fails = isinstance(one, action) and failing is not None and getattr(one, "key", "") == f"default/v{failing}"
        if isinstance(one, DeleteObject) and not fails:
            deleted.append(one.key.removeprefix("default/"))
        coming += driver.answer(one, problem if fails else None)
    return driver, deleted


@pytest.mark.upstream(24)
@pytest.mark.parametrize(
    ("action", "problem"),
    [(one, problem) for one in (ReportStatus, DeleteObject) for problem in (REFUSED, NO_ANSWER)]
    + [(ReportStatus, CONFLICT)],
)
@pytest.mark.parametrize(("count", "failing"), [(count, failing) for count in VICTIMS for failing in range(count)])
def test_after_any_failed_deletion_the_last_victim_survives_and_the_preemptor_retries(
    count: int, failing: int, action: type[Action], problem: Problem
) -> None:
    driver, deleted = carried_out(count, failing, action, problem)

    assert f"v{count - 1}" not in deleted
    assert driver.where(HIGH) is QueuePlace.ACTIVE
    assert len(driver.scheduler.preemptions) == 0


@pytest.mark.upstream(24, 25)
@pytest.mark.parametrize("count", VICTIMS)
def test_when_all_deletions_go_through_the_preemptor_waits_for_the_end_of_its_victims(count: int) -> None:
    driver, deleted = carried_out(count, None, DeleteObject, REFUSED)

    assert deleted == [f"v{number}" for number in range(count)]
    assert driver.where(HIGH) is QueuePlace.UNSCHEDULABLE


@pytest.mark.upstream(25)
@pytest.mark.parametrize(
    ("action", "problem"), [(ReportStatus, NOT_FOUND), (DeleteObject, NOT_FOUND), (DeleteObject, CONFLICT)]
)
@pytest.mark.parametrize("failing", range(3))
def test_a_victim_that_is_gone_keeps_no_other_from_being_deleted(
    failing: int, action: type[Action], problem: Problem
) -> None:
    driver, deleted = carried_out(3, failing, action, problem)

    assert deleted == [f"v{number}" for number in range(3) if number != failing]
    assert len(driver.scheduler.preemptions) == 0
