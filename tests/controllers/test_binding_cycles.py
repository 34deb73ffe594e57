"""From the decision to the bound pod, and back again.

Words in brackets name upstream's own tests of a rule, or the failure that it prevents (k/k is kubernetes/kubernetes).
"""

from dataclasses import replace

import pytest

from podium.api.pod import Pod
from podium.controllers.actions import Action, Bind, BindClaim, Nominate, Record, ReportUnschedulable
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.plugin import ClaimBinding, PermitResult
from podium.framework.verdicts import Code, Status, unschedulable
from tests.builders import HOSTNAME, node, pod, term
from tests.controllers.driving import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    REFUSED,
    SECOND,
    Driver,
    all_of,
    events,
    nominated,
    on,
    terminating,
    the,
    uids,
    with_plugins,
)
from tests.controllers.plugins import Spy
from tests.plugin_errors import without_place

A = pod("a", cpu=4)
B = pod("b", cpu=4)
N1 = node("n1", cpu=6)
N2 = node("n2", cpu=6)
CLAIM = ClaimBinding("default/data", "claim-uid", "volume", "n1")
OTHER = ClaimBinding("default/more", "other-uid", "", "n1")


def binding(*pods: Pod, driver: Driver | None = None) -> tuple[Driver, Bind]:
    """Return a node with room for one of the pods, and the first of them on its way there."""
    driver = driver or Driver(N1)
    driver.see(*pods)
    return driver, the(Bind, driver.tick())


def holding(*names: str) -> tuple[Driver, Spy]:
    """Return a driver whose (first) spy makes pods wait at Permit for ten seconds."""
    driver = Driver(N1, settings=with_plugins(*(names or ["Spy"])))
    spy: Spy = driver.plugin(names[0] if names else "Spy")
    spy.answers["permit"] = PermitResult(Status(Code.WAIT), 10 * SECOND)
    return driver, spy


class TestAssuming:
    @pytest.mark.upstream(45)
    def test_a_pod_takes_its_room_as_soon_as_it_is_decided_upon(self) -> None:
        """[TestAssumePodScheduled; k/k#37232]"""
        driver, bind = binding(A, B)

        assert (bind.pod, bind.uid, bind.node_name) == ("default/a", "default/a", "n1")
        assert driver.holds(A) == "n1"
        assert all_of(Bind, driver.tick()) == []
        assert driver.where(B) is QueuePlace.UNSCHEDULABLE

    @pytest.mark.upstream(45)
    def test_observed_state_replaces_the_assumed_one(self) -> None:
        """[TestAddPodWillReplaceAssumed]"""
        driver, bind = binding(A)
        driver.answer(bind)

        driver.see(on(A, "n1"), on(A, "n1"))

        assert driver.holds(A) == "n1"
        assert not driver.scheduler.bindings.is_assumed(A.metadata.uid)
        assert driver.scheduler.cluster.nodes.pod_count[0] == 1

    def test_labels_that_an_assumed_pod_gets_count_for_others_at_once(self) -> None:
        """It stays on the node that it is on its way to."""
        driver, bind = binding(A, driver=Driver(node("n1", cpu=6, labels={HOSTNAME: "n1"})))

        driver.see(pod("a", cpu=4, labels={"app": "web"}))

        record = driver.scheduler.cluster.placed[A.metadata.uid]
        assert (dict(record.labels), record.node_name) == ({"app": "web"}, "n1")
        driver.see(pod("c", apart=[term("app=web", HOSTNAME)]))
        assert all_of(Bind, driver.tick()) == []
        driver.answer(bind)
        assert driver.holds(A) == "n1"

    @pytest.mark.parametrize("answer_first", [True, False])
    def test_the_binding_is_recorded_once_whichever_comes_first_answer_or_watch(self, answer_first: bool) -> None:
        driver, bind = binding(A, driver=Driver(N1, settings=with_plugins("Spy")))

        actions = driver.answer(bind) if answer_first else []
        actions += driver.see(on(A, "n1"))
        actions += [] if answer_first else driver.answer(bind)

        assert events(actions) == [("Scheduled", "default/a")]
        assert driver.plugin("Spy").points.count("post_bind") == 1
        assert driver.where(A) is None

    def test_an_old_reading_does_not_take_a_bound_pod_back(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind)

        assert driver.see(A) == []

        assert driver.where(A) is None
        assert driver.holds(A) == "n1"

    @pytest.mark.upstream(32)
    def test_pods_that_want_to_be_near_a_pod_are_tried_again_when_it_is_bound(self) -> None:
        """[TestCoreResourceEnqueue: pod affinity]"""
        follower = pod("follower", priority=9, near=[term("app=b")])
        leader = pod("b", labels={"app": "b"})
        driver = Driver(node("n1", labels={HOSTNAME: "n1"}))
        driver.see(follower, leader)
        driver.tick()
        bind = the(Bind, driver.tick())

        driver.answer(bind)
        driver.see(on(leader, "n1"))
        driver.wait(1)

        assert the(Bind, driver.tick()).pod == "default/follower"


