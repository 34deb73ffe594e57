"""Carrying out a preemption, and the use of the freed room.

Words in brackets name upstream's own tests of a rule, or the failure that it prevents (k/k is kubernetes/kubernetes).
"""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.node import UNSCHEDULABLE
from podium.api.pod import Pod
from podium.controllers.actions import (
    Action,
    Bind,
    DeleteObject,
    Nominate,
    Record,
    ReportStatus,
    ReportUnschedulable,
)
from podium.controllers.observations import Problem
from podium.controllers.scheduling.binding_stages import BindingStage
from podium.controllers.scheduling.preemptions import DELETION_SHOWN_WITHIN_NS
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.plugin import PermitResult
from podium.framework.settings.configuration import NominationClearing
from podium.framework.verdicts import Code, Status
from tests.builders import HOSTNAME, budget, configuration, node, pod, term
from tests.controllers.driving import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    REFUSED,
    SECOND,
    Driver,
    all_of,
    clearing,
    deletions,
    events,
    nominated,
    on,
    terminating,
    the,
    uids,
    with_plugins,
)
from tests.controllers.preempting import HIGH, LOW, N1, N2, A, B, preempted, preempting

UNFIT = clearing("Unfit")


FORBIDDEN = Problem(403, "Forbidden", 'cannot create resource "pods/binding"')


def refused_once(problem: Problem) -> Driver:
    """Return a preemptor whose binding was refused after its victims had gone, and whose room others have taken
    since.
    """
    driver = preempted()
    driver.miss(A, B)
    driver.wait(10)
    driver.answer(the(Bind, driver.attempts()), problem)
    driver.see(pod("late", cpu=5, priority=50, on="n1"), pod("later", cpu=5, priority=50, on="n1"))
    driver.wait(400)
    return driver


class TestRefusedBindings:
    def test_a_pod_whose_binding_is_forbidden_preempts_no_more_and_its_event_says_why(self) -> None:
        driver = refused_once(FORBIDDEN)

        actions = driver.attempts()

        assert deletions(actions) == []
        outcome = [one.message for one in all_of(Record, actions) if one.reason == "FailedScheduling"]
        assert any('refuses to bind the pod: cannot create resource "pods/binding"' in message for message in outcome)

    def test_a_transient_rejection_allows_the_pod_to_preempt_again(self) -> None:
        driver = refused_once(REFUSED)

        assert deletions(driver.attempts()) != []

    def test_no_other_pod_of_the_namespace_preempts_until_a_binding_is_granted(self) -> None:
        driver = refused_once(FORBIDDEN)
        driver.attempts()
        driver.see(pod("other", cpu=5, priority=500))
        assert deletions(driver.attempts()) == []

        driver.see(N2)
        driver.place(pod("fits", cpu=1, priority=2000))
        driver.see(pod("another", cpu=10, priority=3000))
        assert deletions(driver.attempts()) != []

    def test_nothing_is_remembered_of_a_pod_that_is_gone(self) -> None:
        driver = refused_once(FORBIDDEN)
        driver.attempts()

        driver.miss(HIGH)
        driver.see(pod("other", cpu=5, priority=500))

        assert deletions(driver.attempts()) != []


