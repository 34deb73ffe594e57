"""Waiting for the results of programs that run by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_LOOKED_EACH_S = 0.005


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so; TimeoutError where it does not come about."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(_LOOKED_EACH_S)
