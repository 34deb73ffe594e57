"""Asks from time to time what pods and nodes use (metrics.k8s.io): nobody can watch that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.api.meta import Raw
from podium.api.use import uses_of_nodes, uses_of_pods
from podium.client.session import NoAnswerError, Session
from podium.machines.observations import Measured

METRICS_GROUP = "metrics.k8s.io"
"""The API in which it is told, by the metrics server of a cluster."""

_PATH = f"/apis/{METRICS_GROUP}/v1beta1"

# How often to look whether it is wanted by now.
_LOOK_S = 1.0
# How soon it is asked again where there is none, or it is forbidden.
_PATIENCE_S = 300.0


class Measuring:
    """Asks while that is ``wanted``, and tells what it finds; of problems each is told once, until it is over."""

    def __init__(
        self,
        session: Session,
        wanted: Callable[[], bool],
        tell: Callable[[Measured], None],
        on_problem: Callable[[str], None],
        *,
        interval_s: float,
    ) -> None:
        self._session = session
        self._wanted = wanted
        self._tell = tell
        self._on_problem = on_problem
        self._interval_s = interval_s
        self._problem = ""

    async def run(self) -> None:
        """Go on until it is cancelled."""
        while True:
            wait_s = _LOOK_S
            if self._wanted():
                wait_s = self._interval_s if await self._measure() else max(self._interval_s, _PATIENCE_S)
            await asyncio.sleep(wait_s)

    async def _measure(self) -> bool:
        """Ask once; whether that is worth while soon again."""
        try:
            pods, nodes = await self._read("pods"), await self._read("nodes")
        except NoAnswerError as error:
            self._say(str(error))
            return True
        if pods is None or nodes is None:
            return False
        self._problem = ""
        self._tell(Measured(uses_of_pods(pods), uses_of_nodes(nodes)))
        return True

    async def _read(self, what: str) -> Raw | None:
        """A list; None where the server does not give it."""
        response = await self._session.read(f"{_PATH}/{what}")
        if response.error is not None:
            self._say(response.error.message)
            return None
        return response.object or {}

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._on_problem(problem)
