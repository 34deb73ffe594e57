"""A cluster in virtual time: the store, and the components around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from podium.api.codec import Document
from podium.api.node import Node
from podium.api.times import MAX_TIME_NS
from podium.framework.feature_gates import FeatureGates
from podium.machines.actions import Action, Bind
from podium.machines.agenda import Agenda
from podium.machines.deadlines import earliest
from podium.machines.kubelets.kubelet import KubeletSettings
from podium.machines.observations import Answered, Changed, Observation, Tick
from podium.requests.observations import observation_of
from podium.sim.api_server import APIServer
from podium.sim.component import Component
from podium.sim.control_plane import ControlPlane
from podium.sim.disruption_counts import DisruptionCounts
from podium.sim.faults import CARRIED_OUT, Faults
from podium.sim.history import History
from podium.sim.informer import Informer
from podium.sim.initial import check_objects, create_objects
from podium.sim.limits import Limits, Meter
from podium.sim.playing import Player
from podium.sim.scenario import Scenario
from podium.sim.standstill import Standstill
from podium.sim.steps import Step
from podium.sim.usage import Usage
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

# At one time, the scenario's steps go before what is on its way to or from the API server.
_STEP, _ON_ITS_WAY = range(2)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a simulation is run; times in nanoseconds. `until_ns` after the start it ends, None: when all is quiet."""

    seed: int = 0
    start_ns: int = 0
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0
    limits: Limits = field(default_factory=Limits)
    feature_gates: FeatureGates = FeatureGates()  # noqa: RUF009 - an immutable value


@dataclass(frozen=True, slots=True)
class _CarryOut:
    """An action that takes effect later, of a component in one of its lives."""

    component: Component
    life: int
    action: Action


@dataclass(frozen=True, slots=True)
class _Hear:
    """An answer that arrives later."""

    component: Component
    life: int
    answered: Answered


@dataclass(frozen=True, slots=True)
class _Restart:
    """A component that crashed comes back."""

    component: Component


