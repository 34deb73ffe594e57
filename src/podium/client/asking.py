"""What somebody far away does next, as a machine without connections says it: send a request, or wait."""

from __future__ import annotations

from dataclasses import dataclass

from podium.requests.request import Request


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be asked for before a time."""

    until_ns: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to send; of a watch, how long it is to last."""

    request: Request
    timeout_seconds: int = 0
