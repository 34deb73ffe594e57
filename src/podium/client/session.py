"""HTTP sessions with an API server: requests, responses and lists, and watches as streams of events.

Source: k8s.io/client-go/rest (request.go).
"""

from __future__ import annotations

import asyncio
import re
import socket
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import msgspec
from yarl import URL

from podium.api.errors import InputError, PodiumError
from podium.api.meta import Raw, value_at
from podium.apirequests.http_mapping import HTTPRequest, error_of, http_request, response_of
from podium.apirequests.request import Request, Response
from podium.client.credentials import ClusterAccess, Credentials, ExecError
from podium.store import api_resources, errors, listing

_MOST_BYTES = 1 << 28
"""The maximum size of a response in bytes: a page has 500 objects of at most 3 MiB, far more than in practice."""

_MOST_LINE_BYTES = 1 << 24
_MOST_HEADER_BYTES = 1 << 16
# Paths of these characters need no encoding.
_PLAIN = re.compile(r"[A-Za-z0-9/._-]*", re.ASCII)
# TCP keepalive: after this idle time the operating system probes whether the peer is alive.
_PROBE_AFTER_S, _PROBE_EACH_S, _PROBES = 15, 5, 3
# Connection errors; processing of received data may raise the same types, and must not be caught as such.
_BREAKS = (aiohttp.ClientError, TimeoutError, ConnectionError)
# How much longer than requested a server may keep a watch open.
_WATCH_GRACE_S = 30.0


class NoAnswerError(PodiumError):
    """An error for a missing answer. ``was_sent``: the server may have received and processed the request."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Session:
    """Connections to one API server.

    ``timeout_s`` limits the wait for a response; a watch lasts as long as requested.
    """

    def __init__(
        self,
        access: ClusterAccess,
        credentials: Credentials,
        resources: api_resources.APIResources,
        *,
        user_agent: str = "podium",
        timeout_s: float = 30.0,
        connections: int = 64,
    ) -> None:
        self.resources = resources
        self.access = access
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._base = URL(access.server)
        self._root = str(self._base).rstrip("/")
        self._proxy = access.proxy or usual_proxy(self._base)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, keepalive_timeout=60.0, socket_factory=_socket, ttl_dns_cache=60
            ),
            headers={"Accept": "application/json", "User-Agent": user_agent},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_MOST_HEADER_BYTES,
            max_field_size=_MOST_HEADER_BYTES,
            # The proxy settings of the environment are resolved below; netrc passwords are not used.
            trust_env=False,
        )

    async def close(self) -> None:
        await self._http.close()

    async def answer(self, request: Request, timeout_s: float | None = None) -> Response:
        """Send a request other than a watch; wait at most ``timeout_s``.

        A refusal is a response. Raises NoAnswerError.
        """
        sent = http_request(request, self.resources)
        return await self._once(sent, self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s))

    async def read(self, path: str) -> Response:
        """Return the response at a path that is not an object's, such as `/version`. Raises NoAnswerError."""
        return await self._once(HTTPRequest(method="GET", path=path), self._timeout_s)

    @asynccontextmanager
    async def watch(self, request: Request, timeout_seconds: int) -> AsyncGenerator[AsyncGenerator[list[Raw]]]:
        """Open a watch of that duration; its events arrive in batches.

        Raises StoreError if it is refused, NoAnswerError if the connection is lost or an event is malformed.
        """
        sent = http_request(request, self.resources, timeout_seconds=timeout_seconds, bookmarks=True)
        async with self._limited(self._timeout_s):
            response = await self._send(sent)
        try:
            if response.status != 200:
                try:
                    body = await body_of(response)
                except _BREAKS as error:
                    raise _broken(error) from None
                raise error_of(response.status, _decoded(body), _retry_after_s(response.headers))
            async with aclosing(_events(response, timeout_seconds + _WATCH_GRACE_S)) as events:
                yield events
        finally:
            response.close()

    async def _once(self, sent: HTTPRequest, timeout_s: float) -> Response:
        async with self._limited(timeout_s), await self._send(sent) as response:
            body = await body_of(response)
        code, headers = response.status, response.headers
        decoded = _decoded(body)
        if decoded is None and code < 400:
            raise NoAnswerError(f"{self.access.server}: the response is not a JSON object", was_sent=True)
        warnings = tuple(headers.getall("Warning", ())) if "Warning" in headers else ()
        return response_of(code, decoded, _retry_after_s(headers), warnings)

    @asynccontextmanager
    async def _limited(self, timeout_s: float) -> AsyncGenerator[None]:
        """Limit the time for a response. Raises NoAnswerError if none arrives."""
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except TimeoutError:
            raise NoAnswerError(f"{self.access.server}: no answer in {timeout_s:.3g}s", was_sent=True) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            was_sent = not isinstance(error, aiohttp.ClientConnectorError)
            raise NoAnswerError(f"{self.access.server}: {_reason_of(error)}", was_sent=was_sent) from None

    async def _send(self, sent: HTTPRequest) -> aiohttp.ClientResponse:
        """Send a request; retry once if the credentials are refused and can be renewed."""
        response, shown = await self._send_once(sent)
        if response.status == 401:
            is_renewed = False
            try:
                with suppress(ExecError, InputError):
                    is_renewed = await self._credentials.renew(shown)
            except BaseException:
                response.close()
                raise
            if is_renewed:
                response.close()
                response, _ = await self._send_once(sent)
        return response

    async def _send_once(self, sent: HTTPRequest) -> tuple[aiohttp.ClientResponse, int]:
        """Return the response, and the number of credential changes before it."""
        try:
            headers = await self._credentials.headers()
            shown = self._credentials.changes
            tls = self._credentials.tls()
        except (ExecError, InputError) as error:
            raise NoAnswerError(f"no credentials: {error}", was_sent=False) from None
        if not sent.query and _PLAIN.fullmatch(sent.path):
            url = URL(f"{self._root}{sent.path}", encoded=True)
        else:
            # A server may have a base path.
            url = self._base.with_path(self._base.path.rstrip("/") + sent.path)
            url = url.with_query(sent.query) if sent.query else url
        if sent.content_type:
            headers = {**headers, "Content-Type": sent.content_type}
        response = await self._http.request(
            sent.method,
            url,
            data=sent.body,
            headers=headers,
            ssl=True if tls is None else tls,
            server_hostname=self.access.server_name or None,
            proxy=self._proxy,
            # A redirect would send the credentials elsewhere.
            allow_redirects=False,
        )
        return response, shown


