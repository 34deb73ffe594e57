"""The event loops of servers, and of clients of an API server."""

from __future__ import annotations

import asyncio
import faulthandler
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a server until it ends, on uvloop if that is installed."""
    _show_stacks()
    try:
        import uvloop  # noqa: PLC0415 - there is none for Windows
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def run_client(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a client program until it ends, on asyncio's own loop.

    Under uvloop a connection attempt that is cancelled, as when an API server is down, may abort the whole process
    (github.com/libuv/libuv/issues/5130).
    """
    _show_stacks()
    return asyncio.run(main)


def _show_stacks() -> None:
    """Enable stack dumps of all threads on stderr if native code aborts or crashes."""
    if sys.__stderr__ is not None:
        faulthandler.enable(sys.__stderr__)
