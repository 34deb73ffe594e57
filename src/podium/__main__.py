"""The entry points of the command `podium`, also `python -m podium`, and of the commands that kubectl looks for."""

from __future__ import annotations

import gc
import signal
from importlib import import_module

_NEW_OBJECTS = 20_000


def main() -> None:
    """Run `podium`."""
    _run("main")


def kubectl_plugin() -> None:
    """Run `kubectl podium`."""
    _run("kubectl_plugin")


def kubectl_completion() -> None:
    """Complete the command line of `kubectl podium`."""
    _run("kubectl_completion")


def _run(name: str) -> None:
    """Import the command line and run a function of it. Ctrl-C during the import ends the process at once."""
    # Imports create many objects and few cycles: the default of 700 costs an eighth of their time.
    gc.set_threshold(_NEW_OBJECTS)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = import_module("podium.app.console.command")
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    getattr(command, name)()


if __name__ == "__main__":
    main()
