"""A control plane in one process: the store, the router before it, and the components around it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from podium.api.errors import PodiumError
from podium.api.node import Node
from podium.api.pod import Pod
from podium.driver.clock import Clock
from podium.driver.component import Component
from podium.driver.live import LiveDriver
from podium.driver.transport import Asked
from podium.machines.actions import Record
from podium.machines.machine import is_among
from podium.machines.observations import Answered, ContainersExited, Observation, Problem
from podium.machines.parts.deadlines import earliest
from podium.plane.account import PlaneAccount
from podium.plane.action_events import ActionEvents
from podium.plane.annotation_warnings import with_warnings
from podium.plane.collectors import Collectors
from podium.plane.component_names import (
    GARBAGE_COLLECTOR,
    KUBELET,
    NAMESPACE_CONTROLLER,
)
from podium.plane.event_expiry import EVENT, EventExpiry
from podium.plane.keeper import Keeper
from podium.plane.node_leases import NodeLeases
from podium.plane.node_power import News, NodePower
from podium.plane.plane_settings import PlaneSettings, components_of
from podium.requests.actions import carry_out
from podium.requests.conversation import hold, problem_of
from podium.requests.event_recorder import EventRecorder
from podium.requests.observations import aspects_of, first_seen, observation_of
from podium.requests.request import Request, Response
from podium.requests.router import Router
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError
from podium.store.log.watch_event import WatchEvent
from podium.store.store import Store

_LOG = logging.getLogger(__name__)
_EXPIRED_AT_ONCE = 100
_NODE, _POD = "Node", "Pod"


class ControlPlane:
    """Answers requests, and lets components act on what they change.

    Everything takes place on one thread. `answer` may be called at any time; whoever has the thread calls `turn`, and
    again when the time has come that it said, or when ``on_work`` was called since: somebody outside has written.

    What components ask for takes effect at once, and what was written is shown to all of them in its order. With a
    ``keeper`` it is on disk before anybody outside can see it. With an ``account`` there is one of all disruptions.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: PlaneSettings,
        keeper: Keeper | None = None,
        account: PlaneAccount | None = None,
    ) -> None:
        self.store = store
        self.on_work: Callable[[], None] = _nothing
        self._clock = clock
        self._keeper = keeper
        self.account = account
        self._router = Router(store, rules=settings.rules)
        self._recorder = EventRecorder()
        self._events = ActionEvents(store, self._router)
        now = clock.now()
        nodes = {stored.uid: stored.object for stored in store.objects(_NODE) if isinstance(stored.object, Node)}
        self._power = NodePower(nodes.values(), now)
        self._expiry = EventExpiry(store, now)
        self._leases = None if KUBELET in settings.without else NodeLeases(store, self._power.is_down)
        self._collectors = Collectors(
            store,
            self._router.answer,
            has_garbage_collector=GARBAGE_COLLECTOR not in settings.without,
            has_namespace_controller=NAMESPACE_CONTROLLER not in settings.without,
            absent_is_gone=settings.absent_is_gone,
        )
        self._live = LiveDriver(clock, self, self._listed, self._failed, self._news)
        self._components = {component.name: component for component in components_of(settings, nodes)}
        # The version up to which the components were shown what was written.
        self._shown = store.version
        self._live.begin(
            list(self._components.values()),
            [
                (resource.name, first_seen(stored))
                for resource in self.resources.all()
                for stored in store.objects(resource.name)
            ],
        )

    # For whoever serves it

    @property
    def resources(self) -> APIResources:
        """The kinds that are served."""
        return self.store.resources

    def now(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self._clock.now()

    def answer(self, request: Request) -> Response:
        """Do what a request asks for, at once. A refusal is an answer. What is told of it has to wait for `keep`."""
        now = self._clock.now()
        if self._leases is not None:
            self._leases.asked(request, now)
        if self.account is not None:
            self.account.requested(request)
        response = self._router.answer(request, now)
        if self.account is not None:
            self.account.responded(request, response)
        if self._leases is not None:
            self._leases.answered(request, response, now)
        if self.store.version != self._shown or self._live.has_arrived:
            self._publish(now)
            # Whoever runs the plane has to hear of it, though it may be that nothing can be kept any more.
            self.on_work()
        return with_warnings(request, response)

    @property
    def is_kept(self) -> bool:
        """Whether all that was written is on disk, where anything is."""
        return self._keeper is None or self._keeper.has(self.store.version)

    def keep(self) -> None:
        """Return when all that was written is on disk. Raises JournalError where it cannot be kept."""
        if self._keeper is not None:
            self._keeper.keep(self.store.version)

    def checks(self) -> Mapping[str, str]:
        """By name, the parts of the plane, and what is wrong with each: "" for nothing."""
        failures = self._live.failures
        return {name: failures.get(name, "") for name in self._components}

    # For whoever has the thread

    def turn(self, budget_ns: int | None = None) -> int | None:
        """Let components do what is due, for about so long; when something is due next, None for never.

        Raises JournalError where what they wrote cannot be kept.
        """
        next_ns = self._live.turn(budget_ns)
        now = self._clock.now()
        self._collectors.collect(now)
        self._expiry.expire(now, _EXPIRED_AT_ONCE)
        if self._leases is not None:
            self._leases.work(now)
        self._publish(now)
        self.keep()
        if self.account is not None:
            self.account.flush(now)
        if self._live.has_arrived:
            return now
        leases_ns = None if self._leases is None else self._leases.next_time()
        return earliest((next_ns, self._collectors.next_time(), self._expiry.next_time(), leases_ns))

    def close(self) -> None:
        """Nothing more is asked: let go of what is kept on disk. Raises JournalError."""
        if self.account is not None:
            self.account.close()
        if self._keeper is not None:
            self._keeper.close()

    # What no request says

    def stop_node(self, name: str) -> None:
        """A node's machine stops, with all that runs there; nobody is told, but its heartbeat stays away."""
        self._change_power(name, is_up=False)

    def start_node(self, name: str) -> None:
        """A node's machine that had stopped runs again."""
        self._change_power(name, is_up=True)

    def finish_pod(self, key: str) -> None:
        """The containers of the pod `namespace/name` exit by themselves, with success. Raises StoreError 404."""
        pod = self.store.get(_POD, key).object
        if isinstance(pod, Pod) and KUBELET in self._components:
            exited = ContainersExited(pod.spec.node_name, pod.metadata.uid)
            self._live.tell(self._components[KUBELET], exited)
            self.on_work()

    def _change_power(self, name: str, *, is_up: bool) -> None:
        self.store.get(_NODE, name)
        self._tell(self._power.change(name, self._clock.now(), is_up=is_up))
        self.on_work()

    def _tell(self, found: News) -> None:
        for name, news in found:
            if name in self._components:
                self._live.tell(self._components[name], news)

    # What components ask for, and are shown

    def send(self, asked: Asked, now: int) -> None:
        """Carry out what a component asks for."""
        account = self.account
        if account is not None:
            account.asked(asked.action, asked.component.name)
        answered = self._carry_out(asked, now)
        if account is not None:
            account.answered(asked.action, answered.problem)
        self._publish(now)
        self._live.answer(asked, answered)

    def _carry_out(self, asked: Asked, now: int) -> Answered:
        action = asked.action
        try:
            if isinstance(action, Record):
                self._record(action, self._name_of(asked), now)
                return Answered(action)
            before = self._events.before(action)
            answered = carry_out(self._events.answer, action, now)
            if answered.problem is None:
                for record in self._events.told(action, before):
                    self._record(record, asked.component.name, now)
            return answered
        except StoreError as error:
            return Answered(action, problem_of(error))
        except PodiumError:
            raise
        except Exception as error:
            # As kube-apiserver answers a request over which it stumbles.
            _LOG.exception("%s asked for something over which the API server stumbled", asked.component.name)
            return Answered(action, Problem(500, "InternalError", f"{type(error).__name__}: {error}"))

    def _record(self, record: Record, component: str, now: int) -> None:
        """Write an Event; that it is refused, as in a namespace that goes, changes nothing of what it tells."""
        with suppress(StoreError):
            hold(self._recorder.record(record, component, now), self._router.answer, now)

    def _name_of(self, asked: Asked) -> str:
        """Who records an Event; a scheduler goes by the name that its pod gives it."""
        stored = self.store.find(_POD, asked.action.pod) if isinstance(asked.action, Record) else None
        if asked.component.waits and stored is not None and isinstance(stored.object, Pod):
            return stored.object.spec.scheduler_name
        return asked.component.name

    def _publish(self, now: int) -> None:
        """Show the components what was written."""
        if self.store.version == self._shown:
            return
        version, self._shown = self._shown, self.store.version
        try:
            events = self.store.events_since(version)
        except StoreError:
            # More was written at once than the log holds.
            self._expiry = EventExpiry(self.store, now)
            if self.account is not None:
                self.account.catch_up(now)
            for component in self._components.values():
                self._live.restart(component)
            return
        for event in events:
            kind = event.stored.resource.name
            if self.account is not None:
                self.account.observe(event, now)
            self._live.show(kind, observation_of(event), aspects_of(event, self._is_node))
            if kind == EVENT:
                self._expiry.observe(event, now)
            elif kind == _NODE:
                self._observe_node(event, now)

    def _is_node(self, name: str) -> bool:
        return self.store.find(_NODE, name) is not None

    def _observe_node(self, event: WatchEvent, now: int) -> None:
        node = event.stored.object
        if event.type == "DELETED":
            self._tell(self._power.forget(node.metadata.name, now))
        elif isinstance(node, Node):
            self._tell(self._power.observe(node, now))

    def _listed(self, watches: frozenset[str]) -> Iterator[Observation]:
        """What a component that begins anew is shown."""
        for resource in self.resources.all():
            if is_among(resource.name, watches):
                yield from (first_seen(stored) for stored in self.store.objects(resource.name))

    def _news(self, component: Component) -> list[Observation]:
        return self._power.news(component.name)

    def _failed(self, component: Component, error: Exception, restart_ns: int) -> None:
        wait_seconds = max(0, restart_ns - self._clock.now()) // 10**9
        _LOG.error("%s has failed, and begins anew in %d s", component.name, wait_seconds, exc_info=error)


def _nothing() -> None:
    pass
