"""A random story, with every invariant checked meanwhile."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

from msgspec.structs import replace

from podium.framework.settings.configuration import NominationClearing
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests.builders import configuration
from tests.sim.faults import DrawnFaults, Fault
from tests.sim.invariants import InvariantChecker
from tests.sim.judged_scheduler import JudgedScheduler, let_wait
from tests.sim.omitted import NOTHING, Omitted
from tests.sim.played import reported, simulation_of
from tests.sim.stories import STEPS_LAST_S, Story
from tests.sim.wide_judged_scheduler import WideJudgedScheduler
from tests.store.objects import HOUR, SECOND

# What takes long to get over.
RARE = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.WATCH_BREAKS)
RATES = {fault: (0.01, 0.05) if fault in RARE else (0.05, 0.2, 0.5) for fault in Fault}
FAULTS_LAST_NS = (STEPS_LAST_S + 60) * SECOND
# Unschedulable pods are tried again after five minutes, whatever they wait for.
FLUSH_NS = 330 * SECOND
CLEARINGS: tuple[NominationClearing, ...] = ("AllLower", "AllLower", "Unfit")
MOST_STEPS = 20_000
MOST_FLUSHES = 5


@dataclass(slots=True)
class RandomRun:
    """A seed's run without the omitted parts: a story, delays, perhaps a Permit plugin, faults (``is_faulty``).

    ``preemption`` are arguments of DefaultPreemption for preemption across nodes.
    """

    seed: int
    is_faulty: bool = True
    omitted: Omitted = NOTHING
    preemption: Mapping[str, Any] = field(default_factory=dict)
    faults: DrawnFaults = field(init=False)
    story: Story = field(init=False)
    component: Component = field(init=False)
    simulation: Simulation = field(init=False)
    checker: InvariantChecker = field(init=False)
    options: str = field(init=False)
    random: Random = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.random = random = Random(f"run:{self.seed}")
        chosen = [fault for fault in Fault if random.random() < 0.5] if self.is_faulty else []
        rates = {fault: random.choice(RATES[fault]) for fault in chosen}
        left = {fault: rate for fault, rate in rates.items() if fault not in self.omitted.faults}
        self.faults = DrawnFaults(left, self.seed, frozenset(("scheduler",)))
        delays = {
            "bind_delay_ns": random.choice((0, 0, 1, 3)) * SECOND,
            "start_delay_ns": random.choice((0, 0, 2)) * SECOND,
        }
        plugins = random.choice(([], ["tests.sim.holding:Holding"]))
        repels, clearing = random.random() < 0.3, random.choice(CLEARINGS)
        chosen_settings = f"plugins {plugins}, nominatedPodsRepel {repels}, nominationClearing {clearing}"
        self.options = f"seed {self.seed}, {self.faults.rates}, {delays}, {chosen_settings}"
        args = {"InterPodAffinity": {"nominatedPodsRepel": repels}, "DefaultPreemption": self.preemption}
        settings = configuration(args, plugins={"multiPoint": {"enabled": plugins}})
        settings = replace(settings, nomination_clearing=clearing)
        judged = WideJudgedScheduler if self.preemption else JudgedScheduler
        self.component = Component("scheduler", lambda: judged(settings, seed=self.seed), waits=True)
        apart_in_zones = bool(self.preemption.get("acrossNodes", False))
        self.story = Story(self.seed, apart_in_zones=apart_in_zones).without(self.omitted.objects, self.omitted.steps)
        self.simulation = simulation_of(
            *self.story.files, schedulers=[self.component], faults=self.faults, seed=self.seed, **delays
        )
        self.checker = InvariantChecker(self.simulation, self.component, settings, had_faults=self.is_faulty)

    @property
    def fault_hours(self) -> float:
        """Return how long it has been played under faults, in simulated hours."""
        return min(self.simulation.elapsed_ns, FAULTS_LAST_NS) / HOUR if self.is_faulty else 0.0

    def play(self) -> None:
        """Play it. Raises AssertionError, with the seed and the events so far, for a broken invariant."""
        try:
            self.checker.after_step()
            self._step_until_quiet()
            self.faults.stopped = True
            self._step_until_quiet()
            self.checker.at_rest(is_flushed=False)
            self._flush_until_quiet()
            self.checker.at_rest(is_flushed=True)
        except Exception as error:
            error.add_note("\n".join([self.options, *reported(self.simulation)]))
            raise

    @property
    def digest(self) -> str:
        """Return what happened and what is left, in short."""
        history = [event.to_dict() for event in self.simulation.history.events]
        left = [stored.raw for kind in ("Node", "Pod") for stored in self.simulation.store.objects(kind)]
        return sha256(json.dumps([history, left, str(self.options)]).encode()).hexdigest()

    def _step_until_quiet(self, until_ns: int | None = None) -> None:
        while (until_ns is None or self.simulation.now < until_ns) and self.simulation.step():
            self.steps += 1
            assert self.steps < MOST_STEPS, "L4: it never ends"
            self.faults.stopped |= self.simulation.elapsed_ns > FAULTS_LAST_NS
            self._check()

    def _check(self) -> None:
        self.checker.after_step()
        if self.component.controller is None:
            return
        if self.random.random() < 0.1:
            self.checker.check_columns()
        if self.random.random() < 0.1:
            self.checker.check_some_decision(self.random)

    def _flush_until_quiet(self) -> None:
        """Let unschedulable pods be tried again, until that changes nothing."""
        for _ in range(MOST_FLUSHES):
            version = self.simulation.store.version
            let_wait(self.simulation, self.component, True)
            self._step_until_quiet(self.simulation.now + FLUSH_NS)
            let_wait(self.simulation, self.component, False)
            self._step_until_quiet()
            if self.simulation.store.version == version:
                return
        raise AssertionError("L4: the cluster does not come to rest")