class TestDeleting:
    @pytest.mark.upstream(1, 17)
    def test_each_victim_is_marked_before_it_is_deleted_and_the_last_waits_for_the_others(self) -> None:
        """[TestAsyncPreemption: basic; TestPreemption: basic pod preemption]"""
        driver, actions = preempting()

        assert deletions(driver.carry_out(actions)) == [
            "mark default/a",
            "delete default/a",
            "mark default/b",
            "delete default/b",
        ]

    @pytest.mark.upstream(1)
    def test_actions_on_victims_name_the_preemptor_and_the_uid(self) -> None:
        """[invariant E13: a namesake with another uid is never deleted]"""
        driver, actions = preempting()

        done = driver.carry_out(actions)

        mark = all_of(ReportStatus, done)[0]
        (target,) = mark.conditions
        assert (target.type, target.reason) == ("DisruptionTarget", "PreemptionByScheduler")
        assert mark.cause == "default/high"
        assert target.message == "default-scheduler: preempting to accommodate a higher priority pod"
        assert [(one.key, one.uid, one.cause) for one in all_of(DeleteObject, done)] == [
            ("default/a", "default/a", "default/high"),
            ("default/b", "default/b", "default/high"),
        ]
        assert all(uids(done))

    def test_a_preemption_is_recorded_once_the_deletion_has_gone_through(self) -> None:
        driver, actions = preempting()
        assert events(actions) == [("FailedScheduling", "default/high")]

        delete = the(DeleteObject, driver.answer(the(ReportStatus, actions)))
        record = the(Record, driver.answer(delete))

        assert (record.reason, record.pod, record.node_name, record.related) == (
            "Preempted",
            "default/a",
            "n1",
            "default/high",
        )
        assert record.message == "Preempted by pod default/high on node n1"

    @pytest.mark.upstream(25)
    def test_a_victim_that_bears_the_mark_already_is_not_marked_again(self) -> None:
        """[TestPrepareCandidate]"""
        marked = pod("a", cpu=5, priority=100, on="n1", preempted=True)
        driver, actions = preempting(driver=Driver(N1, marked, B))

        assert deletions(driver.carry_out(actions)) == ["delete default/a", "mark default/b", "delete default/b"]

    @pytest.mark.upstream(25)
    def test_victims_that_terminate_already_are_left_alone(self) -> None:
        """[TestPrepareCandidate; k/k#134217]"""
        driver, actions = preempting(driver=Driver(N1, terminating(A, preempted=False), B))

        assert driver.nominated(HIGH) == "n1"
        assert deletions(driver.carry_out(actions)) == ["mark default/b", "delete default/b"]

    @pytest.mark.upstream(25)
    def test_a_victim_that_begins_to_terminate_in_between_is_left_alone(self) -> None:
        """[invariant E7]"""
        driver, actions = preempting()
        delete = the(DeleteObject, driver.answer(the(ReportStatus, actions)))

        driver.see(terminating(B, preempted=False))

        assert deletions(driver.answer(delete)) == []
        assert HIGH.metadata.uid not in driver.scheduler.preemptions

    @pytest.mark.upstream(25)
    @pytest.mark.parametrize(
        ("action", "problem"), [(ReportStatus, NOT_FOUND), (DeleteObject, NOT_FOUND), (DeleteObject, CONFLICT)]
    )
    def test_a_victim_that_is_gone_already_counts_as_deleted(self, action: type[Action], problem: Problem) -> None:
        """[TestPrepareCandidate: NotFound on patch or delete]"""
        driver, actions = preempting()
        outcome = actions if action is ReportStatus else driver.answer(the(ReportStatus, actions))

        assert deletions(driver.answer(the(action, outcome), problem)) == ["mark default/b"]

    def test_a_victim_whose_mark_conflicts_may_be_alive_and_is_marked_again(self) -> None:
        driver, actions = preempting()

        assert driver.answer(the(ReportStatus, actions), CONFLICT) == []

        assert deletions(driver.tick()) == ["mark default/a"]

    @pytest.mark.upstream(24)
    @pytest.mark.parametrize("problem", [REFUSED, NO_ANSWER])
    @pytest.mark.parametrize("action", [ReportStatus, DeleteObject])
    def test_when_one_fails_the_last_is_left_alone_and_the_preemptor_is_tried_again(
        self, action: type[Action], problem: Problem
    ) -> None:
        """[TestAsyncPreemptionFailure; k/k#66549]"""
        driver, actions = preempting()
        outcome = actions if action is ReportStatus else driver.answer(the(ReportStatus, actions))

        assert driver.answer(the(action, outcome), problem) == []

        assert driver.where(HIGH) is QueuePlace.ACTIVE
        assert deletions(driver.tick())[0].endswith("default/a")

    @pytest.mark.upstream(25)
    def test_no_pod_is_deleted_before_its_disruption_condition_is_written(self) -> None:
        """[invariant E11]"""
        driver, actions = preempting()

        done = driver.answer(the(ReportStatus, actions), REFUSED)

        assert not all_of(DeleteObject, done)

    @pytest.mark.upstream(24)
    def test_when_one_fails_those_that_are_only_marked_are_not_deleted(self) -> None:
        small = [pod(name, cpu=2, priority=1, on="n1") for name in "abcde"]
        driver, actions = preempting(driver=Driver(N1, *small))
        first, second, *_ = all_of(ReportStatus, actions)

        driver.answer(first, REFUSED)

        assert driver.answer(second) == []

    def test_a_failure_after_which_nothing_fails_deletes_all_in_the_end(self) -> None:
        driver, actions = preempting()
        delete = the(DeleteObject, driver.answer(the(ReportStatus, actions)))
        driver.answer(delete, REFUSED)
        marked = pod("a", cpu=5, priority=100, on="n1", preempted=True)
        driver.see(marked)

        assert deletions(driver.carry_out(driver.tick())) == ["delete default/a", "mark default/b", "delete default/b"]

    @pytest.mark.upstream(36)
    def test_no_more_victims_are_deleted_for_a_preemptor_that_is_gone(self) -> None:
        """[TestPriorityQueue_NominatedPodDeleted; k/k#85447]"""
        driver, actions = preempting()

        driver.miss(HIGH)

        assert driver.carry_out(actions) == actions
        assert driver.where(HIGH) is None
        assert driver.nominated(HIGH) == ""


