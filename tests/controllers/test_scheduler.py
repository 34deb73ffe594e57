"""The pods that a scheduler attempts, and the reports about them.

Words in brackets name upstream's own tests of a rule, or the failure that it prevents (k/k is kubernetes/kubernetes).
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.controllers.actions import Bind, Nominate, Record, ReportUnschedulable
from podium.controllers.observations import Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from tests.builders import ZONE, configuration, node, pod, term
from tests.controllers.driving import (
    CONFLICT,
    NO_ANSWER,
    NOT_FOUND,
    REFUSED,
    Driver,
    all_of,
    events,
    nominated,
    on,
    terminating,
    the,
    with_plugins,
)
from tests.plugin_errors import without_place

N1 = node("n1", cpu=10)
A = pod("a", cpu=4)
HUGE = pod("huge", cpu=99)


class TestWhoIsAttempted:
    def test_the_most_important_pod_first_then_the_one_that_came_first(self) -> None:
        """[invariant C6]"""
        driver = Driver(N1, pod("low", priority=1), pod("first", priority=5))
        driver.wait(1)
        driver.see(pod("also-first", priority=5), pod("high", priority=9))

        bound = [the(Bind, driver.tick()).pod for _ in range(4)]

        assert bound == ["default/high", "default/first", "default/also-first", "default/low"]

    def test_one_pod_is_attempted_per_tick_and_the_next_one_at_once(self) -> None:
        driver = Driver(N1, pod("a"), pod("b"))

        assert driver.deadline_seconds == 0
        assert len(all_of(Bind, driver.tick())) == 1
        assert driver.deadline_seconds == 0
        driver.tick()
        assert driver.deadline_seconds is None

    def test_a_scheduler_without_upcoming_attempts_is_settled(self) -> None:
        driver = Driver(N1)
        assert not driver.scheduler.deadline().keeps_alive

        driver.see(HUGE)
        assert driver.scheduler.deadline().keeps_alive
        driver.tick()
        assert not driver.scheduler.deadline().keeps_alive

        driver.see(node("larger", cpu=100))
        assert driver.where(HUGE) is QueuePlace.BACKOFF
        assert driver.scheduler.deadline().keeps_alive

    @pytest.mark.upstream(47)
    def test_pods_of_other_schedulers_are_no_business_of_ours_but_take_their_room(self) -> None:
        """[TestMultipleSchedulers; invariant D3]"""
        foreign = pod("foreign", cpu=8, scheduler="another")
        driver = Driver(N1, foreign)
        assert driver.deadline_seconds is None
        assert driver.where(foreign) is None

        driver.see(on(foreign, "n1"), A)

        assert not all_of(Bind, driver.tick())

    def test_nominations_of_other_schedulers_pods_block_no_pod(self) -> None:
        driver = Driver(N1, nominated(pod("foreign", cpu=10, priority=9, scheduler="another"), "n1"), A)

        assert the(Bind, driver.tick()).pod == "default/a"

    @pytest.mark.parametrize("keeps", [terminating(A, preempted=False), on(A, "n1")])
    def test_pods_that_terminate_or_have_a_node_are_not_attempted(self, keeps: Pod) -> None:
        """[invariant C1]"""
        driver = Driver(N1, keeps)
        assert driver.where(A) is None

        driver = Driver(N1, A, keeps)

        assert driver.where(A) is None
        assert driver.tick() == []

    def test_pods_that_have_ended_take_no_room(self) -> None:
        ended = pod("ended", cpu=10, on="n1")
        driver = Driver(N1, ended, A)
        assert not all_of(Bind, driver.tick())

        driver.see(finished(ended))

        driver.wait(2)
        assert the(Bind, driver.tick()).pod == "default/a"
        assert driver.miss(ended) == []

    @pytest.mark.upstream(39)
    def test_gated_pods_are_not_attempted_until_the_last_gate_is_gone(self) -> None:
        """[TestSchedulingGates; invariant D3]"""
        driver = Driver(N1, pod("a", gates=["one", "two"]))
        assert driver.deadline_seconds is None or driver.tick() == []

        driver.see(pod("a", gates=["two"]))
        assert driver.where(A) is QueuePlace.GATED
        driver.see(pod("a"))

        assert the(Bind, driver.tick()).pod == "default/a"

    @pytest.mark.upstream(41)
    def test_a_new_namesake_takes_the_place_of_a_pod_whose_end_was_not_seen(self) -> None:
        """[TestHandleSchedulingFailureSkipsRecreatedPod; faults: coalesced events]"""
        driver = Driver(N1, pod("a", cpu=10, on="n1", uid="old"))

        driver.see(pod("a", cpu=10, uid="new"))

        assert the(Bind, driver.tick()).uid == "new"
        assert driver.miss(pod("a", cpu=10, on="n1", uid="old")) == []
        assert driver.scheduler.cluster.placed["new"].node_name == "n1"

    def test_repeated_observations_count_once(self) -> None:
        """[faults: repeated events]"""
        running = pod("running", cpu=8, on="n1")
        driver = Driver(N1, N1, running, running, A, A)
        assert not all_of(Bind, driver.tick())

        driver.miss(running, running)
        driver.wait(2)

        assert the(Bind, driver.tick()).pod == "default/a"
        assert driver.tick() == []

    def test_pods_may_be_shown_before_their_node(self) -> None:
        """[faults: events reordered across kinds; k/k#89552]"""
        running = pod("running", cpu=8, on="n1")
        driver = Driver(running, A)

        driver.see(N1)

        assert not all_of(Bind, driver.tick())
        driver.miss(N1)
        driver.miss(running)
        driver.see(N1)
        driver.wait(3)
        assert the(Bind, driver.tick()).pod == "default/a"


class TestBoundPods:
    def test_a_nomination_that_is_written_after_the_binding_is_cleared(self) -> None:
        """[invariant E10; a crash between the binding and its answer]"""
        driver = Driver(N1, A)
        driver.answer(the(Bind, driver.tick()))
        driver.see(on(A, "n1"))

        clear = the(Nominate, driver.see(nominated(on(A, "n1"), "n1")))

        assert clear.pod == "default/a"
        driver.answer(clear, REFUSED)
        driver.wait(1)
        assert the(Nominate, driver.tick()) == clear

    def test_a_nomination_of_an_earlier_scheduler_process_is_cleared(self) -> None:
        driver = Driver(N1)

        assert the(Nominate, driver.see(nominated(on(A, "n1"), "n1"))).pod == "default/a"

    def test_a_nomination_of_an_ended_bound_pod_is_cleared(self) -> None:
        driver = Driver(N1)
        ended = nominated(on(A, "n1"), "n1")
        ended = replace(ended, status=replace(ended.status, phase="Failed"))

        assert the(Nominate, driver.see(ended)).node_name == ""

    def test_the_nominations_of_others_pods_are_theirs_to_clear(self) -> None:
        driver = Driver(N1)
        foreign = pod("foreign", scheduler="another")

        assert not all_of(Nominate, driver.see(nominated(on(foreign, "n1"), "n1")))

    def test_an_assumed_pod_is_read_again_only_if_the_api_shows_more_than_its_node(self) -> None:
        relabelled = replace(A, metadata=replace(A.metadata, labels={"app": "web"}))
        for one, node_name, is_read in ((A, "n1", False), (A, "n2", True), (relabelled, "n1", True)):
            shown = replace(one, spec=replace(A.spec, node_name=node_name), status=replace(A.status, phase="Pending"))
            driver = Driver(N1, A)
            driver.answer(the(Bind, driver.tick()))
            placed = driver.scheduler.cluster.placed
            assumed = placed[A.metadata.uid]

            driver.see(shown)

            record = placed[A.metadata.uid]
            assert (record is not assumed, record.node_name) == (is_read, shown.spec.node_name)

    def test_the_labels_that_a_pod_gets_on_its_way_to_its_node_count_at_once(self) -> None:
        """[invariant C9]"""
        driver = Driver(node("n1", cpu=10, zone="z"), A)
        driver.tick()

        driver.see(replace(A, metadata=replace(A.metadata, labels={"app": "web"})))

        driver.see(pod("apart", apart=[term("app=web", ZONE)]))
        assert not all_of(Bind, driver.tick())


class TestProfiles:
    @pytest.mark.upstream(47)
    def test_each_profile_decides_for_the_pods_that_name_it(self) -> None:
        """[TestMultipleSchedulers]"""
        packing = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
        profiles = [
            {"schedulerName": "spreading"},
            {"schedulerName": "packing", "pluginConfig": [{"name": "NodeResourcesFit", "args": packing}]},
        ]
        settings = read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "test")
        driver = Driver(N1, node("n2", cpu=10), pod("there", cpu=5, on="n1"), settings=settings)

        driver.see(pod("a", cpu=1, scheduler="packing"), pod("b", cpu=1, scheduler="spreading"), pod("c"))

        assert [(one.pod, one.node_name) for one in all_of(Bind, driver.tick() + driver.tick())] == [
            ("default/a", "n1"),
            ("default/b", "n2"),
        ]
        assert driver.deadline_seconds is None


