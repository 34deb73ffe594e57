"""One request over HTTP, with what has been found out about it."""

from __future__ import annotations

from functools import lru_cache

from aiohttp.web import BaseRequest

from podium.api.times import parse_duration
from podium.requests.request import FieldValidation
from podium.requests.wire.incoming import Asker
from podium.requests.wire.paths import Place
from podium.server.http.metrics import Subject, subject_of_method
from podium.server.http.security import Caller
from podium.store.errors import bad_request

_LONGEST_MANAGER = 128
_SECOND = 10**9


class Exchange:
    """A request: its decoded path and query, who asks, what it is about, and the headers of its reply.

    `place` is where it goes among objects, None where it goes elsewhere.
    """

    __slots__ = ("caller", "headers", "method", "path", "place", "query", "reply_headers", "request", "subject")

    def __init__(
        self,
        request: BaseRequest,
        path: str,
        query: list[tuple[str, str]],
        caller: Caller,
        reply_headers: dict[str, str],
    ) -> None:
        self.request = request
        self.method = request.method
        self.headers = request.headers
        self.path = path
        self.query = query
        self.caller = caller
        self.reply_headers = reply_headers
        self.place: Place | None = None
        self.subject: Subject = subject_of_method(request.method)

    def asker(self, field_validation: FieldValidation) -> Asker:
        """Who asks, as requests have it: whose fields are written is told by the program, where it does not say."""
        return Asker(
            user=self.caller.user,
            field_manager=_manager(self.headers.get("User-Agent", "")),
            field_validation=field_validation,
        )

    def accepts(self) -> str:
        """The header Accept, as one."""
        found = self.headers.getall("Accept", ())
        return found[0] if len(found) == 1 else ",".join(found)


def seconds_of(timeout: str, most: float) -> float:
    """How long a client waits who says so. Raises StoreError 400 for what is no duration."""
    if not timeout:
        return most
    try:
        seconds = parse_duration(timeout) / _SECOND
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL: {error}") from None
    return min(seconds, most) if seconds > 0 else most


@lru_cache(maxsize=256)
def _manager(user_agent: str) -> str:
    """The program's name in a header User-Agent (apiserver's handlers/create.go, prefixFromUserAgent)."""
    name = user_agent.partition("/")[0]
    return "".join(letter for letter in name if letter.isprintable())[:_LONGEST_MANAGER]