def usual_proxy(server: URL) -> str | None:
    """Return the proxy for a server from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or None."""
    if server.host is None or urllib.request.proxy_bypass(server.host):
        return None
    return urllib.request.getproxies().get(server.scheme)


def _broken(error: Exception) -> NoAnswerError:
    return NoAnswerError(f"the watch broke: {_reason_of(error)}", was_sent=True)


async def _events(response: aiohttp.ClientResponse, timeout_s: float) -> AsyncGenerator[list[Raw]]:
    """Yield batches of watch events, each a line of JSON. Raises NoAnswerError for a malformed line."""
    rest = b""
    ends_s = asyncio.get_running_loop().time() + timeout_s
    while True:
        try:
            async with asyncio.timeout_at(ends_s):
                chunk = await response.content.readany()
        except _BREAKS as error:
            raise _broken(error) from None
        if not chunk:
            break
        lines = chunk.split(b"\n")
        lines[0] = rest + lines[0]
        rest = lines.pop()
        if len(rest) > _MOST_LINE_BYTES:
            raise NoAnswerError(f"the watch broke: an event of more than {_MOST_LINE_BYTES} bytes", was_sent=True)
        events = [_event(line) for line in lines if line.strip()]
        if events:
            yield events
    if rest.strip():
        raise NoAnswerError("the watch broke within an event", was_sent=True)


def _event(line: bytes) -> Raw:
    decoded = _decoded(line)
    if decoded is None or not isinstance(decoded.get("object"), dict) or not isinstance(decoded.get("type"), str):
        raise NoAnswerError("the watch broke: a line is not an event", was_sent=True)
    return decoded


async def body_of(response: aiohttp.ClientResponse) -> bytes:
    """Return the response body. Raises NoAnswerError if it is too long."""
    if (response.content_length or 0) > _MOST_BYTES:
        raise NoAnswerError(f"an answer of more than {_MOST_BYTES} bytes", was_sent=True)
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _MOST_BYTES:
            raise NoAnswerError(f"an answer of more than {_MOST_BYTES} bytes", was_sent=True)
        parts.append(part)
    return b"".join(parts)


def _decoded(body: bytes) -> Raw | None:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _retry_after_s(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Retry-After", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _reason_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _socket(address: Any) -> socket.socket:
    """Return a socket with TCP keepalive, which detects a dead peer."""
    family, type_, protocol, _, _ = address
    made = socket.socket(family=family, type=type_, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_AFTER_S),
        ("TCP_KEEPINTVL", _PROBE_EACH_S),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", 1_000 * (_PROBE_AFTER_S + _PROBE_EACH_S * _PROBES)),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


@dataclass(frozen=True, slots=True)
class Wait:
    """An instruction to send nothing before a time."""

    until_ns: int


@dataclass(frozen=True, slots=True)
class Send:
    """A request to send; for a watch, with its duration."""

    request: Request
    timeout_seconds: int = 0


async def server_version(session: Session, *, must_answer: bool = False) -> str:
    """Return the API server's version, such as `v1.34.9-gke.5`; "" if it does not say.

    That of Podium's own server ends in `+podium`, and its version.

    Raises NoAnswerError if the server ``must_answer`` and does not.
    """
    try:
        found = (await session.read("/version")).object or {}
    except NoAnswerError:
        if must_answer:
            raise
        return ""
    version, maker = found.get("gitVersion"), str(found.get("compiler"))
    own = f"+{maker.replace(' ', '.')}" if maker.startswith("podium ") else ""
    return f"{version}{own}" if isinstance(version, str) else ""


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
    refusal, NoAnswerError if no answer arrives. Source: k8s.io/client-go/tools/pager (ListPager).
    """
    with errors.Suppressed(_GONE):
        return await _pages(session, kind, PAGE, take)
    return await _pages(session, kind, 0, take)


async def _pages(session: Session, kind: str, limit: int, take: Callable[[list[Raw]], T]) -> list[T]:
    taken: list[T] = []
    token = ""
    while True:
        options = listing.ListOptions(limit=limit, continue_token=token)
        response = await answer_with_retries(session, Request(verb="list", kind=kind, options=options))
        taken.append(take(response.objects()))
        following = value_at(response.object, "metadata", "continue")
        if not isinstance(following, str) or not following or following == token:
            return taken
        token = following


async def answer_with_retries(session: Session, request: Request) -> Response:
    """Return the response to a request that may be repeated. Raises StoreError and NoAnswerError."""
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
