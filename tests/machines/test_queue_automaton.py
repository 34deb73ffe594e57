"""The queue does what its table says: every place, every happening, under all conditions that tell apart what comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest

from podium.cluster.pods import PodRecord
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.machines.scheduling.queue.automaton import STEPS, Happening, Step, landing, table
from podium.machines.scheduling.queue.hints import Wake
from podium.machines.scheduling.queue.queue import SchedulingQueue
from podium.machines.scheduling.queue.queued_pod import Place, QueuedPod, QueueSettings
from tests.docs.blocks import ROOT
from tests.machines.pending import pending

DOCUMENT = ROOT / "docs/scheduling-automata.md"
SECOND = 1_000_000_000
BEFORE, AFTER, TOO_LATE = SECOND // 2, 20 * SECOND, 400 * SECOND
NODE_ADDED = ClusterEvent(EventResource.NODE, ActionType.ADD, label="NodeAdd")
WAITS = (
    EventToRegister(EventResource.NODE, ActionType.ADD),
    EventToRegister(EventResource.POD, ActionType.UPDATE_POD_LABEL),
)
PLACES = (None, *Place)


@dataclass
class Scene:
    """A queue with one pod `p` in a place.

    What happens next is worth an attempt as ``wake`` says, to a pod whose gate ``is_held``, while its backoff lasts or
    not. Pods that were never attempted back off from nothing.
    """

    place: Place | None
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

    def bring(self, place: Place) -> None:
        """Bring the pod to its place, attempted once before but where it is active."""
        self.queue.add(self.record, 0)
        if place is Place.ACTIVE:
            return
        self.attempt = self.queue.pop(0)
        if place is Place.IN_FLIGHT:
            return
        if place is Place.BACKOFF:
            self.queue.move(NODE_ADDED, 0)
            self.fail("Waits")
        else:
            self.fail({Wake.NO: "Mute", Wake.AFTER_BACKOFF: "Waits", Wake.AT_ONCE: "Pending"}[self.wake])
        if place is Place.GATED:
            self.gate_is_shut = True
            self.queue.activate(["p"], 0)
        assert self.queue.where("p") is place

    def fail(self, rejected_by: str) -> None:
        assert self.attempt is not None
        plugins, pending_plugins = ((), ("Waits",)) if rejected_by == "Pending" else ((rejected_by,), ())
        self.queue.add_unschedulable(self.attempt, plugins, pending_plugins, self.now)

    def tell(self, happening: Happening) -> None:
        """Let it happen."""
        queue, now = self.queue, self.now
        tell: dict[Happening, Callable[[], object]] = {
            Happening.ADDED: lambda: queue.add(self.record, now),
            Happening.UPDATED: lambda: queue.update(pending("p", labels={"changed": "yes"}), now),
            Happening.DELETED: lambda: queue.delete("p"),
            Happening.POPPED: lambda: queue.pop(now),
            Happening.FAILED: self.end_attempt,
            Happening.DONE: lambda: queue.done("p"),
            Happening.EVENT: lambda: queue.move(NODE_ADDED, now),
            Happening.ACTIVATED: lambda: queue.activate(["p"], now),
            Happening.GATE_ASKED: lambda: queue.ask_gate_again("p", now, is_worth_attempt=self.wake is not Wake.NO),
            Happening.REORDERED: lambda: queue.reorder("p", now),
            Happening.FLUSHED: lambda: queue.flush(now),
            Happening.JOINED: lambda: queue.join("p", now),
            Happening.WOKEN: lambda: queue.wake("p", "PodGroupChanged", now),
            Happening.GIVEN_BACK: lambda: queue.give_back(queue.find("p") or QueuedPod(self.record, now), now),
        }
        tell[happening]()

    def end_attempt(self) -> None:
        """Let the attempt fail, with something that happened on the way where that is to wake the pod."""
        if self.place is Place.IN_FLIGHT and self.wake:
            self.queue.move(NODE_ADDED, self.now)
        self.attempt = self.queue.find("p") or QueuedPod(self.record, self.now)
        self.fail("Pending" if self.wake is Wake.AT_ONCE else "Waits")

    def lands(self, happening: Happening) -> Place:
        """Where the table says that the pod lands."""
        wake = self.wake
        if happening in (Happening.ADDED, Happening.ACTIVATED) or self.place is None:
            wake = Wake.AT_ONCE
        elif (happening is Happening.GATE_ASKED and wake) or happening in (Happening.WOKEN, Happening.GIVEN_BACK):
            wake = Wake.AFTER_BACKOFF
        is_asked = bool(wake) or self.place is Place.GATED
        # A backoff begins with the failure; what was not attempted after all has none to begin.
        backs_off = happening is Happening.FAILED or (self.backs_off and happening is not Happening.GIVEN_BACK)
        return landing(wake, is_held=is_asked and self.is_held, backs_off=backs_off and wake is Wake.AFTER_BACKOFF)


def scenes() -> list[Scene]:
    return [Scene(*given) for given in product(PLACES, Wake, (False, True), (False, True))]


def test_the_table_has_a_cell_for_every_place_and_happening() -> None:
    assert set(STEPS) == set(product(PLACES, Happening))


@pytest.mark.parametrize("happening", Happening)
def test_the_queue_does_what_its_table_says(happening: Happening) -> None:
    for scene in scenes():
        step = STEPS[scene.place, happening]
        told = f"{happening} in {scene}: {step}"
        if step is Step.REFUSE:
            with pytest.raises(ValueError, match="p"):
                scene.tell(happening)
            assert scene.queue.where("p") is scene.place, told
            continue

        scene.tell(happening)

        match step:
            case Step.STAY | Step.SORT | Step.HEAR:
                expected = scene.place
            case Step.LEAVE:
                expected = None
            case Step.FLY | Step.FLY_EARLY:
                expected = Place.IN_FLIGHT
            case Step.WAKE:
                expected = Place.ACTIVE
            case Step.RISE:
                expected = Place.BACKOFF if scene.backs_off else Place.ACTIVE
            case Step.LAND_IF_LATE:
                expected = scene.place
            case Step.LAND_IF_WOKEN if not scene.wake:
                expected = scene.place
            case _:
                expected = scene.lands(happening)
        assert scene.queue.where("p") is expected, told
        scene.queue.check()


@pytest.mark.parametrize(
    "happening", [happening for happening in Happening if STEPS[Place.IN_FLIGHT, happening] is Step.HEAR]
)
def test_what_a_pod_in_flight_hears_counts_once_its_attempt_has_failed(happening: Happening) -> None:
    scene = Scene(Place.IN_FLIGHT, Wake.NO, is_held=False, backs_off=False)

    scene.tell(happening)
    scene.fail("Waits")

    assert scene.queue.where("p") is Place.BACKOFF


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("place", [place for place in Place if STEPS[place, Happening.FLUSHED] is Step.LAND_IF_LATE])
def test_a_pod_that_has_waited_for_5_minutes_lands_as_if_it_were_woken(place: Place, is_held: bool) -> None:
    scene = Scene(place, Wake.NO, is_held=is_held, backs_off=False)
    scene.now = TOO_LATE

    scene.tell(Happening.FLUSHED)

    assert scene.queue.where("p") is landing(Wake.AFTER_BACKOFF, is_held=is_held, backs_off=False)


@pytest.mark.parametrize("place", [place for place in Place if STEPS[place, Happening.UPDATED] is Step.SORT])
def test_a_pod_that_is_to_be_sorted_anew_is_gated_where_queue_sort_fails(place: Place) -> None:
    scene = Scene(place, Wake.NO, is_held=False, backs_off=True)
    scene.queue._gate.sorts = gated_by_queue_sort  # type: ignore[method-assign]

    scene.tell(Happening.UPDATED)

    assert scene.queue.where("p") is Place.GATED


def gated_by_queue_sort(queued: QueuedPod) -> bool:
    queued.gated_by = "QueueSort"
    return False


def test_a_pod_that_backs_off_is_not_popped_while_another_is_active() -> None:
    scene = Scene(Place.BACKOFF, Wake.NO, is_held=False, backs_off=True)
    scene.queue.add(pending("q"), scene.now)

    scene.tell(Happening.POPPED)

    assert (scene.queue.where("p"), scene.queue.where("q")) == (Place.BACKOFF, Place.IN_FLIGHT)


def test_a_pod_that_was_popped_too_often_at_an_instant_is_not_made_active() -> None:
    settings = QueueSettings(most_pops_at_once=1)
    waits = {"default-scheduler": {"Waits": WAITS}}
    queue = SchedulingQueue({"default-scheduler": lambda _pod, _ns: ()}, lambda _pod: SUCCESS, waits, settings)
    queue.add(pending("p"), 0)
    attempt = queue.pop(0)
    assert attempt is not None
    queue.move(NODE_ADDED, 0)
    queue.add_unschedulable(attempt, ["Waits"], (), 0)

    queue.activate(["p"], 0)

    assert queue.where("p") is Place.BACKOFF


def test_a_pod_lands_by_its_gate_then_by_what_woke_it_then_by_its_backoff() -> None:
    lands = {
        (wake, is_held, backs_off): landing(wake, is_held=is_held, backs_off=backs_off)
        for wake, is_held, backs_off in product(Wake, (False, True), (False, True))
    }

    for (wake, is_held, backs_off), place in lands.items():
        if is_held:
            assert place is Place.GATED
        elif wake is Wake.NO:
            assert place is Place.UNSCHEDULABLE
        else:
            assert place is (Place.BACKOFF if backs_off else Place.ACTIVE)


def test_the_document_shows_the_table() -> None:
    assert table() in DOCUMENT.read_text(encoding="utf-8")