class TestSharedVictims:
    """Two preemptors of the same victims; the second one takes the place of the first."""

    def both(self) -> tuple[Driver, Pod, list[Action]]:
        driver, actions = preempting()
        higher = pod("higher", cpu=10, priority=2000)
        driver.see(higher)
        others = driver.tick()
        assert driver.nominated(higher) == "n1"
        assert deletions(others) == []
        return driver, higher, actions

    @pytest.mark.upstream(19)
    def test_each_victim_is_marked_and_deleted_once_for_all_its_preemptors(self) -> None:
        """[kueue#14155: victims shared between two preemptors]"""
        driver, higher, actions = self.both()

        done = deletions(driver.carry_out(actions))

        assert done == ["mark default/a", "delete default/a", "mark default/b", "delete default/b"]
        assert HIGH.metadata.uid not in driver.scheduler.preemptions
        assert higher.metadata.uid not in driver.scheduler.preemptions

    def test_when_its_deletion_fails_every_preemptor_is_tried_again(self) -> None:
        driver, higher, actions = self.both()

        driver.answer(the(ReportStatus, actions), REFUSED)

        assert {driver.where(HIGH), driver.where(higher)} == {QueuePlace.ACTIVE}
        assert deletions(driver.tick()) == ["mark default/a"]

    @pytest.mark.parametrize("answered", [ReportStatus, DeleteObject])
    def test_a_shared_victim_is_deleted_for_the_other_preemptor_if_the_first_is_gone(
        self, answered: type[Action]
    ) -> None:
        driver, _, actions = self.both()
        outcome = actions if answered is ReportStatus else driver.answer(the(ReportStatus, actions))
        driver.miss(HIGH)

        done = driver.carry_out(outcome)

        assert deletions(done)[-3:] == ["delete default/a", "mark default/b", "delete default/b"]
        assert "default/higher" in all_of(Record, done)[-1].message

    def test_a_preemptor_that_comes_back_waits_for_the_request_that_is_on_its_way(self) -> None:
        driver, actions = preempting()
        driver.miss(HIGH)
        driver.see(HIGH)

        assert deletions(driver.tick()) == []

        assert deletions(driver.carry_out(actions))[-2:] == ["mark default/b", "delete default/b"]

    def test_after_its_deletion_it_is_left_alone_though_the_api_does_not_show_that_yet(self) -> None:
        driver, actions = preempting()
        driver.carry_out(actions)
        driver.see(pod("higher", cpu=10, priority=2000))

        assert deletions(driver.tick()) == []

    def test_its_preemptor_waits_for_it_though_the_api_does_not_show_its_deletion_yet(self) -> None:
        driver, actions = preempting()
        driver.carry_out(actions)
        driver.see(N2, pod("cheap", cpu=10, priority=1, on="n2"), node("n3", cpu=1))

        records = all_of(Record, driver.attempts())

        assert "not eligible due to a terminating pod on the nominated node" in records[-1].message
        assert driver.nominated(HIGH) == "n1"

    def test_a_restarted_scheduler_continues_with_the_victims_of_its_predecessor(self) -> None:
        """The nominated node is the first of equal candidates, so that no pod of another node is deleted."""
        nodes = [node(f"n{number}", cpu=10) for number in range(6)]
        marked = [pod(f"v{number}", cpu=10, priority=1, on=f"n{number}") for number in range(6)]
        for number in range(6):
            driver = Driver(*nodes, *marked, nominated(HIGH, f"n{number}"))

            assert deletions(driver.tick()) == [f"mark default/v{number}"]

    def test_a_victim_counts_as_alive_if_its_deletion_stays_unobserved(self) -> None:
        driver, actions = preempting()
        driver.carry_out(actions)
        driver.wait(DELETION_SHOWN_WITHIN_NS / SECOND)
        driver.see(pod("higher", cpu=10, priority=2000))

        assert deletions(driver.tick()) == ["mark default/a"]

    @pytest.mark.parametrize("first", ["shown", "answered"])
    def test_nothing_is_kept_about_it_once_the_api_shows_its_end(self, first: str) -> None:
        driver, actions = preempting()
        if first == "answered":
            driver.carry_out(actions)
            assert len(driver.scheduler.cluster.deleted_victims) == 2
        driver.see(terminating(A))
        driver.miss(B)
        if first == "shown":
            driver.carry_out(actions)

        assert not driver.scheduler.cluster.deleted_victims