class TestWhatIsTold:
    def test_an_unschedulable_pod_gets_an_event_and_a_condition_with_the_reason(self) -> None:
        driver = Driver(N1, HUGE)

        actions = driver.tick()

        record, report = the(Record, actions), the(ReportUnschedulable, actions)
        assert (record.type, record.reason) == ("Warning", "FailedScheduling")
        assert record.message.startswith(
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available"
        )
        assert (report.reason, report.message, report.nominated_node_name) == ("Unschedulable", record.message, None)

    def test_the_same_is_reported_only_once(self) -> None:
        driver = Driver(N1, HUGE)
        driver.answer(the(ReportUnschedulable, driver.tick()))
        driver.wait(300)

        actions = driver.tick()

        assert events(actions) == [("FailedScheduling", "default/huge")]
        assert not all_of(ReportUnschedulable, actions)

    @pytest.mark.parametrize("problem", [REFUSED, NO_ANSWER, CONFLICT])
    def test_a_report_that_fails_is_sent_again_after_a_second(self, problem: Problem) -> None:
        driver = Driver(N1, HUGE)
        report = the(ReportUnschedulable, driver.tick())

        driver.answer(report, problem)

        assert driver.deadline_seconds == 1
        driver.wait(1)
        assert driver.tick() == [report]
        driver.answer(report)
        assert driver.deadline_seconds == 299

    def test_a_report_about_a_pod_that_is_gone_is_not(self) -> None:
        driver = Driver(N1, HUGE)

        driver.answer(the(ReportUnschedulable, driver.tick()), NOT_FOUND)

        assert driver.deadline_seconds == 300

    def test_a_report_that_failed_is_dropped_with_its_pod(self) -> None:
        driver = Driver(N1, HUGE)
        driver.answer(the(ReportUnschedulable, driver.tick()), REFUSED)

        driver.miss(HUGE)

        assert driver.deadline_seconds is None

    def test_without_nodes_pods_report_it_and_are_retried_until_one_exists(self) -> None:
        driver = Driver(A)
        assert the(ReportUnschedulable, driver.tick()).message == "no nodes available to schedule pods"

        driver.see(N1)
        driver.wait(2)

        assert the(Bind, driver.tick()).pod == "default/a"


