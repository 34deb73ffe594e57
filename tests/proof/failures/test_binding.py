"""Failures between the decision and the bound pod, each with its bug."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster.cluster import Cluster
from podium.controllers.actions import Action, Bind
from podium.controllers.observations import ActionFinished
from podium.controllers.scheduling.attempts import CapacityEvents
from podium.controllers.scheduling.binding_cycles import BindingCycles
from tests.builders import node, pod
from tests.controllers.driving import NO_ANSWER, REFUSED, Driver, all_of, on, the
from tests.proof.failures.bugs import Right, caught, instead, none_of_it, nothing

A, B = pod("a", cpu=4), pod("b", cpu=4)
# Room for one of them.
N1, N2 = node("n1", cpu=6), node("n2", cpu=6)


def binding(*others: Any) -> tuple[Driver, Bind]:
    """Return a driver with a in its binding to n1, the only node, and b pending."""
    driver = Driver(N1, A, B, *others)
    return driver, the(Bind, driver.tick())


@pytest.mark.failure(35)
def test_waiting_pods_miss_the_return_of_an_assumed_pod() -> None:
    """Symptom: pods that lacked its room wait on. Rule: to them, a binding that fails is a pod that left the node."""

    def story() -> None:
        driver, bind = binding()
        driver.tick()

        driver.answer(bind, REFUSED)

        assert the(Bind, driver.tick()).pod == "default/b"

    caught(story, instead(CapacityEvents, "binding_failed", nothing))


@pytest.mark.failure(39)
def test_a_pod_that_is_bound_is_bound_again_because_no_answer_came() -> None:
    """Symptom: bindings without end. Rule: a binding that was carried out ends with what the API shows."""

    def story() -> None:
        driver, bind = binding()
        driver.answer(bind, NO_ANSWER)

        driver.see(on(A, "n1"))
        driver.wait(10)

        assert "default/a" not in [one.pod for one in all_of(Bind, driver.tick() + driver.tick())]

    caught(story, instead(BindingCycles, "on_bound", none_of_it))


@pytest.mark.failure(43)
def test_a_pod_whose_binding_failed_keeps_its_room() -> None:
    """Symptom: the cache is wrong from then on. Rule: it is forgotten before it goes back to the queue."""

    def story() -> None:
        driver, bind = binding()

        driver.answer(bind, REFUSED)

        assert driver.holds(A) == ""
        assert int(driver.scheduler.cluster.nodes.pod_count[0]) == 0

    caught(story, instead(BindingCycles, "_undo", _but_for_the_room))


@pytest.mark.failure(44)
def test_a_pod_is_assumed_on_one_node_before_it_is_forgotten_on_another() -> None:
    """Symptom: "assumed on a different node", and the pod stays pending. Rule: it is on one node at a time."""

    def over_what_was(right: Right, cluster: Cluster, record: Any) -> None:
        cluster.placed.pop(record.uid, None)
        right(cluster, record)

    def story() -> None:
        driver, bind = binding(pod("c", cpu=4, priority=9, gates=["wait"]))
        driver.answer(bind, REFUSED)
        driver.see(node("n1", cpu=6, unschedulable=True), N2)
        driver.miss(B)
        driver.wait(2)

        assert the(Bind, driver.tick()).node_name == "n2"
        nodes = driver.scheduler.cluster.nodes
        assert [int(nodes.pod_count[nodes.row_of[name]]) for name in ("n1", "n2")] == [0, 1]

    # Else the cluster itself would refuse to place a pod twice.
    with instead(Cluster, "add_pod", over_what_was):
        caught(story, instead(BindingCycles, "_undo", _but_for_the_room))


@pytest.mark.failure(45)
def test_a_pod_whose_binding_got_no_answer_is_given_another_place() -> None:
    """Symptom: it takes two places, or one place is given away twice. Rule: it may have been bound, so that it keeps
    its room and the same binding is sent again.
    """

    def as_a_refusal(right: Right, cycles: BindingCycles, bind: Bind, finished: ActionFinished, now: int) -> Any:
        lost = finished.problem is not None and not finished.problem.code
        return right(cycles, bind, ActionFinished(bind, REFUSED) if lost else finished, now)

    def story() -> None:
        driver, bind = binding()

        driver.answer(bind, NO_ANSWER)
        driver.tick()
        driver.wait(3)

        assert all_of(Bind, driver.tick()) == [bind]

    caught(story, instead(BindingCycles, "bind_answered", as_a_refusal))


@pytest.mark.failure(46)
def test_a_pod_counts_as_assumed_though_it_is_seen_on_its_node() -> None:
    """Symptom: it is assumed and forgotten in turn, with errors. Rule: what is seen is no longer assumed."""

    def without_taking_note(right: Right, cycles: BindingCycles, uid: str, node_name: str) -> list[Action]:
        unseen = set(cycles.unseen)
        actions: list[Action] = right(cycles, uid, node_name)
        cycles.unseen |= unseen
        return actions

    def story() -> None:
        driver, bind = binding()
        driver.answer(bind, NO_ANSWER)
        driver.wait(1)
        driver.tick()
        driver.answer(bind)

        driver.see(on(A, "n1"))

        assert not driver.scheduler.bindings.is_assumed(A.metadata.uid)

    caught(story, instead(BindingCycles, "on_bound", without_taking_note))


def _but_for_the_room(right: Right, cycles: BindingCycles, cycle: Any) -> Any:
    with instead(Cluster, "remove_pod", nothing):
        return right(cycles, cycle)
