"""Asks from time to time what pods and nodes use: metrics.k8s.io can be listed, and not watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from podium.api.meta import Raw
from podium.api.use import Use, node_use, pod_use
from podium.client.session import NoAnswerError
from podium.machines.rescheduling.measured_use import MeasuredUse
from podium.requests.request import Response

_PATH = "/apis/metrics.k8s.io/v1beta1"


class Reader(Protocol):
    """What reads from an API server (`podium.client.session.Session`)."""

    async def read(self, path: str) -> Response: ...


class Measuring:
    """Tells what was measured. ``on_problem`` is told why nothing is, when that changes, "" once something is again.

    What was measured before is forgotten where nothing is measured any more: old figures would be taken for new ones.
    """

    def __init__(
        self,
        session: Reader,
        interval_s: float,
        tell: Callable[[MeasuredUse], None],
        on_problem: Callable[[str], None] = lambda problem: None,
    ) -> None:
        self._session = session
        self._interval_s = interval_s
        self._tell = tell
        self._on_problem = on_problem
        self._problem = ""

    async def run(self) -> None:
        """Ask again and again, until it is cancelled."""
        while True:
            problem = await self._ask()
            if problem != self._problem:
                self._problem = problem
                self._on_problem(problem)
            await asyncio.sleep(self._interval_s)

    async def _ask(self) -> str:
        """Ask once; what is wrong, "" for nothing."""
        try:
            answers = [await self._session.read(f"{_PATH}/{plural}") for plural in ("pods", "nodes")]
        except NoAnswerError as error:
            self._tell(MeasuredUse())
            return str(error)
        refused = next((answer.error for answer in answers if answer.error is not None), None)
        if refused is not None:
            self._tell(MeasuredUse())
            return refused.message
        pods, nodes = ((answer.object or {}).get("items") for answer in answers)
        self._tell(MeasuredUse(dict(_read(pods, pod_use)), dict(_read(nodes, node_use))))
        return ""


def _read(listed: Any, use_of: Callable[[Raw], Use | None]) -> Iterator[tuple[str, Use]]:
    """What is measured of each, by key; what cannot be read is left out."""
    for raw in listed if isinstance(listed, list) else ():
        metadata = raw.get("metadata") if isinstance(raw, dict) else None
        if not isinstance(metadata, dict):
            continue
        namespace, name, use = metadata.get("namespace"), metadata.get("name"), use_of(raw)
        if use is not None and name:
            yield (f"{namespace}/{name}" if namespace else str(name)), use
