"""A scheduler with extenders: its requests, victims, and requeueing of rejected pods."""

from __future__ import annotations

import pytest

from podium.controllers.actions import Bind, ReportUnschedulable
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.extenders import Extenders, VictimIds
from tests.builders import node, pod
from tests.controllers.driving import Driver, deletions, nominated, the
from tests.extenders import FakeExtender

LOW_A, LOW_B = (pod(name, on=f"n-{name}", cpu=1, priority=1, uid=name) for name in "ab")
SECOND_A = pod("a2", on="n-a", cpu=1, priority=1, uid="a2")
HIGHER = pod("higher", on="n-a", cpu=1, priority=100, uid="higher")
PREEMPTOR = pod("p", cpu=2, priority=10)


def driven(*extenders: FakeExtender) -> Driver:
    driver = Driver()
    driver.scheduler = Scheduler(extenders=Extenders(extenders))
    return driver


def preempting(*extenders: FakeExtender) -> list[str]:
    """Return the pod deleted for a preemptor that either of two nodes could run instead of its pod."""
    driver = driven(*extenders)
    driver.see(node("n-a", cpu=2), node("n-b", cpu=2), LOW_A, LOW_B, PREEMPTOR)
    return [line for line in deletions(driver.carry_out(driver.tick())) if line.startswith("delete")]


def agreeing(**victims: str) -> FakeExtender:
    return FakeExtender(agrees={f"n-{name}": VictimIds(tuple(uids.split())) for name, uids in victims.items()})


def test_a_pod_is_bound_where_extenders_leave_a_node() -> None:
    driver = driven(FakeExtender(refuses={"n1": "no"}))
    driver.see(node("n1"), node("n2"), pod("p", cpu=1))

    assert the(Bind, driver.tick()).node_name == "n2"


def test_an_extender_that_does_not_answer_is_an_error_of_the_attempt() -> None:
    driver = driven(FakeExtender(fails=frozenset(("filter",))))
    driver.see(node("n1"), pod("p", cpu=1))

    report = the(ReportUnschedulable, driver.tick())

    assert (report.reason, report.message) == ("SchedulerError", "failed filter")


def test_any_event_wakes_a_pod_rejected_by_extenders() -> None:
    driver = driven(FakeExtender(refuses={"n1": "no"}))
    waiting = pod("p", cpu=1)
    driver.see(node("n1"), waiting)
    driver.tick()
    assert driver.where(waiting) is QueuePlace.UNSCHEDULABLE

    driver.see(node("n1", labels={"unlike": "before"}))

    assert driver.where(waiting) is not QueuePlace.UNSCHEDULABLE


def test_an_extender_answer_for_one_pod_is_not_reused_for_the_next() -> None:
    extender = FakeExtender(refuses={"n1": "no"})
    driver = driven(extender)
    driver.see(node("n1"), *(pod(f"p{number}", cpu=1) for number in range(3)))

    for _ in range(3):
        driver.tick()

    assert [verb for verb, _ in extender.asked] == ["filter"] * 3


@pytest.mark.upstream(30)
def test_extenders_choose_among_the_candidates() -> None:
    assert preempting(agreeing(a="a")) == ["delete default/a"]
    assert preempting(agreeing(b="b")) == ["delete default/b"]


def test_each_chooses_among_what_those_before_it_left() -> None:
    assert preempting(agreeing(a="a", b="b"), agreeing(b="b")) == ["delete default/b"]
    assert preempting(agreeing(a="a"), agreeing(b="b")) == []


@pytest.mark.upstream(30)
def test_extenders_that_leave_no_candidate_prevent_preemption_with_an_event() -> None:
    driver = driven(agreeing())
    driver.see(node("n-a", cpu=2), LOW_A, PREEMPTOR)

    actions = driver.tick()

    assert deletions(actions) == []
    assert the(ReportUnschedulable, actions).message.endswith("preemption: no candidate node for preemption")


def test_victims_are_those_that_the_extender_names() -> None:
    for named, deleted in (("a", ["a"]), ("a2", ["a2"]), ("a a2", ["a", "a2"])):
        driver = driven(agreeing(a=named))
        driver.see(node("n-a", cpu=3), LOW_A, SECOND_A, PREEMPTOR)

        found = deletions(driver.carry_out(driver.tick()))

        assert sorted(line for line in found if line.startswith("delete")) == [
            f"delete default/{name}" for name in deleted
        ]


def test_extenders_cannot_add_protected_or_missing_victims() -> None:
    for named in ("higher", "a higher", "nobody"):
        driver = driven(agreeing(a=named))
        driver.see(node("n-a", cpu=3), LOW_A, HIGHER, PREEMPTOR)

        assert deletions(driver.carry_out(driver.tick())) == []


@pytest.mark.upstream(30)
def test_an_extender_without_answer_about_victims_fails_unless_ignorable() -> None:
    fails = frozenset(("preempt",))
    assert preempting(FakeExtender(agrees={}, fails=fails)) == []
    assert len(preempting(FakeExtender(agrees={}, fails=fails, is_ignorable=True))) == 1


def test_a_node_without_victims_is_no_answer_and_of_an_ignorable_one_no_candidate() -> None:
    for empty, left in (("n-a", "b"), ("n-b", "a")):
        named = {"n-a": VictimIds(("a",)), "n-b": VictimIds(("b",)), empty: VictimIds(())}
        assert preempting(FakeExtender(agrees=named)) == []
        assert preempting(FakeExtender(agrees=named, is_ignorable=True)) == [f"delete default/{left}"]


def test_fewer_violations_as_the_extender_counts_them_go_first() -> None:
    counted = {"n-a": VictimIds(("a",), 1), "n-b": VictimIds(("b",), 0)}
    assert preempting(FakeExtender(agrees=counted)) == ["delete default/b"]
    counted = {"n-a": VictimIds(("a",), 0), "n-b": VictimIds(("b",), 1)}
    assert preempting(FakeExtender(agrees=counted)) == ["delete default/a"]


@pytest.mark.upstream(30)
def test_an_uninterested_extender_does_not_affect_preemption() -> None:
    extender = FakeExtender(agrees={}, only="other")
    assert len(preempting(extender)) == 1
    assert extender.asked == []


def test_a_nomination_is_kept_when_extenders_leave_no_candidate() -> None:
    driver = driven(agreeing())
    driver.see(node("n-a", cpu=2), LOW_A, nominated(PREEMPTOR, "n-a"))

    driver.tick()

    assert driver.scheduler.cluster.nominations.on("n-a")