class TestFailing:
    @pytest.mark.upstream(33, 45)
    def test_a_refused_binding_gives_the_room_back_and_the_pod_is_tried_again_without_any_event(self) -> None:
        """[TestRequeueByBindFailure; TestForgetPod; k/k#28883]"""
        driver, bind = binding(A)

        actions = driver.answer(bind, REFUSED)

        assert driver.holds(A) == ""
        assert driver.where(A) is QueuePlace.BACKOFF
        assert events(actions) == [("FailedScheduling", "default/a")]
        report = the(ReportUnschedulable, actions)
        assert (report.reason, report.message) == ("SchedulerError", "binding to n1: the API server stumbled")
        assert driver.tick() == []
        assert driver.deadline_seconds is not None
        driver.wait(driver.deadline_seconds)
        assert the(Bind, driver.tick()) == bind

    def test_pods_that_lacked_the_room_are_woken_when_a_binding_fails(self) -> None:
        """[k/k#122444]"""
        driver, bind = binding(A, B)
        driver.tick()
        assert driver.where(B) is QueuePlace.UNSCHEDULABLE

        driver.answer(bind, REFUSED)

        assert the(Bind, driver.tick()).pod == "default/b"

    @pytest.mark.upstream(42)
    def test_a_binding_conflict_caused_by_another_client_is_settled_by_the_watch(self) -> None:
        """[TestFailureHandler_PodAlreadyBound]"""
        driver, bind = binding(A, driver=Driver(N1, N2))
        elsewhere = "n2" if bind.node_name == "n1" else "n1"

        driver.answer(bind, CONFLICT)
        driver.see(on(A, elsewhere))

        assert driver.holds(A) == elsewhere
        assert driver.where(A) is None

    @pytest.mark.upstream(41)
    def test_the_failure_of_an_old_pod_says_nothing_about_its_new_namesake(self) -> None:
        """[TestHandleSchedulingFailureSkipsRecreatedPod; k/k#138316]"""
        driver, bind = binding(A)
        namesake = pod("a", cpu=4, uid="new")

        driver.see(namesake)
        actions = driver.answer(bind, CONFLICT)

        assert actions == []
        assert driver.where(A) is None
        assert driver.where(namesake) is QueuePlace.ACTIVE
        assert driver.scheduler.queue.find("new") is not None
        assert the(Bind, driver.tick()).uid == "new"

    @pytest.mark.upstream(35)
    def test_events_during_binding_count_if_the_pod_returns_to_the_queue(self) -> None:
        """[Test_InFlightPods]"""
        driver, bind = binding(A)
        smaller = pod("a", cpu=1)

        driver.see(smaller)
        assert driver.holds(A) == "n1"
        driver.answer(bind, REFUSED)

        queued = driver.scheduler.queue.find(A.metadata.uid)
        assert queued is not None
        assert queued.record.pod_class.requests == {0: 1000}


