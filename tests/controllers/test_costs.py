"""The cost of an event for the scheduler does not grow with unrelated objects; operations are counted, not time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from podium.app.bench.measurement import operations
from podium.controllers.actions import Bind, ReportStatus, ReportUnschedulable
from podium.controllers.observations import ActionFinished, Changed, Tick
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.plugin import PermitResult
from podium.framework.verdicts import Code, Status
from tests.builders import namespace, node, pod
from tests.controllers.driving import NO_ANSWER, REFUSED, SECOND, Driver, all_of, on, the, with_plugins
from tests.controllers.queue_checks import check_queue

FEW, MANY = 20, 200


def waiting_at_permit(count: int) -> Driver:
    driver = Driver(node("n1", cpu=count, pods=count), settings=with_plugins("Spy"))
    driver.plugin("Spy").answers["permit"] = PermitResult(Status(Code.WAIT), 600 * SECOND)
    driver.see(*(pod(f"p{number}", cpu=1) for number in range(count)))
    for _ in range(count):
        driver.tick()
    assert len(driver.scheduler.waiting_pods) == count
    return driver


def being_bound(count: int) -> Driver:
    driver = Driver(node("n1", cpu=count, pods=count))
    driver.see(*(pod(f"p{number}", cpu=1) for number in range(count)))
    binds = [the(Bind, driver.tick()) for _ in range(count)]
    for bind in binds[1:]:
        driver.answer(bind, NO_ANSWER)
    assert len(driver.scheduler.bindings) == count
    return driver


def preempting(count: int) -> Driver:
    driver = Driver(*(node(f"n{number}", cpu=1) for number in range(count)))
    driver.see(*(pod(f"victim-{number}", cpu=1, priority=1, on=f"n{number}") for number in range(count)))
    driver.see(*(pod(f"p{number}", cpu=1, priority=9) for number in range(count)))
    for _ in range(count):
        the(ReportStatus, driver.tick())
    assert len(driver.scheduler.preemptions) == count
    return driver


def not_reported(count: int) -> Driver:
    driver = Driver(node("n1", cpu=1))
    driver.see(*(pod(f"p{number}", cpu=2) for number in range(count)))
    for _ in range(count):
        driver.answer(all_of(ReportUnschedulable, driver.tick())[0], REFUSED)
    return driver


@pytest.mark.parametrize("made", [waiting_at_permit, being_bound, preempting, not_reported])
def test_an_event_that_concerns_none_of_many_pods_costs_the_same_as_with_few(made: Callable[[int], Driver]) -> None:
    def cost(count: int) -> int:
        driver = made(count)
        machine, event = driver.scheduler, Changed(namespace("other"))
        driver.deliver(event)
        return operations(lambda: (machine.handle(event, driver.now), machine.deadline().time_ns)).total()

    assert cost(MANY) == cost(FEW)


def test_an_answer_about_one_victim_costs_the_same_however_many_preemptions_are_under_way() -> None:
    def cost(count: int) -> int:
        driver = preempting(count)
        action = ReportStatus("Pod", "default/victim-0", "default/victim-0", "default/p0")
        return operations(lambda: driver.scheduler.handle(ActionFinished(action), driver.now)).total()

    assert cost(MANY) == cost(FEW)


def test_events_are_not_kept_for_pods_that_no_plugin_turns_down_any_more() -> None:
    driver = being_bound(3)

    driver.see(*(node(f"more-{number}") for number in range(50)))

    check_queue(driver.scheduler.queue)
    assert len(driver.scheduler.queue._in_flight._events) == 0


def own_calls(act: Callable[[], object]) -> int:
    """Return how many functions of the scheduler's own are called, decisions and plugins apart."""
    count = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and "controllers/scheduling" in frame.f_code.co_filename.replace("\\", "/")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def test_a_pod_that_nothing_holds_up_takes_few_calls_around_its_decision() -> None:
    """From its attempt until it is seen on its node: what each pod takes, it takes thousands of times a second."""
    scheduler, pods = Scheduler(), [pod(f"p{number}", cpu=1) for number in range(3)]
    for item in (*(node(f"n{number}", cpu=8) for number in range(3)), *pods):
        scheduler.handle(Changed(item), 0)

    def bind_one() -> None:
        (bind,) = scheduler.handle(Tick(), SECOND)
        assert isinstance(bind, Bind)
        (record,) = scheduler.handle(ActionFinished(bind), SECOND)
        assert not scheduler.handle(ActionFinished(record), SECOND)
        item = next(item for item in pods if item.key == bind.pod)
        assert not scheduler.handle(Changed(on(item, bind.node_name)), SECOND)

    bind_one()

    assert own_calls(bind_one) <= 60
