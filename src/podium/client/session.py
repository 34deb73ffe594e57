"""Speaks HTTP to an API server: a request out, its answer back; and watches, event by event.

Source: k8s.io/client-go/rest (request.go).
"""

from __future__ import annotations

import asyncio
import re
import socket
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from podium.api.errors import InputError, PodiumError
from podium.api.meta import Raw
from podium.client.access.cluster_access import ClusterAccess
from podium.client.access.credentials import Credentials, ExecError
from podium.requests.request import Request, Response
from podium.requests.wire.outgoing import Outgoing, error_of, outgoing, response_of
from podium.store.api_resources import APIResources

_MOST_BYTES = 1 << 28
"""Of one answer: a page of a list has 500 objects of 3 MiB at most, which nobody's has."""

_MOST_LINE_BYTES = 1 << 24
_MOST_HEADER_BYTES = 1 << 16
# What a path is made of that needs no encoding.
_PLAIN = re.compile(r"[A-Za-z0-9/._-]*", re.ASCII)
_KEEP_ALIVE_S = 60.0
# After that long without a word on a connection the system asks whether the other side is still there.
_PROBE_AFTER_S, _PROBE_EACH_S, _PROBES = 15, 5, 3
# What becomes of a connection; what is done with what it has brought may raise the same, and is no break.
_BREAKS = (aiohttp.ClientError, TimeoutError, ConnectionError)
# How much longer than it was asked to a server may let a watch last.
_WATCH_GRACE_S = 30.0


class NoAnswerError(PodiumError):
    """No answer came. ``was_sent``: the server may have got the request, and may have done what it asks for."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Session:
    """Connections to one API server.

    ``timeout_s`` is how long an answer may take; a watch lasts as long as it was asked for.
    """

    def __init__(
        self,
        access: ClusterAccess,
        credentials: Credentials,
        resources: APIResources,
        *,
        user_agent: str = "podium",
        timeout_s: float = 30.0,
        connections: int = 64,
        trusts_environment: bool = True,
    ) -> None:
        self.resources = resources
        self.access = access
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._base = URL(access.server)
        self._root = str(self._base).rstrip("/")
        self._proxy = access.proxy or (usual_proxy(self._base) if trusts_environment else None)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=connections, keepalive_timeout=_KEEP_ALIVE_S, socket_factory=_socket, ttl_dns_cache=60
            ),
            headers={"Accept": "application/json", "User-Agent": user_agent},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=_MOST_HEADER_BYTES,
            max_field_size=_MOST_HEADER_BYTES,
            # What the environment says of proxies is looked up once, below; passwords of netrc files are not used.
            trust_env=False,
        )

    async def close(self) -> None:
        """End all connections."""
        await self._http.close()

    async def answer(self, request: Request, timeout_s: float | None = None) -> Response:
        """Ask for something but a watch, and wait so long at most. A refusal is an answer. Raises NoAnswerError."""
        sent = outgoing(request, self.resources)
        return await self._once(sent, self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s))

    async def read(self, path: str) -> Response:
        """What the server says at a path that is no object's, such as `/version`. Raises NoAnswerError."""
        return await self._once(Outgoing(method="GET", path=path), self._timeout_s)

    @asynccontextmanager
    async def watch(self, request: Request, timeout_seconds: int) -> AsyncGenerator[AsyncGenerator[list[Raw]]]:
        """Open a watch that asks to last so long; its events come in batches, as they arrive.

        Raises StoreError where it is refused, NoAnswerError where the connection is lost or what comes is no event.
        """
        sent = outgoing(request, self.resources, timeout_seconds=timeout_seconds, bookmarks=True)
        response = await self._open(sent)
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

    async def _once(self, sent: Outgoing, timeout_s: float) -> Response:
        try:
            async with asyncio.timeout(timeout_s), await self._send(sent) as response:
                body = await body_of(response)
                headers = response.headers
                code = response.status
        except aiohttp.ClientConnectorError as error:
            raise NoAnswerError(f"{self.access.server}: {_told(error)}", was_sent=False) from None
        except TimeoutError:
            raise NoAnswerError(f"{self.access.server}: no answer in {timeout_s:.3g}s", was_sent=True) from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise NoAnswerError(f"{self.access.server}: {_told(error)}", was_sent=True) from None
        decoded = _decoded(body)
        if decoded is None and code < 400:
            raise NoAnswerError(f"{self.access.server}: what came is no object in JSON", was_sent=True)
        warnings = tuple(headers.getall("Warning", ())) if "Warning" in headers else ()
        return response_of(code, decoded, _retry_after_s(headers), warnings)

    async def _open(self, sent: Outgoing) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(sent)
        except aiohttp.ClientConnectorError as error:
            raise NoAnswerError(f"{self.access.server}: {_told(error)}", was_sent=False) from None
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise NoAnswerError(f"{self.access.server}: {_told(error)}", was_sent=True) from None

    async def _send(self, sent: Outgoing) -> aiohttp.ClientResponse:
        """Send a request; once more where what was shown is refused, and there is something else to show."""
        response, shown = await self._send_once(sent)
        if response.status == 401:
            try:
                is_renewed = await self._renew(shown)
            except BaseException:
                response.close()
                raise
            if is_renewed:
                response.close()
                response, _ = await self._send_once(sent)
        return response

    async def _send_once(self, sent: Outgoing) -> tuple[aiohttp.ClientResponse, int]:
        """The answer, and after how many changes of the credentials it came."""
        try:
            headers = await self._credentials.headers()
            shown = self._credentials.changes
            tls = self._credentials.tls()
        except (ExecError, InputError) as error:
            raise NoAnswerError(f"no credentials: {error}", was_sent=False) from None
        if sent.content_type:
            headers = {**headers, "Content-Type": sent.content_type}
        response = await self._http.request(
            sent.method,
            self._url(sent),
            data=sent.body,
            headers=headers,
            ssl=True if tls is None else tls,
            server_hostname=self.access.server_name or None,
            proxy=self._proxy,
            # A redirect would take the credentials elsewhere.
            allow_redirects=False,
        )
        return response, shown

    def _url(self, sent: Outgoing) -> URL:
        """The URL of a request; a server may stand behind a path of its own."""
        if not sent.query and _PLAIN.fullmatch(sent.path):
            return URL(f"{self._root}{sent.path}", encoded=True)
        path = self._base.path.rstrip("/") + sent.path
        url = self._base.with_path(path)
        return url.with_query(sent.query) if sent.query else url

    async def _renew(self, refused: int) -> bool:
        try:
            return await self._credentials.renew(refused)
        except (ExecError, InputError):
            return False


def usual_proxy(server: URL) -> str | None:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server; None for none."""
    if server.host is None or urllib.request.proxy_bypass(server.host):
        return None
    return urllib.request.getproxies().get(server.scheme)


def _broken(error: Exception) -> NoAnswerError:
    return NoAnswerError(f"the watch broke: {_told(error)}", was_sent=True)


async def _events(response: aiohttp.ClientResponse, timeout_s: float) -> AsyncGenerator[list[Raw]]:
    """The events of a watch, each a line of JSON. Raises NoAnswerError for a line that is none."""
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
        raise NoAnswerError("the watch broke: what came is no event", was_sent=True)
    return decoded


async def body_of(response: aiohttp.ClientResponse) -> bytes:
    """The answer's body. Raises NoAnswerError where it is too long."""
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
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _retry_after_s(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Retry-After", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _socket(address: Any) -> socket.socket:
    """A socket that notices when the other side is gone without a word."""
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