class TestThePreemptor:
    @pytest.mark.upstream(17, 26)
    def test_the_preemptor_is_gated_during_the_deletions_and_then_waits_for_the_victims(self) -> None:
        """[TestAsyncPreemption; TestIsPodRunningPreemption]"""
        driver, actions = preempting()
        assert driver.tick() == []

        driver.carry_out(actions)
        driver.see(terminating(A), terminating(B))

        assert driver.where(HIGH) is QueuePlace.UNSCHEDULABLE
        assert HIGH.metadata.uid not in driver.scheduler.preemptions

    @pytest.mark.upstream(1, 17)
    def test_the_preemptor_is_bound_when_its_last_victim_has_ended(self) -> None:
        driver = preempted()
        driver.wait(30)

        driver.miss(B)
        assert not all_of(Bind, driver.tick())
        driver.miss(A)
        driver.wait(10)

        assert the(Bind, driver.tick()) == Bind("default/high", "default/high", "n1")

    def test_the_preemptor_gets_the_room_though_the_replacement_is_attempted_first(self) -> None:
        """[k/k#93505: it backs off from its last attempt, and the replacement does not]"""
        driver = preempted()
        driver.see(pod("replacement", cpu=1, priority=100))

        driver.miss(A, B)

        assert driver.where(HIGH) is QueuePlace.BACKOFF
        assert not all_of(Bind, driver.tick())
        assert the(Bind, driver.tick()).pod == "default/high"

    def test_the_preemptor_does_not_overtake_a_more_important_pod_in_backoff(self) -> None:
        driver = Driver(N1, B, pod("higher", cpu=10, priority=2000, policy="Never"))
        driver.tick()
        preempting(driver=driver)
        driver.carry_out([])

        driver.miss(B)

        assert the(Bind, driver.tick()).pod == "default/higher"

    @pytest.mark.upstream(29)
    def test_the_preemptor_takes_no_more_victims_while_its_victims_terminate(self) -> None:
        """[TestPodEligibleToPreemptOthers; k/k#134217]"""
        driver = preempted()

        driver.miss(B)
        actions = driver.tick()

        assert deletions(actions) == []
        assert driver.nominated(HIGH) == "n1"
        (record,) = all_of(Record, actions)
        assert "not eligible due to a terminating pod on the nominated node" in record.message

    @pytest.mark.upstream(29)
    def test_other_pods_that_terminate_there_do_not_keep_it_from_preempting(self) -> None:
        """[TestPodEligibleToPreemptOthers: a terminating pod that is no victim]"""
        driver = Driver(N1, terminating(A, preempted=False), B)

        _, actions = preempting(driver=driver, preemptor=nominated(HIGH, "n1"))

        assert deletions(actions) == ["mark default/b"]

    @pytest.mark.upstream(29)
    def test_the_preemptor_preempts_elsewhere_when_its_node_becomes_unfit(self) -> None:
        """[TestPodEligibleToPreemptOthers; k/k#92600]"""
        driver = preempted()
        driver.see(N2, pod("c", cpu=10, priority=0, on="n2"))
        driver.see(node("n1", cpu=10, taints=["gone:NoSchedule"]))
        driver.miss(B)

        actions = driver.tick()

        assert driver.nominated(HIGH) == "n2"
        assert deletions(actions) == ["mark default/c"]

    def test_an_event_during_the_deletions_retries_the_preemptor_after_them(self) -> None:
        """[k/k#140082, k/k#141694; invariant E15]"""
        driver, actions = preempting()
        driver.see(N2)
        assert driver.where(HIGH) is QueuePlace.GATED

        driver.carry_out(actions)

        assert the(Bind, driver.tick()).node_name == "n2"

    @pytest.mark.upstream(26)
    def test_a_victim_that_ends_before_the_answer_comes_has_it_tried_when_they_are_through(self) -> None:
        driver = Driver(N1, B)
        _, actions = preempting(driver=driver)
        delete = the(DeleteObject, driver.answer(the(ReportStatus, actions)))
        driver.miss(B)
        assert driver.where(HIGH) is QueuePlace.BACKOFF

        driver.answer(delete)

        assert the(Bind, driver.tick()).pod == "default/high"

    def test_victims_that_end_behind_the_gate_have_it_tried_when_the_deletions_are_through(self) -> None:
        driver, actions = preempting()
        driver.miss(A, B)
        assert driver.where(HIGH) is QueuePlace.GATED

        driver.answer(the(ReportStatus, actions), NOT_FOUND)

        assert the(Bind, driver.tick()).pod == "default/high"

    def test_a_victim_that_ends_behind_the_gate_has_it_wait_for_the_others(self) -> None:
        driver, actions = preempting()
        delete = the(DeleteObject, driver.answer(the(ReportStatus, actions)))
        driver.miss(A)
        assert driver.where(HIGH) is QueuePlace.GATED
        mark = the(ReportStatus, driver.answer(delete))

        driver.carry_out([mark])

        assert driver.where(HIGH) is QueuePlace.UNSCHEDULABLE

    @pytest.mark.upstream(22)
    def test_the_preemptor_is_retried_when_it_loses_its_node(self) -> None:
        """[TestAsyncPreemption: waiting preemptor loses its node]"""
        driver, actions = preempting(settings=UNFIT)
        driver.see(N2, pod("c", cpu=10, priority=500, on="n2"))
        driver.see(pod("top", cpu=10, priority=9000, on="n1"))
        assert driver.nominated(HIGH) == ""

        driver.carry_out(actions)

        assert deletions(driver.tick()) == ["mark default/c"]
        assert driver.nominated(HIGH) == "n2"

    @pytest.mark.upstream(5)
    def test_a_pod_that_never_preempts_does_not(self) -> None:
        """[TestNonPreemption]"""
        _, actions = preempting(preemptor=pod("high", cpu=10, priority=1000, policy="Never"))

        assert deletions(actions) == []
        assert "not eligible due to preemptionPolicy=Never" in the(Record, actions).message

    @pytest.mark.upstream(6)
    def test_without_a_post_filter_nothing_is_deleted_or_nominated(self) -> None:
        """[TestDisablePreemption]"""
        settings = configuration(plugins={"postFilter": {"disabled": ["*"]}})

        driver, actions = preempting(driver=Driver(N1, A, B, settings=settings))

        assert deletions(actions) == []
        assert driver.nominated(HIGH) == ""

    @pytest.mark.upstream(10)
    def test_preemption_prefers_victims_without_budget_violations(self) -> None:
        """[TestPDBInPreemption]"""
        precious = pod("precious", cpu=10, priority=1, labels={"app": "web"}, on="n2")
        driver = Driver(N1, N2, A, B, precious, budget("web", "app=web", 0))

        _, actions = preempting(driver=driver)

        assert driver.nominated(HIGH) == "n1"
        assert deletions(actions) == ["mark default/a"]


