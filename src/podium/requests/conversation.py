"""Actions of several requests, and how whoever reaches the API server carries them out.

A conversation yields a request and is sent its answer, until it returns. A refusal is raised in it as StoreError; one
that it does not catch is what its action comes to. So the simulator, which has the answers at once, and a client, which
waits for them, run the same conversations. What one returns is the object that its action is about, as it was last
answered: the version that was written, or the one that was read where nothing was to be written; None where there is
none, or the server does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from podium.api.meta import Raw
from podium.machines.observations import Problem
from podium.requests.request import Request, Response
from podium.store.errors import StoreError

Conversation = Generator[Request, Response, Raw | None]
Ask = Callable[[Request, int], Response]
"""Answers a request at a time, as `Router.answer` does."""

_SECOND = 10**9


def hold(conversation: Conversation, ask: Ask, now: int) -> Raw | None:
    """Lead a conversation to its end; what it returns. Raises StoreError for what it does not get over."""
    try:
        request = next(conversation)
        while True:
            response = ask(request, now)
            error = response.error
            request = conversation.send(response) if error is None else conversation.throw(error)
    except StopIteration as end:
        written: Raw | None = end.value
        return written


def problem_of(error: StoreError) -> Problem:
    """A refusal as the machine is told of it."""
    seconds = error.details.get("retryAfterSeconds")
    wait_ns = None if seconds is None else int(seconds) * _SECOND
    causes = error.details.get("causes") or [{}]
    return Problem(error.code, error.reason, error.message, wait_ns, causes[0].get("reason", ""))
