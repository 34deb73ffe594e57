"""A cluster in virtual time: the store and the components around it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from podium.api.basis import Basis
from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import Document, refuse_empty_pods
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.times import MAX_TIME_NS
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.apirequests.observations import aspects_of, observation_of
from podium.controllers.actions import Bind, Evict, Record, ReportUnschedulable
from podium.controllers.controller import is_watched_kind
from podium.controllers.deadlines import Agenda, earliest
from podium.controllers.ledger.ledger import DisruptionLedger
from podium.controllers.observations import ActionFinished
from podium.controlplane.population import create_objects, located
from podium.runtime.runtime import Component, ExistingObjects, RequestedAction, Runtime
from podium.sim.api_server import MOST_BEHIND, APIServer
from podium.sim.faults import Faults
from podium.sim.history import Backlog, EventHistory
from podium.sim.latencies import RequestsInFlight, step_times
from podium.sim.placement_log import PlacementLog
from podium.sim.player import Player, SimulatedControlPlane
from podium.sim.recording.replay import Replay
from podium.sim.results.measures import Meters
from podium.sim.run_options import LimitMeter, SimulationLimits
from podium.sim.scenario.scenario import Scenario
from podium.sim.scenario.steps import (
    FAILING,
    Apply,
    Finish,
    ScenarioStep,
    SetPower,
    check_end,
    check_played,
    is_endless,
)
from podium.store.store import Store
from podium.store.watch_log import WatchEvent

# At one instant, steps precede requests and answers in flight.
_STEP, _ON_ITS_WAY = range(2)


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of a simulation.

    Times in nanoseconds. It ends `until_ns` after the start, None: when nothing is left to do.

    Requests take effect a multiple of `latency_ns` after they are sent (`podium.sim.latencies`), drawn by
    `latency_seed` unless that is None; those in flight at the end take effect then. With `holds_steps` no step is
    played before `Simulation.add_steps`. A `replay` names pods as in a recording. Objects that state no creation time
    are `assumed_age_ns` old.
    """

    seed: int = 0
    start_ns: int = 0
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0
    latency_ns: int = 0
    latency_seed: int | None = None
    termination_ns: int | None = None
    limits: SimulationLimits = field(default_factory=SimulationLimits)
    holds_steps: bool = False
    assumed_age_ns: int = 0
    release: Release = DEFAULT_RELEASE
    replay: Replay | None = None


_MOST_EVENTS = 4 * MOST_BEHIND
"""The number of writes that the store of a simulation remembers."""


