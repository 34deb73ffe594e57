"""The controllers in real time: with a clock, and asynchronous answers."""

from collections.abc import Iterable

import pytest

from podium.api.meta import Raw
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.deadlines import AT_ONCE, NEVER, Deadline
from podium.controllers.nodes.pod_deletion import TaintEviction
from podium.controllers.observations import ActionFinished, Changed, Observation, Problem, Tick
from podium.runtime.clock import SystemClock
from podium.runtime.live import LiveRuntime
from podium.runtime.runtime import Component
from tests.runtime.fakes import FakeClock, FakeTransport
from tests.sim.objects import documents
from tests.store.objects import SECOND, node, pod

START_NS = 1_767_225_600 * SECOND
BROKEN_NODE = {**node("n1"), "spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
TOLERATION = {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
BROKEN = Problem(500, "InternalError", "the API server stumbled")


def changed(raw: Raw) -> Changed:
    [document] = documents({**raw, "metadata": {**raw["metadata"], "uid": "u"}})
    assert document.object is not None
    return Changed(document.object, document.raw)


class Rig:
    """The controller that evicts pods for taints, before an API that a test plays."""

    def __init__(self) -> None:
        self.clock = FakeClock(START_NS)
        self.transport = FakeTransport()
        self.known: list[Raw] = [node("n1"), pod("a", node="n1", spec={"tolerations": [TOLERATION]})]
        self.asked_for: list[frozenset[str]] = []
        self.arrivals = 0
        self.live = LiveRuntime(self.clock.now, self.transport, self.listed, on_arrival=self.arrived)
        self.component = Component("taint-eviction-controller", TaintEviction)
        self.live.add(self.component)

    def arrived(self) -> None:
        self.arrivals += 1

    def listed(self, kinds: frozenset[str]) -> Iterable[Changed]:
        self.asked_for.append(kinds)
        return [changed(raw) for raw in self.known]

    def show(self, raw: Raw) -> None:
        self.live.show(raw["kind"], changed(raw))

    def answer(self, problem: Problem | None = None) -> None:
        """Answer the first requested action."""
        asked = self.transport.asked[0]
        self.live.answer(asked, ActionFinished(asked.action, problem))

    def sent(self) -> list[str]:
        pairs = zip(self.transport.asked, self.transport.times, strict=True)
        return [f"{(now - START_NS) // SECOND} {type(one.action).__name__}" for one, now in pairs]


def test_a_component_begins_with_what_is_known_of_the_kinds_that_it_watches() -> None:
    rig = Rig()

    rig.live.turn()

    assert rig.asked_for == [frozenset(("DeviceTaintRule", "Node", "Pod", "ResourceClaim", "ResourceSlice"))]
    assert rig.sent() == []


def test_a_turn_says_when_something_is_due_and_does_it_when_the_time_has_come() -> None:
    rig = Rig()
    rig.show(BROKEN_NODE)

    due_ns = rig.live.turn()
    assert due_ns == START_NS + 30 * SECOND
    assert rig.sent() == []
    rig.clock.time_ns = due_ns
    rig.live.turn()

    assert rig.sent() == ["30 ReportStatus"]


def test_effects_of_an_answer_follow_in_the_next_turn() -> None:
    rig = Rig()
    rig.show(BROKEN_NODE)
    rig.clock.time_ns = rig.live.turn() or 0
    assert rig.live.turn() is None
    assert rig.arrivals == 2

    rig.clock.time_ns += 2 * SECOND
    rig.answer()
    assert rig.arrivals == 3
    rig.live.turn()

    assert [type(one.action) for one in rig.transport.asked] == [ReportStatus, DeleteObject]
    assert rig.sent() == ["30 ReportStatus", "32 DeleteObject"]


def test_nothing_is_done_after_a_stop_until_the_queue_is_settled() -> None:
    rig = Rig()
    rig.show(BROKEN_NODE)
    rig.live.stop()

    assert rig.live.turn() is None
    assert rig.asked_for == []
    rig.live.settle()
    assert rig.asked_for != []


def test_a_failed_request_is_retried_after_a_delay() -> None:
    rig = Rig()
    rig.show(BROKEN_NODE)
    rig.live.turn()
    rig.clock.time_ns += 30 * SECOND
    rig.live.turn()

    rig.answer(BROKEN)
    due_ns = rig.live.turn()

    assert due_ns is not None
    assert due_ns > rig.clock.time_ns
    rig.clock.time_ns = due_ns
    rig.live.turn()
    assert len(rig.transport.asked) == 2


def test_answers_for_an_earlier_process_do_not_reach_the_next() -> None:
    rig = Rig()
    rig.show(BROKEN_NODE)
    rig.live.turn()
    rig.clock.time_ns += 30 * SECOND
    rig.live.turn()
    rig.known[0] = BROKEN_NODE

    rig.live.restart(rig.component)
    rig.answer(BROKEN)
    due_ns = rig.live.turn()

    assert due_ns == rig.clock.time_ns + 30 * SECOND


def test_a_clock_of_another_speed_goes_so_much_faster_from_a_time_on() -> None:
    clock = SystemClock(1000.0, earliest_ns=5 * 10**18)

    until_ns = clock.now() + 10 * SECOND

    assert until_ns > 5 * 10**18
    assert clock.seconds_until(until_ns) <= 0.01
    assert clock.seconds_until(clock.now() - SECOND) == 0


class Fragile:
    """A machine that fails where a test says so."""

    watches = frozenset(("Node",))

    def __init__(self, fails_at: list[str]) -> None:
        self.fails_at = fails_at
        self.seen: list[Observation] = []
        self.is_due = False

    def handle(self, observation: Observation, now: int) -> list[Action]:
        what = "tick" if isinstance(observation, Tick) else "handle"
        if what in self.fails_at:
            self.fails_at.remove(what)
            raise ValueError("a mistake in a machine")
        self.seen.append(observation)
        self.is_due = what == "handle"
        return []

    def deadline(self) -> Deadline:
        if "deadline" in self.fails_at and self.seen:
            self.fails_at.remove("deadline")
            raise ValueError("a mistake in a machine")
        return AT_ONCE if self.is_due else NEVER


class FragileRig:
    def __init__(self, *fails_at: str) -> None:
        self.clock = FakeClock(START_NS)
        self.fails_at = list(fails_at)
        self.log: list[tuple[str, int]] = []
        self.live = LiveRuntime(self.clock.now, FakeTransport(), lambda _: [changed(node("n1"))], self.failed)
        self.components = [Component("fragile", self.make), Component("sound", lambda: Fragile([]))]
        self.live.begin(self.components, [("Node", changed(node("n1")))])

    def make(self) -> Fragile:
        return Fragile(self.fails_at)

    def failed(self, component: Component, error: Exception, restart_ns: int) -> None:
        self.log.append((f"{component.name}: {error}", (restart_ns - START_NS) // SECOND))

    def seen(self) -> list[int]:
        return [
            len(component.controller.seen) if isinstance(component.controller, Fragile) else -1
            for component in self.components
        ]


@pytest.mark.parametrize("where", ["handle", "tick", "deadline"])
def test_a_failed_component_restarts_from_current_state_while_others_continue(where: str) -> None:
    rig = FragileRig(where)

    assert rig.live.turn() is None

    assert rig.log == [("fragile: a mistake in a machine", 0)]
    assert rig.seen() == [2, 2]
    assert rig.live.failures == {}


def test_a_component_that_fails_again_and_again_waits_longer_each_time() -> None:
    rig = FragileRig(*["handle"] * 4)

    rig.live.turn()
    assert rig.live.failures == {"fragile": "ValueError: a mistake in a machine"}
    for _ in range(3):
        rig.clock.time_ns = rig.live.turn() or 0
    rig.live.turn()

    assert [after for _, after in rig.log] == [0, 10, 30, 70]
    assert rig.seen() == [2, 2]
    assert rig.live.failures == {}


def test_an_unobserved_component_failure_ends_the_run() -> None:
    rig = FragileRig("handle")
    live = LiveRuntime(rig.clock.now, FakeTransport(), lambda _: [])
    live.begin(rig.components[:1], [("Node", changed(node("n1")))])

    with pytest.raises(ValueError, match="a mistake"):
        live.turn()


def test_a_turn_ends_when_its_budget_is_used_up_and_the_next_goes_on_from_there() -> None:
    rig = FragileRig()
    nodes = [("Node", changed(node(f"n{number}"))) for number in range(1000)]
    rig.live.begin([Component("late", lambda: Fragile([]))], nodes)
    rig.clock.step_ns = 1

    assert rig.live.turn(3) == rig.clock.time_ns
    assert rig.seen()[1] < 900
    assert rig.live.turn() is None
    assert rig.seen()[1] > 1000
