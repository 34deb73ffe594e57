"""The queue follows the table in the documents: every state and every method under all relevant conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import product

import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.hints import Wake
from podium.controllers.scheduling.queue.queue import SchedulingQueue, landing
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace, QueueSettings
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.verdicts import SUCCESS, Status, unresolvable
from tests.controllers.automata import transitions_of_the_queue
from tests.controllers.pending import pending
from tests.controllers.queue_checks import begun, check_queue


class Step(Enum):
    """The contents of the table's cells."""

    REFUSE = "an error"
    STAY = ""  # without a row
    LEAVE = "leaves the queue"
    FLY = "in flight"
    FLY_EARLY = "in flight, if no pod is active and its backoff may be cut short"
    HEAR = "stays; counts once the attempt has failed"
    SORT = "stays, sorted again; gated if QueueSort fails"
    WAKE = "active, unless it was popped too often at this instant"
    RISE = "active, if its backoff has ended"
    LAND = "lands"
    LAND_IF_WOKEN = "lands, if it is woken"
    LAND_IF_LATE = "lands, if it has waited for 5 minutes"


LISTED = {
    (None if place == "unknown" else QueuePlace(place), method): Step(outcome)
    for (place, method), outcome in transitions_of_the_queue().items()
}
METHODS = tuple(dict.fromkeys(method for _, method in LISTED))
PLACES = (None, *QueuePlace)
TRANSITIONS: dict[tuple[QueuePlace | None, str], Step] = {
    key: LISTED.get(key, Step.STAY) for key in product(PLACES, METHODS)
}
SECOND = 1_000_000_000
BEFORE, AFTER, TOO_LATE = SECOND // 2, 20 * SECOND, 400 * SECOND
NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD, label="NodeAdd")
WAITS = (
    EventToRegister(EventResource.NODE, ActionType.ADD),
    EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL),
)


@dataclass
class Scene:
    """A queue with one pod `p` in a place.

    What happens next is worth an attempt as ``wake`` says, to a pod whose gate ``is_held``, while its backoff lasts or
    not. Pods that were never attempted back off from nothing.
    """

    place: QueuePlace | None
    wake: Wake
    is_held: bool
    backs_off: bool

    def __post_init__(self) -> None:
        self.gate_is_shut = False
        self.now = 0
        self.queue = SchedulingQueue(
            {"default-scheduler": lambda pod, queued_ns: (-pod.priority, queued_ns)},
            self.pre_enqueue,
            {"default-scheduler": {"Waits": WAITS, "Mute": (), "Gate": WAITS}},
            # So long a backoff that it may outlast the wait for an event.
            QueueSettings(initial_backoff_ns=SECOND, pop_from_backoff=True),
        )
        self.record = pending("p")
        self.attempt: QueuedPod | None = None
        if self.place is not None:
            self.bring(self.place)
        self.gate_is_shut = self.is_held
        self.now = BEFORE if self.backs_off else AFTER

    def pre_enqueue(self, _pod: PodRecord) -> Status:
        return unresolvable("shut").by("Gate" if self.wake else "Mute") if self.gate_is_shut else SUCCESS

    def bring(self, place: QueuePlace) -> None:
        """Bring the pod to its place, attempted once before but where it is active."""
        self.queue.add(self.record, 0)
        if place is QueuePlace.ACTIVE:
            return
        self.attempt = begun(self.queue, 0)
        if place is QueuePlace.IN_FLIGHT:
            return
        if place is QueuePlace.BACKOFF:
            self.queue.move(NODE_ADDED, 0)
            self.fail("Waits")
        else:
            self.fail("Waits" if self.wake else "Mute")
        if place is QueuePlace.GATED:
            self.gate_is_shut = True
            self.queue.activate(["p"], 0)
        assert self.queue.where("p") is place

    def fail(self, rejected_by: str) -> None:
        assert self.attempt is not None
        self.queue.add_unschedulable(self.attempt, (rejected_by,), self.now)

    def deliver(self, happening: str) -> None:
        """Let it happen."""
        queue, now = self.queue, self.now
        tell: dict[str, Callable[[], object]] = {
            "add": lambda: queue.add(self.record, now),
            "update": lambda: queue.update(pending("p", labels={"changed": "yes"}), now),
            "delete": lambda: queue.delete("p"),
            "pop": lambda: begun(queue, now),
            "add_unschedulable": self.end_attempt,
            "done": lambda: queue.done("p"),
            "move": lambda: queue.move(NODE_ADDED, now),
            "activate": lambda: queue.activate(["p"], now),
            "ask_gate_again": lambda: queue.ask_gate_again("p", now, is_worth_attempt=self.wake is not Wake.NO),
            "reorder": lambda: queue.reorder("p", now),
            "flush": lambda: queue.flush(now),
            "join": lambda: queue.join("p", now),
            "wake": lambda: queue.wake("p", "PodGroupChanged", now),
            "give_back": lambda: queue.give_back(queue.find("p") or QueuedPod(self.record, now), now),
        }
        tell[happening]()

    def end_attempt(self) -> None:
        """Let the attempt fail, with something that happened on the way where that is to wake the pod."""
        if self.place is QueuePlace.IN_FLIGHT and self.wake:
            self.queue.move(NODE_ADDED, self.now)
        self.attempt = self.queue.find("p") or QueuedPod(self.record, self.now)
        self.fail("Waits")

    def lands(self, happening: str) -> QueuePlace:
        """Return where the table says that the pod lands."""
        wake = self.wake
        if happening in ("add", "activate") or self.place is None:
            wake = Wake.AT_ONCE
        elif (happening == "ask_gate_again" and wake) or happening in ("wake", "give_back"):
            wake = Wake.AFTER_BACKOFF
        is_asked = bool(wake) or self.place is QueuePlace.GATED
        # A backoff begins with the failure; what was not attempted after all has none to begin.
        backs_off = happening == "add_unschedulable" or (self.backs_off and happening != "give_back")
        return landing(wake, is_held=is_asked and self.is_held, backs_off=backs_off and wake is Wake.AFTER_BACKOFF)


