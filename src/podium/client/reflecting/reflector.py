"""Keeps up with the objects of one kind, over a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.client.asking import Ask, Wait
from podium.client.reflecting.reflecting import Reflecting
from podium.client.session import NoAnswerError, Session
from podium.requests.observations import Seen
from podium.store.errors import StoreError

# So many objects are listed as quickly as one waits for an event.
_FEW = 1_000

OnSeen = Callable[[str, Seen], None]
"""Is told the kind and what has come of an object, in its order."""


class Reflector:
    """Asks what its machine says, and tells what comes of it.

    ``now`` is the time. ``on_seen`` is told each change, ``on_problem`` the kind and what is wrong when that is another
    thing than before, "" once all is well.
    """

    def __init__(
        self,
        machine: Reflecting,
        session: Session,
        now: Callable[[], int],
        on_seen: OnSeen,
        on_problem: Callable[[str, str], None] = lambda kind, problem: None,
    ) -> None:
        self.machine = machine
        self.kind = machine.resource.name
        self._session = session
        self._now = now
        self._on_seen = on_seen
        self._on_problem = on_problem
        self._told = ""
        # Set whenever something has come of it; whoever waits for a version looks again.
        self._moved = asyncio.Event()
        self._resting = asyncio.Event()
        self._watching: asyncio.Timeout | None = None

    async def run(self) -> None:
        """Keep up until the task is cancelled."""
        while True:
            ask = self.machine.ask(self._now())
            if isinstance(ask, Wait):
                await self._wait(ask.until_ns)
            elif ask.request.verb == "list":
                await self._list(ask)
            else:
                await self._watch(ask)
            self._after()

    async def synced(self) -> None:
        """Return once all objects of the kind are known."""
        while not self.machine.is_synced:
            await self._moved.wait()

    async def at_least(self, version: int, patience_s: float = 1.0) -> None:
        """Return once what is known is as new as a version.

        It is listed anew where it is not: at once where there is little, else where no event comes in that time.

        Versions are compared across kinds, as all kinds of a cluster that scheduling reads live in one store.
        """
        await self.synced()
        try:
            async with asyncio.timeout(patience_s if len(self.machine.known) > _FEW else 0):
                await self._reach(version)
        except TimeoutError:
            self.machine.list_anew(version)
            self._interrupt()
            await self._reach(version)

    async def _reach(self, version: int) -> None:
        while self.machine.version < version and not self.machine.is_absent:
            await self._moved.wait()

    def _after(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        problem = self.machine.problem
        if problem != self._told:
            self._told = problem
            self._on_problem(self.kind, problem)

    def _tell(self, seen: list[Seen]) -> None:
        for observation in seen:
            self._on_seen(self.kind, observation)

    async def _wait(self, until_ns: int) -> None:
        self._resting.clear()
        try:
            async with asyncio.timeout(max(0.0, (until_ns - self._now()) / 1e9)):
                await self._resting.wait()
        except TimeoutError:
            return

    async def _list(self, ask: Ask) -> None:
        try:
            response = await self._session.answer(ask.request)
        except NoAnswerError as error:
            self.machine.broke(str(error), self._now())
            return
        if response.error is not None:
            self._tell(self.machine.refused(response.error, self._now()))
        else:
            self._tell(self.machine.page(response.object or {}, self._now()))

    async def _watch(self, ask: Ask) -> None:
        machine = self.machine
        began_ns = self._now()
        watching = self._watching = asyncio.timeout(None)
        try:
            async with watching:
                ended = await self._follow(ask)
        except NoAnswerError as error:
            machine.broke(str(error), self._now())
        except StoreError as error:
            self._tell(machine.refused(error, self._now()))
        except TimeoutError:
            if not watching.expired():
                raise
            # Somebody wants everything listed anew.
        else:
            if ended:
                machine.ended(self._now(), began_ns)
        finally:
            self._watching = None

    async def _follow(self, ask: Ask) -> bool:
        """Take in the events of a watch until it ends; whether it did so without a word."""
        async with self._session.watch(ask.request, ask.timeout_seconds) as batches:
            self.machine.began()
            self._after()
            async for events in batches:
                seen, goes_on = self.machine.events(events, self._now())
                self._tell(seen)
                self._after()
                if not goes_on:
                    return False
        return True

    def _interrupt(self) -> None:
        """End the watch, or the wait, that is under way."""
        self._resting.set()
        if self._watching is not None:
            self._watching.reschedule(asyncio.get_running_loop().time())
