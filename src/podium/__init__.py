"""Podium: who runs, who waits and who is disrupted in a Kubernetes cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.app.library import explain, load, simulate

__all__ = ["explain", "load", "simulate"]


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is first asked for, so that the command line starts fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from podium.app import library  # noqa: PLC0415

    return getattr(library, name)
