"""A cluster in virtual time: the store, the controllers, the kubelets, and the schedulers that are simulated."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from podium.api.codec import Document
from podium.machines.actions import Action, Bind
from podium.machines.agenda import Agenda
from podium.machines.kubelet import Kubelet
from podium.machines.machine import Machine
from podium.machines.observations import Answered, Changed, Gone, Observation, Problem, Tick
from podium.sim.api_server import APIServer
from podium.sim.budgets import Budgets
from podium.sim.faults import NO_ANSWER, Faults, Unsent
from podium.sim.history import History
from podium.sim.initial import check_objects, create_objects
from podium.sim.node_lifecycle import NodeLifecycle
from podium.sim.playing import Player
from podium.sim.scenario import Scenario, Step
from podium.sim.usage import Usage
from podium.sim.workloads import Workloads
from podium.sim.writes import Controller
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

# At one time, the scenario's steps go before what is on its way to or from the API server.
_STEP, _ON_ITS_WAY = range(2)


class SimulatedScheduler(Machine, Protocol):
    """A scheduler machine that says whether it still has work."""

    def is_settled(self) -> bool:
        """Whether nothing but what it observes is likely to make it do anything that it has not done before.

        That it will flush unschedulable pods some day, or try once more what keeps failing, does not count.
        """
        ...


@dataclass(frozen=True, slots=True)
class Settings:
    """How a simulation is run; times in nanoseconds. `until_ns` after the start it ends, None: when all is quiet."""

    seed: int = 0
    start_ns: int = 0
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0


@dataclass(frozen=True, slots=True)
class _CarryOut:
    """An action that takes effect later."""

    machine: Machine
    action: Action


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer that arrives later."""

    machine: Machine
    answered: Answered