class TestTheRoom:
    @pytest.mark.upstream(9, 18)
    def test_the_room_is_denied_to_pods_of_lower_and_equal_priority(self) -> None:
        """[TestPreemptionRaces; TestAsyncPreemption: lower priority does not take the place; k/k#54501]"""
        driver = preempted()
        driver.miss(B)
        driver.tick()
        equal = pod("equal", cpu=2, priority=1000)

        driver.see(LOW, equal)

        assert not all_of(Bind, driver.tick() + driver.tick() + driver.tick())
        assert {driver.where(LOW), driver.where(equal)} == {QueuePlace.UNSCHEDULABLE}

    @pytest.mark.upstream(9)
    def test_the_room_is_reserved_from_the_moment_of_the_decision(self) -> None:
        """[k/k#72124: not only once the watch has shown the nomination]"""
        driver = Driver(N1, A)
        driver.see(HIGH)
        driver.tick()

        driver.see(pod("small", cpu=4, priority=900))

        assert not all_of(Bind, driver.tick())

    def test_a_pod_must_fit_without_pods_that_are_only_nominated_to_the_node(self) -> None:
        """[RunFilterPluginsWithNominatedPods: the second pass]"""
        leader = pod("leader", priority=1000, labels={"app": "leader"}, gates=["wait"])
        driver = Driver(node("n1", labels={HOSTNAME: "n1"}), nominated(leader, "n1"))

        driver.see(pod("follower", near=[term("app=leader")]))

        assert not all_of(Bind, driver.tick())

    def test_pods_rejected_by_a_nominated_pods_anti_affinity_stay_pending(self) -> None:
        """This is a setting: without it the preemptor may meet its victim's replacement there again and again."""
        apart = pod("apart", priority=1000, apart=[term("app=web")])
        repelling = configuration({"InterPodAffinity": {"nominatedPodsRepel": True}})
        driver = Driver(node("n1", labels={HOSTNAME: "n1"}), settings=repelling)
        victim = pod("web-1", priority=1, labels={"app": "web"}, on="n1")
        driver.see(victim)
        _, actions = preempting(driver=driver, preemptor=apart)
        driver.carry_out(actions)
        driver.see(terminating(victim))

        driver.see(pod("web-2", priority=1, labels={"app": "web"}))

        assert not all_of(Bind, driver.tick())

    @pytest.mark.upstream(11, 19)
    def test_a_more_important_pod_may_take_it_and_the_preemptor_looks_again(self) -> None:
        """[TestAsyncPreemption: higher priority takes over; k/k#106780]"""
        driver = preempted(settings=UNFIT)
        driver.miss(A, B)
        top = pod("top", cpu=10, priority=2000)
        driver.see(top)

        actions = driver.tick()

        assert the(Bind, actions).pod == "default/top"
        cleared = the(Nominate, actions)
        assert (cleared.pod, cleared.cause) == ("default/high", "default/top")
        assert driver.nominated(HIGH) == ""
        assert driver.where(HIGH) is QueuePlace.ACTIVE

    @pytest.mark.upstream(11, 19)
    def test_a_more_important_preemptor_takes_the_nomination_over(self) -> None:
        """[TestNominatedNode: a high pod preempts there]"""
        driver = preempted(settings=UNFIT)
        top = pod("top", cpu=10, priority=2000)
        driver.see(top)

        actions = driver.tick()

        assert deletions(actions) == []
        assert driver.nominated(top) == "n1"
        assert the(Nominate, actions).pod == "default/high"

    def test_smaller_nominations_that_still_fit_beside_a_more_important_one_stay(self) -> None:
        """[k/k#129948]"""
        driver = preempted(preemptor=pod("high", cpu=8, priority=1000), settings=UNFIT)
        small = pod("small", cpu=2, priority=900)
        driver.see(nominated(small, "n1"))
        top = pod("top", cpu=8, priority=2000)
        driver.see(top)

        actions = driver.tick()

        assert driver.nominated(top) == "n1"
        assert [one.pod for one in all_of(Nominate, actions)] == ["default/high"]
        assert driver.nominated(small) == "n1"

    def test_a_preemption_clears_all_smaller_nominations_by_default(self) -> None:
        small = pod("small", cpu=1, priority=900)
        driver, actions = preempting(nominated(small, "n1"), preemptor=pod("high", cpu=5, priority=1000))

        assert deletions(actions) == ["mark default/b"]
        assert [one.pod for one in all_of(Nominate, actions)] == ["default/small"]
        assert driver.nominated(small) == ""

    def test_a_wait_for_terminating_victims_clears_no_nomination_by_default(self) -> None:
        driver = preempted()
        top = pod("top", cpu=10, priority=2000)
        driver.see(top)

        actions = driver.tick()

        assert (driver.nominated(top), driver.nominated(HIGH)) == ("n1", "n1")
        assert not all_of(Nominate, actions)

    def test_a_foreign_binding_clears_no_nomination_by_default(self) -> None:
        driver = preempted()
        driver.miss(A, B)
        driver.see(pod("top", cpu=10, priority=2000))

        actions = driver.tick()

        assert the(Bind, actions).pod == "default/top"
        assert not all_of(Nominate, actions)
        assert driver.nominated(HIGH) == "n1"

    @pytest.mark.upstream(20)
    def test_two_preemptors_may_share_a_node_where_both_fit(self) -> None:
        """[TestAsyncPreemption: lower may preempt on same big node]"""
        driver, actions = preempting(preemptor=pod("high", cpu=5, priority=1000))
        driver.carry_out(actions)
        driver.see(terminating(B))
        second = pod("second", cpu=5, priority=900)

        driver.see(second)

        assert deletions(driver.tick()) == ["mark default/a"]
        assert driver.nominated(second) == "n1"

    @pytest.mark.upstream(8)
    def test_equals_of_the_victims_do_not_steal_the_room_from_the_preemptor(self) -> None:
        """[TestPreemptionStarvation]"""
        running = [pod(f"running-{number}", cpu=2, priority=1, on="n1") for number in range(5)]
        waiting = [pod(f"waiting-{number}", cpu=2, priority=1) for number in range(5)]
        driver = Driver(N1, *running, *waiting)
        for _ in waiting:
            driver.tick()
        _, actions = preempting(driver=driver, preemptor=pod("high", cpu=3, priority=1000))
        victims = {one.key for one in all_of(DeleteObject, driver.carry_out(actions))}
        left = [terminating(one) for one in running if one.key in victims]
        assert len(left) == 2

        driver.see(*left)
        driver.wait(30)
        driver.miss(*left)

        assert the(Bind, driver.tick()).pod == "default/high"

    @pytest.mark.parametrize(("which", "place"), [("Unfit", QueuePlace.ACTIVE), ("AllLower", QueuePlace.UNSCHEDULABLE)])
    def test_pods_that_it_was_kept_from_hear_of_it_that_it_went_elsewhere_if_that_is_asked_for(
        self, which: NominationClearing, place: QueuePlace
    ) -> None:
        """[k/k#134859: kube-scheduler does not tell them]"""
        waiting = nominated(pod("waiting", cpu=10, priority=1000, gates=["wait"]), "n1")
        driver = Driver(N1, settings=clearing(which))
        driver.see(pod("waiting", cpu=10, priority=1000, gates=["wait"]))
        driver.see(waiting, LOW)
        driver.tick()
        driver.wait(5)

        driver.see(on(waiting, "n2"))

        assert driver.where(LOW) is place

    @pytest.mark.upstream(34)
    @pytest.mark.parametrize("change", ["deleted", "not nominated any more"])
    def test_pods_that_it_was_kept_from_are_tried_again_when_it_is_given_up(self, change: str) -> None:
        """[TestUpdateNominatedNodeName; k/k#138132]"""
        gated = pod("waiting", cpu=10, priority=1000, gates=["wait"])
        waiting = nominated(gated, "n1")
        driver = Driver(N1, gated, waiting, LOW)
        driver.tick()
        assert driver.where(LOW) is QueuePlace.UNSCHEDULABLE

        if change == "deleted":
            driver.miss(waiting)
        else:
            driver.see(nominated(waiting, ""))

        assert the(Bind, driver.tick()).pod == "default/low"


