"""Paginated lists of all objects of a kind.

Source: k8s.io/client-go/tools/pager (ListPager).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from podium.api.meta import Raw
from podium.api.nested import value_at
from podium.apirequests.request import Request, Response
from podium.client.session import NoAnswerError, Session
from podium.store.errors import StoreError
from podium.store.listing import ListOptions

PAGE = 500
"""The page size of lists, as in kubectl and client-go."""

_GONE = 410
# Transient errors, which are retried a few times.
_PASSING = frozenset((408, 429, 500, 502, 503, 504))
_TRIES = 5
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0

T = TypeVar("T")


async def read_list(session: Session, kind: str, take: Callable[[list[Raw]], T]) -> list[T]:
    """Return the results of `take` for each page of all objects of a kind, in all namespaces.

    If the version of the pages expires meanwhile, the list is read again, in one piece. Raises StoreError for a
    refusal, NoAnswerError if no answer arrives.
    """
    try:
        return await _pages(session, kind, PAGE, take)
    except StoreError as error:
        if error.code != _GONE:
            raise
        return await _pages(session, kind, 0, take)


async def _pages(session: Session, kind: str, limit: int, take: Callable[[list[Raw]], T]) -> list[T]:
    taken: list[T] = []
    token = ""
    while True:
        options = ListOptions(limit=limit, continue_token=token)
        response = await _answer(session, Request(verb="list", kind=kind, options=options))
        taken.append(take(response.objects()))
        following = value_at(response.object, "metadata", "continue")
        if not isinstance(following, str) or not following or following == token:
            return taken
        token = following


async def _answer(session: Session, request: Request) -> Response:
    """Return the response to an idempotent request, with retries. Raises StoreError and NoAnswerError."""
    wait_s = _FIRST_WAIT_S
    for left in reversed(range(_TRIES)):
        try:
            response = await session.answer(request)
        except NoAnswerError:
            if not left:
                raise
        else:
            if response.error is None:
                return response
            if response.error.code not in _PASSING or not left:
                raise response.error
            asked_s = response.error.details.get("retryAfterSeconds", 0)
            wait_s = max(wait_s, float(asked_s)) if isinstance(asked_s, int) else wait_s
        await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))
        wait_s *= 2
    raise AssertionError("the last try answers or raises")
