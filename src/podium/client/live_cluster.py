"""Runs machines against an API server: reflectors show them what there is, and their actions go out over HTTP.

The machines, the driver and the meaning of requests are those of the simulator. Everything runs on one event loop, in
slices, so that connections are served while a machine has much to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from podium.api.errors import PodiumError
from podium.client.reflecting.reflecting import Reflecting
from podium.client.reflecting.reflector import Reflector
from podium.client.reflecting.reflectors import Reflectors
from podium.client.session import Session
from podium.driver.component import Component
from podium.driver.live import LiveDriver, OnFailure
from podium.driver.transport import Asked, Transport
from podium.machines.observations import Answered, Observation
from podium.requests.observations import Seen, first_seen
from podium.store.stored import Stored

_SLICE_NS = 5_000_000

Answer = Callable[[Asked, Answered], None]
MakeTransport = Callable[[Answer], "ClosableTransport"]
"""Makes the transport that hands answers to the function."""


class ClosableTransport(Transport, Protocol):
    """A transport that has something on its way for a while."""

    async def drain(self, patience_s: float) -> bool:
        """Wait for all that is on its way, for so long; whether all of it has its answer."""
        ...

    async def close(self) -> None:
        """Wait for nothing any more."""
        ...


class LoopClock:
    """The clock of a driver on an event loop; whoever runs the driver waits for `woken`."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.woken = asyncio.Event()

    def now(self) -> int:
        """See `Clock`."""
        return self._now()

    def wait(self, until_ns: int | None) -> None:
        """See `Clock`; an event loop is not to be held up."""
        raise PodiumError("a driver on an event loop runs in turns")

    def wake(self) -> None:
        """See `Clock`."""
        self.woken.set()


class Outlet:
    """A transport that can be closed: what is asked for after that is dropped."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._is_closed = False

    def send(self, asked: Asked, now: int) -> None:
        """See `Transport`."""
        if not self._is_closed:
            self._transport.send(asked, now)

    def close(self) -> None:
        """Send nothing any more."""
        self._is_closed = True


class OverLoop:
    """Hands what is asked for on another thread to the event loop of a transport, in its order."""

    def __init__(self, transport: Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop

    def send(self, asked: Asked, now: int) -> None:
        """See `Transport`."""
        self._loop.call_soon_threadsafe(self._transport.send, asked, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is kept up with: the kinds, of some only what a field selector names, and of some those of one namespace.

    ``optional`` are kinds that the server may not have, or not show. ``seed`` spreads waits among several programs.
    """

    kinds: frozenset[str]
    field_selectors: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    seed: int = 0


class LiveCluster:
    """What is known of a cluster, kind by kind, and the components that run by it.

    ``on_problem`` is told of kinds that cannot be watched, ``on_failure`` of machines that failed. With ``in_thread``
    the machines run on other threads, one slice after the other, so that a machine which waits for somebody holds up no
    connection: what is shown and answered meanwhile waits for it in the driver, and what it asks for is sent by the
    event loop.
    """

    def __init__(
        self,
        session: Session,
        watched: Watched,
        now: Callable[[], int],
        make_transport: MakeTransport,
        *,
        on_problem: Callable[[str, str], None] = lambda kind, problem: None,
        on_failure: OnFailure | None = None,
        in_thread: bool = False,
    ) -> None:
        self._now = now
        self._clock = LoopClock(now)
        self._in_thread = in_thread
        self.transport = make_transport(self._answered)
        transport = OverLoop(self.transport, asyncio.get_running_loop()) if in_thread else self.transport
        self._outlet = Outlet(transport)
        self.driver = LiveDriver(self._clock, self._outlet, self._listed, on_failure)
        self.reflectors = {
            kind: Reflector(
                Reflecting(
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
        self._is_stopped = False
        # Is told, too, of what happens to objects of each kind, on the event loop.
        self.on_seen: Callable[[str, Seen], None] = lambda kind, seen: None

    def reflect(self) -> None:
        """Begin to keep up with the cluster; nothing runs yet."""
        self._keeping_up.begin()

    @property
    def unsynced(self) -> list[str]:
        """The kinds of which not all objects are known yet."""
        return [kind for kind, reflector in self.reflectors.items() if not reflector.machine.is_synced]

    @property
    def absent(self) -> list[str]:
        """The kinds that the server does not have."""
        return [kind for kind, reflector in self.reflectors.items() if reflector.machine.is_absent]

    async def synced(self, least_version: int = 0) -> None:
        """Return once all that is to be known is known, as it was at a version or later.

        Raises what a reflector fails with.
        """
        await self._keeping_up.during(self._reach(least_version))

    async def _reach(self, least_version: int) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.at_least(least_version))

    async def run(self, components: Iterable[Component]) -> None:
        """Run components until `stop`; each begins with what is known. Raises what a reflector fails with."""
        for component in components:
            self.driver.add(component)
        await self._keeping_up.during(self._turns())

    async def _turns(self) -> None:
        woken = self._clock.woken
        while not self._is_stopped:
            woken.clear()
            next_ns = await self._turn()
            wait_s = None if next_ns is None else (next_ns - self._now()) / 1e9
            if self.driver.has_arrived or (wait_s is not None and wait_s <= 0):
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(wait_s):
                    await woken.wait()
            except TimeoutError:
                continue

    async def _turn(self) -> int | None:
        if not self._in_thread:
            return self.driver.turn(_SLICE_NS)
        return await asyncio.to_thread(self.driver.turn, _SLICE_NS)

    def find(self, kind: str, key: str) -> Stored | None:
        """An object as the API server last showed it, None where there is none; any thread may ask."""
        return self.reflectors[kind].machine.known.get(key)

    def stop(self) -> None:
        """Let `run` return: no machine is asked any more."""
        self._is_stopped = True
        self.driver.stop()

    def settle(self) -> None:
        """Show the machines what has come since `stop`, once `run` has returned; nothing that they ask for is sent."""
        self._outlet.close()
        self.driver.settle()

    async def close(self) -> None:
        """Keep up with nothing any more."""
        await self._keeping_up.close()

    def _show(self, kind: str, seen: Seen) -> None:
        self.driver.show(kind, seen)
        self.on_seen(kind, seen)

    def _answered(self, asked: Asked, answered: Answered) -> None:
        self.driver.answer(asked, answered)

    def _listed(self, kinds: frozenset[str]) -> list[Observation]:
        """All that is known of some kinds: what others stand on first, pods last."""
        known: list[Observation] = []
        for kind in sorted(kinds & self.reflectors.keys(), key=lambda kind: (kind == "Pod", kind)):
            # A copy at one instant, since the thread that asks may not be the one that adds to it.
            objects = self.reflectors[kind].machine.known.copy()
            known += [first_seen(stored) for _, stored in sorted(objects.items())]
        return known