@pytest.mark.upstream(42)
class TestWithoutAnAnswer:
    def test_the_room_is_kept_and_the_same_binding_is_sent_again_after_a_second(self) -> None:
        """[k/k#96579]"""
        driver, bind = binding(A, B, driver=Driver(N1, N2))

        assert driver.answer(bind, NO_ANSWER) == []

        assert driver.holds(A) == bind.node_name
        assert the(Bind, driver.tick()).pod == "default/b"
        driver.wait(1)
        assert all_of(Bind, driver.tick()) == [bind]

    def test_an_unanswered_binding_ends_when_the_watch_shows_it(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind, NO_ANSWER)

        actions = driver.see(on(A, "n1"))

        assert events(actions) == [("Scheduled", "default/a")]
        assert driver.deadline_seconds is None

    def test_an_unanswered_binding_ends_when_the_second_one_succeeds(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind, NO_ANSWER)
        driver.wait(1)
        driver.tick()

        assert events(driver.answer(bind)) == [("Scheduled", "default/a")]

        driver.see(on(A, "n1"))
        assert driver.where(A) is None

    def test_a_conflict_proves_the_binding_and_reserves_the_room_until_it_is_observed(
        self,
    ) -> None:
        driver, bind = binding(A, B)
        driver.answer(bind, NO_ANSWER)
        driver.wait(1)
        driver.tick()

        assert driver.answer(bind, CONFLICT) == []

        assert driver.holds(A) == "n1"
        assert driver.where(A) is QueuePlace.IN_FLIGHT
        driver.wait(10)
        assert all_of(Bind, driver.tick()) == []
        assert events(driver.see(on(A, "n1"))) == [("Scheduled", "default/a")]
        assert driver.where(A) is None

    def test_any_other_refusal_leaves_open_what_became_of_the_first_so_it_is_sent_again(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind, NO_ANSWER)
        driver.wait(1)
        driver.tick()

        assert driver.answer(bind, REFUSED) == []

        assert driver.holds(A) == "n1"
        driver.wait(1)
        assert all_of(Bind, driver.tick()) == [bind]

    def test_a_pod_that_is_not_found_was_not_bound(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind, NO_ANSWER)
        driver.wait(1)
        driver.tick()

        driver.answer(bind, NOT_FOUND)

        assert driver.holds(A) == ""

    def test_an_answer_that_comes_after_all_is_not_needed_any_more(self) -> None:
        driver, bind = binding(A)
        driver.answer(bind, NO_ANSWER)
        driver.see(on(A, "n1"))

        assert driver.answer(bind, CONFLICT) == []
        assert driver.answer(bind) == []
        assert driver.holds(A) == "n1"