class TestBackToTheQueue:
    @pytest.mark.upstream(32)
    @pytest.mark.parametrize(
        "event",
        [
            lambda driver: driver.see(node("n2", cpu=10)),
            lambda driver: driver.see(node("n1", cpu=20)),
            lambda driver: driver.miss(pod("running", cpu=8, on="n1")),
            lambda driver: driver.see(finished(pod("running", cpu=8, on="n1"))),
            lambda driver: driver.see(pod("running", cpu=1, on="n1")),
            lambda driver: driver.see(pod("a", cpu=1)),
        ],
    )
    def test_a_helpful_event_retries_an_unschedulable_pod(self, event: Callable[[Driver], object]) -> None:
        """[TestCoreResourceEnqueue]"""
        driver = Driver(N1, pod("running", cpu=8, on="n1"), A)
        driver.tick()
        assert driver.where(A) is QueuePlace.UNSCHEDULABLE

        event(driver)

        assert the(Bind, driver.tick()).pod == "default/a"

    @pytest.mark.upstream(32)
    def test_irrelevant_events_do_not_retry_a_pod(self) -> None:
        driver = Driver(N1, pod("running", cpu=8, on="n1"), A)
        driver.tick()

        driver.see(node("n1", cpu=10, labels={"new": "label"}), node("n2", cpu=1))

        assert driver.where(A) is QueuePlace.UNSCHEDULABLE

    def test_a_node_that_shows_nothing_new_changes_nothing(self) -> None:
        driver = Driver(N1)
        position = driver.scheduler.cluster.nodes.changes.position

        driver.see(node("n1", cpu=10))

        assert driver.scheduler.cluster.nodes.changes.position == position

    @pytest.mark.upstream(38)
    def test_a_waiting_pod_is_retried_after_five_minutes(self) -> None:
        """[TestHighPriorityFlushUnschedulablePodsLeftover; invariant L3]"""
        driver = Driver(N1, HUGE)
        driver.tick()
        assert driver.deadline_seconds == 300

        driver.wait(300)

        assert events(driver.tick()) == [("FailedScheduling", "default/huge")]


