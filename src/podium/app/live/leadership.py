"""The lease by which a program leads, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable

from podium.app.live.logs import Log
from podium.app.live.program_metrics import ProgramMetrics
from podium.client.leading.elector import Elector
from podium.client.leading.leader_election import LeaderElection
from podium.client.session import Session


class Leadership:
    """Waits for a lease, keeps it and gives it back; people see in log and metrics who leads."""

    def __init__(
        self, machine: LeaderElection, session: Session, now: Callable[[], int], log: Log, metrics: ProgramMetrics
    ) -> None:
        self._elector = Elector(machine, session, now)
        self._lease = machine.settings
        self._log = log
        self._metrics = metrics

    def seconds_to_write(self) -> float:
        """How long something may still be written in the leader's name."""
        return self._elector.seconds_to_write()

    async def acquire(self) -> int:
        """Return the version of the lease once it is held."""
        return await self._elector.acquire(self._tell_holder)

    async def keep(self) -> str:
        """Keep the lease; return why it is lost."""
        is_leader = self._metrics.leader.labels(self._lease.name)
        is_leader.set(1)
        self._log.info("leading", lease=self._lease.key, identity=self._lease.identity)
        try:
            return await self._elector.keep()
        finally:
            is_leader.set(0)

    async def release(self) -> None:
        """Give the lease back, so that somebody else need not wait for its end."""
        await self._elector.release()
        self._log.info("the lease is given back")

    def _tell_holder(self, holder: str) -> None:
        if holder and holder != self._lease.identity:
            self._log.info("waiting to lead", holder=holder)
