"""A transport that sends nothing: whatever is asked for counts as done."""

from __future__ import annotations

from collections.abc import Callable

from podium.driver.transport import Asked
from podium.machines.observations import Answered


class DryTransport:
    """Answers at once, and tells ``on_action`` what would have been sent."""

    def __init__(
        self, answer: Callable[[Asked, Answered], None], on_action: Callable[[Asked], None] = lambda asked: None
    ) -> None:
        self._answer = answer
        self._on_action = on_action

    def send(self, asked: Asked, now: int) -> None:
        """See `Transport`."""
        self._on_action(asked)
        self._answer(asked, Answered(asked.action))

    async def drain(self, patience_s: float) -> bool:
        """Nothing is on its way."""
        return True

    async def close(self) -> None:
        """Nothing is on its way."""