class TestInterference:
    @pytest.mark.upstream(21, 40)
    def test_a_pod_that_is_deleted_on_its_way_frees_its_room_at_once(self) -> None:
        """[TestSchedulerNoPhantomPodAfterDelete; TestAsyncPreemption: victim blocked in binding]"""
        driver, bind = binding(pod("a", ports=[80]), pod("b", ports=[80]))
        driver.tick()
        assert driver.where(B) is QueuePlace.UNSCHEDULABLE

        driver.miss(A)

        assert driver.holds(A) == ""
        assert the(Bind, driver.tick()).pod == "default/b"
        assert driver.answer(bind, NOT_FOUND) == []
        assert driver.where(A) is None

    def test_a_pod_that_is_being_deleted_will_not_be_bound_and_frees_its_room(self) -> None:
        """A finalizer keeps it in the API."""
        driver, bind = binding(A, B)
        driver.tick()

        driver.see(terminating(A, preempted=False))

        assert driver.holds(A) == ""
        assert driver.where(A) is None
        assert the(Bind, driver.tick()).pod == "default/b"
        assert driver.answer(bind, CONFLICT) == []
        assert driver.where(A) is None

    @pytest.mark.parametrize("stage", ["permit", "bind"])
    def test_a_pod_bound_elsewhere_by_another_client_stays_there(self, stage: str) -> None:
        driver = Driver(N1, settings=with_plugins("Spy"))
        spy: Spy = driver.plugin("Spy")
        if stage == "permit":
            spy.answers["permit"] = PermitResult(Status(Code.WAIT), SECOND)
        driver.see(A, B)
        driver.tick()
        driver.tick()
        assert driver.where(B) is QueuePlace.UNSCHEDULABLE
        driver.see(N2)

        actions = driver.see(on(A, "n2"))

        assert driver.holds(A) == "n2"
        assert spy.points[-1] == "unreserve"
        assert events(actions) == []
        spy.answers.clear()
        assert the(Bind, driver.tick()).node_name == "n1"

    def test_a_pod_bound_as_planned_by_another_client_while_waiting_is_bound(self) -> None:
        driver, spy = holding()
        driver.see(A)
        driver.tick()

        driver.see(on(A, "n1"))

        assert driver.holds(A) == "n1"
        assert spy.points[-1] == "unreserve"
        assert driver.deadline_seconds is None

    def test_a_node_that_goes_takes_nothing_with_it_but_the_room(self) -> None:
        """[k/k#89552]"""
        driver, bind = binding(A)

        driver.miss(N1)
        driver.answer(bind, REFUSED)

        assert driver.holds(A) == ""
        driver.see(N2)
        driver.wait(2)
        assert the(Bind, driver.tick()).node_name == "n2"


class TestPermit:
    @pytest.mark.upstream(14)
    def test_a_pod_that_waits_is_nominated_first(self) -> None:
        """[TestNominatedNodeNameIsSetBeforePreBindAndWaitOnPermit]"""
        driver, _ = holding()
        driver.see(A)

        assert driver.tick() == [Nominate("default/a", "default/a", "n1")]

        assert driver.holds(A) == "n1"
        assert driver.deadline_seconds == 10

    @pytest.mark.upstream(14)
    def test_a_pod_that_need_not_wait_is_bound_without_a_nomination(self) -> None:
        driver = Driver(N1, settings=with_plugins("Spy"))
        driver.see(A)

        assert driver.tick() == [Bind("default/a", "default/a", "n1")]

    def test_a_waiting_pod_continues_when_the_plugin_allows_it(self) -> None:
        driver, spy = holding()
        driver.see(A)
        driver.tick()
        driver.see(nominated(A, "n1"))
        waiting = driver.plugin("Spy").waiting_pods.get(A.metadata.uid)

        waiting.allow("Spy")

        assert driver.deadline_seconds == 0
        assert driver.tick() == [Bind("default/a", "default/a", "n1")]
        assert spy.points == ["reserve", "permit", "pre_bind"]

    def test_a_waiting_pod_needs_every_plugin_that_requested_the_wait(self) -> None:
        driver, _ = holding("First", "Second")
        driver.plugin("Second").answers["permit"] = PermitResult(Status(Code.WAIT), 20 * SECOND)
        driver.see(A)
        driver.tick()
        waiting = driver.plugin("First").waiting_pods.get(A.metadata.uid)

        waiting.allow("First")
        assert driver.tick() == []
        waiting.allow("Second")

        assert the(Bind, driver.tick()).pod == "default/a"

    @pytest.mark.upstream(33, 46)
    def test_a_waiting_pod_returns_to_the_queue_when_the_plugin_rejects_it(self) -> None:
        """[TestRequeueByPermitRejection; TestUnReservePermitPlugins]"""
        driver, spy = holding()
        driver.see(A)
        driver.tick()
        driver.see(nominated(A, "n1"))
        waiting = driver.plugin("Spy").waiting_pods.get(A.metadata.uid)

        waiting.reject("Spy", "not today")
        report = the(ReportUnschedulable, driver.tick())

        assert (report.reason, report.message, report.nominated_node_name) == ("Unschedulable", "not today", "")
        assert spy.points[-1] == "unreserve"
        assert driver.holds(A) == ""
        queued = driver.scheduler.queue.find(A.metadata.uid)
        assert queued is not None
        assert queued.unschedulable_plugins == ("Spy",)

    def test_a_waiting_pod_returns_to_the_queue_at_its_timeout(self) -> None:
        driver, _ = holding()
        driver.see(A)
        driver.tick()
        driver.wait(9.9)
        assert driver.tick() == []

        driver.wait(0.1)

        assert the(ReportUnschedulable, driver.tick()).message == "timed out waiting for Spy"
        assert driver.holds(A) == ""

    def test_a_permit_plugin_may_reject_a_pod_at_once(self) -> None:
        driver = Driver(N1, settings=with_plugins("Spy"))
        spy: Spy = driver.plugin("Spy")
        spy.answers["permit"] = unschedulable("never")
        driver.see(A)

        assert the(ReportUnschedulable, driver.tick()).message == "never"

        assert spy.points == ["reserve", "permit", "unreserve"]

    def test_a_pod_that_is_deleted_while_it_waits_waits_no_more(self) -> None:
        driver, spy = holding()
        driver.see(A)
        driver.tick()

        driver.miss(A)

        assert spy.points[-1] == "unreserve"
        assert driver.deadline_seconds is None
        assert len(driver.scheduler.waiting_pods) == 0

    def test_the_nomination_is_cleared_though_the_watch_has_not_shown_it_yet(self) -> None:
        driver, spy = holding()
        driver.see(A)
        nominate = the(Nominate, driver.tick())
        driver.wait(10)

        assert the(ReportUnschedulable, driver.tick()).nominated_node_name == ""

        driver.answer(nominate)
        driver.see(nominated(A, "n1"))
        assert driver.nominated(A) == ""
        driver.see(nominated(A, ""))
        assert driver.nominated(A) == ""
        assert spy.points[-1] == "unreserve"


