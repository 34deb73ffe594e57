"""Speaks to one extender over HTTP.

Source: pkg/scheduler/extender.go (NewHTTPExtender, makeTransport, send).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from podium.api.errors import InputError
from podium.client.access.cluster_access import ClusterAccess, Identity
from podium.client.access.credentials import Credentials
from podium.client.session import NoAnswerError, body_of, usual_proxy
from podium.framework.extenders import ExtenderError
from podium.framework.settings.extenders import Extender, ExtenderTLSConfig, timeout_ns

Value = TypeVar("Value")

_CONNECTIONS = 32


class UnansweredError(ExtenderError):
    """No answer came. ``was_sent``: the extender may have got the question, and may have done what it asks for."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class ExtenderClient:
    """Asks one extender; each question may take as long as its configuration says, all in all.

    ``name`` is its URL, without a password that may be in it.
    """

    def __init__(self, settings: Extender, source: str, now: Callable[[], int]) -> None:
        """Raises InputError for a URL or certificates that cannot be used."""
        self.settings = settings
        try:
            url = URL(settings.url_prefix)
        except ValueError:
            url = URL()
        self.name = str(url.with_user(None)) if url.host else settings.url_prefix
        if url.scheme not in ("http", "https") or not url.host:
            raise InputError(f"{self.name!r} is no http or https URL", path=".extenders.urlPrefix", source=source)
        self._prefix = settings.url_prefix.rstrip("/")
        self._timeout_s = timeout_ns(settings) / 1e9
        self._proxy = usual_proxy(url)
        access = _access(settings, self.name, source)
        self._server_name = access.server_name
        self.is_unchecked = url.scheme == "https" and access.is_insecure
        self._credentials = Credentials(access, now)
        self._credentials.tls()
        self._http: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Begin, on the event loop on which it is asked."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        """End all connections."""
        if self._http is not None:
            await self._http.close()

    async def ask(self, verb: str, body: bytes, most_s: float = float("inf")) -> bytes:
        """The answer to a question, both JSON; it may take so long at most. Raises ExtenderError."""
        timeout_s = min(self._timeout_s, most_s)
        try:
            async with asyncio.timeout(timeout_s):
                code, answer = await self._post(verb, body)
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            raise UnansweredError(self._failed(verb, str(error)), was_sent=False) from None
        except TimeoutError:
            raise UnansweredError(self._failed(verb, f"no answer in {timeout_s:.3g}s"), was_sent=True) from None
        except (aiohttp.ClientError, OSError, NoAnswerError) as error:
            raise UnansweredError(self._failed(verb, str(error) or type(error).__name__), was_sent=True) from None
        if code != 200:
            raise ExtenderError(self._failed(verb, f"code {code}"))
        return answer

    def understood(self, verb: str, answer: bytes, read: Callable[[object], Value]) -> Value:
        """What an answer says. Raises ExtenderError, which says whose it is, where it tells an error or is none."""
        try:
            return read(msgspec.json.decode(answer))
        except ExtenderError as error:
            raise ExtenderError(self._failed(verb, str(error))) from None
        except (msgspec.DecodeError, RecursionError):
            raise ExtenderError(self._failed(verb, "what came is no JSON")) from None

    async def _post(self, verb: str, body: bytes) -> tuple[int, bytes]:
        if self._http is None:
            raise AssertionError("an extender is asked before its client is open")
        try:
            tls = self._credentials.tls()
        except InputError as error:
            raise UnansweredError(self._failed(verb, str(error)), was_sent=False) from None
        request = self._http.post(
            URL(f"{self._prefix}/{verb}"),
            data=body,
            headers={"Content-Type": "application/json"},
            ssl=True if tls is None else tls,
            server_hostname=self._server_name or None,
            proxy=self._proxy,
            allow_redirects=False,
        )
        async with request as response:
            return response.status, await body_of(response)

    def _failed(self, verb: str, problem: str) -> str:
        return f"failed {verb} with extender at URL {self.name}: {problem}"


def _access(settings: Extender, name: str, source: str) -> ClusterAccess:
    """How the connection is secured: without an authority, HTTPS that the configuration asks for is not checked."""
    tls = settings.tls_config or ExtenderTLSConfig()
    data = {field: _decoded(getattr(tls, field), field, source) for field in ("ca_data", "cert_data", "key_data")}
    has_authority = bool(tls.ca_file or tls.ca_data)
    return ClusterAccess(
        name=name,
        server=settings.url_prefix,
        source=source,
        authority_file=tls.ca_file,
        authority_data=data["ca_data"],
        server_name=tls.server_name,
        is_insecure=tls.insecure or (settings.enable_https and not has_authority),
        identity=Identity(
            certificate_file=tls.cert_file,
            certificate_data=data["cert_data"],
            key_file=tls.key_file,
            key_data=data["key_data"],
        ),
    )


def _decoded(text: str, field: str, source: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        path = ".extenders.tlsConfig." + field.replace("_d", "D")
        raise InputError("is not base64", path=path, source=source) from None
