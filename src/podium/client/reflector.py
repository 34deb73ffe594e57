"""A reflector: a cache of one kind's objects that is kept current over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from podium.apirequests.observations import ObjectObservation
from podium.client.reflector_state import ReflectorState
from podium.client.session import NoAnswerError, Send, Session, Wait
from podium.store.errors import StoreError

# Up to so many objects, a list is as fast as waiting for an event.
_FEW = 1_000


Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class Reflector:
    """A reflector that performs the requests of its state machine, and reports the changes.

    ``now`` returns the time. ``on_seen`` receives each change; ``on_problem`` receives the kind and its problem
    whenever that changes, "" when it is resolved.
    """

    machine: ReflectorState
    session: Session
    now: Callable[[], int]
    on_seen: Callable[[str, ObjectObservation], None]
    on_problem: Callable[[str, str], None] = lambda kind, problem: None
    _reported_problem: str = ""
    # Set on each progress; waiters for a version then check again.
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _resting: asyncio.Event = field(default_factory=asyncio.Event)
    _watching: asyncio.Timeout | None = None

    async def run(self) -> None:
        while True:
            ask = self.machine.ask(self.now())
            if isinstance(ask, Wait):
                await self._wait(ask.until_ns)
            elif ask.request.verb == "list":
                await self._list(ask)
            else:
                await self._watch(ask)
            self._after()

    async def wait_synced(self) -> None:
        """Return when all objects of the kind are known."""
        while not self.machine.is_synced:
            await self._moved.wait()

    async def at_least(self, version: int, patience_s: float = 1.0) -> None:
        """Return when the cache is as new as a version.

        If it is not, the objects are listed again: at once if there are few, otherwise if no event arrives within
        ``patience_s``.

        Versions are compared across kinds, since all kinds that scheduling reads are in one store.
        """
        await self.wait_synced()
        try:
            async with asyncio.timeout(patience_s if len(self.machine.known) > _FEW else 0):
                await self._reach(version)
        except TimeoutError:
            self.machine.relist(version)
            self._resting.set()
            if self._watching is not None:
                self._watching.reschedule(asyncio.get_running_loop().time())
            await self._reach(version)

    async def _reach(self, version: int) -> None:
        while self.machine.version < version and not self.machine.is_absent:
            await self._moved.wait()

    def _after(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        problem = self.machine.problem
        if problem != self._reported_problem:
            self._reported_problem = problem
            self.on_problem(self.machine.resource.name, problem)

    def _tell(self, seen: list[ObjectObservation]) -> None:
        for observation in seen:
            self.on_seen(self.machine.resource.name, observation)

    async def _wait(self, until_ns: int) -> None:
        self._resting.clear()
        try:
            async with asyncio.timeout(max(0.0, (until_ns - self.now()) / 1e9)):
                await self._resting.wait()
        except TimeoutError:
            return

    async def _list(self, ask: Send) -> None:
        try:
            response = await self.session.answer(ask.request)
        except NoAnswerError as error:
            self.machine.on_broken(str(error), self.now())
            return
        if response.error is not None:
            self._tell(self.machine.on_refused(response.error, self.now()))
        else:
            self._tell(self.machine.page(response.object or {}, self.now()))

    async def _watch(self, ask: Send) -> None:
        machine = self.machine
        began_ns = self.now()
        watching = self._watching = asyncio.timeout(None)
        try:
            async with watching:
                ended = await self._follow(ask)
        except NoAnswerError as error:
            machine.on_broken(str(error), self.now())
        except StoreError as error:
            self._tell(machine.on_refused(error, self.now()))
        except TimeoutError:
            if not watching.expired():
                raise
            # A new list was requested.
        else:
            if ended:
                machine.on_watch_end(self.now(), began_ns)
        finally:
            self._watching = None

    async def _follow(self, ask: Send) -> bool:
        """Process the events of a watch until it ends; return whether it ended without an error."""
        async with self.session.watch(ask.request, ask.timeout_seconds) as batches:
            self.machine.began()
            self._after()
            async for events in batches:
                seen, goes_on = self.machine.events(events, self.now())
                self._tell(seen)
                self._after()
                if not goes_on:
                    return False
        return True


@dataclass(slots=True, eq=False)
class Reflectors:
    """A group of reflectors. The failure of one ends the work that depends on them.

    Refusals and lost connections are normal. A failure is a full disk of an observer, or a bug: the cache would become
    stale without notice.
    """

    reflectors: Sequence[Reflector]
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(reflector.run()) for reflector in self.reflectors]

    async def during(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of ``work``; raises the error of a reflector that fails before that."""
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait((working, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