class TestPreBind:
    def claiming(self, *claims: ClaimBinding) -> tuple[Driver, Spy, list[Action]]:
        driver = Driver(N1, settings=with_plugins("Spy"))
        spy: Spy = driver.plugin("Spy")
        spy.claims = claims
        driver.see(A)
        return driver, spy, driver.tick()

    @pytest.mark.upstream(14)
    def test_claims_are_bound_first_and_the_pod_is_nominated_before_that(self) -> None:
        """[TestNominatedNodeNameIsSetBeforePreBindAndWaitOnPermit]"""
        driver, _, actions = self.claiming(CLAIM, OTHER)

        assert actions == [
            Nominate("default/a", "default/a", "n1"),
            BindClaim("default/data", "claim-uid", "volume", "n1", "default/a"),
            BindClaim("default/more", "other-uid", "", "n1", "default/a"),
        ]
        assert driver.answer(actions[1]) == []
        assert driver.answer(actions[1]) == []
        assert driver.answer(actions[2]) == [Bind("default/a", "default/a", "n1")]

    @pytest.mark.upstream(11, 46)
    @pytest.mark.parametrize("problem", [REFUSED, NO_ANSWER])
    def test_a_claim_that_cannot_be_bound_fails_the_whole_and_clears_the_nomination(self, problem: Problem) -> None:
        """[TestUnReservePreBindPlugins; TestNominatedNode: PreBind fails]"""
        driver, spy, actions = self.claiming(CLAIM, OTHER)
        driver.see(nominated(A, "n1"))

        outcome = driver.answer(actions[1], problem)

        assert the(ReportUnschedulable, outcome).nominated_node_name == ""
        assert driver.holds(A) == ""
        assert driver.where(A) is QueuePlace.BACKOFF
        assert spy.points[-1] == "unreserve"
        assert driver.answer(actions[2]) == []

    def test_claims_that_are_not_bound_in_time_fail_the_whole_and_the_pod_backs_off(self) -> None:
        """[BindPodVolumes: timed out waiting for the condition]"""
        driver, spy, actions = self.claiming(
            replace(CLAIM, timeout_ns=20 * SECOND), replace(OTHER, timeout_ns=9 * SECOND)
        )
        driver.answer(actions[2])
        assert driver.deadline_seconds == 9
        driver.wait(8.9)
        assert driver.tick() == []

        driver.wait(0.1)
        outcome = driver.tick()

        assert the(ReportUnschedulable, outcome).message == "binding to n1: not bound in time: default/data"
        assert driver.holds(A) == ""
        assert driver.where(A) is QueuePlace.BACKOFF
        assert spy.points[-1] == "unreserve"
        assert driver.answer(actions[1]) == []

    def test_claims_that_are_bound_in_time_leave_nothing_to_wait_for(self) -> None:
        driver, _, actions = self.claiming(replace(CLAIM, timeout_ns=9 * SECOND))

        bind = the(Bind, driver.answer(actions[1]))

        assert driver.deadline_seconds is None
        driver.wait(10)
        assert driver.tick() == []
        assert events(driver.answer(bind)) == [("Scheduled", "default/a")]

    def test_claims_may_take_as_long_as_they_do_where_no_time_is_given(self) -> None:
        driver, _, actions = self.claiming(CLAIM)

        assert driver.deadline_seconds is None
        driver.wait(10**6)
        assert driver.tick() == []
        assert the(Bind, driver.answer(actions[1])).pod == "default/a"

    def test_the_time_for_claims_begins_when_the_wait_at_permit_ends(self) -> None:
        driver, spy = holding()
        spy.claims = (replace(CLAIM, timeout_ns=9 * SECOND),)
        driver.see(A)
        driver.tick()
        driver.wait(5)

        driver.plugin("Spy").waiting_pods.get(A.metadata.uid).allow("Spy")
        driver.tick()

        assert driver.deadline_seconds == 9

    def test_a_rejection_at_pre_bind_makes_no_pod_unschedulable_but_is_tried_again_after_a_backoff(self) -> None:
        driver = Driver(N1, settings=with_plugins("Spy"))
        driver.plugin("Spy").answers["pre_bind"] = unschedulable("no volume")
        driver.see(A)

        assert the(ReportUnschedulable, driver.tick()).message == "no volume"
        queued = driver.scheduler.queue.find(A.metadata.uid)
        assert queued is not None
        assert (queued.unschedulable_plugins, queued.error_count, queued.place) == ((), 1, QueuePlace.BACKOFF)


