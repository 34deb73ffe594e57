"""An HTTP request in processing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol
from urllib.parse import parse_qsl, unquote

from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDictProxy

from podium.api.times import parse_duration
from podium.apirequests.http_mapping import ResourcePath
from podium.server.http.metrics import Subject, subject_of_method
from podium.server.http.security import Caller
from podium.store.errors import bad_request

_LONGEST_MANAGER = 128
_SECOND = 10**9


@dataclass(slots=True)
class Exchange:
    """A request: its decoded path and query, caller, subject, and response headers.

    `place` is its place among the API objects, None for other paths.
    """

    request: BaseRequest
    path: str
    query: list[tuple[str, str]]
    caller: Caller
    reply_headers: dict[str, str]
    place: ResourcePath | None = None
    method: str = field(init=False)
    headers: CIMultiDictProxy[str] = field(init=False)
    subject: Subject = field(init=False)

    def __post_init__(self) -> None:
        self.method, self.headers = self.request.method, self.request.headers
        self.subject = subject_of_method(self.method)

    @property
    def program(self) -> str:
        """The name of the client's program, which is its default field manager."""
        return _manager(self.headers.get("User-Agent", ""))

    def accepts(self) -> str:
        found = self.headers.getall("Accept", ())
        return found[0] if len(found) == 1 else ",".join(found)


def seconds_of(timeout: str, most: float) -> float:
    """Return the timeout that a client states, in seconds. Raises StoreError 400 for an invalid duration."""
    if not timeout:
        return most
    try:
        seconds = parse_duration(timeout) / _SECOND
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL: {error}") from None
    return min(seconds, most) if seconds > 0 else most


def check_timeout(query: list[tuple[str, str]]) -> None:
    """Raise StoreError 400 for a query with an invalid timeout."""
    seconds_of(next((value for name, value in query if name == "timeout"), ""), 0.0)


@lru_cache(maxsize=256)
def _manager(user_agent: str) -> str:
    """Return the program's name in a User-Agent header (apiserver's handlers/create.go, prefixFromUserAgent)."""
    name = user_agent.partition("/")[0]
    return "".join(letter for letter in name if letter.isprintable())[:_LONGEST_MANAGER]


_MOST_PARAMETERS = 1_000


def read_target(raw: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and query of a request line's target. Raises StoreError 400."""
    path, _, query = raw.partition("?")
    if path[:1] != "/":
        # Requests to proxies contain absolute URLs.
        path = "/" + path.partition("://")[2].partition("/")[2]
    if "%" in path:
        path = unquote(path)
    if not query:
        return path, []
    try:
        return path, parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise bad_request(f"the query has more than {_MOST_PARAMETERS} parameters") from None


class Pages(Protocol):
    """An interface to web pages and their assets, under paths of their own."""

    def has(self, path: str) -> bool: ...

    def is_public(self, method: str, path: str) -> bool:
        """Return whether the path needs no authentication because it shows nothing of the cluster."""

    async def answer(self, exchange: Exchange) -> StreamResponse:
        """Answer a request at such a path. Raises StoreError for a request that is refused."""
