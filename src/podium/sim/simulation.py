"""A cluster in virtual time: the store, and the components around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from podium.api.input.codec import Document
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.times import MAX_TIME_NS
from podium.driver.component import Component
from podium.driver.driver import Driver
from podium.driver.transport import Asked
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.actions import Bind, Evict
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.machine import does_watch
from podium.machines.observations import Answered, Changed, Observation
from podium.machines.parts.agenda import Agenda
from podium.machines.parts.deadlines import earliest
from podium.plane.initial import create_objects
from podium.requests.observations import aspects_of, observation_of
from podium.sim.api_server import APIServer
from podium.sim.backlog import Backlog
from podium.sim.control_plane import ControlPlane
from podium.sim.faulty.faults import Faults
from podium.sim.faulty.informers import Informers
from podium.sim.history import History
from podium.sim.limits import Limits, Meter
from podium.sim.placement_log import PlacementLog
from podium.sim.playable import check_objects
from podium.sim.playing.player import Player
from podium.sim.results.account import Account
from podium.sim.results.measures import Meters
from podium.sim.scenario.changes import NodeDown, NodeUp
from podium.sim.scenario.scenario import Scenario
from podium.sim.scenario.steps import Step
from podium.sim.standstill import Standstill
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

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
    termination_ns: int | None = None
    limits: Limits = field(default_factory=Limits)
    feature_gates: FeatureGates = FeatureGates()  # noqa: RUF009 - an immutable value


@dataclass(frozen=True, slots=True)
class _Hear:
    """An answer that arrives later."""

    asked: Asked
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
        placements: PlacementLog | None = None,
        holds_steps: bool = False,
    ) -> None:
        """Create the cluster; raises InputError where that cannot be played.

        `documents` are of known kinds. `components` are those that differ from one simulation to another: schedulers,
        and an autoscaler. `placements` is where the schedulers among them tell why pods are where they are. With
        `holds_steps` the scenario's steps are not played before `add_steps`.
        """
        self.scenario = scenario
        self.placements = placements
        self.settings = settings
        self.now = settings.start_ns
        self.store = Store(seed=settings.seed)
        self._backlog = Backlog()
        self.history = History(self.now, self._backlog, settings.limits.events)
        self._meter = Meter(settings.limits, self.history, lambda: self.elapsed_ns)
        self.meters = Meters(self.now, self.store, self._backlog)
        self.bind_attempts = 0
        self.steps_played = 0
        self.account = Account(self.store, self.now)
        self._open_disruptions = self.account.ledger.open
        self.server = APIServer(self.store, self.history, self._note, self.account.ledger)
        self.driver = Driver(self, self._meter)
        self._faults = faults
        self._informers = None if faults is None else Informers(self.store, faults, self.driver)
        self._agenda: Agenda[Step | Asked | _Hear | _Restart] = Agenda()
        self._standstill = Standstill(self.store.count)
        check_objects(documents, scenario, settings.until_ns is not None)
        create_objects(self.store, documents, self.now)
        nodes = {stored.uid: stored.object for stored in self.store.objects("Node") if isinstance(stored.object, Node)}
        self.control_plane = ControlPlane(scenario, _kubelets(scenario, settings), nodes, self.now)
        self._player = Player(self.server, self.control_plane, self.history, self._add, is_lenient=scenario.is_recorded)
        self._begin([*self.control_plane.components, *components])
        if not holds_steps:
            self.add_steps()
        self._settle()

    @property
    def elapsed_ns(self) -> int:
        """The virtual time since the start."""
        return self.now - self.settings.start_ns

    @property
    def components(self) -> list[Component]:
        """All components, in the order in which they go at one instant."""
        return self.driver.components

    def add_steps(self) -> None:
        """Let the scenario's steps be played when their time comes."""
        for step in self.scenario.steps:
            self._agenda.add(self.settings.start_ns + step.at_ns, step, _STEP)

    def come_to_rest(self) -> bool:
        """Let all happen that happens at this instant; whether nothing happens after it, however much time passes."""
        while self.driver.has_mail or self.driver.first_due(self.now, waits=True) is not None:
            self.step()
        return self._informers is None and self._agenda.next_time() is None and self.driver.next_time(self.now) is None

    def step(self) -> bool:
        """Let the next thing happen, and everything that follows from it at once; False when nothing is left."""
        driver = self.driver
        if driver.has_mail:
            # Somebody has asked the API server for something between two steps.
            self._settle()
            return True
        if (component := driver.first_due(self.now, waits=True)) is not None:
            self._wake(component)
        elif (item := self._agenda.take_due(self.now)) is not None:
            self._happen(item)
        elif not self._pass_time():
            return False
        self._settle()
        return True

    def start(self, component: Component) -> None:
        """Begin a component's life: it is told of everything that exists."""
        self._standstill.show(component.name)
        self.driver.begin(component, self.control_plane.news(component))
        if self._informers is not None:
            seen: Iterable[Observation] = self._informers.begin(component, self.now)
        else:
            seen = self._listed(component)
        for one in seen:
            self.driver.tell(component, one)

    def send(self, asked: Asked, now: int) -> None:
        """Carry out an action of a component, now or when its time has come; the component may crash over it."""
        has_faults = self._faults is not None
        if has_faults and self._crashes(asked, is_done=False):
            return
        action = asked.action
        if type(action) is Bind and (delay_ns := self._bind_delay_ns(action)):
            self._agenda.add(now + delay_ns, asked, _ON_ITS_WAY)
        else:
            self._carry_out(asked)
        if has_faults:
            self._crashes(asked, is_done=True)

    def _begin(self, components: Iterable[Component]) -> None:
        initial = self._there_at_first()
        for event in initial:
            self.history.begin(event, self.now)
            self._meter.wanted(event.stored.object)
            self.account.begin(event)
        self.meters.start(initial)
        for component in components:
            self._add(component)

    def _there_at_first(self) -> list[WatchEvent]:
        """What there is, in the order in which it was written, however much more that is than the store's log holds."""
        kinds = (kind.name for kind in self.store.resources.all())
        objects = sorted((stored for kind in kinds for stored in self.store.objects(kind)), key=lambda one: one.version)
        return [WatchEvent("ADDED", stored, None) for stored in objects]

    def _add(self, component: Component) -> None:
        """Take in one more component."""
        self.driver.add(component)
        self.start(component)

    def _listed(self, component: Component) -> Iterator[Changed]:
        """All that there is and a component watches."""
        for kind in self.store.resources.all():
            if component.machine is not None and does_watch(component.machine, kind.name):
                yield from (Changed(stored.object, stored.raw) for stored in self.store.objects(kind.name))

    def _happen(self, item: Step | Asked | _Hear | _Restart) -> None:
        if isinstance(item, Step):
            for component, news in self._player.play(item, self.now):
                self._standstill.show(component.name)
                self.driver.tell(component, news)
            if isinstance(item.change, NodeDown | NodeUp):
                self.meters.power(item.change.node, self.now, is_up=isinstance(item.change, NodeUp))
            self.steps_played += 1
        elif isinstance(item, Asked):
            self._carry_out(item)
        elif isinstance(item, _Restart):
            self.start(item.component)
        else:
            self.driver.answer(item.asked, item.answered)

    def _wake(self, component: Component) -> None:
        """Let a component do what is due."""
        self._standstill.act(component.name, self.store.version)
        self.driver.wake(component, self.now)

    def _pass_time(self) -> bool:
        """Go on to the next time at which something happens; False when there is none, or it is after the end."""
        until_ns = self.settings.until_ns
        planned = self._agenda.next_time()
        # What is put down for after the last time that there is never happens.
        next_ns = None if planned is None or planned > MAX_TIME_NS else planned
        arrival_ns = None if self._informers is None else self._informers.next_time(self.now)
        is_over = until_ns is None and next_ns is None and arrival_ns is None
        if not is_over or self.driver.expects_news(self.now):
            next_ns = earliest((next_ns, arrival_ns, self.driver.next_time(self.now)))
        end = None if until_ns is None else self.settings.start_ns + until_ns
        if next_ns is None or next_ns > (MAX_TIME_NS if end is None else end):
            self.now = self.now if end is None else end
            return False
        if next_ns > self.now:
            self.now = next_ns
            self._standstill.pass_time()
        return True

    def _settle(self) -> None:
        """Deliver what was written and answered, and let kubelets and controllers act on it, until all are quiet."""
        driver, server = self.driver, self.server
        while True:
            driver.deliver(self.now)
            # Objects go whose owners are gone, before anybody else acts.
            if server.may_collect and server.collect_garbage(self.now):
                continue
            if self._informers is not None and self._receive(self._informers):
                continue
            due = driver.first_due(self.now)
            if due is None:
                break
            self._wake(due)
        if not self.control_plane.has_drains:
            return
        for component in self.control_plane.end_drains():
            if self._informers is not None:
                self._informers.end(component)
            self._player.drain_ended(component, self.now)
            self.driver.remove(component)

    def _receive(self, informers: Informers) -> bool:
        """Take in what has arrived by watches that lag; whether there was anything."""
        for component, seen in informers.take(self.now):
            self._standstill.show(component.name)
            self.driver.tell(component, seen)
        return self.driver.has_mail

    def _crashes(self, asked: Asked, *, is_done: bool) -> bool:
        component = asked.component
        outage_ns = self._faults.outage_ns(component.name, asked.action, is_done=is_done) if self._faults else None
        if outage_ns is None:
            return False
        self.history.add(self.now, "Crashed", None, None, component.name)
        if self._informers is not None:
            self._informers.end(component)
        self.driver.stop(component)
        self._agenda.add(self.now + outage_ns, _Restart(component), _ON_ITS_WAY)
        return True

    def _bind_delay_ns(self, bind: Bind) -> int:
        """How long the binding takes: what its scheduler's settings say, or those of all."""
        if not self.scenario.schedulers:
            return self.settings.bind_delay_ns
        name = self.server.scheduler_of(bind)
        own = (scheduler.bind_delay_ns for scheduler in self.scenario.schedulers if scheduler.name == name)
        return next((delay_ns for delay_ns in own if delay_ns is not None), self.settings.bind_delay_ns)

    def _carry_out(self, asked: Asked) -> None:
        """Carry out an action, as often as the faults have it, and answer it."""
        component, action, server = asked.component, asked.action, self.server
        # A scheduler goes by the name that its pods give it.
        by, delay_ns, written = "" if component.waits else component.name, 0, server.written
        if self._faults is None:
            answered = server.carry_out(action, self.now, by)
        else:
            fate = self._faults.fate(component.name, action)
            came = [server.carry_out(action, self.now, by) for _ in range(fate.times)]
            answered = came[0] if came and fate.problem is None else Answered(action, fate.problem)
            delay_ns = fate.delay_ns
        if server.written != written:
            self._standstill.write(component.name, server.written - written)
        if type(action) is Bind:
            self.bind_attempts += 1
        elif type(action) is Evict:
            self.meters.answered(action, answered.problem, self.now)
        if delay_ns:
            self._agenda.add(self.now + delay_ns, _Hear(asked, answered), _ON_ITS_WAY)
        else:
            self.driver.answer(asked, answered)

    def _note(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        """Something was written: tell everybody."""
        object_ = event.stored.object
        if event.type != "MODIFIED":
            self._count_object(event, by)
        if type(object_) is Pod:
            is_ending = object_.metadata.deletion_timestamp is not None or event.type == "DELETED"
            # Of pods that are not disrupted the account learns nothing, while nobody waits for what becomes of others.
            if is_ending or object_.status.phase == "Failed" or self._open_disruptions:
                self.account.observe(event, now)
        elif event.type != "DELETED":
            self._meter.wanted(object_)
        self._backlog.put(event, now, by, message)
        if self._informers is None:
            self.driver.show(event.stored.resource.name, observation_of(event), aspects_of(event, self._is_node))
        else:
            self._informers.see(event, now)

    def _is_node(self, name: str) -> bool:
        return self.store.find("Node", name) is not None

    def _count_object(self, event: WatchEvent, by: str) -> None:
        """See to it that what is made stays within the limits."""
        stored = event.stored
        if event.type == "ADDED":
            self._meter.made(stored.uid, f"{stored.kind} {stored.key}", by)
        else:
            self._meter.gone(stored.uid)


def _kubelets(scenario: Scenario, settings: Settings) -> KubeletSettings:
    return replace(
        scenario.kubelets,
        start_delay_ns=settings.start_delay_ns,
        termination_ns=settings.termination_ns,
        honors_policy=settings.feature_gates.non_preempting_priority,
    )