class TestBrokenPlugins:
    def driver(self, point: str) -> tuple[Driver, Pod]:
        broken = pod("broken", priority=9, labels={"breaks": point})
        return Driver(N1, node("n2"), broken, pod("fine"), settings=with_plugins("Broken")), broken

    @pytest.mark.parametrize("point", ["PreFilter", "Filter", "Score"])
    def test_a_plugin_error_fails_the_attempt_and_others_continue(self, point: str) -> None:
        driver, broken = self.driver(point)

        report = the(ReportUnschedulable, driver.tick())

        assert (report.pod, report.reason) == ("default/broken", "SchedulerError")
        assert (
            without_place(report.message)
            == f"plugin Broken failed at {point} for pod default/broken: ValueError: oh dear"
        )
        assert driver.where(broken) is QueuePlace.BACKOFF
        assert the(Bind, driver.tick()).pod == "default/fine"

    def test_a_plugin_error_at_post_filter_fails_the_attempt(self) -> None:
        settings = with_plugins("Broken", disabled={"postFilter": ["DefaultPreemption"]})
        refused = pod("broken", labels={"breaks": "PostFilter", "refused": "yes"})
        driver = Driver(N1, refused, settings=settings)

        report = the(ReportUnschedulable, driver.tick())

        assert (
            without_place(report.message)
            == "plugin Broken failed at PostFilter for pod default/broken: ValueError: oh dear"
        )
        assert driver.where(refused) is QueuePlace.BACKOFF

    def test_a_plugin_error_at_pre_enqueue_gates_the_pod(self) -> None:
        driver, broken = self.driver("PreEnqueue")

        assert the(Bind, driver.tick()).pod == "default/fine"

        queued = driver.scheduler.queue.find(broken.metadata.uid)
        assert queued is not None
        assert (queued.place, queued.gated_by) == (QueuePlace.GATED, "Broken")
        assert (
            without_place(queued.message)
            == "plugin Broken failed at PreEnqueue for pod default/broken: ValueError: oh dear"
        )

    def test_a_hint_that_raises_wakes_the_pod(self) -> None:
        refused = pod("refused", labels={"breaks": "hint", "refused": "yes"})
        driver = Driver(N1, refused, settings=with_plugins("Broken"))
        driver.tick()
        assert driver.where(refused) is QueuePlace.UNSCHEDULABLE

        driver.see(node("n2"))

        assert driver.where(refused) is QueuePlace.BACKOFF

    def test_a_plugin_error_clears_no_nomination(self) -> None:
        waiting = pod("waiting", priority=1, labels={"breaks": "Filter"}, gates=["wait"])
        driver = Driver(N1, waiting, settings=with_plugins("Broken"))
        driver.see(nominated(waiting, "n1"))

        driver.see(pod("top", priority=9, cpu=10, on="n1"))

        assert driver.nominated(waiting) == "n1"


class TestWhatOneAttemptTellsOthers:
    def test_a_nomination_that_the_api_clears_ends_what_was_found_under_it(self) -> None:
        driver = Driver(N1, pod("big", cpu=6, on="n1"))
        front = pod("front", cpu=10, priority=9)
        driver.see(front)
        driver.carry_out(driver.tick())
        driver.see(nominated(front, "n1"), A, pod("b", cpu=4))
        assert driver.nominated(front) == "n1"
        assert not all_of(Bind, driver.tick())

        driver.see(nominated(front, ""))

        assert the(Bind, driver.tick()).pod == "default/b"

    def test_a_finished_class_does_not_affect_the_class_after_it(self) -> None:
        driver = Driver(N1, HUGE)
        assert not all_of(Bind, driver.tick())

        driver.see(pod("huge", cpu=99, labels={"changed": "yes"}), A)

        bound = [one.pod for _ in range(2) for one in all_of(Bind, driver.tick())]
        assert bound == ["default/a"]


def finished(one: Pod) -> Pod:
    """Return the pod once its containers have ended by themselves."""
    return replace(one, status=replace(one.status, phase="Succeeded"))


@pytest.mark.parametrize("labels", [{}, {"order": "first"}])
def test_a_pod_that_queue_sort_cannot_order_waits_and_others_go_on(labels: dict[str, str]) -> None:
    name = "tests.controllers.plugins:ByLabel"
    settings = configuration(plugins={"queueSort": {"enabled": [name], "disabled": ["*"]}})
    driver = Driver(node("n1", cpu=4), settings=settings)
    unordered = pod("unordered", labels=labels)

    driver.see(unordered, pod("second", labels={"order": "2"}), pod("first", labels={"order": "1"}))

    assert driver.where(unordered) is QueuePlace.GATED
    bound = [the(Bind, driver.tick()).pod for _ in range(2)]
    assert bound == ["default/first", "default/second"]
    driver.see(pod("unordered", labels={"order": "3"}))
    assert the(Bind, driver.tick()).pod == "default/unordered"
