"""Failures of reserving room for a preemptor, each with its bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, Nominate
from podium.controllers.scheduling import attempts as attempts_module
from podium.controllers.scheduling.attempts import CapacityEvents, SchedulingAttempts
from podium.controllers.scheduling.event_handlers import EventHandlers
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace
from podium.decide.preempting import eligibility
from podium.framework.verdicts import unschedulable
from tests.builders import node, pod
from tests.controllers.driving import Driver, all_of, clearing, deletions, nominated, terminating, the
from tests.controllers.preempting import HIGH, LOW, N1, N2, A, B, preempted, preempting
from tests.proof.failures.bugs import Right, caught, instead, nominated_count_for_nobody, none_of_it, nothing

# It keeps its nomination and is not attempted.
GATED = pod("gated", cpu=10, priority=1000, gates=["wait"])


@pytest.mark.failure(1)
def test_less_important_pods_fill_the_room_that_a_preemption_opened() -> None:
    """Symptom: the preemptor starves. Rule: nominated pods count when other pods are filtered."""

    def story() -> None:
        driver = preempted()
        driver.miss(B)
        driver.tick()
        driver.see(LOW)

        assert not all_of(Bind, driver.tick())

    caught(story, nominated_count_for_nobody())


@pytest.mark.failure(2)
def test_a_smaller_pod_slips_in_between_the_decision_and_its_echo() -> None:
    """Symptom: the room is taken before the API shows the nomination. Rule: it counts from the decision on."""

    def known_by_its_echo_only(
        right: Right, attempts: SchedulingAttempts, queued: QueuedPod, *rest: Any
    ) -> list[Action]:
        actions: list[Action] = right(attempts, queued, *rest)
        attempts.cluster.nominations.remove(queued.record.uid)
        return actions

    def story() -> None:
        driver = Driver(N1, A)
        driver.see(HIGH)
        driver.tick()
        driver.see(pod("small", cpu=4, priority=900))

        assert not all_of(Bind, driver.tick())

    caught(story, instead(SchedulingAttempts, "_handle_unschedulable", known_by_its_echo_only))


@pytest.mark.failure(4)
def test_a_nomination_names_a_node_that_is_no_more() -> None:
    """Symptom: status.nominatedNodeName of a deleted node. Rule: it goes with the node, and the pod is tried again."""

    def story() -> None:
        driver = preempted(settings=clearing("Unfit"))

        actions = driver.miss(N1)

        assert the(Nominate, actions).pod == "default/high"
        assert driver.nominated(HIGH) == ""
        assert driver.where(HIGH) is QueuePlace.ACTIVE

    caught(story, instead(CapacityEvents, "capacity_taken", none_of_it))


@pytest.mark.failure(5)
def test_a_nomination_survives_when_another_pod_takes_its_room_without_preempting() -> None:
    """Symptom: it stays forever. Rule: nominations that no longer fit end, whichever pod takes the room."""

    def only_when_preempting(right: Right, attempts: SchedulingAttempts, queued: QueuedPod, now: int) -> list[Action]:
        with instead(CapacityEvents, "capacity_taken", none_of_it):
            actions: list[Action] = right(attempts, queued, now)
        return actions

    def story() -> None:
        driver = preempted(settings=clearing("Unfit"))
        driver.miss(A, B)
        driver.see(pod("top", cpu=10, priority=2000))

        actions = driver.tick()

        assert the(Bind, actions).pod == "default/top"
        assert the(Nominate, actions).pod == "default/high"
        assert driver.nominated(HIGH) == ""

    caught(story, instead(SchedulingAttempts, "attempt", only_when_preempting))


@pytest.mark.failure(6)
def test_a_deleted_pod_stays_nominated() -> None:
    """Symptom: its node looks full until the scheduler is restarted. Rule: a nomination ends with its pod."""

    def added_again_once_deleted(right: Right, shown: EventHandlers, uid: str) -> None:
        nominations = shown.cluster.nominations
        known = [one for one in nominations.all() if one[0].uid == uid]
        right(shown, uid)
        for record, node_name in known:
            nominations.put(record, node_name)

    def story() -> None:
        driver = Driver(N1, GATED, nominated(GATED, "n1"), LOW)
        driver.tick()

        driver.miss(GATED)

        assert driver.nominated(GATED) == ""
        assert the(Bind, driver.tick()).pod == "default/low"

    caught(story, instead(EventHandlers, "_forget_pending", added_again_once_deleted))


@pytest.mark.failure(7)
def test_a_preemptor_waits_for_victims_on_a_node_that_cannot_take_it_any_more() -> None:
    """Symptom: it waits for ever for a node that is tainted or down. Rule: a node that is out of the question is left.

    The bug looked for terminating victims before it asked whether the node still comes into question.
    """

    def whatever_the_node_is(right: Right, cluster: Any, record: PodRecord, status: Any) -> str:
        found: str = right(cluster, record, status and unschedulable())
        return found

    def story() -> None:
        driver = preempted()
        driver.see(N2, pod("c", cpu=10, priority=0, on="n2"))
        driver.see(node("n1", cpu=10, taints=["node.kubernetes.io/unreachable:NoSchedule"]))
        driver.miss(B)

        assert deletions(driver.tick()) == ["mark default/c"]
        assert driver.nominated(HIGH) == "n2"

    caught(story, instead(eligibility, "ineligible_reason", whatever_the_node_is))


@pytest.mark.failure(9)
@pytest.mark.parametrize("end", ["deleted", "cleared", "moved"])
def test_waiting_pods_miss_the_end_of_a_nomination(end: str) -> None:
    """Symptom: pods that were kept off wait for five minutes. Rule: the end of a nomination wakes them at once."""
    ends: dict[str, Callable[[Driver], object]] = {
        "deleted": lambda driver: driver.miss(GATED),
        "cleared": lambda driver: driver.see(nominated(GATED, "")),
        "moved": lambda driver: driver.see(nominated(GATED, "elsewhere")),
    }

    def story() -> None:
        driver = Driver(N1, GATED, nominated(GATED, "n1"), LOW)
        driver.tick()
        assert driver.where(LOW) is QueuePlace.UNSCHEDULABLE

        ends[end](driver)

        assert the(Bind, driver.tick()).pod == "default/low"

    caught(story, instead(CapacityEvents, "nomination_ended", nothing))


@pytest.mark.failure(10)
def test_one_preemption_ends_all_smaller_nominations_on_the_node() -> None:
    """Symptom: pods lose a room in which they still fit. Rule: only nominations that no longer fit end."""

    def all_of_them(
        right: Right, cluster: Any, runners: Any, node_name: str, taker: PodRecord, *rest: Any
    ) -> list[PodRecord]:
        lower = [one for one in cluster.nominations.on(node_name) if one.priority < taker.priority]
        for one in lower:
            cluster.nominations.remove(one.uid)
        return lower

    def story() -> None:
        small = [pod(f"small-{number}", cpu=1, priority=900) for number in range(2)]
        driver, actions = preempting(
            *(nominated(one, "n1") for one in small),
            preemptor=pod("high", cpu=8, priority=1000),
            settings=clearing("Unfit"),
        )

        assert driver.nominated(pod("high")) == "n1"
        assert [driver.nominated(one) for one in small] == ["n1", "n1"]
        assert not all_of(Nominate, actions)

    caught(story, instead(attempts_module, "unfit_nominations", all_of_them))


@pytest.mark.failure(22)
def test_room_freed_by_one_victim_is_given_away_while_others_terminate() -> None:
    """Symptom (of a queueing system): victims return to the room in turn, forever.

    Rule: the room belongs to the preemptor until the last victim has ended, whichever pod asks for it meanwhile.
    """

    def story() -> None:
        driver = preempted()
        driver.miss(B)
        driver.tick()
        driver.see(pod("b-again", cpu=5, priority=50))
        driver.tick()
        driver.miss(A)
        driver.see(pod("a-again", cpu=5, priority=100))

        assert the(Bind, driver.tick() + driver.tick() + driver.tick()).pod == "default/high"

    caught(story, nominated_count_for_nobody())


@pytest.mark.failure(24)
def test_two_preemptors_count_the_room_of_one_victim_twice() -> None:
    """Symptom: the second deletes a pod in vain. Rule: room promised to the first is not available to the second."""

    def story() -> None:
        half, other = pod("half", cpu=5, priority=1000), pod("other-half", cpu=5, priority=1000)
        driver, actions = preempting(preemptor=half)
        driver.carry_out(actions)
        driver.see(terminating(B))

        driver.see(other)

        assert deletions(driver.tick()) == ["mark default/a"]

    caught(story, nominated_count_for_nobody())
