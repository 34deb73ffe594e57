"""Waiting for the results of programs that run by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

GUARD_SECONDS = 120.0
"""A guard against hanging: on a machine that is ten times slower, no single wait of a test takes that long."""

_LOOKED_EACH_S = 0.005


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so; TimeoutError where it does not come about."""
    async with asyncio.timeout(GUARD_SECONDS):
        while not condition():
            await asyncio.sleep(_LOOKED_EACH_S)
