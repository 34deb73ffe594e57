"""A control plane on an event loop: it acts in slices, between which requests are answered."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from podium.api.errors import PodiumError
from podium.plane.control_plane import ControlPlane

_LOG = logging.getLogger(__name__)
_PAUSE_NS = 1_000_000_000
# How long the components act before the loop looks at its connections again.
_SLICE_NS = 5_000_000


class Pace(Protocol):
    """How long it really takes until a time has come."""

    speed: float

    def seconds_until(self, time_ns: int) -> float | None:
        """The seconds until then, 0 where it has come; None where nobody can wait for it."""
        ...


class Runner:
    """Runs a control plane at a pace, for as long as `run` is awaited. ``problem`` is what is wrong, "" for nothing."""

    def __init__(self, plane: ControlPlane, pace: Pace) -> None:
        self._plane = plane
        self._pace = pace
        self._work = asyncio.Event()
        self.problem = ""
        plane.on_work = self._work.set

    async def run(self) -> None:
        """Run until cancelled. Raises JournalError where what was written cannot be kept."""
        loop = asyncio.get_running_loop()
        budget_ns = int(_SLICE_NS * self._pace.speed)
        while True:
            self._work.clear()
            next_ns = self._turn(budget_ns)
            seconds = None if next_ns is None else self._pace.seconds_until(next_ns)
            if seconds is None:
                await self._work.wait()
            elif seconds > 0:
                timer = loop.call_later(seconds, self._work.set)
                await self._work.wait()
                timer.cancel()
            else:
                await asyncio.sleep(0)

    def _turn(self, budget_ns: int) -> int | None:
        """A turn of the plane; after a mistake in it, of which nobody knows what it has left undone, another later."""
        try:
            next_ns = self._plane.turn(budget_ns)
        except PodiumError:
            raise
        except Exception as error:
            _LOG.exception("the control plane has stumbled, and goes on in %d s", _PAUSE_NS // 10**9)
            self.problem = f"{type(error).__name__}: {error}"
            return self._plane.now() + int(_PAUSE_NS * self._pace.speed)
        self.problem = ""
        return next_ns
