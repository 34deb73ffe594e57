"""A live cluster: controllers that run against an API server, with reflectors as input and actions sent over HTTP.

The controllers, the runtime and the requests of actions are those of the simulator. Everything runs on one event loop,
in slices, so that connections are served while a controller has much to do. The usage of pods and nodes is polled,
since metrics.k8s.io has no watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from podium.api.use import node_use, pod_use, uses_of
from podium.apirequests.observations import ObjectObservation, first_seen
from podium.client.reflector import Reflector, Reflectors
from podium.client.reflector_state import ReflectorState
from podium.client.session import NoAnswerError, Session
from podium.client.transport import DryTransport, HTTPTransport
from podium.controllers.observations import ActionFinished, Measured, Observation
from podium.runtime.live import LiveRuntime, OnFailure
from podium.runtime.runtime import Component, RequestedAction
from podium.store.stored import Stored

_SLICE_NS = 5_000_000

METRICS_GROUP = "metrics.k8s.io"
"""The API group that a cluster's metrics server serves."""

# The interval for checking whether metrics are wanted.
_LOOK_S = 1.0
# The retry interval if the metrics are unavailable or forbidden.
_PATIENCE_S = 300.0

Answer = Callable[[RequestedAction, ActionFinished], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The watched kinds; some restricted by a field selector, and some to one namespace.

    ``optional`` are kinds that the server may not serve, or not allow to list. ``seed`` randomizes waits among
    instances.
    """

    kinds: frozenset[str]
    field_selectors: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    seed: int = 0


class LiveCluster:
    """The cache of a cluster, kind by kind, and the components that run on it.

    ``on_problem`` receives kinds that cannot be watched, ``on_failure`` failed controllers. With ``in_thread`` the
    controllers run on other threads, one slice after the other, so that a controller which blocks does not hold up
    connections: observations and answers wait in the runtime meanwhile, and the event loop sends the actions.
    """

    def __init__(
        self,
        session: Session,
        watched: Watched,
        now: Callable[[], int],
        make_transport: Callable[[Answer], HTTPTransport | DryTransport],
        *,
        on_problem: Callable[[str, str], None] = lambda kind, problem: None,
        on_failure: OnFailure | None = None,
        in_thread: bool = False,
    ) -> None:
        self._now = now
        self._in_thread = in_thread
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        # Whether actions are no longer sent.
        self._is_closed = False
        self.runtime = LiveRuntime(now, self, self._listed, on_failure, on_arrival=self._woken.set)
        self.transport = make_transport(self.runtime.answer)
        self.reflectors = {
            kind: Reflector(
                ReflectorState(
                    session.resources.named(kind),
                    seed=watched.seed,
                    namespace=watched.namespaces.get(kind, ""),
                    field_selector=watched.field_selectors.get(kind, ""),
                    is_optional=kind in watched.optional,
                ),
                session,
                now,
                self._show,
                on_problem,
            )
            for kind in sorted(watched.kinds)
        }
        self._keeping_up = Reflectors(list(self.reflectors.values()))
        # An additional observer of the changes of objects of each kind, called on the event loop.
        self.on_seen: Callable[[str, ObjectObservation], None] = lambda kind, seen: None

    def reflect(self) -> None:
        """Start the reflectors; no component runs yet."""
        self._keeping_up.begin()

    @property
    def unsynced(self) -> list[str]:
        """The kinds whose initial list is incomplete."""
        return [kind for kind, reflector in self.reflectors.items() if not reflector.machine.is_synced]

    @property
    def absent(self) -> list[str]:
        """The kinds that the server does not serve, or does not allow this client to list."""
        return [kind for kind, reflector in self.reflectors.items() if reflector.machine.is_absent]

    @property
    def hidden(self) -> list[str]:
        """The kinds that the server does not allow this client to list."""
        return [kind for kind, reflector in self.reflectors.items() if reflector.machine.is_hidden]

    async def wait_synced(self, least_version: int = 0) -> None:
        """Return when all kinds are synced, at a version or later.

        Raises the error of a reflector that fails.
        """

        async def reach() -> None:
            async with asyncio.TaskGroup() as group:
                for reflector in self.reflectors.values():
                    group.create_task(reflector.at_least(least_version))

        await self._keeping_up.during(reach())

    async def run(self, components: Iterable[Component]) -> None:
        """Run components until `stop`; each starts with the known objects.

        Raises the error of a reflector that fails.
        """
        for component in components:
            self.runtime.add(component)
        await self._keeping_up.during(self._turns())

    async def _turns(self) -> None:
        turn, woken = self.runtime.turn, self._woken
        while not self.runtime.is_stopped:
            woken.clear()
            next_ns = await asyncio.to_thread(turn, _SLICE_NS) if self._in_thread else turn(_SLICE_NS)
            wait_s = None if next_ns is None else (next_ns - self._now()) / 1e9
            if self.runtime.has_arrived or (wait_s is not None and wait_s <= 0):
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(wait_s):
                    await woken.wait()
            except TimeoutError:
                continue

    def send(self, requested: RequestedAction, now: int) -> None:
        """Send an action of a component on the event loop, in order; see `podium.runtime.runtime.Transport`."""
        if self._is_closed:
            return
        if self._in_thread:
            self._loop.call_soon_threadsafe(self.transport.send, requested, now)
        else:
            self.transport.send(requested, now)

    def find(self, kind: str, key: str) -> Stored | None:
        """Return an object as last received from the API server, or None; safe to call from any thread."""
        return self.reflectors[kind].machine.known.get(key)

    def stop(self) -> None:
        """Make `run` return; no controller is called afterwards."""
        self.runtime.stop()

    def settle(self) -> None:
        """Deliver the observations since `stop`, after `run` has returned; resulting actions are not sent."""
        self._is_closed = True
        self.runtime.settle()

    async def close(self) -> None:
        await self._keeping_up.close()

    def _show(self, kind: str, seen: ObjectObservation) -> None:
        self.runtime.show(kind, seen)
        self.on_seen(kind, seen)

    def _listed(self, kinds: frozenset[str]) -> list[Observation]:
        """Return the known objects of some kinds as observations: referenced kinds first, pods last."""
        known: list[Observation] = []
        for kind in sorted(kinds & self.reflectors.keys(), key=lambda kind: (kind == "Pod", kind)):
            # A copy at one instant, since the caller's thread may not be the one that adds objects.
            objects = self.reflectors[kind].machine.known.copy()
            known += [first_seen(stored) for _, stored in sorted(objects.items())]
        return known


@dataclass(slots=True)
class UsagePoller:
    """A poller that runs while metrics are ``wanted`` and reports the results; a recurring problem is reported once."""

    session: Session
    wanted: Callable[[], bool]
    deliver: Callable[[Measured], None]
    on_problem: Callable[[str], None]
    _: KW_ONLY
    interval_s: float
    _problem: str = field(default="", init=False)

    async def run(self) -> None:
        while True:
            wait_s = _LOOK_S
            if self.wanted():
                wait_s = self.interval_s if await self._measure() else max(self.interval_s, _PATIENCE_S)
            await asyncio.sleep(wait_s)

    async def _measure(self) -> bool:
        """Poll once; return whether to retry at the normal interval."""
        try:
            paths = (f"/apis/{METRICS_GROUP}/v1beta1/{kind}" for kind in ("pods", "nodes"))
            pods, nodes = [await self.session.read(path) for path in paths]
        except NoAnswerError as error:
            self._say(str(error))
            return True
        refusal = pods.error or nodes.error
        if refusal is not None:
            self._say(refusal.message)
            return False
        self._problem = ""
        self.deliver(Measured(uses_of(pods.object or {}, pod_use), uses_of(nodes.object or {}, node_use)))
        return True

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.on_problem(problem)