class TestTheNomination:
    @pytest.mark.upstream(1)
    def test_the_nomination_is_written_in_the_patch_of_the_condition(self) -> None:
        """[k/k#89111; invariant E16]"""
        _, actions = preempting()

        report = the(ReportUnschedulable, actions)
        assert (report.reason, report.nominated_node_name) == ("Unschedulable", "n1")
        assert not all_of(Nominate, actions)

    def test_the_nomination_is_also_read_from_the_annotation_of_the_design(self) -> None:
        plain = pod("waiting", cpu=10, priority=1000, gates=["wait"])
        annotations = {"scheduler.kubernetes.io/nominated-node-name": "n1"}
        waiting = replace(plain, metadata=replace(plain.metadata, annotations=annotations))

        driver = Driver(N1, plain, waiting, LOW)

        assert driver.nominated(waiting) == "n1"
        assert not all_of(Bind, driver.tick())

    @pytest.mark.upstream(12)
    def test_the_nominated_node_is_tried_first(self) -> None:
        """[TestPreferNominatedNode]"""
        for name in ("n1", "n2"):
            driver = Driver(N1, N2, nominated(LOW, name))
            assert the(Bind, driver.tick()).node_name == name

    @pytest.mark.upstream(12, 13)
    def test_a_pod_lands_elsewhere_when_its_nominated_node_has_no_room_yet(self) -> None:
        """[TestPreemptionAndNominatedNodeNameScenarios]"""
        driver = preempted()

        driver.see(N2)
        driver.wait(2)

        assert the(Bind, driver.tick()).node_name == "n2"
        assert driver.nominated(HIGH) == ""

    @pytest.mark.upstream(11)
    def test_the_nomination_is_cleared_when_no_candidate_is_left(self) -> None:
        """[TestNominatedNode: no candidate left]"""
        driver = Driver(N1, pod("a", cpu=10, priority=5000, on="n1"))
        driver.see(nominated(HIGH, "n1"))

        report = the(ReportUnschedulable, driver.tick())

        assert report.nominated_node_name == ""
        assert driver.nominated(HIGH) == ""

    def test_the_nomination_of_a_never_preempting_pod_is_kept(self) -> None:
        driver = Driver(N1, A, B, nominated(pod("high", cpu=10, priority=1000, policy="Never"), "n1"))

        assert the(ReportUnschedulable, driver.tick()).nominated_node_name is None

    @pytest.mark.upstream(11)
    def test_the_nomination_is_cleared_when_its_node_is_deleted(self) -> None:
        """[TestNominatedNode: node deleted; k/k#85677]"""
        driver = preempted(settings=UNFIT)

        actions = driver.miss(N1)

        cleared = the(Nominate, actions)
        assert (cleared.pod, cleared.uid, cleared.cause) == ("default/high", "default/high", "node n1 is gone")
        assert driver.nominated(HIGH) == ""
        assert driver.where(HIGH) is QueuePlace.ACTIVE

    def test_the_nomination_is_cleared_when_the_cluster_has_no_nodes(self) -> None:
        driver = Driver(nominated(HIGH, "n1"))

        actions = driver.tick()

        assert the(ReportUnschedulable, actions).nominated_node_name == ""
        assert deletions(actions) == []

    def test_the_nomination_ends_when_the_node_is_unfit_and_the_victims_are_gone(self) -> None:
        """[k/k#92600, k/k#95752]"""
        driver = preempted()
        driver.see(node("n1", cpu=10, unschedulable=True))
        driver.miss(A, B)
        driver.wait(20)

        assert the(ReportUnschedulable, driver.tick()).nominated_node_name == ""
        assert driver.nominated(HIGH) == ""

    def test_other_clients_may_clear_or_move_a_nomination(self) -> None:
        driver = preempted()

        driver.see(nominated(HIGH, "n2"))
        assert driver.nominated(HIGH) == "n2"
        driver.see(nominated(HIGH, ""))
        assert driver.nominated(HIGH) == ""

    def test_an_observation_older_than_our_own_write_is_ignored(self) -> None:
        """[invariant C4]"""
        driver = Driver(N1, A, B)
        driver.see(HIGH)
        driver.tick()

        driver.see(pod("high", cpu=10, priority=1000, labels={"changed": "yes"}))

        assert driver.nominated(HIGH) == "n1"

    @pytest.mark.parametrize(
        "change",
        [{"unschedulable": True, "taints": [f"{UNSCHEDULABLE}:NoSchedule"]}, {"taints": ["gone:NoExecute"]}],
        ids=["cordoned", "tainted"],
    )
    def test_the_nomination_moves_at_once_when_its_node_becomes_unfit_despite_stuck_victims(
        self, change: dict[str, Any]
    ) -> None:
        """A change of taints wakes pods that wait for nodes, and then excludes this node."""
        driver = preempted(N2, pod("c", cpu=10, priority=500, on="n2"))

        driver.see(node("n1", cpu=10, **change))

        assert deletions(driver.tick()) == ["mark default/c"]
        assert driver.nominated(HIGH) == "n2"

    def test_a_write_overtaken_by_a_newer_one_is_ignored(self) -> None:
        driver = Driver(N1, A, B, settings=UNFIT)
        driver.see(HIGH)
        driver.tick()
        driver.miss(N1)
        assert driver.nominated(HIGH) == ""

        driver.see(nominated(HIGH, "n1"))
        assert driver.nominated(HIGH) == ""
        driver.see(nominated(HIGH, ""))
        assert driver.nominated(HIGH) == ""

        driver.see(nominated(HIGH, "n3"))
        assert driver.nominated(HIGH) == "n3"

    def test_clearing_it_is_tried_again_when_it_fails(self) -> None:
        plain = pod("waiting", cpu=2, priority=5, gates=["wait"])
        gated = nominated(plain, "n1")
        driver = Driver(N1, plain, gated, settings=UNFIT)
        cleared = the(Nominate, driver.miss(N1))

        driver.answer(cleared, REFUSED)

        assert driver.deadline_seconds == 1
        driver.wait(1)
        assert driver.tick() == [cleared]
        driver.answer(cleared)
        driver.see(nominated(gated, ""))
        driver.wait(1)
        assert driver.tick() == []

    def test_clearing_it_is_not_tried_again_when_it_has_come_back_meanwhile(self) -> None:
        plain = pod("waiting", cpu=2, priority=5, gates=["wait"])
        gated = nominated(plain, "n1")
        driver = Driver(N1, plain, gated, settings=UNFIT)
        cleared = the(Nominate, driver.miss(N1))
        driver.answer(cleared, NO_ANSWER)
        driver.see(nominated(gated, ""))
        driver.see(nominated(gated, "n2"))

        driver.wait(1)

        assert driver.tick() == []
        assert driver.nominated(gated) == "n2"


