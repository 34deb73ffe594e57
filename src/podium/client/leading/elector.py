"""Leads as long as it may, over a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.client.asking import Wait
from podium.client.leading.leader_election import LeaderElection
from podium.client.session import NoAnswerError, Session
from podium.requests.request import Request, Response

_SECOND = 10**9
_CONFLICT = 409


class Elector:
    """Asks what its machine says; ``session`` is best nobody else's, so that a renewal waits for nothing."""

    def __init__(self, machine: LeaderElection, session: Session, now: Callable[[], int]) -> None:
        self.machine = machine
        self._session = session
        self._now = now

    def seconds_to_write(self) -> float:
        """How long something may still be written in the leader's name."""
        return max(0.0, (self.machine.writes_until_ns() - self._now()) / _SECOND)

    async def acquire(self, on_holder: Callable[[str], None] = lambda holder: None) -> int:
        """Return the version of the lease once it is held; ``on_holder`` is told who else holds it."""
        told = ""
        while not self.machine.leads:
            await self._step()
            if self.machine.holder != told:
                told = self.machine.holder
                on_holder(told)
        return self.machine.version

    async def keep(self) -> str:
        """Renew the lease; return why it is lost once it is."""
        while self.machine.leads:
            await self._step()
        return self.machine.problem

    async def release(self) -> None:
        """Give the lease back, so that somebody else need not wait for its end."""
        request = self.machine.release(self._now())
        if request is None:
            return
        response = await self._answer(request)
        if response is None or response.code == _CONFLICT:
            found = await self._answer(self.machine.reading())
            again = self.machine.release(self._now(), found.object) if found is not None and found.object else None
            if again is not None:
                await self._answer(again)

    async def _step(self) -> None:
        ask = self.machine.ask(self._now())
        if self.machine.is_lost:
            return
        if isinstance(ask, Wait):
            await asyncio.sleep(max(0.0, (ask.until_ns - self._now()) / _SECOND))
        else:
            self.machine.answered(await self._answer(ask.request), self._now())

    async def _answer(self, request: Request) -> Response | None:
        try:
            return await self._session.answer(request, self.machine.settings.renew_deadline_ns / 2 / _SECOND)
        except NoAnswerError:
            return None
