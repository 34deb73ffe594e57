"""The usage of pods and nodes, which is polled, since metrics.k8s.io has no watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from podium.api.use import uses_of_nodes, uses_of_pods
from podium.client.session import NoAnswerError, Session
from podium.controllers.observations import Measured

METRICS_GROUP = "metrics.k8s.io"
"""The API group that a cluster's metrics server serves."""

_METRICS_PATH = f"/apis/{METRICS_GROUP}/v1beta1"

# The interval for checking whether metrics are wanted.
_LOOK_S = 1.0
# The retry interval if the metrics are unavailable or forbidden.
_PATIENCE_S = 300.0


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
            pods, nodes = (
                await self.session.read(f"{_METRICS_PATH}/pods"),
                await self.session.read(f"{_METRICS_PATH}/nodes"),
            )
        except NoAnswerError as error:
            self._say(str(error))
            return True
        refusal = pods.error or nodes.error
        if refusal is not None:
            self._say(refusal.message)
            return False
        self._problem = ""
        self.deliver(Measured(uses_of_pods(pods.object or {}), uses_of_nodes(nodes.object or {})))
        return True

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.on_problem(problem)