class TestVictimsOnTheirWay:
    def driver(self, version: str = "1.36") -> tuple[Driver, Pod]:
        """Return a pod that waits at Permit, and holds the only room."""
        driver = Driver(N1, settings=with_plugins("Spy"), version=version)
        driver.plugin("Spy").answers["permit"] = PermitResult(Status(Code.WAIT), 600 * SECOND)
        victim = pod("victim", cpu=8, priority=1)
        driver.see(victim)
        driver.tick()
        driver.see(nominated(victim, "n1"))
        driver.plugin("Spy").answers.clear()
        return driver, victim

    @pytest.mark.upstream(16, 23)
    def test_a_victim_waiting_at_permit_is_cancelled_not_deleted(self) -> None:
        """[TestPreemptWithPermitPlugin; TestPreemptionRespectsWaitingPod]"""
        driver, victim = self.driver()

        _, actions = preempting(driver=driver)

        assert deletions(actions) == []
        assert driver.holds(victim) == ""
        assert driver.where(victim) is QueuePlace.BACKOFF
        assert driver.plugin("Spy").points[-1] == "unreserve"
        assert driver.nominated(HIGH) == "n1"

    def test_the_preemptor_takes_the_room_of_one_that_was_called_back_without_any_event(self) -> None:
        """[k/k#140082]"""
        driver, _ = self.driver()

        preempting(driver=driver)

        assert the(Bind, driver.tick()).pod == "default/high"

    def test_a_cancelled_binding_loses_its_nomination_with_an_event(self) -> None:
        driver, _ = self.driver()

        _, actions = preempting(driver=driver)

        report = next(one for one in all_of(ReportUnschedulable, actions) if one.pod == "default/victim")
        assert (report.nominated_node_name, report.message) == ("", "preempted by pod default/high")
        assert ("FailedScheduling", "default/victim") in events(actions)

    @pytest.mark.upstream(23)
    def test_a_cancelled_victim_lands_on_a_smaller_node(self) -> None:
        """[TestPreemptionRespectsBindingPod]"""
        driver, _ = self.driver()
        preempting(driver=driver)
        driver.tick()

        driver.see(node("n2", cpu=8))
        driver.wait(2)

        assert the(Bind, driver.tick()) == Bind("default/victim", "default/victim", "n2")

    @pytest.mark.upstream(21)
    def test_a_victim_with_a_sent_binding_is_deleted(self) -> None:
        victim = pod("victim", cpu=8, priority=1)
        driver = Driver(N1, victim)
        bind = the(Bind, driver.tick())

        _, actions = preempting(driver=driver)

        assert deletions(driver.carry_out(actions)) == ["mark default/victim", "delete default/victim"]
        driver.miss(victim)
        assert driver.answer(bind, NOT_FOUND) == []
        driver.wait(2)
        assert the(Bind, driver.tick()).pod == "default/high"

    def test_a_victim_waiting_at_permit_is_rejected_before_1_36(self) -> None:
        driver, victim = self.driver("1.35")

        _, actions = preempting(driver=driver)

        assert deletions(actions) == []
        assert driver.where(victim) is QueuePlace.UNSCHEDULABLE
        queued = driver.scheduler.queue.find(victim.metadata.uid)
        assert queued is not None
        assert queued.unschedulable_plugins == ("DefaultPreemption",)

    @pytest.mark.parametrize(("version", "deleted"), [("1.35", ["mark default/victim"]), ("1.36", [])])
    def test_a_victim_in_pre_bind_is_cancelled_since_1_36_and_deleted_before(
        self, version: str, deleted: list[str]
    ) -> None:
        driver, victim = self.driver(version)
        cycle = driver.scheduler.bindings.find(victim.metadata.uid)
        assert cycle is not None
        cycle.stage = BindingStage.PRE_BIND

        _, actions = preempting(driver=driver)

        assert deletions(actions) == deleted

    def test_others_are_deleted_beside_one_that_is_called_back(self) -> None:
        driver, victim = self.driver()
        driver.see(pod("running", cpu=2, priority=1, on="n1"))

        _, actions = preempting(driver=driver)

        assert driver.where(victim) is QueuePlace.BACKOFF
        assert deletions(actions) == ["mark default/running"]
        assert driver.where(HIGH) is QueuePlace.GATED