class Simulation:
    """Plays a scenario on a cluster.

    At one instant, steps go first, then actions and answers that were on their way. Each comes alone, as calls to an
    API server do, which take longer than a scheduler's attempt: it is followed by what kubelets and controllers make of
    it, and then by what schedulers do. Without faults, whatever is written reaches everyone at once.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        scenario: Scenario,
        *,
        settings: Settings,
        components: Iterable[Component],
        faults: Faults | None = None,
    ) -> None:
        """Create the cluster; raises InputError where that cannot be played.

        `documents` are of known kinds. `components` are those that differ from one simulation to another: schedulers,
        and an autoscaler.
        """
        self.scenario = scenario
        self.settings = settings
        self.now = settings.start_ns
        self.store = Store(seed=settings.seed)
        self.history = History(self.now)
        self.usage = Usage(self.now)
        self.disruptions = DisruptionCounts()
        self.bind_attempts = 0
        self.steps_played = 0
        self._faults = faults
        self._meter = Meter(settings.limits)
        self.server = APIServer(self.store, self.history, self._note)
        self._agenda: Agenda[Step | _CarryOut | _Hear | _Restart] = Agenda()
        self._inbox: deque[tuple[Component, int, Observation]] = deque()
        self._standstill = Standstill(self.store.count)
        check_objects(documents, scenario, settings.until_ns is not None)
        create_objects(self.store, documents, self.now)
        nodes = {one.uid: one.object for one in self.store.objects("Node") if isinstance(one.object, Node)}
        self.control_plane = ControlPlane(scenario, _kubelets(scenario, settings), nodes, self.now)
        self.components: list[Component] = [*self.control_plane.components, *components]
        self._player = Player(self.server, self.control_plane, self.history, self._add)
        self._begin()

    @property
    def elapsed_ns(self) -> int:
        """The virtual time since the start."""
        return self.now - self.settings.start_ns

    def step(self) -> bool:
        """Let the next thing happen, and everything that follows from it at once; False when nothing is left."""
        if self._inbox:
            # Somebody has asked the API server for something between two steps.
            self._settle()
            return True
        if (component := self._due(waits=True)) is not None:
            self._wake(component)
        elif (item := self._agenda.take_due(self.now)) is not None:
            self._happen(item)
        elif not self._pass_time():
            return False
        self._settle()
        return True

    def _begin(self) -> None:
        for event in self.store.events_since(0):
            self.history.begin(event, self.now)
            self._meter.wanted(event.stored.object, self.elapsed_ns)
            self.usage.observe(event, self.now)
            self.disruptions.observe(event, self.now)
        for component in self.components:
            self._start(component)
        for step in self.scenario.steps:
            self._agenda.add(self.settings.start_ns + step.at_ns, step, _STEP)
        self._settle()

    def _add(self, component: Component) -> None:
        """Take in one more component."""
        self.components.append(component)
        self._start(component)

    def _start(self, component: Component) -> None:
        """Begin a component's life: it is told of everything that exists."""
        component.begin()
        if self._faults is not None:
            component.informer = Informer(component.name, self.store, self._faults)
            seen: Iterable[Observation] = component.informer.start(self.now)
        else:
            listed = (one for kind in self.store.resources.all() for one in self.store.objects(kind.name))
            seen = (Changed(one.object, one.raw) for one in listed)
        self._inbox.extend((component, component.life, one) for one in (*self.control_plane.news(component), *seen))

    def _happen(self, item: Step | _CarryOut | _Hear | _Restart) -> None:
        if isinstance(item, Step):
            for component, news in self._player.play(item, self.now):
                self._inbox.append((component, component.life, news))
            self.steps_played += 1
        elif isinstance(item, _CarryOut):
            self._carry_out(item.component, item.life, item.action)
        elif isinstance(item, _Restart):
            self._start(item.component)
        else:
            self._inbox.append((item.component, item.life, item.answered))

    def _due(self, *, waits: bool) -> Component | None:
        return next((one for one in self.components if one.waits is waits and self._is_due(one)), None)

    def _is_due(self, component: Component) -> bool:
        deadline = component.next_deadline()
        return deadline is not None and deadline <= self.now

    def _wake(self, component: Component) -> None:
        """Let a component do what is due."""
        if component.machine is None:
            return
        self._call(component)
        self._standstill.act(component.name, self.store.version)
        self._perform(component, component.machine.handle(Tick(), self.now))

    def _pass_time(self) -> bool:
        """Go on to the next time at which something happens; False when there is none, or it is after the end."""
        until_ns = self.settings.until_ns
        planned = self._agenda.next_time()
        # What is put down for after the last time that there is never happens.
        times = [None if planned is None or planned > MAX_TIME_NS else planned]
        is_over = until_ns is None and times == [None]
        if not (is_over and all(component.is_settled() for component in self.components)):
            times += [component.next_deadline() for component in self.components]
        end = None if until_ns is None else self.settings.start_ns + until_ns
        next_ns = earliest(times)
        if next_ns is None or next_ns > (MAX_TIME_NS if end is None else end):
            self.now = self.now if end is None else end
            self.usage.pass_time(self.now)
            return False
        if next_ns > self.now:
            self.now = next_ns
            self._standstill.pass_time()
        return True

    def _settle(self) -> None:
        """Deliver what was written and answered, and let kubelets and controllers act on it, until all are quiet."""
        while True:
            while self._inbox:
                component, life, observation = self._inbox.popleft()
                if component.machine is not None and component.life == life:
                    self._call(component)
                    if not isinstance(observation, Answered):
                        self._standstill.show(component.name)
                    self._perform(component, component.machine.handle(observation, self.now))
            if self.server.collect_garbage(self.now) or self._receive():
                continue
            due = self._due(waits=False)
            if due is None:
                break
            self._wake(due)
        for component in self.control_plane.end_drains():
            self.components.remove(component)

    def _receive(self) -> bool:
        """Take in what has arrived by watches that lag; whether there was anything."""
        for component in self.components:
            while component.informer and (seen := component.informer.take(self.now)) is not None:
                self._inbox.append((component, component.life, seen))
        return bool(self._inbox)

    def _perform(self, component: Component, actions: Sequence[Action]) -> None:
        """Carry out actions in their order, until the component crashes."""
        for action in actions:
            if self._crashes(component, action, is_done=False):
                return
            delay_ns = self._bind_delay_ns(action) if isinstance(action, Bind) else 0
            if delay_ns:
                self._agenda.add(self.now + delay_ns, _CarryOut(component, component.life, action), _ON_ITS_WAY)
            else:
                self._carry_out(component, component.life, action)
            if self._crashes(component, action, is_done=True):
                return

    def _crashes(self, component: Component, action: Action, *, is_done: bool) -> bool:
        outage_ns = self._faults.outage_ns(component.name, action, is_done=is_done) if self._faults else None
        if outage_ns is None:
            return False
        self.history.add(self.now, "Crashed", None, None, component.name)
        component.machine = component.informer = None
        self._agenda.add(self.now + outage_ns, _Restart(component), _ON_ITS_WAY)
        return True

    def _bind_delay_ns(self, bind: Bind) -> int:
        """How long the binding takes: what its scheduler's settings say, or those of all."""
        name = self.server.scheduler_of(bind)
        own = (one.bind_delay_ns for one in self.scenario.schedulers if one.name == name)
        return next((delay_ns for delay_ns in own if delay_ns is not None), self.settings.bind_delay_ns)

    def _carry_out(self, component: Component, life: int, action: Action) -> None:
        """Carry out an action, as often as the faults have it, and answer it."""
        fate = self._faults.fate(component.name, action) if self._faults else CARRIED_OUT
        self.bind_attempts += isinstance(action, Bind)
        # A scheduler goes by the name that its pods give it.
        by = "" if component.waits else component.name
        version = self.store.version
        problems = [self.server.carry_out(action, self.now, by) for _ in range(fate.times)]
        self._standstill.write(component.name, self.store.version - version)
        problem = fate.problem or next(iter(problems), None)
        answered = Answered(action, problem)
        if fate.delay_ns:
            self._agenda.add(self.now + fate.delay_ns, _Hear(component, life, answered), _ON_ITS_WAY)
        else:
            self._inbox.append((component, life, answered))

    def _note(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        """Something was written: tell everybody."""
        self._measure(event, by)
        self.history.observe(event, now, by, message)
        self.usage.observe(event, now)
        self.disruptions.observe(event, now)
        observation = observation_of(event)
        for component in self.components:
            if component.informer is not None:
                component.informer.see(event, now)
            elif component.machine is not None:
                self._inbox.append((component, component.life, observation))

    def _measure(self, event: WatchEvent, by: str) -> None:
        """See to it that what is made, and what has happened before, stays within the limits."""
        stored = event.stored
        if event.type != "DELETED":
            self._meter.wanted(stored.object, self.elapsed_ns)
        if event.type == "ADDED":
            self._meter.made(stored.uid, f"{stored.kind} {stored.key}", by, self.elapsed_ns)
        elif event.type == "DELETED":
            self._meter.gone(stored.uid)

    def _call(self, component: Component) -> None:
        self._meter.called(component.name, self.history.happened, self.elapsed_ns)


def _kubelets(scenario: Scenario, settings: Settings) -> KubeletSettings:
    return replace(
        scenario.kubelets,
        start_delay_ns=settings.start_delay_ns,
        honors_policy=settings.feature_gates.non_preempting_priority,
    )
