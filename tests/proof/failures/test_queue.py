"""Failures of the scheduling queue, each with its bug."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.actions import Bind
from podium.controllers.scheduling.event_handlers import EventHandlers
from podium.controllers.scheduling.queue.places import InFlightPods, UnschedulablePods
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace, QueueSettings
from podium.framework.plugin import PermitResult
from podium.framework.verdicts import Code, Status
from tests.builders import node, pod
from tests.controllers.driving import SECOND, Driver, all_of, terminating, with_plugins
from tests.controllers.preempting import HIGH, LOW, N1, preempting
from tests.controllers.queue_checks import begun
from tests.proof.failures.bugs import Right, caught, instead, nothing

A = pod("a", cpu=4)


@pytest.mark.failure(31)
def test_a_pod_behind_a_gate_is_left_out_when_those_that_waited_too_long_are_tried_again() -> None:
    """Symptom: a preemptor whose gate missed its event is stuck for good. Rule: the flush asks gated pods too."""

    def without_gated_ones(right: Right, waiting: UnschedulablePods, now: int) -> list[QueuedPod]:
        overdue: list[QueuedPod] = right(waiting, now)
        for queued in overdue:
            if queued.gated_by:
                waiting.put(queued, now + 300 * SECOND)
        return [queued for queued in overdue if not queued.gated_by]

    def story() -> None:
        driver, _ = preempting()
        driver.see(node("n1", cpu=11))
        assert driver.where(HIGH) is QueuePlace.GATED
        # The preemption ends without a notification.
        driver.scheduler.preemptions.forget(HIGH.metadata.uid)

        driver.wait(300)
        driver.scheduler.queue.flush(driver.now)

        assert driver.where(HIGH) is QueuePlace.ACTIVE

    caught(story, instead(UnschedulablePods, "take_overdue", without_gated_ones))


@pytest.mark.failure(33)
def test_an_event_comes_between_the_attempt_and_the_return_to_the_queue() -> None:
    """Symptom: the pod waits for what has happened already. Rule: events during an attempt count when it has failed."""

    def story() -> None:
        driver = Driver(node("n1", cpu=10), settings=with_plugins("Spy"))
        driver.plugin("Spy").answers["permit"] = PermitResult(Status(Code.WAIT), 10 * SECOND)
        driver.see(A)
        driver.tick()
        driver.see(node("n2", cpu=10))

        driver.plugin("Spy").waiting_pods.get(A.metadata.uid).reject("Spy", "not today")
        driver.tick()

        queued = driver.scheduler.queue.find(A.metadata.uid)
        assert queued is not None
        assert queued.woken_by == "NodeAdd"

    caught(story, instead(InFlightPods, "note", nothing))


@pytest.mark.failure(36)
def test_an_update_puts_a_pod_back_that_is_on_its_way() -> None:
    """Symptom: a pod is in the queue and being bound. Rule: one that is in flight keeps what is new for later."""

    def as_for_any_other(right: Right, queue: SchedulingQueue, record: PodRecord, now: int) -> None:
        queue.delete(record.uid)
        queue.add(record, now)

    def story() -> None:
        driver = Driver(N1, A)
        driver.tick()

        driver.see(pod("a", cpu=4, labels={"new": "label"}))

        assert driver.where(A) is QueuePlace.IN_FLIGHT

    caught(story, instead(SchedulingQueue, "update", as_for_any_other))


@pytest.mark.failure(37)
def test_a_pod_that_was_replaced_during_its_attempt_stays_in_flight() -> None:
    """Symptom: memory grows without bound. Rule: what ends is the attempt of that very pod, by uid."""

    def under_its_namesakes_uid(right: Right, shown: EventHandlers, record: PodRecord, now: int) -> Any:
        with instead(SchedulingQueue, "delete", lambda delete, queue, _: delete(queue, "new")):
            return right(shown, record, now)

    def story() -> None:
        driver = Driver(N1, pod("a", cpu=4, uid="old"))
        driver.tick()

        driver.see(pod("a", cpu=4, uid="new"))

        assert driver.scheduler.queue.count(QueuePlace.IN_FLIGHT) == 0

    caught(story, instead(EventHandlers, "_withdraw", under_its_namesakes_uid))


@pytest.mark.failure(38)
def test_a_pod_that_is_given_up_half_way_stays_in_flight() -> None:
    """Symptom: it collects tens of thousands of events. Rule: a pod that is given up is no longer in flight."""

    def unless_in_flight(right: Right, queue: SchedulingQueue, uid: str) -> None:
        if queue.where(uid) is not QueuePlace.IN_FLIGHT:
            right(queue, uid)

    def story() -> None:
        driver = Driver(N1, A)
        driver.tick()

        driver.see(terminating(A, preempted=False))

        assert driver.scheduler.queue.count(QueuePlace.IN_FLIGHT) == 0

    caught(story, instead(SchedulingQueue, "delete", unless_in_flight))


@pytest.mark.failure(40, 41)
def test_an_important_pod_that_fits_nowhere_is_tried_again_and_again_before_all_others() -> None:
    """Symptom: less important pods are never tried. Rule: an attempt that failed is followed by a backoff, whatever
    wakes the pod, and others go meanwhile.
    """

    def none_at_all(right: Right, settings: QueueSettings, queued: QueuedPod) -> int:
        return queued.queued_ns

    def story() -> None:
        driver = Driver(N1, pod("keeper", cpu=5, priority=9000, on="n1"), HIGH, LOW)
        bound: list[Bind] = []
        for cpu in (11, 12, 13):
            bound += all_of(Bind, driver.tick())
            driver.see(node("n1", cpu=cpu))

        assert [one.pod for one in bound] == ["default/low"]

    caught(story, instead(QueueSettings, "backoff_end_ns", none_at_all))


@pytest.mark.failure(42)
def test_a_pod_that_was_deleted_during_its_attempt_comes_back_to_the_queue() -> None:
    """Symptom: it waits there for ever. Rule: only a pod that the queue still knows is taken back after an attempt."""

    def whoever_comes(right: Right, queue: SchedulingQueue, queued: QueuedPod, *rest: Any, **named: Any) -> Any:
        if queue.find(queued.record.uid) is None:
            queue._pods[queued.record.uid] = queued
            queue._in_flight.begin(queued)
        return right(queue, queued, *rest, **named)

    def story() -> None:
        queue = Driver(N1, A).scheduler.queue
        attempt = begun(queue, 0)
        assert attempt is not None
        queue.delete(A.metadata.uid)

        queue.add_unschedulable(attempt, ["NodeResourcesFit"], 0)

        assert len(queue) == 0

    caught(story, instead(SchedulingQueue, "add_unschedulable", whoever_comes))