class TestSynchronousPreemptions:
    """Those of 1.31 and 1.32: the scheduler waits for the answers."""

    def begun(self) -> tuple[Driver, list[Action]]:
        """Return a driver after the preemptor's attempt, with another pod pending and the victims unmarked."""
        driver = Driver(N1, A, B, version="1.32")
        _, actions = preempting(driver=driver)
        driver.see(pod("next", cpu=99))
        return driver, actions

    def test_all_victims_are_marked_at_once_and_nothing_is_attempted_until_they_are_deleted(self) -> None:
        driver, actions = self.begun()

        assert deletions(actions) == ["mark default/a", "mark default/b"]
        assert all_of(ReportUnschedulable, actions) == []
        assert (driver.nominated(HIGH), driver.where(HIGH)) == ("", QueuePlace.IN_FLIGHT)
        assert driver.deadline_seconds is None
        assert driver.tick() == []

        done = driver.carry_out(actions)

        assert the(ReportUnschedulable, done).nominated_node_name == "n1"
        assert driver.nominated(HIGH) == "n1"
        assert driver.where(HIGH) is QueuePlace.UNSCHEDULABLE
        assert driver.deadline_seconds == 0

    def test_an_end_of_a_victim_meanwhile_lets_the_preemptor_back_off(self) -> None:
        driver, actions = self.begun()
        marks = all_of(ReportStatus, actions)
        deleted = [action for mark in marks for action in driver.answer(mark)]
        driver.miss(A)

        driver.carry_out(deleted)

        assert driver.where(HIGH) is QueuePlace.BACKOFF

    def test_a_failure_ends_it_without_a_nomination(self) -> None:
        driver, actions = self.begun()
        first, second = all_of(ReportStatus, actions)
        driver.answer(first, REFUSED)

        outcome = driver.carry_out([second])

        report = the(ReportUnschedulable, outcome)
        assert report.nominated_node_name is None
        assert report.message.endswith(f"preemption: {REFUSED.message}")
        assert driver.nominated(HIGH) == ""
        assert driver.deadline_seconds == 0

    def test_the_scheduler_goes_on_when_the_preemptor_is_gone(self) -> None:
        driver, _ = self.begun()
        assert driver.deadline_seconds is None

        driver.miss(HIGH)

        assert driver.deadline_seconds == 0


def test_every_action_names_a_uid() -> None:
    """[invariant E13]"""
    driver, actions = preempting(settings=UNFIT)

    done = driver.carry_out(actions) + driver.miss(N1)

    assert {type(one) for one in done} == {Record, ReportUnschedulable, ReportStatus, DeleteObject, Nominate}
    assert all(uids(done))
