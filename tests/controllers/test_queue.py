"""The scheduling queue's rules. Numbers in brackets after a rule are upstream's own tests of it:
Test_InFlightPods and the like of pkg/scheduler/backend/queue/scheduling_queue_test.go unless stated.
"""

import itertools
from collections.abc import Callable, Collection

import pytest
from msgspec.structs import asdict, replace

from podium.api.pod import PodAffinityTerm
from podium.app.bench.measurement import operations
from podium.cluster.pod_classes import compile_terms
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import FEW, Registrations
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace, QueueSettings
from podium.framework.events import EVERY_EVENT, ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.verdicts import SUCCESS, PluginError, Status, unresolvable
from tests.controllers.driving import Driver
from tests.controllers.pending import pending
from tests.controllers.queue_checks import begun, check_queue, pods_in

SECOND = 1_000_000_000
MINUTE = 60 * SECOND

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD, label="NodeAdd")
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT, label="NodeTaintChange")
POD_GONE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, label="AssignedPodDelete")
CLAIM_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, label="PvcAdd")
ALL_CHANGED = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, label="All")

PLUGINS: dict[str, tuple[EventToRegister, ...]] = {
    "NodeResourcesFit": (
        EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE),
        EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN),
    ),
    "TaintToleration": (
        EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT),
        EventToRegister(EventResource.POD, ActionType.UPDATE_POD_TOLERATION),
    ),
    "VolumeBinding": (EventToRegister(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD | ActionType.UPDATE),),
    "SchedulingGates": (EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES),),
    # As upstream: its hint never wakes, what it registers only lets events through to the other plugins' hints.
    "DefaultPreemption": (EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, lambda _pod, _event: False),),
    "Mute": (),
    "Foreign": EVERY_EVENT,
}


