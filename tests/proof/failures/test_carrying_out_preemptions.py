"""Failures of deleting victims and waiting for their end, each with its bug."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs

from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, DeleteObject, ReportStatus, ReportUnschedulable
from podium.controllers.scheduling.attempts import CapacityEvents, SchedulingAttempts
from podium.controllers.scheduling.futile_preemptions import FutilePreemptions
from podium.controllers.scheduling.pod_reports import PodReports
from podium.controllers.scheduling.preemptions import RunningPreemption, RunningPreemptions
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.plugin import PermitResult
from podium.framework.settings.configuration import default_configuration
from podium.framework.verdicts import Code, Status
from tests.builders import node, pod
from tests.controllers.driving import (
    REFUSED,
    SECOND,
    Driver,
    all_of,
    deletions,
    nominated,
    terminating,
    the,
    with_plugins,
)
from tests.controllers.preempting import HIGH, N1, A, B, preempted, preempting
from tests.proof.failures.bugs import Right, caught, holds, instead, nominated_count_for_nobody, none_of_it, nothing


@pytest.mark.failure(3)
def test_the_replacement_of_a_victim_is_attempted_before_the_preemptor() -> None:
    """Symptom: the victim's replacement, which has no backoff, gets the room again and again.

    Rule: the room belongs to the preemptor, whichever pod is attempted first, and the preemptor is attempted despite
    its backoff.
    """

    def story() -> None:
        driver = preempted()
        driver.see(pod("replacement", cpu=1, priority=100))

        driver.miss(A, B)

        assert the(Bind, driver.tick() + driver.tick()).pod == "default/high"

    caught(story, instead(CapacityEvents, "capacity_freed", nothing))
    caught(story, nominated_count_for_nobody())


@pytest.mark.failure(12)
def test_one_scheduler_preempts_and_another_fills_the_room_without_end() -> None:
    """Symptom: thousands of preemptions of one workload, and the preemptor never runs. Rule: a pod whose preemptions
    came to nothing, because others took the room, waits before it preempts again.
    """

    def foreign(number: int) -> Pod:
        return pod(f"batch-{number}", cpu=10, priority=1, scheduler="another", on="n1")

    def story() -> None:
        settings = structs.replace(default_configuration(), max_futile_preemptions=3)
        driver, rounds = Driver(N1, foreign(0), HIGH, settings=settings), 0
        for number in range(20):
            done = driver.carry_out(driver.tick())
            driver.see(nominated(HIGH, driver.nominated(HIGH)))
            if all_of(DeleteObject, done):
                rounds += 1
                driver.see(terminating(foreign(number)))
                driver.miss(foreign(number))
                driver.see(foreign(number + 1))
            else:
                break

        assert rounds < 5

    caught(story, instead(FutilePreemptions, "judge", none_of_it))


@pytest.mark.failure(19)
def test_the_victim_is_written_to_with_what_belongs_to_the_preemptor() -> None:
    """Symptom: the API server refuses the write and no victim is ever deleted. Rule: a mark names the victim alone."""

    def with_the_preemptors(right: Right, made: RunningPreemptions, preemption: Any, victims: Any) -> list[Action]:
        preemptor = preemption.preemptor
        return [
            structs.replace(one, key=preemptor.key, uid=preemptor.uid) if isinstance(one, ReportStatus) else one
            for one in right(made, preemption, victims)
        ]

    def story() -> None:
        driver, actions = preempting()

        marks = all_of(ReportStatus, driver.carry_out(actions))

        assert [(one.key, one.uid) for one in marks] == [("default/a", "default/a"), ("default/b", "default/b")]

    caught(story, instead(RunningPreemptions, "_begin", with_the_preemptors))


@pytest.mark.failure(20)
@pytest.mark.parametrize("failing", [ReportStatus, DeleteObject])
def test_a_preemption_that_went_half_through_leaves_its_preemptor_waiting(failing: type[Action]) -> None:
    """Symptom: nothing more happens for the preemptor. Rule: if anything fails, it is tried again at once."""

    def as_if_all_had_gone_well(right: Right, *args: Any) -> tuple[list[Action], list[RunningPreemption]]:
        actions, ended = right(*args)
        return actions, [structs.replace(one, failure=None) for one in ended]

    def story() -> None:
        driver, actions = preempting()
        outcome = actions if failing is ReportStatus else driver.answer(the(ReportStatus, actions))

        driver.answer(the(failing, outcome), REFUSED)

        assert driver.where(HIGH) is QueuePlace.ACTIVE

    caught(story, instead(RunningPreemptions, "on_finished", as_if_all_had_gone_well))


@pytest.mark.failure(25)
def test_a_restarted_scheduler_chooses_other_victims_for_the_same_preemptor() -> None:
    """Symptom: pods of two nodes end for one preemptor. Rule: the choice is in the API before the first victim is
    deleted, so that a scheduler that starts from the API waits for the same victims.
    """

    def without_the_nomination(right: Right, *args: Any, **options: Any) -> list[ReportUnschedulable]:
        return [msgspec.structs.replace(one, nominated_node_name=None) for one in right(*args, **options)]

    def story() -> None:
        driver, actions = preempting()
        done: list[Action] = []
        while not all_of(DeleteObject, done):
            done.append(actions.pop(0))
            actions += driver.answer(done[-1])
        written = [one.nominated_node_name for one in all_of(ReportUnschedulable, done)]

        anew = Driver(N1, terminating(A), B, node("n2", cpu=10), pod("cheap", cpu=10, priority=-5, on="n2"))
        anew.see(nominated(HIGH, written[-1] or ""))

        assert deletions(anew.tick()) == []

    caught(story, instead(PodReports, "report", without_the_nomination))


def held_at_permit() -> tuple[Driver, list[Action]]:
    """Return a victim that waits at Permit, and the preemptor that has just been attempted."""
    driver = Driver(N1, settings=with_plugins("Spy"))
    driver.plugin("Spy").answers["permit"] = PermitResult(Status(Code.WAIT), 600 * SECOND)
    driver.see(pod("victim", cpu=8, priority=1))
    driver.tick()
    driver.plugin("Spy").answers.clear()
    driver.see(HIGH)
    return driver, driver.tick()


@pytest.mark.failure(27)
def test_a_preemption_without_victims_crashes() -> None:
    """Symptom (of another scheduler): it crashes, again and again. Rule: a preemption may have no victim to delete."""

    def looking_for_the_last(
        right: Right, made: RunningPreemptions, preemptor: Any, victims: list[Any], *group: Any, **how: Any
    ) -> Any:
        victims[-1]
        return right(made, preemptor, victims, *group, **how)

    def story() -> None:
        driver, _ = held_at_permit()

        assert the(Bind, driver.tick()).pod == "default/high"

    caught(story, instead(RunningPreemptions, "start", looking_for_the_last), raising=IndexError)


@pytest.mark.failure(28)
def test_a_victim_is_called_back_while_its_preemptor_cannot_hear_of_it() -> None:
    """Symptom: the preemptor waits for room that is free. Rule: what happens during an attempt counts after it."""

    def unheard(right: Right, *args: Any) -> Any:
        with instead(SchedulingQueue, "move", nothing):
            return right(*args)

    def story() -> None:
        driver, actions = held_at_permit()
        assert deletions(actions) == []

        assert the(Bind, driver.tick()).pod == "default/high"

    caught(story, instead(SchedulingAttempts, "cancel_bindings", unheard))


@pytest.mark.failure(29)
def test_the_end_of_the_only_victim_comes_before_the_answer_to_its_deletion() -> None:
    """Symptom: the preemptor is parked for five minutes. Rule: once its deletions are through, it is tried again if
    anything has happened meanwhile that would have woken it.
    """

    def while_it_is_under_way(right: Right, preemptions: RunningPreemptions, uid: str) -> bool:
        return uid in preemptions

    def as_if_nothing_had_come(right: Right, queue: SchedulingQueue, uid: str, now: int, _: bool) -> None:
        right(queue, uid, now, is_worth_attempt=False)

    def story() -> None:
        driver = Driver(N1, B)
        driver.see(HIGH)
        delete = the(DeleteObject, driver.answer(the(ReportStatus, driver.tick())))
        driver.miss(B)

        driver.answer(delete)

        assert the(Bind, driver.tick()).pod == "default/high"

    holds(story)
    with instead(RunningPreemptions, "holds", while_it_is_under_way):
        caught(story, instead(SchedulingQueue, "ask_gate_again", as_if_nothing_had_come))


@pytest.mark.failure(30)
def test_one_victim_is_deleted_over_and_over() -> None:
    """Symptom: the preemptor goes round and round. Rule: while its deletions are under way it is not attempted."""

    def never_under_way(right: Right, *args: Any) -> bool:
        return False

    def story() -> None:
        driver, _ = preempting()

        driver.see(node("n1", cpu=11))
        driver.wait(20)

        assert driver.tick() == []

    caught(story, instead(RunningPreemptions, "holds", never_under_way))


@pytest.mark.failure(32)
def test_the_gate_stays_shut_after_a_preemption_that_failed() -> None:
    """Symptom: the preemptor is unschedulable for good. Rule: the end of a preemption, however it went, is seen to."""

    def story() -> None:
        driver = Driver(N1, B)
        driver.see(HIGH)

        driver.answer(the(ReportStatus, driver.tick()), REFUSED)

        assert deletions(driver.tick()) == ["mark default/b"]

    caught(story, instead(Scheduler, "_preemption_ended", nothing))