class TestPlugins:
    @pytest.mark.upstream(46)
    @pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
    @pytest.mark.parametrize("answer", [unschedulable("no"), ValueError("oh dear")])
    def test_all_plugins_unreserve_in_reverse_order_after_any_failure(
        self, point: str, answer: Status | Exception
    ) -> None:
        """[TestUnReserveReservePlugins and its likes]"""
        driver = Driver(N1, settings=with_plugins("First", "Second"))
        first, second = driver.plugin("First"), driver.plugin("Second")
        first.answers[point] = answer
        driver.see(A)

        driver.tick()

        assert driver.holds(A) == ""
        assert [spy.points.count("unreserve") for spy in (first, second)] == [1, 1]
        assert first.calls[-1].number > second.calls[-1].number

    @pytest.mark.parametrize(
        ("point", "outcome"), [("reserve", "Reserve"), ("permit", "Permit"), ("pre_bind", "PreBind")]
    )
    def test_a_plugin_that_raises_fails_the_attempt_and_is_named(self, point: str, outcome: str) -> None:
        driver = Driver(N1, settings=with_plugins("Spy"))
        driver.plugin("Spy").answers[point] = ValueError("oh dear")
        driver.see(A)

        report = the(ReportUnschedulable, driver.tick())

        assert report.reason == "SchedulerError"
        assert without_place(report.message) == f"plugin Spy failed at {outcome} for pod default/a: ValueError: oh dear"
        assert driver.where(A) is QueuePlace.BACKOFF

    def test_a_plugin_that_raises_after_the_binding_changes_nothing_about_it(self) -> None:
        driver, bind = binding(A, driver=Driver(N1, settings=with_plugins("Spy")))
        driver.plugin("Spy").answers["post_bind"] = ValueError("oh dear")

        actions = driver.answer(bind)

        assert events(actions) == [("Scheduled", "default/a"), ("FailedPostBind", "default/a")]
        assert all_of(Record, actions)[1].message.startswith("plugin Spy failed at PostBind")
        assert driver.holds(A) == "n1"

    @pytest.mark.upstream(46)
    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (unschedulable("not by me"), "not by me"),
            (Status(Code.SKIP), "no Bind plugin took the pod"),
            (ValueError("oh dear"), "plugin Binder failed at Bind for pod default/a: ValueError: oh dear"),
        ],
    )
    def test_a_bind_plugin_may_refuse_skip_or_fail(self, answer: Status | Exception, message: str) -> None:
        """[TestUnReserveBindPlugins]"""
        settings = with_plugins("First", "Second", "Binder", disabled={"bind": ["DefaultBinder"]})
        driver = Driver(N1, settings=settings)
        driver.plugin("Binder").answer = answer
        driver.see(A)

        assert without_place(the(ReportUnschedulable, driver.tick()).message) == message
        last, before = driver.plugin("First").calls[-1], driver.plugin("Second").calls[-1]
        assert (before.point, last.point) == ("unreserve", "unreserve")
        assert last.number > before.number

    def test_every_action_names_the_uid(self) -> None:
        driver, _ = holding()
        driver.plugin("Spy").claims = (CLAIM,)
        driver.see(A)
        actions = driver.tick()
        waiting = driver.plugin("Spy").waiting_pods.get(A.metadata.uid)
        waiting.allow("Spy")
        actions += driver.carry_out(driver.tick())

        assert {type(one) for one in actions} == {Nominate, BindClaim, Bind, Record}
        assert set(uids(actions)) == {A.metadata.uid}
        assert all(one.node_name for one in all_of(Nominate, actions))