class Simulation:
    """Plays a scenario on a cluster.

    At one instant, steps go first, then actions and answers that were on their way, each followed by what kubelets and
    controllers make of it. Schedulers act when all else is quiet. Whatever is written reaches everyone at once.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        scenario: Scenario,
        *,
        settings: Settings,
        schedulers: Sequence[SimulatedScheduler],
        faults: Faults | None = None,
    ) -> None:
        """Create the cluster; raises InputError where that cannot be played. `documents` are of known kinds."""
        self.scenario = scenario
        self.settings = settings
        self.now = settings.start_ns
        self.store = Store(seed=settings.seed)
        self.history = History(self.now)
        self.usage = Usage(self.now)
        self.bind_attempts = 0
        self.steps_played = 0
        self._schedulers = schedulers
        self._faults = faults
        self._random = Random(f"faults:{settings.seed}")
        self._kubelet = Kubelet(replace(scenario.kubelets, start_delay_ns=settings.start_delay_ns))
        self._controllers: tuple[Controller, ...] = (NodeLifecycle(), Workloads(), Budgets())
        self._server = APIServer(self.store, self.history, self._note)
        self._agenda: Agenda[Step | _CarryOut | _Answer] = Agenda()
        self._inbox: deque[tuple[Machine, Observation]] = deque()
        self._player = Player(self._server, self._kubelet, self.history)
        self._begin(documents)

    @property
    def elapsed_ns(self) -> int:
        """The virtual time since the start."""
        return self.now - self.settings.start_ns

    def step(self) -> bool:
        """Let the next thing happen, and everything that follows from it at once; False when nothing is left."""
        item = self._agenda.take_due(self.now)
        if item is not None:
            self._happen(item)
        elif (scheduler := self._due_scheduler()) is not None:
            self._perform(scheduler, scheduler.handle(Tick(), self.now))
        elif not self._pass_time():
            return False
        self._settle()
        return True

    def _begin(self, documents: Sequence[Document]) -> None:
        has_end = self.settings.until_ns is not None
        check_objects(documents, self.scenario, has_end)
        create_objects(self.store, documents, self.now)
        for event in self.store.events_since(0):
            self.history.begin(event, self.now)
            self._tell(event)
        for step in self.scenario.steps:
            self._agenda.add(self.settings.start_ns + step.at_ns, step, _STEP)
        self._settle()

    def _happen(self, item: Step | _CarryOut | _Answer) -> None:
        if isinstance(item, Step):
            self._player.play(item, self.now)
            self.steps_played += 1
        elif isinstance(item, _CarryOut):
            self._carry_out(item.machine, item.action)
        else:
            self._inbox.append((item.machine, item.answered))

    def _due_scheduler(self) -> SimulatedScheduler | None:
        return next((scheduler for scheduler in self._schedulers if self._is_due(scheduler)), None)

    def _is_due(self, machine: Machine) -> bool:
        deadline = machine.next_deadline()
        return deadline is not None and deadline <= self.now

    def _pass_time(self) -> bool:
        """Go on to the next time at which something happens; False when there is none, or it is after the end."""
        until_ns = self.settings.until_ns
        others = (self._agenda.next_time(), self._kubelet.next_deadline())
        times = [*others, *(controller.next_deadline() for controller in self._controllers)]
        is_over = until_ns is None and not any(time is not None for time in times)
        if not (is_over and all(scheduler.is_settled() for scheduler in self._schedulers)):
            times += [scheduler.next_deadline() for scheduler in self._schedulers]
        end = None if until_ns is None else self.settings.start_ns + until_ns
        next_ns = min((time for time in times if time is not None), default=None)
        if next_ns is None or (end is not None and next_ns > end):
            self.now = self.now if end is None else end
            self.usage.pass_time(self.now)
            return False
        self.now = max(self.now, next_ns)
        return True

    def _settle(self) -> None:
        """Deliver what was written and answered, and let kubelets and controllers act on it, until all are quiet."""
        while True:
            while self._inbox:
                machine, observation = self._inbox.popleft()
                self._perform(machine, machine.handle(observation, self.now))
            if self._is_due(self._kubelet):
                self._perform(self._kubelet, self._kubelet.handle(Tick(), self.now))
                continue
            writes = next((writes for one in self._controllers if (writes := one.reconcile(self.now))), ())
            if not writes:
                break
            for write in writes:
                self._server.write(write, self.now)

    def _perform(self, machine: Machine, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Bind):
                self.bind_attempts += 1
                if delay_ns := self._bind_delay_ns(action):
                    later = self.now + delay_ns
                    self._agenda.add(later, _CarryOut(machine, action), _ON_ITS_WAY)
                    continue
            self._carry_out(machine, action)

    def _bind_delay_ns(self, bind: Bind) -> int:
        """How long the binding takes: what its scheduler's settings say, or those of all."""
        name = self._server.scheduler_of(bind)
        own = (one.bind_delay_ns for one in self.scenario.schedulers if one.name == name)
        return next((delay_ns for delay_ns in own if delay_ns is not None), self.settings.bind_delay_ns)

    def _carry_out(self, machine: Machine, action: Action) -> None:
        """Carry out an action and answer it. Faults come between schedulers and the API server, not kubelets and it."""
        faults = None if machine is self._kubelet else self._faults
        fault = faults.answer(action, self._random) if faults else None
        delay_ns = fault if isinstance(fault, int) else 0
        problem: Problem | None
        if isinstance(fault, Unsent):
            problem = NO_ANSWER
        elif isinstance(fault, Problem) and not fault.is_ambiguous:
            problem = fault
        else:
            problem = self._server.carry_out(action, self.now)
            if isinstance(fault, Problem):
                problem = fault
        answered = Answered(action, problem)
        if delay_ns:
            self._agenda.add(self.now + delay_ns, _Answer(machine, answered), _ON_ITS_WAY)
        else:
            self._inbox.append((machine, answered))

    def _note(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        self.history.observe(event, now, by, message)
        self._tell(event)

    def _tell(self, event: WatchEvent) -> None:
        self.usage.observe(event, self.now)
        for controller in self._controllers:
            controller.observe(event, self.now)
        observation = Gone(event.stored.object) if event.type == "DELETED" else Changed(event.stored.object)
        self._inbox.append((self._kubelet, observation))
        self._inbox.extend((scheduler, observation) for scheduler in self._schedulers)