class Simulation:
    """Plays a scenario on a cluster.

    At one instant, steps precede requests and answers in flight. They are processed one at a time, as API calls are:
    after each, kubelets and controllers act first, then schedulers. Without faults every write reaches all components
    at once. With a latency, requests take effect later, so that schedulers decide before controllers have changed
    anything.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        scenario: Scenario,
        *,
        settings: SimulationSettings,
        components: Iterable[Component],
        faults: Faults | None = None,
        placements: PlacementLog | None = None,
    ) -> None:
        """Create the cluster. Raises InputError if it cannot be played.

        `components` are schedulers, autoscaler and rescheduler. `placements` records why pods are where they are.
        """
        self.scenario = scenario
        self.placements = placements
        self.basis: Basis | None = None
        """The basis of the runs that begin with it, if several do."""
        self.settings = settings
        self.now = settings.start_ns
        self.store = Store(seed=settings.seed, recorded_uids=settings.replay.uids if settings.replay else None)
        self.store.serve_as(settings.release)
        self._backlog = Backlog()
        self.history = EventHistory(self.now, self._backlog)
        self._meter = LimitMeter(settings.limits, self.history, lambda: self.elapsed_ns)
        self.meters = Meters(self.now, self.store, self._backlog)
        self.bind_attempts = 0
        self.steps_played = 0
        self.ledger = DisruptionLedger(self.history.keep, self.store.reading, start_ns=self.now)
        self.server = APIServer(self.store, self.history, self._distribute, self.ledger)
        self.runtime = Runtime(self, self._meter)
        self._faults = faults
        self._informers = None if faults is None else faults.informers(self.store, self.runtime)
        self._agenda: Agenda[Callable[[], None]] = Agenda()
        self._in_flight = RequestsInFlight(settings.latency_ns, settings.latency_seed)
        # The cluster exists already: what controllers still have to write is written at the start.
        self._takes_time = False
        # By kind and the number of changes until then, all objects; while components start.
        self._listed: dict[tuple[str, str, int], ExistingObjects] = {}
        # By uid, the reports that only reword the last one. Nothing looks at the messages of pods, so they are written
        # before the next action about the pod, or at the end.
        self._held: dict[str, ReportUnschedulable] = {}
        # When the garbage collector runs next; None if no write requires it.
        self._collects_ns: int | None = None
        # By pod, the steps of a recording that let it finish some time after it is bound.
        self._finishes: dict[str, deque[tuple[int, ScenarioStep]]] = {}
        self._stall_detector = StallDetector(self.store.count)
        check_objects(documents, scenario, settings.until_ns is not None)
        create_objects(self.store, documents, self.now - settings.assumed_age_ns)
        nodes = {node.metadata.uid: node for node in self.store.typed(Node)}
        kubelets = replace(
            scenario.kubelets,
            start_delay_ns=settings.start_delay_ns,
            termination_ns=settings.termination_ns,
            release=settings.release,
        )
        self.control_plane = SimulatedControlPlane(scenario, kubelets, nodes, self.now)
        self.player = Player(self.server, self.control_plane, self.history, self._add, is_lenient=scenario.is_recorded)
        self._begin([*self.control_plane.components, *components])
        # From here on every write is distributed at once, and the collectors lag by few.
        self.store.log.keep_at_most(_MOST_EVENTS)
        if not settings.holds_steps:
            self.add_steps()
        self._settle()
        self._takes_time = settings.latency_ns > 0

    @property
    def elapsed_ns(self) -> int:
        """Return the virtual time since the start."""
        return self.now - self.settings.start_ns

    def take_steps_of(self, scenario: Scenario) -> None:
        """Take the steps of a scenario that otherwise equals the present one, before any begin. Raises InputError."""
        check_objects((), scenario, self.settings.until_ns is not None)
        self.scenario = scenario

    def add_steps(self, components: Iterable[Component] = ()) -> None:
        """Start the scenario's steps, and further components with them."""
        for component in components:
            self._add(component)
        steps, start_ns = self.scenario.steps, self.settings.start_ns
        if self.scenario.is_recorded:
            for step in steps:
                self._plan_recorded(step)
            return
        times = step_times([step.at_ns for step in steps], self.settings.latency_ns, self.settings.until_ns)
        for time_ns, step in zip(times, steps, strict=True):
            self._agenda.add(start_ns + time_ns, partial(self._play, step), _STEP)

    def _plan_recorded(self, step: ScenarioStep) -> None:
        """Plan a step for the time of its recorded effect; a pod's end for as long after its binding as recorded."""
        change = step.change
        lead_ns = self._in_flight.controller_ns if isinstance(change, SetPower | Finish) else 0
        if isinstance(change, SetPower) and not change.is_up:
            lead_ns += self.scenario.node_lifecycle.grace_period_ns
        if isinstance(change, Finish) and change.after_ns is not None and change.after_ns <= step.at_ns:
            key = f"{change.key.partition('/')[0]}/{change.pod}" if change.pod else change.key
            self._finishes.setdefault(key, deque()).append((max(change.after_ns - lead_ns, 0), step))
        else:
            at_ns = self.settings.start_ns + max(step.at_ns - lead_ns, 0)
            self._agenda.add(at_ns, partial(self._play, step), _STEP)

    def end_after(self, until_ns: int) -> None:
        """End the run so long after its start, whatever its settings say."""
        self.settings = replace(self.settings, until_ns=until_ns)

    def quiet_until(self) -> int | None:
        """Finish the present instant and return the time of the next event; None if there is none.

        With faults the present time is returned, since events in flight cannot be foreseen.
        """
        while self.runtime.has_mail or self.runtime.first_due(self.now, waits=True) is not None:
            self.step()
        if self._informers is not None:
            return self.now
        times = (self._agenda.next_time(), self._in_flight.next_time(), self._collects_ns)
        return earliest((*times, self.runtime.next_time(self.now)))

    def step(self) -> bool:
        """Process the next event with its immediate effects; return False if nothing is left."""
        runtime = self.runtime
        if runtime.has_mail:
            # A caller sent requests between two steps.
            self._settle()
            return True
        if (component := runtime.first_due(self.now, waits=True)) is not None:
            self._wake(component)
        elif (happen := self._agenda.take_due(self.now)) is not None:
            happen()
        elif (requested := self._in_flight.take(self.now)) is not None:
            # Effects arrive later, so that all requests that arrive now may be processed first.
            while requested is not None:
                self._carry_out(requested)
                requested = self._in_flight.take(self.now)
        elif not self._pass_time():
            for uid in [*self._held]:
                self._write_held(self._held.pop(uid))
            return False
        self._settle()
        return True

    def start(self, component: Component) -> None:
        """Start a component: send it everything that exists."""
        self._stall_detector.show(component.name)
        self.runtime.begin(component, self.control_plane.news(component))
        if self._informers is not None:
            for one in self._informers.begin(component, self.now):
                self.runtime.enqueue(component, one)
        elif component.controller is not None:
            watches, node = component.controller.watches, getattr(component.controller, "pods_on", "")
            kinds = (kind.name for kind in self.store.resources.all() if is_watched_kind(kind.name, watches))
            self.runtime.show_existing(component, (self._existing(kind, node) for kind in kinds))

    def send(self, requested: RequestedAction, now: int) -> None:
        """Process a component's action, now or later; the component may crash over it."""
        has_faults = self._faults is not None
        if has_faults and self._crashes(requested, is_done=False):
            return
        action = requested.action
        if type(action) is Record and not (has_faults or self._takes_time):
            component = requested.component
            self.server.carry_out(action, self.now, component.author if component.waits else component.name)
            return
        if type(action) is ReportUnschedulable and action.rewords and not (has_faults or self._takes_time):
            self._held[action.uid] = action
            self.runtime.answer(requested, ActionFinished(action))
            return
        if self._held and (held := self._held.pop(getattr(action, "uid", ""), None)) is not None:
            self._write_held(held)
        delay_ns = self._bind_delay_ns(action) if type(action) is Bind else 0
        if self._takes_time:
            delay_ns += self._in_flight.volume_wait_ns(action, now)
        if delay_ns:
            self._agenda.add(now + delay_ns, partial(self._carry_out, requested), _ON_ITS_WAY)
        elif self._takes_time and type(action) is not Record:
            self._in_flight.send(requested, now)
        else:
            self._carry_out(requested)
        if has_faults:
            self._crashes(requested, is_done=True)

    def _write_held(self, report: ReportUnschedulable) -> None:
        """Write the message of a pod, if it still waits."""
        pod = self.store.reading("Pod", report.pod)
        if isinstance(pod, Pod) and pod.metadata.uid == report.uid and not pod.spec.node_name:
            self.server.carry_out(report, self.now)

    def _begin(self, components: Iterable[Component]) -> None:
        # By version, even if the store's log no longer has them.
        kinds = (kind.name for kind in self.store.resources.all())
        objects = sorted((stored for kind in kinds for stored in self.store.objects(kind)), key=lambda one: one.version)
        initial = [WatchEvent("ADDED", stored, None) for stored in objects]
        for stored in objects:
            object_ = stored.object
            if isinstance(object_, Pod):
                self.history.begin(object_, stored.key, self.now)
                self.ledger.known(object_)
            else:
                self._meter.on_write(object_)
        self.meters.start(initial)
        for component in components:
            self._add(component)

    def _add(self, component: Component) -> None:
        self.runtime.add(component)
        self.start(component)

    def _existing(self, kind: str, node: str) -> ExistingObjects:
        """Return all objects of a kind; of nodes and pods that ``node`` and those on it, unless it is "".

        Components that start before one of them changes share the observations.
        """
        place = kind, node if kind in ("Node", "Pod") else "", self.store.changes(kind)
        found = self._listed.get(place)
        if found is None:
            objects = self.store.objects(kind)
            if place[1]:
                names = (one.object.spec.node_name if isinstance(one.object, Pod) else one.key for one in objects)
                objects = [one for one, name in zip(objects, names, strict=True) if name == node]
            events = [WatchEvent("ADDED", stored, None) for stored in objects]
            aspects = [aspects_of(event, self.store) for event in events]
            found = self._listed[place] = kind, [observation_of(event) for event in events], aspects
        return found

    def _play(self, step: ScenarioStep) -> None:
        for component, observation in self.player.play(step, self.now):
            self._stall_detector.show(component.name)
            self.runtime.enqueue(component, observation)
        if isinstance(step.change, SetPower):
            self.meters.power(step.change.key, self.now, is_up=step.change.is_up)
        self.steps_played += 1

    def _wake(self, component: Component) -> None:
        self._stall_detector.act(component.name, self.store.version)
        self.runtime.wake(component, self.now)

    def _pass_time(self) -> bool:
        """Advance to the time of the next event; return False if there is none, or only after the end."""
        until_ns = self.settings.until_ns
        planned = self._agenda.next_time()
        # Times beyond the last valid time never come.
        next_ns = None if planned is None or planned > MAX_TIME_NS else planned
        arrival_ns = None if self._informers is None else self._informers.next_time(self.now)
        landing_ns = earliest((self._in_flight.next_time(), self._collects_ns))
        is_over = until_ns is None and next_ns is None and arrival_ns is None and landing_ns is None
        if not is_over or self.runtime.expects_news():
            next_ns = earliest((next_ns, arrival_ns, landing_ns, self.runtime.next_time(self.now)))
        end = None if until_ns is None else self.settings.start_ns + until_ns
        if next_ns is None or next_ns > (MAX_TIME_NS if end is None else end):
            self.now = self.now if end is None else end
            if self._in_flight.next_time() is None:
                return False
            # The requests in flight take effect at the end.
            self._takes_time = False
            while (requested := self._in_flight.take()) is not None:
                self._carry_out(requested)
            return True
        if next_ns > self.now:
            self.now = next_ns
            # Requests that only cause each other make no progress, even if they take time.
            if next_ns != landing_ns:
                self._stall_detector.pass_time()
        return True

    def _settle(self) -> None:
        """Deliver writes and answers, and let kubelets and controllers act on them, until all are idle."""
        runtime, server = self.runtime, self.server
        self._listed.clear()
        while True:
            runtime.deliver(self.now)
            # Objects whose owners are gone are collected before other components act.
            if server.may_collect and self._is_time_to_collect() and server.collect_garbage(self.now):
                continue
            if self._informers is not None:
                for component, seen in self._informers.take(self.now):
                    self._stall_detector.show(component.name)
                    runtime.enqueue(component, seen)
                if runtime.has_mail:
                    continue
            due = runtime.first_due(self.now)
            if due is None:
                break
            self._wake(due)
        for drain in self.player.take_ended():
            if self._informers is not None:
                self._informers.end(drain.component)
            self.player.drain_ended(drain, self.now)
            self.runtime.remove(drain.component)

    def _is_time_to_collect(self) -> bool:
        """Return whether the garbage collector runs now; it takes as long as other controllers."""
        if self._takes_time:
            if self._collects_ns is None:
                self._collects_ns = self.now + self._in_flight.controller_ns
            if self._collects_ns > self.now:
                return False
        self._collects_ns = None
        return True

    def _crashes(self, requested: RequestedAction, *, is_done: bool) -> bool:
        component = requested.component
        outage_ns = self._faults.outage_ns(component.name, requested.action, is_done=is_done) if self._faults else None
        if outage_ns is None:
            return False
        self.history.add(self.now, "Crashed", None, None, component.name)
        if self._informers is not None:
            self._informers.end(component)
        self.runtime.stop(component)
        self._agenda.add(self.now + outage_ns, partial(self.start, component), _ON_ITS_WAY)
        return True

    def _bind_delay_ns(self, bind: Bind) -> int:
        """Return how long the binding takes, by its scheduler's settings or the common ones."""
        if not self.scenario.schedulers:
            return self.settings.bind_delay_ns
        name = self.server.scheduler_of(bind)
        own = (scheduler.bind_delay_ns for scheduler in self.scenario.schedulers if scheduler.name == name)
        return next((delay_ns for delay_ns in own if delay_ns is not None), self.settings.bind_delay_ns)

    def _carry_out(self, requested: RequestedAction) -> None:
        """Process an action as often as the faults determine, and answer it."""
        component, action, server = requested.component, requested.action, self.server
        # A scheduler is identified by the `schedulerName` of its pods.
        by, delay_ns, written = "" if component.waits else component.name, 0, server.written
        if self.settings.replay is not None:
            action = self.settings.replay.with_recorded_name(action, self.store)
        if self._faults is None:
            finished = server.carry_out(action, self.now, by)
        else:
            outcome = self._faults.outcome(component.name, action)
            outcomes = [server.carry_out(action, self.now, by) for _ in range(outcome.times)]
            finished = outcomes[0] if outcomes and outcome.problem is None else ActionFinished(action, outcome.problem)
            delay_ns = outcome.delay_ns
        if self.settings.replay is not None:
            finished = self.settings.replay.answer(requested.action, finished)
        if server.written != written:
            self._stall_detector.write(component.name, server.written - written)
        if type(action) is Bind:
            self.bind_attempts += 1
            if finished.problem is None and (finishes := self._finishes.get(action.pod)):
                after_ns, finish = finishes.popleft()
                self._agenda.add(self.now + after_ns, partial(self._play, finish), _STEP)
        elif type(action) is Evict:
            self.meters.on_result(action, finished.problem, self.now)
        if delay_ns:
            self._agenda.add(self.now + delay_ns, partial(self.runtime.answer, requested, finished), _ON_ITS_WAY)
        else:
            self.runtime.answer(requested, finished)

    def _distribute(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        """Distribute a write to all components."""
        stored = event.stored
        object_ = stored.object
        if event.type == "ADDED":
            self._meter.made(stored.uid, f"{stored.kind} {stored.key}", by)
        elif event.type == "DELETED":
            self._meter.on_delete(stored.uid)
            self._in_flight.forget(stored.uid)
            self._held.pop(stored.uid, None)
        if type(object_) is Pod:
            is_ending = object_.metadata.deletion_timestamp is not None
            # The ledger needs pods that are not disrupted only while disruptions are open.
            if event.type == "DELETED":
                self.ledger.on_delete(object_, now)
            elif is_ending or object_.status.phase == "Failed" or self.ledger.open:
                self.ledger.on_update(object_, now, is_added=event.type == "ADDED")
        elif event.type != "DELETED":
            self._meter.on_write(object_)
        self._backlog.put(event, now, by, message)
        if self._informers is None:
            self.runtime.show(stored.resource.name, observation_of(event), aspects_of(event, self.store))
        else:
            self._informers.see(event, now)


def check_objects(documents: Iterable[Document], scenario: Scenario, has_end: bool) -> None:
    """Raise InputError for what cannot be played: empty pods, invalid annotations, and objects without end."""
    documents = list(documents)
    refuse_empty_pods(documents)
    for document in documents:
        object_ = document.object
        # Pods without annotations need no check.
        if object_ is not None and (object_.metadata.annotations or type(object_) is not Pod):
            try:
                check_played(object_)
                if not has_end:
                    check_end(object_)
            except InputError as error:
                raise located(error, document) from None
    for step in scenario.steps:
        if is_endless(step.change) and not has_end:
            raise step.error(f"{FAILING} for ever; say when to stop with `until`")
        if isinstance(step.change, Apply) and not has_end:
            try:
                check_end(step.change.object)
            except InputError as error:
                raise step.error(f"{error.path}: {error.problem}") from None


# How often a component may act without effect: a base number plus some for each object, since a queue of all pods may
# be processed at one instant.
_SPARE_TICKS = 1_000
_TICKS_AN_OBJECT = 4
# How many writes are allowed at one instant.
_SPARE_WRITES = 100_000
_WRITES_AN_OBJECT = 200


class StallDetector:
    """Detects endless activity at one instant. Much activity is not an error; activity without progress is.

    A component acts without effect if nothing was written or delivered to it since it last acted. Far more writes than
    objects mean that objects are overwritten again and again. ``count_objects`` is called only on suspicion.
    """

    def __init__(self, count_objects: Callable[[], int]) -> None:
        self._count_objects = count_objects
        # By component, the store's version when it last acted, and how often it has acted without effect since.
        self._seen: dict[str, int] = {}
        self._in_vain: Counter[str] = Counter()
        # By component, its number of writes.
        self._writes: dict[str, int] = {}
        self._written = 0

    def show(self, component: str) -> None:
        """Record that a component receives news."""
        self._seen.pop(component, None)

    def act(self, component: str, version: int) -> None:
        """Record that a component acts. Raises PodiumError if it did so without effect too often."""
        if self._seen.get(component) != version:
            self._seen[component] = version
            if self._in_vain:
                self._in_vain.pop(component, None)
            return
        vain = self._in_vain[component] = self._in_vain[component] + 1
        if vain > _SPARE_TICKS and vain > _SPARE_TICKS + _TICKS_AN_OBJECT * self._count_objects():
            raise PodiumError(f"{component} goes on for ever at one instant: it acted {vain} times and nothing changed")

    def write(self, component: str, count: int) -> None:
        """Record writes of a component. Raises PodiumError if there are too many at one instant."""
        self._writes[component] = self._writes.get(component, 0) + count
        self._written += count
        if self._written > _SPARE_WRITES and self._written > _SPARE_WRITES + _WRITES_AN_OBJECT * self._count_objects():
            most = max(self._writes, key=lambda name: (self._writes[name], name))
            raise PodiumError(
                f"{most} goes on for ever at one instant: {self._writes[most]} of {self._written} writes are its own"
            )

    def pass_time(self) -> None:
        """Reset all counts as time advances."""
        self._seen.clear()
        self._in_vain.clear()
        if self._written:
            self._writes.clear()
            self._written = 0
