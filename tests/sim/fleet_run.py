"""A random fleet's story, with every invariant checked meanwhile."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import Any

from msgspec.structs import replace

from podium.api.avoid_list import EvictionHints
from podium.controllers.actions import DeleteObject, Evict
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from podium.store.errors import StoreError
from tests.builders import configuration
from tests.sim.faults import DrawnFaults, Fault
from tests.sim.fleet_invariants import FleetChecker
from tests.sim.fleet_stories import STEPS_LAST_S, Feature, FleetStory
from tests.sim.gang_stories import ENABLED, GANGS
from tests.sim.judged_scheduler import JudgedScheduler
from tests.sim.omitted import NOTHING, Omitted
from tests.sim.played import reported, simulation_of
from tests.sim.preemption_settings import NeighbourStory
from tests.sim.random_run import RATES
from tests.sim.wide_judged_scheduler import WideJudgedScheduler
from tests.store.objects import HOUR, SECOND

FAULTS_OUTLAST_STEPS_S = 60
RESTLESS = frozenset((Feature.CRASHING, Feature.PRESSURE))
"""Containers that crash are started again for ever, and pods that are evicted for memory come back to use it."""
SLEEPLESS = RESTLESS | {Feature.QUOTA}
"""Also what a quota refuses is tried again and again."""
RESTLESS_END_NS = (STEPS_LAST_S + 900) * SECOND
LATENCIES_NS = (0, 0, SECOND // 200, SECOND // 50, 3 * SECOND // 10)
MOST_STEPS = 60_000
MOST_SLOW_STEPS = 5_000
"""How long a fleet is watched that was meant to sleep, and in which something recurs."""
MEDDLING = 0.08
"""The share of steps after which a client evicts or deletes a pod."""
SHARE_OF_GANGS = 0.5
"""Of all fleets, those with gangs."""
MOST_FUTILE = 2
"""The values of `maxFutilePreemptions`, if it is set."""
LEFT_ALONE_NS = 20 * SECOND
"""The pause between such changes, before the pace, so that their consequences do not overlap."""


@dataclass(slots=True)
class FleetRun:
    """The run of a seed: a story with some features, delays, and (``is_faulty``) faults, without the omitted parts.

    Given features are not drawn. At a ``pace`` of more than 1 the fleet idles between its steps, and has no features
    that keep it busy. ``preemption`` are arguments of DefaultPreemption beyond kube-scheduler's; pods then have more
    affinity.
    """

    seed: int
    is_faulty: bool = True
    omitted: Omitted = NOTHING
    features: frozenset[Feature] = frozenset()
    pace: int = 1
    preemption: Mapping[str, Any] = field(default_factory=dict)
    faults: DrawnFaults = field(init=False)
    story: FleetStory = field(init=False)
    simulation: Simulation = field(init=False)
    checker: FleetChecker = field(init=False)
    options: str = field(init=False)
    random: Random = field(init=False)
    happened: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    left_alone_ns: int = 0

    def __post_init__(self) -> None:
        self.random = random = Random(f"fleet-run:{self.seed}")
        drawn: frozenset[Feature] = frozenset(
            one for one in Feature if one is not Feature.GANGS and random.random() < (0.15 if one in RESTLESS else 0.45)
        )
        if Random(f"gang-run:{self.seed}").random() < SHARE_OF_GANGS:
            drawn |= {Feature.GANGS}
        self.features = self.features or (drawn if self.pace == 1 else drawn - SLEEPLESS)
        chosen = [fault for fault in Fault if random.random() < 0.4] if self.is_faulty else []
        rates = {fault: random.choice(RATES[fault]) for fault in chosen}
        left = {fault: rate for fault, rate in rates.items() if fault not in self.omitted.faults}
        self.faults = DrawnFaults(left, self.seed)
        delays = {
            "bind_delay_ns": random.choice((0, 0, 1)) * SECOND,
            "start_delay_ns": random.choice((0, 0, 2)) * SECOND,
            # Drawn apart, so that other draws are those of runs without latencies.
            "latency_ns": Random(f"latency:{self.seed}").choice(LATENCIES_NS),
        }
        story = NeighbourStory if self.preemption else FleetStory
        self.story = story(self.seed, self.features, self.pace).without(self.omitted.objects, self.omitted.steps)
        self.story.waits_for_victims = bool(self.preemption.get("bindFirst", False))
        names = ["default-scheduler", *(["second"] if Feature.SECOND_SCHEDULER in self.features else [])]
        schedulers = [self._scheduler(name) for name in names]
        self.simulation = simulation_of(
            *self.story.files,
            schedulers=schedulers,
            faults=self.faults if self.is_faulty else None,
            seed=self.seed,
            until_ns=RESTLESS_END_NS if self.is_restless else None,
            latency_seed=self.seed,
            **delays,
        )
        self.checker = FleetChecker(
            self.simulation,
            schedulers,
            self.features,
            is_faulty=self.is_faulty,
            binds_first=bool(self.preemption.get("bindFirst", False)),
        )
        shown = {fault.name: rate for fault, rate in left.items()}
        drawn_settings = f", {dict(self.preemption)}" if self.preemption else ""
        features = sorted(one.name for one in self.features)
        self.options = f"seed {self.seed}, {shown}, {delays}, {features}{drawn_settings}"

    @property
    def is_restless(self) -> bool:
        """Return whether it never ends by itself."""
        return bool(self.features & RESTLESS)

    @property
    def steps_last_ns(self) -> int:
        """Return how long after the start steps come."""
        return STEPS_LAST_S * self.pace * SECOND

    @property
    def faults_last_ns(self) -> int:
        """Return how long after the start faults happen."""
        return self.steps_last_ns + FAULTS_OUTLAST_STEPS_S * SECOND

    @property
    def fault_hours(self) -> float:
        """Return how long it has been played under faults, in simulated hours."""
        return min(self.simulation.elapsed_ns, self.faults_last_ns) / HOUR if self.is_faulty else 0.0

    def play(self) -> None:
        """Play it. Raises AssertionError, with the seed and the events so far, for a broken invariant."""
        try:
            self.checker.after_step()
            while self.simulation.step():
                self.steps += 1
                if self.pace > 1 and self.steps >= MOST_SLOW_STEPS:
                    return
                assert self.steps < MOST_STEPS, "L4: it never ends"
                self.faults.stopped |= self.simulation.elapsed_ns > self.faults_last_ns
                self._meddle()
                self.checker.after_step()
            if not self.is_restless:
                self.checker.at_rest()
        except Exception as error:
            error.add_note("\n".join([self.options, *reported(self.simulation)]))
            raise

    def _meddle(self) -> None:
        """Evict or delete some pod now and then, as another client."""
        simulation = self.simulation
        chance = self.random.random()
        if self.omitted.meddling or simulation.elapsed_ns > self.steps_last_ns or chance > MEDDLING:
            return
        if simulation.elapsed_ns < self.left_alone_ns:
            return
        self.left_alone_ns = simulation.elapsed_ns + (self.pace - 1) * LEFT_ALONE_NS
        pods = simulation.store.objects("Pod")
        if not pods:
            return
        pod = self.random.choice(pods)
        if Feature.EVICTIONS in self.features:
            avoids = self.random.random() < 0.3
            component = self.random.choice(("", "drain", "maintenance"))
            nodes = simulation.store.objects("Node")
            hint = nodes[0].key if avoids and nodes else ""
            hints = EvictionHints(avoid_node=avoids, first=avoids, node_name=hint)
            self._ask(Evict(pod.key, pod.uid, "somebody", component, hints=hints))
        elif Feature.DELETIONS in self.features:
            self._ask(DeleteObject("Pod", pod.key, pod.uid, "somebody"))

    def _ask(self, action: Evict | DeleteObject) -> None:
        """Let a user ask the API server for something, having tried first what would come of it."""
        self._try(action)
        problem = self.simulation.server.carry_out(action, self.simulation.now).problem
        self.happened[f"{type(action).__name__} {'done' if problem is None else problem.code}"] += 1
        assert problem is None or problem.code in (403, 404, 409, 429, 500), problem

    def _try(self, action: Evict | DeleteObject) -> None:
        """A12: a dry run changes nothing."""
        store, now = self.simulation.store, self.simulation.now
        before = (store.version, store.objects("Pod"), store.objects("PodDisruptionBudget"), store.objects("Node"))
        if isinstance(action, Evict):
            with suppress(StoreError):
                store.evict(
                    action.pod, now=now, component=action.component, hints=EvictionHints(avoid_node=True), dry_run=True
                )
        after = (store.version, store.objects("Pod"), store.objects("PodDisruptionBudget"), store.objects("Node"))
        assert before == after

    @property
    def digest(self) -> str:
        """Return what happened and what is left, in short."""
        history = [event.to_dict() for event in self.simulation.history.events]
        left = [stored.raw for kind in ("Node", "Pod") for stored in self.simulation.store.objects(kind)]
        return sha256(json.dumps([history, left, self.options]).encode()).hexdigest()

    def _scheduler(self, name: str) -> Component:
        args = {"DefaultPreemption": self.preemption} if self.preemption else {}
        has_gangs = Feature.GANGS in self.features
        plugins = ENABLED if has_gangs else None
        settings = configuration(args | (GANGS if has_gangs else {}), plugins=plugins, schedulerName=name)
        if self.preemption or Feature.SECOND_SCHEDULER in self.features:
            # Schedulers do not see one another's nominations, nor does a nomination keep others off in a whole zone: a
            # pod may go on preempting while another is made anew in its way, as with kube-scheduler, unless schedulers
            # limit futile preemptions.
            settings = replace(settings, max_futile_preemptions=MOST_FUTILE)
        judge = WideJudgedScheduler if self.preemption else JudgedScheduler
        return Component(name, lambda: judge(settings, seed=self.seed), waits=True)
