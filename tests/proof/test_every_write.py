"""Short stories, repeated with a fault at each action and observation of a scheduler.

Whatever it is that goes wrong, and wherever, the invariants hold after each step, and the story comes to the same end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from podium.api.errors import PodiumError
from podium.api.pod import Pod
from podium.controllers.actions import Action, Record
from podium.controllers.observations import Problem
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.settings.configuration import Configuration
from podium.runtime.runtime import Component
from podium.sim.faults import FaultOutcome
from podium.sim.simulation import Simulation
from tests.builders import configuration
from tests.proof.failures.bugs import Bug, Right, fails, instead, none_of_it, nothing
from tests.sim.faults import ANSWER_LOST, CARRIED_OUT, DONE_WITH_ERROR, LOST, WatchDelivery
from tests.sim.fleet_invariants import FleetChecker
from tests.sim.invariants import InvariantChecker
from tests.sim.judged_scheduler import JudgedScheduler, let_wait
from tests.sim.objects import scenario
from tests.sim.planned_faults import NoFaults
from tests.sim.played import pods, reported, simulation_of
from tests.store.objects import SECOND, Raw, node, pod

MOST_STEPS = 2_000
FLUSH_NS = 330 * SECOND
OUTAGE_NS = 3 * SECOND
# As many as the stories need, since a scheduler is made for each telling.
PLUGINS = ("NodeUnschedulable", "TaintToleration", "NodeResourcesFit", "DefaultPreemption")

FATES: Mapping[str, FaultOutcome] = {
    "refused": FaultOutcome(0, Problem(429, "TooManyRequests", "too many requests")),
    "carried out, and answered with a server's error": DONE_WITH_ERROR,
    "carried out, and the answer lost": ANSWER_LOST,
    "lost": LOST,
}
CRASHES: Mapping[str, bool] = {"crash before": False, "crash after": True}
DELIVERIES: Mapping[str, WatchDelivery] = {
    "seen after the next decision": WatchDelivery(delay_ns=1),
    "lost until the next list": WatchDelivery(breaks_ns=7 * SECOND),
}


@dataclass(slots=True)
class OneFault(NoFaults):
    """All goes well but for one thing: the action, or the event, of one scheduler with a number.

    ``actions`` and ``deliveries`` count what a fault could have struck, by component.
    """

    what: str
    number: int
    scheduler: str
    counted: int = 0
    target: Action | None = None
    has_happened: bool = False
    actions: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        self.actions[component] += not is_done and not isinstance(action, Record)
        if component != self.scheduler or isinstance(action, Record) or self.what in DELIVERIES:
            return None
        if not is_done and self._is_it():
            self.target = action
        if self.target is not action or CRASHES.get(self.what) is not is_done:
            return None
        self.has_happened = True
        return OUTAGE_NS

    def outcome(self, component: str, action: Action) -> FaultOutcome:
        if self.target is not action or self.what not in FATES or self.has_happened:
            return CARRIED_OUT
        self.has_happened = True
        return FATES[self.what]

    def delivery(self, component: str, kind: str) -> WatchDelivery:
        self.deliveries[component] += 1
        if component != self.scheduler or self.what not in DELIVERIES or not self._is_it():
            return WatchDelivery()
        self.has_happened = True
        return DELIVERIES[self.what]

    def _is_it(self) -> bool:
        self.counted += 1
        return self.counted - 1 == self.number


End = Callable[[Mapping[str, Pod]], bool]


@dataclass(frozen=True, slots=True)
class Story:
    """The initial objects, the events, and the checks of the pods at the end. Faults strike the first scheduler."""

    objects: Sequence[Raw]
    steps: Sequence[Raw]
    end: End
    schedulers: Sequence[str] = ("default-scheduler",)


def short_lived(name: str, cpu: int, priority: int, *, on: str = "", scheduler: str = "default-scheduler") -> Raw:
    """Return a pod that takes five seconds to end."""
    spec = {"terminationGracePeriodSeconds": 5, "schedulerName": scheduler}
    return pod(name, cpu=cpu, priority=priority, node=on, spec=spec)


def on(found: Mapping[str, Pod], name: str) -> str:
    return found[name].spec.node_name if name in found else "gone"


STORIES = {
    "a preemption of two victims": Story(
        [
            node("n1"),
            node("n2", cpu=1),
            short_lived("a", 5, 2, on="n1"),
            short_lived("b", 5, 1, on="n1"),
            short_lived("spared", 1, 0, on="n2"),
        ],
        [
            {"at": "1s", "apply": [short_lived("high", 10, 1000)]},
            {"at": "2s", "apply": [short_lived("low", 2, 1)]},
        ],
        # A binding that fails ends the nomination, as in kube-scheduler: then low may get the room, and makes way.
        lambda found: (
            (on(found, "high"), on(found, "spared")) == ("n1", "n2")
            and on(found, "low") in ("", "gone")
            and not {"a", "b"} & found.keys()
        ),
    ),
    "a nominated pod whose node goes": Story(
        [node("n1"), short_lived("a", 10, 1, on="n1"), node("n2", cpu=8), short_lived("b", 8, 500, on="n2")],
        [
            {"at": "1s", "apply": [short_lived("high", 8, 1000)]},
            {"at": "3s", "delete": {"kind": "Node", "name": "n1"}},
        ],
        lambda found: on(found, "high") == "n2" and "b" not in found,
    ),
    "two schedulers and one room": Story(
        [node("n1"), short_lived("batch-0", 10, 1, on="n1", scheduler="b")],
        [
            {"at": "1s", "apply": [short_lived("high", 10, 1000, scheduler="a")]},
            {"at": "2s", "apply": [short_lived("batch-1", 10, 1, scheduler="b")]},
        ],
        lambda found: "batch-0" not in found and "n1" in (on(found, "high"), on(found, "batch-1")),
        ("a", "b"),
    ),
}


def settings_of(scheduler: str, *plugins: str) -> Configuration:
    """Return a profile with the plugins that the stories need, and others."""
    return configuration(only=(*PLUGINS, *plugins), schedulerName=scheduler)


@dataclass(slots=True)
class Telling:
    """One run of a story with a fault."""

    story: Story
    fault: OneFault
    components: list[Component] = field(init=False)
    simulation: Simulation = field(init=False)
    checker: InvariantChecker | FleetChecker = field(init=False)

    def __post_init__(self) -> None:
        self.components = [self._scheduler(name) for name in self.story.schedulers]
        objects = [*self.story.objects, scenario(*self.story.steps)]
        self.simulation = simulation_of(*objects, schedulers=self.components, faults=self.fault)
        if len(self.components) > 1:
            self.checker = FleetChecker(self.simulation, self.components, frozenset())
        else:
            settings = settings_of(self.story.schedulers[0])
            self.checker = InvariantChecker(self.simulation, self.components[0], settings, had_faults=True)

    def play(self) -> None:
        """To the end, and on until unschedulable pods were tried again. Raises AssertionError."""
        try:
            self._until_quiet()
            self._check_rest(is_flushed=False)
            assert self.story.end(pods(self.simulation)), "the story ends otherwise, or only after five minutes"
            self._let_wait(True)
            self._until_quiet(self.simulation.now + FLUSH_NS)
            self._let_wait(False)
            self._until_quiet()
            self._check_rest(is_flushed=True)
        except Exception as error:
            error.add_note(f"{self.fault.what}: number {self.fault.number}\n" + "\n".join(reported(self.simulation)))
            raise

    def _check_rest(self, *, is_flushed: bool) -> None:
        if isinstance(self.checker, InvariantChecker):
            self.checker.at_rest(is_flushed=is_flushed)
        else:
            self.checker.at_rest()

    def _let_wait(self, is_patient: bool) -> None:
        """Return whether time advances although only retries of failures are left."""
        for component in self.components:
            let_wait(self.simulation, component, is_patient)

    def _until_quiet(self, until_ns: int | None = None) -> None:
        for _ in range(MOST_STEPS):
            self.checker.after_step()
            if (until_ns is not None and self.simulation.now >= until_ns) or not self.simulation.step():
                return
        raise AssertionError("L4: it never ends")

    @staticmethod
    def _scheduler(name: str) -> Component:
        settings = settings_of(name)
        return Component(name, lambda: JudgedScheduler(settings), waits=True)


def told_for_each(story: str, what: str) -> int:
    """Tell a story until there is nothing left for the fault to strike; returns how often it struck."""
    number = 0
    while True:
        telling = Telling(STORIES[story], OneFault(what, number, STORIES[story].schedulers[0]))
        telling.play()
        if not telling.fault.has_happened:
            return number
        number += 1


@pytest.mark.parametrize("what", [*FATES, *CRASHES, *DELIVERIES])
@pytest.mark.parametrize("story", STORIES)
def test_one_fault_at_any_place_breaks_nothing(story: str, what: str) -> None:
    assert told_for_each(story, what) >= 3


def forgotten(right: Right, *args: Any) -> list[Action]:
    """Take what is due, and do none of it."""
    right(*args)
    return []


@pytest.mark.parametrize(
    ("what", "bug"),
    [
        ("refused", instead(Scheduler, "_preemption_ended", nothing)),
        ("refused", instead(BindingCycles, "_undo", none_of_it)),
        ("lost", instead(BindingCycles, "retries", forgotten)),
    ],
)
def test_a_bug_that_only_a_fault_shows_is_found(what: str, bug: Bug) -> None:
    fails(lambda: [told_for_each(story, what) for story in STORIES], bug)


def test_a_scheduler_that_never_does_due_work_is_detected() -> None:
    bug = instead(BindingCycles, "retries", none_of_it)
    fails(lambda: [told_for_each(story, "lost") for story in STORIES], bug, PodiumError)