def scenes() -> list[Scene]:
    wakes = (Wake.NO, Wake.AFTER_BACKOFF)
    return [Scene(*given) for given in product(PLACES, wakes, (False, True), (False, True))]


def test_the_table_lists_what_happens_in_every_place() -> None:
    assert {place for place, _ in LISTED} == set(PLACES)


@pytest.mark.parametrize("happening", METHODS)
def test_the_queue_does_what_its_table_says(happening: str) -> None:
    for scene in scenes():
        step = TRANSITIONS[scene.place, happening]
        report = f"{happening} in {scene}: {step}"
        if step is Step.REFUSE:
            with pytest.raises(ValueError, match="p"):
                scene.deliver(happening)
            assert scene.queue.where("p") is scene.place, report
            continue

        scene.deliver(happening)

        match step:
            case Step.STAY | Step.SORT | Step.HEAR:
                expected = scene.place
            case Step.LEAVE:
                expected = None
            case Step.FLY | Step.FLY_EARLY:
                expected = QueuePlace.IN_FLIGHT
            case Step.WAKE:
                expected = QueuePlace.ACTIVE
            case Step.RISE:
                expected = QueuePlace.BACKOFF if scene.backs_off else QueuePlace.ACTIVE
            case Step.LAND_IF_LATE:
                expected = scene.place
            case Step.LAND_IF_WOKEN if not scene.wake:
                expected = scene.place
            case _:
                expected = scene.lands(happening)
        assert scene.queue.where("p") is expected, report
        check_queue(scene.queue)


@pytest.mark.parametrize(
    "happening",
    [happening for happening in METHODS if TRANSITIONS[QueuePlace.IN_FLIGHT, happening] is Step.HEAR],
)
def test_events_for_a_pod_in_flight_count_after_its_attempt_fails(happening: str) -> None:
    scene = Scene(QueuePlace.IN_FLIGHT, Wake.NO, is_held=False, backs_off=False)

    scene.deliver(happening)
    scene.fail("Waits")

    assert scene.queue.where("p") is QueuePlace.BACKOFF


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("place", [place for place in QueuePlace if TRANSITIONS[place, "flush"] is Step.LAND_IF_LATE])
def test_a_pod_that_has_waited_for_5_minutes_lands_as_if_it_were_woken(place: QueuePlace, is_held: bool) -> None:
    scene = Scene(place, Wake.NO, is_held=is_held, backs_off=False)
    scene.now = TOO_LATE

    scene.deliver("flush")

    assert scene.queue.where("p") is landing(Wake.AFTER_BACKOFF, is_held=is_held, backs_off=False)


@pytest.mark.parametrize("place", [place for place in QueuePlace if TRANSITIONS[place, "update"] is Step.SORT])
def test_a_pod_to_be_sorted_again_is_gated_when_queue_sort_fails(place: QueuePlace) -> None:
    scene = Scene(place, Wake.NO, is_held=False, backs_off=True)
    scene.queue._sorts = gated_by_queue_sort  # type: ignore[method-assign]

    scene.deliver("update")

    assert scene.queue.where("p") is QueuePlace.GATED


def gated_by_queue_sort(queued: QueuedPod) -> bool:
    queued.gated_by = "QueueSort"
    return False


def test_a_pod_that_backs_off_is_not_popped_while_another_is_active() -> None:
    scene = Scene(QueuePlace.BACKOFF, Wake.NO, is_held=False, backs_off=True)
    scene.queue.add(pending("q"), scene.now)

    scene.deliver("pop")

    assert (scene.queue.where("p"), scene.queue.where("q")) == (QueuePlace.BACKOFF, QueuePlace.IN_FLIGHT)


def test_a_pod_that_was_popped_too_often_at_an_instant_is_not_made_active() -> None:
    settings = QueueSettings(most_pops_at_once=1)
    waits = {"default-scheduler": {"Waits": WAITS}}
    queue = SchedulingQueue({"default-scheduler": lambda _pod, _ns: ()}, lambda _pod: SUCCESS, waits, settings)
    queue.add(pending("p"), 0)
    attempt = begun(queue, 0)
    assert attempt is not None
    queue.move(NODE_ADDED, 0)
    queue.add_unschedulable(attempt, ["Waits"], 0)

    queue.activate(["p"], 0)

    assert queue.where("p") is QueuePlace.BACKOFF


def test_a_pod_lands_by_its_gate_then_by_what_woke_it_then_by_its_backoff() -> None:
    lands = {
        (wake, is_held, backs_off): landing(wake, is_held=is_held, backs_off=backs_off)
        for wake, is_held, backs_off in product(Wake, (False, True), (False, True))
    }

    for (wake, is_held, backs_off), place in lands.items():
        if is_held:
            assert place is QueuePlace.GATED
        elif wake is Wake.NO:
            assert place is QueuePlace.UNSCHEDULABLE
        else:
            assert place is (QueuePlace.BACKOFF if backs_off else QueuePlace.ACTIVE)