class TestUnreserveThatRaises:
    def broken(self, point: str) -> tuple[Driver, Spy]:
        driver = Driver(N1, settings=with_plugins("First", "Second"))
        second: Spy = driver.plugin("Second")
        second.answers["unreserve"] = ValueError("oh dear")
        if point == "permit":
            second.answers["permit"] = PermitResult(Status(Code.WAIT), 9 * SECOND)
        else:
            second.answers[point] = unschedulable("no")
        return driver, second

    @pytest.mark.parametrize("point", ["reserve", "pre_bind"])
    def test_an_unreserve_error_blocks_neither_other_plugins_nor_the_node(self, point: str) -> None:
        driver, _ = self.broken(point)
        driver.see(A)

        actions = driver.tick()

        assert driver.plugin("First").points[-1] == "unreserve"
        assert driver.holds(A) == ""
        assert len(driver.scheduler.bindings) == 0
        assert ("FailedUnreserve", "default/a") in events(actions)

    def test_an_unreserve_error_does_not_keep_a_deleted_pod(self) -> None:
        driver, _ = self.broken("permit")
        driver.see(A)
        driver.tick()

        assert events(driver.miss(A)) == [("FailedUnreserve", "default/a")]
        assert driver.holds(A) == ""
        assert driver.where(A) is None

    def test_an_unreserve_error_does_not_block_a_foreign_binding(self) -> None:
        driver, _ = self.broken("permit")
        driver.see(A)
        driver.tick()

        assert events(driver.see(on(A, "elsewhere"))) == [("FailedUnreserve", "default/a")]
        assert len(driver.scheduler.bindings) == 0