def priority_sort(pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
    return (-pod.priority, queued_ns)


class Gates:
    """PreEnqueue of two plugins: one holds pods with scheduling gates, one holds the pods named in `preempting`."""

    def __init__(self) -> None:
        self.preempting: set[str] = set()
        self.asked: list[str] = []

    def __call__(self, pod: PodRecord) -> Status:
        self.asked.append(pod.uid)
        if pod.gates:
            return unresolvable(f"waiting for scheduling gates: {list(pod.gates)}").by("SchedulingGates")
        if pod.uid in self.preempting:
            return unresolvable("waiting for the preemption for this pod").by("DefaultPreemption")
        return SUCCESS


def make(
    registrations: Registrations | None = None,
    settings: QueueSettings | None = None,
    gates: Callable[[PodRecord], Status] | None = None,
) -> SchedulingQueue:
    plugins = {"default-scheduler": PLUGINS} if registrations is None else registrations
    return SchedulingQueue(
        dict.fromkeys(plugins, priority_sort), gates or Gates(), plugins, settings or QueueSettings()
    )


def popped(queue: SchedulingQueue, now: int = 0) -> QueuedPod:
    queued = begun(queue, now)
    assert queued is not None
    return queued


def failed(
    queue: SchedulingQueue, queued: QueuedPod, plugins: Collection[str], now: int, *, is_error: bool = False
) -> QueuePlace | None:
    """Let an attempt fail; return where the pod is then."""
    queue.add_unschedulable(queued, plugins, now, is_error=is_error)
    return queue.where(queued.record.uid)


def rejected(queue: SchedulingQueue, pod: PodRecord, *plugins: str, now: int = 0) -> None:
    """Add a pod and let plugins reject its first attempt."""
    queue.add(pod, now)
    queued = popped(queue, now)
    assert queued.record is pod
    queue.add_unschedulable(queued, plugins, now)


def order(queue: SchedulingQueue, now: int) -> list[str]:
    """Return the pods that can be popped, in that order."""
    names = []
    while (queued := begun(queue, now)) is not None:
        names.append(queued.record.name)
        queue.done(queued.record.uid)
    return names


class TestOrder:
    def test_the_first_is_of_highest_priority_then_longest_queued_then_first_by_key_then_by_uid(self) -> None:
        pods = [
            (pending("high", 9), 5),
            (pending("old", 1), 1),
            (pending("a", 1), 2),
            (replace(pending("b", 1), uid="1"), 2),
            (replace(pending("b", 1), uid="2"), 2),
        ]
        for arrival in itertools.permutations(pods):
            queue = make()
            for pod, queued_ns in arrival:
                queue.add(pod, queued_ns)
            check_queue(queue)
            assert [popped(queue, 9).record.uid for _ in pods] == ["high", "old", "a", "1", "2"]
            assert begun(queue, 9) is None

    @pytest.mark.upstream(37)
    def test_a_pod_that_was_tried_goes_behind_its_equals(self) -> None:
        """TestRecentlyTriedPodsGoBack (scenario 37)."""
        queue = make()
        for second, name in enumerate(("a", "b", "c")):
            queue.add(pending(name), second * SECOND)
        tried = popped(queue, 3 * SECOND)
        queue.add_unschedulable(tried, ["NodeResourcesFit"], 3 * SECOND)
        queue.move(POD_GONE, 60 * SECOND)

        assert tried.record.name == "a"
        assert order(queue, 60 * SECOND) == ["b", "c", "a"]

    @pytest.mark.upstream(37)
    def test_a_rejected_pod_of_high_priority_does_not_block_others(self) -> None:
        """TestHighPriorityBackoff, TestPodFailedSchedulingMultipleTimesDoesNotBlockNewerPod (scenario 37)."""
        queue = make()
        rejected(queue, pending("high", 100), "NodeResourcesFit", now=SECOND)
        queue.add(pending("low"), SECOND)

        queue.move(POD_GONE, SECOND)

        assert queue.where("high") == "backoff"
        assert popped(queue, SECOND).record.name == "low"

    def test_a_priority_change_reorders_an_active_pod(self) -> None:
        queue = make()
        queue.add(pending("a", 5), 0)
        queue.add(pending("b", 6), 0)

        queue.update(pending("a", 7), 1)

        assert order(queue, 1) == ["a", "b"]

    def test_profiles_share_one_order(self) -> None:
        queue = make({"one": PLUGINS, "two": PLUGINS})
        queue.add(pending("a", 1, scheduler_name="two"), 0)
        queue.add(pending("b", 2, scheduler_name="one"), 0)

        assert order(queue, 0) == ["b", "a"]


class TestBackoff:
    @pytest.mark.parametrize(("count", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)])
    def test_backoff_doubles_with_each_rejection_up_to_a_bound(self, count: int, seconds: int) -> None:
        settings = QueueSettings(pop_from_backoff=False)
        queued = QueuedPod(pending("p"), queued_ns=7, attempts=count, unschedulable_count=count)
        assert settings.backoff_end_ns(queued) == 7 + seconds * SECOND

    def test_backoff_doubles_with_each_attempt_before_1_34(self) -> None:
        settings = QueueSettings(pop_from_backoff=False, counts_attempts=True)
        for attempts, seconds in ((1, 1), (2, 2), (3, 4), (9, 10)):
            queued = QueuedPod(pending("p"), queued_ns=0, attempts=attempts, unschedulable_count=1)
            assert settings.backoff_end_ns(queued) == seconds * SECOND
        made = [Driver(version=version).scheduler.queue._settings.counts_attempts for version in ("1.33", "1.34")]
        assert made == [True, False]

    def test_backoff_counts_consecutive_errors_instead_of_rejections(self) -> None:
        settings = QueueSettings(pop_from_backoff=False)
        queued = QueuedPod(pending("p"), queued_ns=0, attempts=9, unschedulable_count=7, error_count=2)
        assert settings.backoff_end_ns(queued) == 2 * SECOND

    @pytest.mark.parametrize("queued_ns", [0, 1, SECOND - 1])
    def test_backoff_ends_at_the_start_of_its_last_second(self, queued_ns: int) -> None:
        """lessBackoffCompletedWithPriority orders pods within such windows (backoff_queue_test.go)."""
        queued = QueuedPod(pending("p"), queued_ns, attempts=1, unschedulable_count=1)
        assert QueueSettings().backoff_end_ns(queued) == 2 * SECOND

    def test_a_maximum_of_zero_turns_it_off(self) -> None:
        queue = make(settings=QueueSettings(max_backoff_ns=0))
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 0)
        assert queue.where("p") == "active"

    def test_a_pod_that_waited_longer_than_its_backoff_is_active_when_it_is_woken(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 2 * SECOND)
        assert queue.where("p") == "active"

    def test_a_pod_that_must_back_off_is_active_when_that_has_ended(self) -> None:
        queue = make(settings=QueueSettings(pop_from_backoff=False))
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 0)

        assert queue.next_deadline() == SECOND
        queue.flush(SECOND - 1)
        assert queue.where("p") == "backoff"
        assert begun(queue, SECOND - 1) is None
        queue.flush(SECOND)
        assert queue.where("p") == "active"

    def test_an_ended_backoff_counts_at_pop_without_a_flush(self) -> None:
        queue = make()
        rejected(queue, pending("high", 9), "NodeResourcesFit")
        queue.move(POD_GONE, 0)
        queue.add(pending("low"), SECOND)

        assert order(queue, 2 * SECOND) == ["high", "low"]

    def test_a_rejection_ends_the_count_of_errors_and_an_error_keeps_that_of_rejections(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        counts = []
        for minute, plugins in enumerate(([], [], ["NodeResourcesFit"], [], ["NodeResourcesFit"])):
            now = minute * MINUTE
            queue.move(POD_GONE, now)
            queued = popped(queue, now)
            queue.add_unschedulable(queued, plugins, now)
            counts.append((queued.attempts, queued.error_count, queued.unschedulable_count))
        assert counts == [(1, 1, 0), (2, 2, 0), (3, 0, 1), (4, 1, 1), (5, 0, 2)]


class TestHistory:
    @pytest.mark.upstream(35)
    def test_a_pod_in_flight_has_no_rejecting_plugin_yet(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "TaintToleration", "NodeResourcesFit")
        (queued,) = queue
        queued.message = "0/3 nodes are available"
        assert list(queued.unschedulable_plugins) == ["NodeResourcesFit", "TaintToleration"]

        queue.activate(["p"], 1)

        assert popped(queue, 1) is queued
        assert queued.unschedulable_plugins == ()
        assert queued.message == ""

    def test_the_time_of_the_first_attempt_stays_and_the_time_of_entry_is_that_of_the_last(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "NodeResourcesFit", now=3)
        queue.activate(["p"], 7)
        queue.add_unschedulable(popped(queue, 7), ["NodeResourcesFit"], 8)
        (queued,) = queue
        assert (queued.first_attempt_ns, queued.queued_ns, queued.attempts) == (3, 8, 2)


class TestPopFromBackoff:
    """With nothing active the scheduler does not idle (SchedulerPopFromBackoffQ, active_queue_test.go)."""

    def backing_off(self, settings: QueueSettings, *pods: tuple[PodRecord, int]) -> SchedulingQueue:
        queue = make(settings=settings)
        for pod, now in pods:
            rejected(queue, pod, "NodeResourcesFit", now=now)
        queue.move(POD_GONE, pods[-1][1])
        assert queue.count(QueuePlace.BACKOFF) == len(pods)
        return queue

    def test_the_pod_whose_backoff_ends_first_is_popped(self) -> None:
        queue = self.backing_off(
            QueueSettings(), (pending("first"), SECOND - 1), (pending("last", 9), SECOND + SECOND // 2)
        )
        assert order(queue, SECOND + SECOND // 2) == ["first", "last"]

    def test_queue_sort_orders_pods_that_arrive_in_the_same_second(self) -> None:
        queue = self.backing_off(QueueSettings(), (pending("earlier"), 1), (pending("higher", 9), 2))
        assert [queued.record.name for queued in pods_in(queue, QueuePlace.BACKOFF)] == ["higher", "earlier"]
        assert order(queue, 3) == ["higher", "earlier"]

    def test_an_active_pod_goes_before_all_that_back_off(self) -> None:
        queue = self.backing_off(QueueSettings(), (pending("high", 9), 0))
        queue.add(pending("low"), 1)
        assert order(queue, 1) == ["low", "high"]

    def test_a_backoff_after_an_error_is_kept(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        queue.add_unschedulable(popped(queue), (), 0)

        assert queue.where("p") == "backoff"
        assert begun(queue, 2 * SECOND - 1) is None
        assert popped(queue, 2 * SECOND).record.name == "p"

    @pytest.mark.parametrize("failed_first", ["error", "rejection"])
    def test_errors_and_rejections_end_their_backoff_in_order_of_time(self, failed_first: str) -> None:
        queue = make(settings=QueueSettings(pop_from_backoff=False))
        queue.add(pending("a"), 0)
        queue.add(pending("b"), 0)
        attempts = {"error": popped(queue), "rejection": popped(queue)}
        queue.move(NODE_ADD, 0)
        for now, failed in enumerate(sorted(attempts, key=lambda failed: failed != failed_first)):
            plugins = [] if failed == "error" else ["NodeResourcesFit"]
            queue.add_unschedulable(attempts[failed], plugins, now)

        assert queue.next_deadline() == SECOND
        queue.flush(SECOND)
        assert [queued.record.uid for queued in pods_in(queue, QueuePlace.ACTIVE)] == [
            attempts[failed_first].record.uid
        ]

    def test_popping_from_backoff_can_be_disabled(self) -> None:
        queue = self.backing_off(QueueSettings(pop_from_backoff=False), (pending("p"), 0))
        assert begun(queue, SECOND - 1) is None


@pytest.mark.upstream(35)
class TestAttemptsAtOneInstant:
    MOST = QueueSettings().most_pops_at_once

    def again_and_again(self, queue: SchedulingQueue, wake: Callable[[], object], now: int = 0) -> int:
        """Return how often a pod is attempted at one instant that is woken each time."""
        queue.add(pending("a"), now)
        count = 0
        while (queued := begun(queue, now)) is not None:
            count += 1
            queue.add_unschedulable(queued, ["NodeResourcesFit"], now)
            wake()
            check_queue(queue)
        return count

    @pytest.mark.parametrize("settings", [QueueSettings(), QueueSettings(max_backoff_ns=0)])
    @pytest.mark.parametrize("how", ["event", "activation"])
    def test_a_pod_woken_too_often_backs_off(self, settings: QueueSettings, how: str) -> None:
        queue = make(settings=settings)
        wake = {"event": lambda: queue.move(POD_GONE, 0), "activation": lambda: queue.activate(["a"], 0)}[how]

        assert self.again_and_again(queue, wake) == self.MOST
        assert queue.where("a") is QueuePlace.BACKOFF
        assert not queue.can_pop()
        deadline = queue.next_deadline()
        assert deadline is not None
        assert deadline > 0
        assert popped(queue, deadline).pops_at_once == 1

    def test_an_update_cuts_that_backoff_short_no_more_than_other_events(self) -> None:
        queue = make()
        self.again_and_again(queue, lambda: queue.move(POD_GONE, 0))

        queue.update(pending("a", labels={"new": "label"}), 0)

        assert begun(queue, 0) is None
        check_queue(queue)

    def test_others_are_attempted_meanwhile(self) -> None:
        queue = make()
        self.again_and_again(queue, lambda: queue.move(POD_GONE, 0))

        queue.add(pending("b"), 0)

        assert order(queue, 0) == ["b"]


class TestPodsWithoutOrder:
    @staticmethod
    def sort(pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        if "unsorted" in pod.labels:
            raise PluginError("plugin Sort failed at QueueSort")
        return priority_sort(pod, queued_ns)

    def queue(self) -> SchedulingQueue:
        plugins = {"default-scheduler": PLUGINS}
        return SchedulingQueue({"default-scheduler": self.sort}, Gates(), plugins)

    def test_a_pod_without_order_is_gated_with_a_reason_and_others_continue(self) -> None:
        queue = self.queue()

        queue.add(pending("a", labels={"unsorted": ""}), 0)
        queue.add(pending("b"), 0)

        check_queue(queue)
        assert queue.where("a") is QueuePlace.GATED
        held = queue.find("a")
        assert held is not None
        assert (held.gated_by, held.message) == ("QueueSort", "plugin Sort failed at QueueSort")
        assert order(queue, 0) == ["b"]

    def test_a_pod_that_gains_an_order_enters_the_queue(self) -> None:
        queue = self.queue()
        queue.add(pending("a", labels={"unsorted": ""}), 0)

        queue.update(pending("a"), 0)

        check_queue(queue)
        assert order(queue, 0) == ["a"]

    @pytest.mark.parametrize("place", [QueuePlace.ACTIVE, QueuePlace.BACKOFF])
    def test_a_pod_that_loses_its_order_is_gated(self, place: QueuePlace) -> None:
        queue = self.queue()
        if place is QueuePlace.ACTIVE:
            queue.add(pending("a"), 0)
        else:
            rejected(queue, pending("a"), "NodeResourcesFit")
            queue.move(POD_GONE, 0)
        assert queue.where("a") is place

        queue.update(pending("a", labels={"unsorted": ""}), 0)

        assert queue.where("a") is QueuePlace.GATED
        check_queue(queue)


class TestInFlight:
    """Test_InFlightPods (scenario 35)."""

    @pytest.mark.parametrize(
        ("plugins", "events", "place"),
        [
            (["NodeResourcesFit"], [], "unschedulable"),
            (["NodeResourcesFit"], [NODE_TAINT, CLAIM_ADD], "unschedulable"),
            (["NodeResourcesFit"], [NODE_TAINT, NODE_ADD], "backoff"),
            (["NodeResourcesFit", "TaintToleration"], [NODE_TAINT], "backoff"),
            (["VolumeBinding"], [CLAIM_ADD], "backoff"),
            (["VolumeBinding"], [NODE_ADD], "unschedulable"),
            (["NodeResourcesFit", "VolumeBinding"], [NODE_ADD], "backoff"),
            (["Mute"], [NODE_ADD, POD_GONE], "unschedulable"),
            (["Unknown"], [NODE_ADD, POD_GONE], "unschedulable"),
            (["Foreign"], [CLAIM_ADD], "backoff"),
            (["Mute"], [ALL_CHANGED], "backoff"),
            ([], [], "backoff"),
        ],
    )
    def test_events_during_the_attempt_decide_where_a_failed_pod_goes(
        self, plugins: list[str], events: list[ClusterEvent], place: str
    ) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        queued = popped(queue)
        for event in events:
            queue.move(event, 1)

        assert failed(queue, queued, plugins, 2) == place
        assert queue.count(QueuePlace.IN_FLIGHT) == 0
        check_queue(queue)

    def test_events_before_the_attempt_do_not_count(self) -> None:
        queue = make()
        queue.add(pending("a"), 0)
        queue.add(pending("b"), 0)
        first = popped(queue)
        queue.move(NODE_ADD, 0)
        second = popped(queue)

        assert failed(queue, second, ["NodeResourcesFit"], 0) == "unschedulable"
        assert failed(queue, first, ["NodeResourcesFit"], 0) == "backoff"

    @pytest.mark.upstream(33)
    def test_each_attempt_counts_its_own_events_only(self) -> None:
        """TestRequeueByPermitRejection of test/integration/scheduler/queueing (scenario 33)."""
        queue = make()
        queue.add(pending("waiting-on-permit"), 0)
        waiting = popped(queue)
        queue.add(pending("other"), 0)
        other = popped(queue)
        queue.add_unschedulable(other, ["NodeResourcesFit"], 0)
        queue.move(NODE_TAINT, 1)

        assert queue.where("other") == "unschedulable"
        assert failed(queue, waiting, ["TaintToleration"], 1) == "backoff"

    def test_a_hint_may_let_an_event_pass(self) -> None:
        node_events = EventToRegister(EventResource.NODE, ActionType.ADD, lambda pod, event: pod.priority > event.new)
        queue = make({"default-scheduler": {"Picky": (node_events,)}})
        for name, priority in (("low", 1), ("high", 3)):
            queue.add(pending(name, priority), 0)
        attempts = [popped(queue), popped(queue)]
        queue.move(ClusterEvent(EventResource.NODE, ActionType.ADD, new=2), 0)

        places = {queued.record.name: failed(queue, queued, ["Picky"], 0) for queued in attempts}
        assert places == {"low": "unschedulable", "high": "backoff"}

    @pytest.mark.upstream(33)
    def test_a_pod_goes_back_after_an_error_without_any_event(self) -> None:
        """TestRequeueByBindFailure of test/integration/scheduler/queueing (scenario 33)."""
        queue = make()
        queue.add(pending("p"), 0)

        place = failed(queue, popped(queue), ["NodeResourcesFit"], 0, is_error=True)

        assert place == "backoff"
        queued = popped(queue, 2 * SECOND)
        assert (queued.attempts, queued.unschedulable_count, queued.woken_by) == (2, 0, "ScheduleAttemptFailure")

    def test_a_pod_is_never_popped_twice_at_once(self) -> None:
        """Catalogue 36: an update used to put a pod in flight back into the queue."""
        queue = make()
        queue.add(pending("p"), 0)
        popped(queue)

        queue.update(pending("p", labels={"new": "label"}), 1)
        queue.activate(["p"], 1)
        queue.move(ALL_CHANGED, 1)

        assert queue.where("p") == "in-flight"
        assert begun(queue, MINUTE) is None
        check_queue(queue)

    def test_an_update_counts_when_the_attempt_has_failed_and_the_newest_reading_stays(self) -> None:
        queue = make()
        queue.add(pending("p", requests={"cpu": "4"}), 0)
        queued = popped(queue)
        tried, smaller = queued.record, pending("p", requests={"cpu": "2"})
        queue.update(smaller, 1)
        newest = pending("p", requests={"cpu": "2"}, labels={"a": "b"})
        queue.update(newest, 1)

        assert queued.record is tried
        assert failed(queue, queued, ["NodeResourcesFit"], 2) == "backoff"
        assert queued.record is newest

    def test_an_update_of_one_pod_means_nothing_to_another(self) -> None:
        queue = make()
        queue.add(pending("a", requests={"cpu": "4"}), 0)
        queue.add(pending("b", requests={"cpu": "4"}), 0)
        first, second = popped(queue), popped(queue)
        queue.update(pending("a", requests={"cpu": "2"}), 1)

        assert failed(queue, second, ["NodeResourcesFit"], 2) == "unschedulable"
        assert failed(queue, first, ["NodeResourcesFit"], 2) == "backoff"

    def test_events_are_kept_no_longer_than_an_older_attempt_needs_them(self) -> None:
        """Catalogue 37, 38: entries of pods that were gone or skipped used to pile up. `check` counts them."""
        queue = make()
        for name in ("a", "b", "c"):
            queue.add(pending(name), 0)
        for name in ("a", "b", "c"):
            assert popped(queue).record.name == name
            queue.move(NODE_ADD, 0)
            check_queue(queue)
        queue.done("b")
        check_queue(queue)
        queue.delete("a")
        check_queue(queue)
        queue.done("c")
        check_queue(queue)
        assert len(queue._in_flight._events) == 0

    def test_events_that_no_plugin_registered_are_not_kept(self) -> None:
        queue = make({"default-scheduler": {"NodeResourcesFit": PLUGINS["NodeResourcesFit"]}})
        queue.add(pending("p"), 0)
        popped(queue)
        queue.move(CLAIM_ADD, 0)
        assert len(queue._in_flight._events) == 0
        queue.move(NODE_ADD, 0)
        assert len(queue._in_flight._events) == 1

    def test_a_bound_pod_is_forgotten_and_done_may_be_said_again(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        popped(queue)
        queue.done("p")
        queue.done("p")
        assert queue.where("p") is None
        assert len(queue) == 0

    def test_done_means_nothing_to_a_pod_that_is_not_in_flight(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        queue.done("p")
        assert queue.where("p") == "active"

    @pytest.mark.upstream(41)
    def test_a_pod_deleted_during_its_attempt_stays_out(self) -> None:
        """Catalogue 42; TestHandleSchedulingFailureSkipsRecreatedPod."""
        queue = make()
        queue.add(replace(pending("p"), uid="old"), 0)
        attempt = popped(queue)
        queue.delete("old")
        queue.add(replace(pending("p"), uid="new"), 1)

        assert failed(queue, attempt, ["NodeResourcesFit"], 2) is None
        assert [queued.record.uid for queued in queue] == ["new"]

    def test_an_attempt_says_nothing_about_a_later_pod_of_the_same_uid(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        attempt = popped(queue)
        queue.delete("p")
        queue.add(pending("p"), 1)

        assert failed(queue, attempt, (), 2) == "active"

    def test_a_pod_that_is_back_already_cannot_come_back(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        attempt = popped(queue)
        queue.add_unschedulable(attempt, ["NodeResourcesFit"], 0)
        with pytest.raises(ValueError, match=r"shop/p \(p\) is not in flight but unschedulable"):
            queue.add_unschedulable(attempt, ["NodeResourcesFit"], 0)


@pytest.mark.upstream(32)
class TestKnownResults:
    def test_a_rejection_with_a_known_result_leaves_the_pod_as_an_attempt_does(self) -> None:
        attempted, known, records = make(), make(), (pending("a"), pending("b"))
        for now in (0, 5 * SECOND):
            for queue in (attempted, known):
                for record in records:
                    if now:
                        queue.wake(record.uid, "Test", now)
                    else:
                        queue.add(record, now)
            for _ in range(2):
                attempted.add_unschedulable(popped(attempted, now), ("TaintToleration", "NodeResourcesFit"), now)
                taken = known.take(now)
                assert taken is not None
                known.reject(taken, ("NodeResourcesFit", "TaintToleration"), now)

        assert [asdict(one) for one in known] == [asdict(one) for one in attempted]
        assert known.next_deadline() == attempted.next_deadline()
        for queue in (attempted, known):
            check_queue(queue)


class TestEvents:
    """TestCoreResourceEnqueue of test/integration/scheduler/queueing (scenario 32)."""

    EVENTS = (NODE_ADD, NODE_TAINT, POD_GONE, CLAIM_ADD)

    @pytest.mark.parametrize(
        ("plugins", "waking"),
        [
            (["NodeResourcesFit"], {"NodeAdd", "AssignedPodDelete"}),
            (["TaintToleration"], {"NodeAdd", "NodeTaintChange"}),
            (["VolumeBinding"], {"PvcAdd"}),
            (["TaintToleration", "VolumeBinding"], {"NodeAdd", "NodeTaintChange", "PvcAdd"}),
            (["Mute"], set()),
            (["Mute", "VolumeBinding"], {"PvcAdd"}),
            (["DefaultPreemption"], set()),
            (["Foreign"], {"NodeAdd", "NodeTaintChange", "AssignedPodDelete", "PvcAdd"}),
        ],
    )
    def test_exactly_the_events_that_the_rejecting_plugins_registered_wake(
        self, plugins: list[str], waking: set[str]
    ) -> None:
        woken = set()
        for event in self.EVENTS:
            queue = make()
            rejected(queue, pending("p"), *plugins)
            queue.move(event, 1)
            check_queue(queue)
            if queue.where("p") == "backoff":
                woken.add(event.label)
        assert woken == waking

    def test_an_event_is_recorded_with_the_pod_that_it_woke(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 1)
        assert popped(queue, 1).woken_by == "AssignedPodDelete"

    def test_a_wildcard_event_wakes_every_waiting_pod(self) -> None:
        queue = make()
        rejected(queue, pending("a"), "Mute")
        rejected(queue, pending("b"), "Unknown")
        queue.move(ALL_CHANGED, 0)
        assert queue.count(QueuePlace.BACKOFF) == 2

    @pytest.mark.upstream(34)
    def test_the_hint_decides_pod_by_pod(self) -> None:
        """TestUpdateNominatedNodeName of test/integration/scheduler/eventhandler (scenario 34).

        A nomination that ends helps pods of no higher priority only.
        """

        def may_help(pod: PodRecord, event: ClusterEvent) -> bool:
            nominated: PodRecord = event.old
            return pod.priority <= nominated.priority

        hinted = EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, may_help)
        queue = make({"default-scheduler": {"NodeResourcesFit": (hinted,)}})
        for name, priority in (("low", 1), ("high", 9)):
            rejected(queue, pending(name, priority), "NodeResourcesFit")

        queue.move(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, old=pending("nominated", 5)), 0)

        assert (queue.where("low"), queue.where("high")) == ("backoff", "unschedulable")

    def test_each_profile_has_registrations_of_its_own(self) -> None:
        one, two = (
            EventToRegister(EventResource.NODE, ActionType.ADD),
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE),
        )
        queue = make({"one": {"Fit": (one,)}, "two": {"Fit": (two,)}})
        rejected(queue, pending("a", scheduler_name="one"), "Fit")
        rejected(queue, pending("b", scheduler_name="two"), "Fit")

        queue.move(POD_GONE, 0)

        assert (queue.where("a"), queue.where("b")) == ("unschedulable", "backoff")

    def test_hints_are_asked_only_for_pods_that_a_plugin_rejected_which_registered_the_event(self) -> None:
        asked = []

        def hint(pod: PodRecord, event: ClusterEvent) -> bool:
            asked.append((pod.name, event.label))
            return False

        registered = {
            "Fit": (EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE, hint),),
            "Taint": (EventToRegister(EventResource.NODE, ActionType.UPDATE_NODE_TAINT, hint),),
        }
        queue = make({"default-scheduler": registered})
        rejected(queue, pending("a"), "Fit")
        rejected(queue, pending("b"), "Taint")
        rejected(queue, pending("c"), "Fit", "Taint")

        for event in (POD_GONE, NODE_TAINT, NODE_ADD, CLAIM_ADD):
            queue.move(event, 0)

        assert asked == [
            ("a", "AssignedPodDelete"),
            ("c", "AssignedPodDelete"),
            ("b", "NodeTaintChange"),
            ("c", "NodeTaintChange"),
        ]

    def test_a_pod_rejected_by_other_plugins_next_time_waits_for_their_events(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 0)
        queue.add_unschedulable(popped(queue), ["VolumeBinding"], 1)

        queue.move(POD_GONE, 1)
        assert queue.where("p") == "unschedulable"
        queue.move(CLAIM_ADD, 1)
        assert queue.where("p") == "backoff"

    def test_an_event_may_be_meant_for_some_of_the_waiting_pods(self) -> None:
        queue = make()
        rejected(queue, pending("a", 1), "NodeResourcesFit")
        rejected(queue, pending("b", 2), "NodeResourcesFit")

        queue.move(POD_GONE, 0, among=lambda pod: pod.priority <= 1)

        assert (queue.where("a"), queue.where("b")) == (QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE)

    def test_an_event_about_a_pending_pod_is_not_for_move(self) -> None:
        with pytest.raises(ValueError, match=r"event Touched is about a pending pod: .* update\(\)"):
            make().move(ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL, label="Touched"), 0)


class TestUpdate:
    @pytest.mark.upstream(32)
    @pytest.mark.parametrize(
        ("plugin", "new", "place"),
        [
            ("NodeResourcesFit", pending("p", requests={"cpu": "1"}), "backoff"),
            ("NodeResourcesFit", pending("p", requests={"cpu": "3"}), "unschedulable"),
            ("NodeResourcesFit", pending("p", requests={"cpu": "2"}, tolerated=["spot"]), "unschedulable"),
            ("TaintToleration", pending("p", requests={"cpu": "2"}, tolerated=["spot"]), "backoff"),
            ("TaintToleration", pending("p", requests={"cpu": "1"}), "unschedulable"),
            ("Foreign", pending("p", requests={"cpu": "2"}), "backoff"),
        ],
    )
    def test_a_change_wakes_the_pod_if_a_rejecting_plugin_waits_for_it(
        self, plugin: str, new: PodRecord, place: str
    ) -> None:
        queue = make()
        rejected(queue, pending("p", requests={"cpu": "2"}), plugin)

        queue.update(new, 1)

        assert queue.where("p") == place
        queued = queue.find("p")
        assert queued is not None
        assert queued.record is new

    def test_a_change_wakes_no_other_pod(self) -> None:
        queue = make()
        rejected(queue, pending("a", requests={"cpu": "2"}), "NodeResourcesFit")
        rejected(queue, pending("b", requests={"cpu": "2"}), "NodeResourcesFit")
        queue.update(pending("a", requests={"cpu": "1"}), 1)
        assert (queue.where("a"), queue.where("b")) == ("backoff", "unschedulable")

    def test_a_pod_that_backs_off_goes_on_doing_so(self) -> None:
        queue = make()
        rejected(queue, pending("a"), "NodeResourcesFit")
        rejected(queue, pending("b"), "NodeResourcesFit")
        queue.move(POD_GONE, 0)
        before = queue.next_deadline()

        queue.update(pending("b", 5), 1)

        assert queue.where("b") == "backoff"
        assert queue.next_deadline() == before
        assert order(queue, 1) == ["b", "a"]

    def test_an_unknown_pod_is_added(self) -> None:
        queue = make()
        queue.update(pending("p"), 3)
        assert popped(queue, 3).queued_ns == 3

    def test_a_known_pod_cannot_be_added(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        with pytest.raises(ValueError, match=r"shop/p \(p\) is in the scheduling queue already"):
            queue.add(pending("p"), 0)

    @pytest.mark.upstream(47)
    def test_a_pod_of_a_scheduler_without_a_profile_is_refused(self) -> None:
        """TestMultipleSchedulers of test/integration/scheduler (scenario 47)."""
        queue = make()
        with pytest.raises(ValueError, match="shop/p: no profile is named 'other'"):
            queue.add(pending("p", scheduler_name="other"), 0)
        assert len(queue) == 0

    @pytest.mark.parametrize("place", list(QueuePlace))
    def test_a_deleted_pod_is_nowhere(self, place: QueuePlace) -> None:
        queue = in_place(place)
        queue.delete("p")
        queue.delete("p")
        check_queue(queue)
        assert queue.where("p") is None
        assert (len(queue), queue.count(place), begun(queue, MINUTE), queue.next_deadline()) == (0, 0, None, None)


@pytest.mark.upstream(39)
class TestGates:
    """TestSchedulingGates of test/integration/scheduler/queueing (scenario 39)."""

    def preemptor(self) -> tuple[SchedulingQueue, Gates]:
        """Return a pod that NodeResourcesFit rejected, and whose preemption goes on as the first victim goes."""
        gates = Gates()
        queue = make(gates=gates)
        rejected(queue, pending("p"), "NodeResourcesFit")
        gates.preempting = {"p"}
        queue.move(POD_GONE, 1)
        assert queue.where("p") == "gated"
        return queue, gates

    def test_a_gated_pod_is_not_attempted(self) -> None:
        queue = make()
        queue.add(pending("p", gates=["quota"]), 0)
        queued = queue.find("p")
        assert queued is not None

        queue.move(ALL_CHANGED, 1)
        queue.flush(10 * MINUTE)

        assert begun(queue, 10 * MINUTE) is None
        assert (queued.place, queued.attempts, queued.gated_by) == ("gated", 0, "SchedulingGates")
        assert queued.message == "waiting for scheduling gates: ['quota']"
        assert queued.first_attempt_ns is None

    def test_a_pod_is_active_when_its_last_gate_goes(self) -> None:
        queue = make()
        queue.add(pending("p", gates=["quota", "image"]), 0)

        queue.update(pending("p", gates=["image"]), 1)
        assert queue.where("p") == "gated"
        queue.update(pending("p"), 2)

        (queued,) = pods_in(queue, QueuePlace.ACTIVE)
        assert (queued.gated_by, queued.message) == ("", "")
        assert (queued.queued_ns, queued.first_attempt_ns) == (0, 2)

    def test_an_event_that_the_gating_plugin_registered_wakes_a_pod_that_nothing_else_holds(self) -> None:
        free = [False]

        def quota(_pod: PodRecord) -> Status:
            return SUCCESS if free[0] else unresolvable("no quota").by("Quota")

        quota_events = (EventToRegister(EventResource.NAMESPACE, ActionType.UPDATE),)
        queue = make({"default-scheduler": {"Quota": quota_events}}, gates=quota)
        queue.add(pending("p"), 0)
        free[0] = True

        queue.move(NODE_ADD, 1)
        assert queue.where("p") == "gated"
        queue.move(ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER), 1)
        assert queue.where("p") == "active"

    def test_a_pod_may_pass_from_one_gate_to_the_next(self) -> None:
        gates = Gates()
        queue = make(gates=gates)
        gates.preempting = {"p"}
        queue.add(pending("p", gates=["quota"]), 0)

        queue.update(pending("p"), 1)
        check_queue(queue)

        assert [queued.gated_by for queued in pods_in(queue, QueuePlace.GATED)] == ["DefaultPreemption"]

    def test_only_events_that_the_gating_plugin_registered_reach_a_gated_pod(self) -> None:
        queue, gates = self.preemptor()
        gates.asked.clear()

        queue.move(NODE_ADD, 2)
        assert gates.asked == []
        queue.move(POD_GONE, 2)
        assert gates.asked == ["p"]
        assert queue.where("p") == "gated"

    def test_such_an_event_leaves_a_pod_whose_gate_stays_shut_where_it_waits_but_is_remembered(self) -> None:
        queue, _ = self.preemptor()
        deadline_ns = queue.next_deadline()

        queue.move(POD_GONE, 2)
        check_queue(queue)

        queued = queue.find("p")
        assert queued is not None
        assert (queued.gated_by, queued.woken_by) == ("DefaultPreemption", "AssignedPodDelete")
        assert queue.next_deadline() == deadline_ns

    def test_such_an_event_moves_a_pod_to_the_gate_that_holds_it_instead(self) -> None:
        holder = ["Foreign"]
        queue = make(gates=lambda _: unresolvable("held").by(holder[0]))
        queue.add(pending("p"), 0)

        holder[0] = "VolumeBinding"
        queue.move(POD_GONE, 2)
        check_queue(queue)
        assert [queued.gated_by for queued in pods_in(queue, QueuePlace.GATED)] == ["VolumeBinding"]

    def test_when_the_gate_is_open_such_an_event_wakes_for_the_plugins_that_rejected_the_pod(self) -> None:
        queue, gates = self.preemptor()
        gates.preempting.clear()
        queue.move(POD_GONE, 2)
        assert queue.where("p") == "backoff"

    def test_a_preemptor_whose_preemption_has_ended_can_be_activated(self) -> None:
        """Catalogue 28, 32: its events came while the gate was shut, so none is left to wake it."""
        queue, gates = self.preemptor()
        queue.activate(["p"], 2)
        assert queue.where("p") == "gated"
        gates.preempting.clear()
        queue.activate(["p"], 2)
        assert queue.where("p") == "active"

    def test_a_pod_rejected_before_waits_for_an_event_when_an_update_finds_its_gate_open(self) -> None:
        queue, gates = self.preemptor()
        gates.preempting.clear()

        queue.update(pending("p", labels={"touched": "yes"}), 2)
        check_queue(queue)
        assert queue.where("p") == "unschedulable"
        queue.move(NODE_ADD, 2)
        assert queue.where("p") == "backoff"

    def test_a_gated_pod_is_asked_for_again_when_it_has_waited_too_long(self) -> None:
        """Catalogue 31: a gated pod that missed its event used to be stuck for good."""
        queue, gates = self.preemptor()
        queue.flush(5 * MINUTE)
        assert queue.where("p") == "gated"
        assert queue.next_deadline() == 10 * MINUTE
        gates.preempting.clear()
        queue.flush(10 * MINUTE)
        assert queue.where("p") == "active"

    def test_a_gate_can_close_on_a_pod_that_met_an_error(self) -> None:
        gates = Gates()
        queue = make(gates=gates)
        queue.add(pending("p"), 0)
        gates.preempting = {"p"}

        assert failed(queue, popped(queue), (), 0) == "gated"
        gates.preempting.clear()
        queue.update(pending("p"), 1)
        assert queue.where("p") == "backoff"
        check_queue(queue)

    def test_gates_are_not_asked_again_when_a_backoff_ends(self) -> None:
        gates = Gates()
        queue = make(gates=gates)
        rejected(queue, pending("p"), "NodeResourcesFit")
        queue.move(POD_GONE, 0)
        gates.preempting = {"p"}
        queue.flush(2 * SECOND)
        assert queue.where("p") == "active"

    @pytest.mark.parametrize(
        ("is_worth_attempt", "place"), [(True, QueuePlace.BACKOFF), (False, QueuePlace.UNSCHEDULABLE)]
    )
    def test_a_gate_that_has_opened_can_be_asked_again(self, is_worth_attempt: bool, place: QueuePlace) -> None:
        gates = Gates()
        queue = make(gates=gates)
        rejected(queue, pending("a"), "NodeResourcesFit")
        gates.preempting.add("a")
        queue.move(POD_GONE, 0)
        queue.ask_gate_again("a", 0, is_worth_attempt=is_worth_attempt)
        assert queue.where("a") is QueuePlace.GATED
        gates.preempting.clear()

        queue.ask_gate_again("a", 0, is_worth_attempt=is_worth_attempt)

        assert queue.where("a") is place
        check_queue(queue)

    def test_to_a_pod_without_a_gate_that_means_nothing(self) -> None:
        queue = make()
        rejected(queue, pending("a"), "NodeResourcesFit")

        queue.ask_gate_again("a", 0, is_worth_attempt=True)
        queue.ask_gate_again("unknown", 0, is_worth_attempt=True)

        assert queue.where("a") is QueuePlace.UNSCHEDULABLE

    def test_a_gate_must_have_a_name(self) -> None:
        queue = make(gates=lambda _pod: unresolvable("no"))
        with pytest.raises(ValueError, match="shop/p is gated by a plugin that does not name itself"):
            queue.add(pending("p"), 0)


@pytest.mark.upstream(38)
class TestFlush:
    """TestHighPriorityFlushUnschedulablePodsLeftover (scenario 38)."""

    def test_a_pod_waits_five_minutes_for_an_event_at_most(self) -> None:
        queue = make()
        rejected(queue, pending("high", 9), "Mute", now=0)
        rejected(queue, pending("low"), "Mute", now=SECOND)
        queue.update(pending("high", 9, labels={"touched": "yes"}), MINUTE)

        assert queue.next_deadline() == 5 * MINUTE
        queue.flush(5 * MINUTE - 1)
        assert queue.count(QueuePlace.UNSCHEDULABLE) == 2
        queue.flush(5 * MINUTE)
        assert (queue.where("high"), queue.where("low")) == ("active", "unschedulable")
        assert queue.next_deadline() == 5 * MINUTE + SECOND
        assert popped(queue, 5 * MINUTE).woken_by == "UnschedulableTimeout"

    def test_a_pod_that_waited_too_long_still_backs_off_as_long_as_it_must(self) -> None:
        queue = make(settings=QueueSettings(initial_backoff_ns=6 * MINUTE, max_backoff_ns=6 * MINUTE))
        rejected(queue, pending("p"), "Mute")
        queue.flush(5 * MINUTE)
        assert queue.where("p") == "backoff"

    def test_the_wait_restarts_with_each_attempt(self) -> None:
        queue = make()
        rejected(queue, pending("p"), "Mute")
        queue.flush(5 * MINUTE)
        queue.add_unschedulable(popped(queue, 5 * MINUTE), ["Mute"], 6 * MINUTE)
        assert queue.next_deadline() == 11 * MINUTE

    def test_nothing_is_due_in_a_queue_where_nothing_waits(self) -> None:
        queue = make()
        queue.add(pending("a"), 0)
        queue.add(pending("b"), 0)
        popped(queue)
        assert queue.next_deadline() is None


class TestActivate:
    @pytest.mark.parametrize("place", [QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE])
    def test_a_pod_can_be_activated_during_its_backoff(self, place: QueuePlace) -> None:
        queue = in_place(place)
        queue.activate(["p"], 1)
        check_queue(queue)
        assert queue.where("p") == "active"

    def test_an_activated_pod_in_flight_is_attempted_again_without_an_event(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        queue.add(pending("q"), 0)
        first, second = popped(queue), popped(queue)

        queue.activate(["p"], 1)

        assert failed(queue, first, ["Mute"], 2) == "backoff"
        assert failed(queue, second, ["Mute"], 2) == "unschedulable"
        assert first.woken_by == "ForceActivate"

    def test_unknown_pods_are_passed_over(self) -> None:
        queue = in_place(QueuePlace.UNSCHEDULABLE)
        queue.activate(["unknown", "p"], 1)
        assert [queued.record.uid for queued in queue] == ["p"]


@pytest.mark.parametrize("policy", ["PreemptLowerPriority", "Never"])
def test_a_waiting_pod_may_find_a_node_if_an_event_helps_it_to_preempt(policy: str) -> None:
    # Its victims would leave enough room, but it requires a pod that came only now.
    add = ActionType.ADD
    near = EventToRegister(EventResource.ASSIGNED_POD, add, lambda _, event: event.label == "TheRequiredPod")
    queue = make({"default-scheduler": {**PLUGINS, "InterPodAffinity": (near,)}})
    pod = pending("p")
    terms = compile_terms([PodAffinityTerm(topology_key="zone")], "shop")
    pod_class = replace(pod.pod_class, required_affinity=terms)
    rejected(queue, replace(pod, pod_class=pod_class, preemption_policy=policy), "NodeResourcesFit")

    queue.move(ClusterEvent(EventResource.ASSIGNED_POD, add, label="AnotherPod"), 0)
    assert not queue.has_promising
    queue.move(ClusterEvent(EventResource.ASSIGNED_POD, add, label="TheRequiredPod"), 0)
    assert (queue.where("p"), queue.has_promising) == (QueuePlace.UNSCHEDULABLE, policy != "Never")

    queue.flush(5 * MINUTE)
    queue.add_unschedulable(popped(queue, 5 * MINUTE), ("NodeResourcesFit",), 5 * MINUTE)
    assert not queue.has_promising


def test_the_queue_keeps_only_the_newest_unused_plugin_sets() -> None:
    queue = make()
    names = [name for name in PLUGINS if name != "Mute"]
    assert 2 ** len(names) > FEW
    for number in range(2 ** len(names)):
        plugins = [name for index, name in enumerate(names) if number >> index & 1]
        rejected(queue, pending(f"p{number}"), *plugins, "Mute")
        queue.move(POD_GONE, 0)
        queue.delete(f"p{number}")

    assert len(queue._rejections._known) == FEW
    assert len(queue) == sum(map(len, queue._waiting._groups.values())) == 0
    assert len(queue._waiting._groups) <= FEW


class TestLookups:
    @pytest.mark.parametrize("early", [True, False])
    @pytest.mark.parametrize("place", list(QueuePlace))
    def test_can_pop_predicts_the_result_of_pop(self, place: QueuePlace, early: bool) -> None:
        queue = in_place(place, QueueSettings(pop_from_backoff=early))
        report = queue.can_pop()
        assert report is (begun(queue, 0) is not None)

    def test_a_backoff_after_an_error_gives_no_pod_to_pop(self) -> None:
        queue = make()
        queue.add(pending("p"), 0)
        queue.add_unschedulable(popped(queue), (), 0)
        assert not queue.can_pop()

    def test_the_queue_counts_pods_by_place(self) -> None:
        gates = Gates()
        queue = make(gates=gates)
        queue.add(pending("gated", gates=["g"]), 0)
        rejected(queue, pending("waiting-b"), "NodeResourcesFit", now=1)
        rejected(queue, pending("waiting-a"), "TaintToleration", now=1)
        rejected(queue, pending("back-off"), "VolumeBinding", now=2)
        queue.move(CLAIM_ADD, 2)
        queue.add(pending("flying"), 3)
        popped(queue, 3)
        queue.add(pending("active"), 4)

        names = [queued.record.name for queued in queue]

        assert names == ["gated", "waiting-b", "waiting-a", "back-off", "flying", "active"]
        assert [queue.count(place) for place in QueuePlace] == [1, 1, 2, 1, 1]
        assert len(queue) == 6

    def test_an_unknown_pod_is_nowhere(self) -> None:
        queue = make()
        assert queue.where("p") is None
        assert queue.find("p") is None


class TestCheck:
    @pytest.mark.parametrize("place", list(QueuePlace))
    def test_a_sound_queue_passes(self, place: QueuePlace) -> None:
        check_queue(in_place(place))

    @pytest.mark.parametrize("place", list(QueuePlace))
    def test_a_pod_that_thinks_itself_elsewhere_is_found(self, place: QueuePlace) -> None:
        queue = in_place(place)
        (queued,) = queue
        queued.place = next(other for other in QueuePlace if other is not place)
        with pytest.raises(AssertionError, match="shop/p is in place"):
            check_queue(queue)

    @pytest.mark.parametrize("place", list(QueuePlace))
    def test_a_pod_that_the_queue_does_not_know_is_found(self, place: QueuePlace) -> None:
        queue = in_place(place)
        del queue._pods["p"]
        with pytest.raises((AssertionError, KeyError)):
            check_queue(queue)

    def test_a_wrong_backoff_is_found(self) -> None:
        queue = in_place(QueuePlace.BACKOFF)
        (queued,) = queue
        queued.error_count = 1
        with pytest.raises(AssertionError, match="backs off as if"):
            check_queue(queue)

    def test_a_pod_that_waits_for_the_wrong_events_is_found(self) -> None:
        queue = in_place(QueuePlace.UNSCHEDULABLE)
        (queued,) = queue
        queued.unschedulable_plugins = ("Other",)
        with pytest.raises(AssertionError, match="shop/p waits for what others wait for"):
            check_queue(queue)

    def test_unneeded_in_flight_events_are_detected(self) -> None:
        queue = in_place(QueuePlace.IN_FLIGHT)
        queue.move(NODE_ADD, 1)
        check_queue(queue)
        queue._in_flight._events.append(NODE_ADD)
        with pytest.raises(AssertionError, match="2 events are kept for pods in flight, 1 are needed"):
            check_queue(queue)


def in_place(place: QueuePlace, settings: QueueSettings | None = None) -> SchedulingQueue:
    """Return a queue with one pod, p, in a place."""
    queue = make(settings=settings)
    queue.add(pending("p", gates=["g"] if place is QueuePlace.GATED else []), 0)
    if place not in (QueuePlace.ACTIVE, QueuePlace.GATED):
        attempt = popped(queue)
        if place is not QueuePlace.IN_FLIGHT:
            queue.add_unschedulable(attempt, ["NodeResourcesFit"], 0)
        if place is QueuePlace.BACKOFF:
            queue.move(POD_GONE, 0)
    assert queue.where("p") == place
    return queue


def test_a_pod_that_joins_another_s_attempt_without_one_of_its_own_is_attempted_first_then() -> None:
    """It was gated when it came, and waits for an event since."""
    gates = Gates()
    queue, pod = make(gates=gates), pending("p")
    gates.preempting.add(pod.uid)
    queue.add(pod, 0)
    gates.preempting.clear()
    queue.ask_gate_again(pod.uid, SECOND, is_worth_attempt=False)

    joined = queue.join(pod.uid, 7 * SECOND)

    assert joined is not None
    assert joined.first_attempt_ns == 7 * SECOND


def test_an_event_that_wakes_nothing_costs_a_few_operations_for_each_pod_that_may_preempt() -> None:
    # The hints that an event has to ask are found once for all pods that the same plugins rejected.
    far = EventToRegister(EventResource.ASSIGNED_POD, ActionType.ADD, lambda _, event: False)
    queue = make({"default-scheduler": {**PLUGINS, "InterPodAffinity": (far,)}})
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
    terms = compile_terms([PodAffinityTerm(topology_key="zone")], "shop")
    costs = []
    for uids in (range(10), range(10, 110)):
        for uid in uids:
            pod = pending(f"p{uid}")
            rejected(queue, replace(pod, pod_class=replace(pod.pod_class, required_affinity=terms)), "NodeResourcesFit")
        queue.move(event, 0)
        costs.append(operations(lambda: queue.move(event, 0)).total())

    assert not queue.has_promising
    assert (costs[1] - costs[0]) / 100 < 20
