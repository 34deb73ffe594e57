"""Credentials of requests, kept current: tokens and certificates rotate while a process runs.

Source: k8s.io/client-go/transport (cachingTokenSource, certRotation), rest (Config).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import signal
import ssl
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from podium.api.errors import InputError, PodiumError, escape, shown
from podium.api.times import parse_time

_TIMEOUT_S = 60.0
_MOST_BYTES = 1 << 20
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_REREAD_NS = 60 * 10**9
# Credentials are renewed this long before they expire.
_LEEWAY_NS = 60 * 10**9


class ExecError(PodiumError):
    """An error of a plugin that returned no credentials."""


class _Secret(msgspec.Struct, frozen=True, kw_only=True):
    """The base of structs that are not shown, so that secrets do not appear in logs."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__


class ExecCredential(_Secret, frozen=True, kw_only=True, rename="camel"):
    """The credentials from a plugin; without an expiration they hold until they are refused."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""

    @property
    def pair(self) -> tuple[bytes, bytes]:
        """The certificate and its key; both are empty unless both are given."""
        pair = self.client_certificate_data.encode(), self.client_key_data.encode()
        return pair if all(pair) else (b"", b"")

    @property
    def expires_ns(self) -> int | None:
        return parse_time(self.expiration_timestamp) if self.expiration_timestamp else None


class _Written(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: ExecCredential | None = None


async def run_plugin(plugin: ExecPlugin, access: ClusterAccess) -> ExecCredential:
    """Run a plugin for its credentials. Raises ExecError with the problem; its output is never shown."""
    if plugin.api_version not in _VERSIONS:
        raise ExecError(f"exec plugin {plugin.command}: {plugin.api_version} is none of {', '.join(_VERSIONS)}")
    given = {variable.name: variable.value for variable in plugin.env or ()}
    environment = {**os.environ, **given, "KUBERNETES_EXEC_INFO": _info(plugin, access)}
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            plugin.command,
            *(plugin.args or ()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    )
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            # A start that is cancelled itself would leave the plugin's child processes.
            process = await asyncio.shield(starting)
            output, _ = await process.communicate()
    except TimeoutError:
        raise ExecError(f"exec plugin {plugin.command}: gave no answer in {_TIMEOUT_S:.0f}s") from None
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise ExecError(f"exec plugin {plugin.command}: {error.strerror or error}{escape(hint, 500)}") from None
    finally:
        # The caller may have run out of time; this also ends the plugin's child processes.
        with suppress(OSError):
            process = await asyncio.shield(starting)
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    if process.returncode:
        raise ExecError(f"exec plugin {plugin.command}: ended with code {process.returncode}")
    return _read(plugin, output)


def _info(plugin: ExecPlugin, access: ClusterAccess) -> str:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = {
            "server": access.server,
            **({"tls-server-name": access.server_name} if access.server_name else {}),
            **({"insecure-skip-tls-verify": True} if access.is_insecure else {}),
        }
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _read(plugin: ExecPlugin, output: bytes) -> ExecCredential:
    try:
        written = msgspec.json.decode(output[:_MOST_BYTES], type=_Written)
        found = written.status
        if found is not None:
            found.expires_ns  # noqa: B018 - it raises ValueError for an invalid time
    except (msgspec.DecodeError, ValueError):
        raise ExecError(f"exec plugin {plugin.command}: its output is not an ExecCredential") from None
    if written.api_version != plugin.api_version or written.kind != "ExecCredential" or found is None:
        raise ExecError(f"exec plugin {plugin.command}: its output is not an ExecCredential of {plugin.api_version}")
    if not found.token and not any(found.pair):
        raise ExecError(f"exec plugin {plugin.command}: gave neither a token nor a certificate with its key")
    return found


class Credentials:
    """The headers and the TLS context of requests.

    ``now`` returns the time, for expiry. Plugins run only with ``allows_exec``.
    """

    def __init__(self, access: ClusterAccess, now: Callable[[], int], *, allows_exec: bool = False) -> None:
        """Prepare the credentials. Raises InputError for a context with a plugin, unless plugins are allowed."""
        plugin = access.identity.exec_plugin
        if plugin is not None and not allows_exec:
            problem = f"has the program {plugin.command} run for its credentials; allow that with --allow-exec-plugins"
            raise InputError(problem, source=access.source, object=f"context {access.name}")
        self._access = access
        self._now = now
        self._headers: dict[str, str] = {}
        self.changes = 0
        """The number of times that the credentials have changed."""
        self._read_ns: int | None = None
        self._given: ExecCredential | None = None
        # Concurrent requests may need new credentials at once; one of them fetches them for all.
        self._reading = asyncio.Lock()
        self._context: ssl.SSLContext | None = None
        # The inputs of the TLS context: the certificate files' modification times, and the plugin's credentials.
        self._made_of: object = None

    async def headers(self) -> dict[str, str]:
        """Return the authentication headers of a request. Raises InputError and ExecError."""
        if self._is_old():
            async with self._reading:
                if self._is_old():
                    await self._read(asks_anew=False)
        return self._headers

    async def renew(self, refused: int) -> bool:
        """Renew the credentials that the API server refused after so many ``changes``; return whether there are others.

        The previous ones remain in use until then. Raises InputError and ExecError.
        """
        async with self._reading:
            if self.changes == refused:
                await self._read(asks_anew=True)
        return self.changes != refused

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context of a connection, rebuilt when certificates change; None for plain HTTP."""
        if not self._access.server.startswith("https://"):
            return None
        identity = self._access.identity
        files = (self._access.authority_file, identity.certificate_file, identity.key_file)
        made_of = (*map(_changed_ns, files), self._given)
        if self._context is None or made_of != self._made_of:
            self._context = _tls_context(self._access, self._given)
            self._made_of = made_of
        return self._context

    def _is_old(self) -> bool:
        now = self._now()
        return self._read_ns is None or now - self._read_ns >= _REREAD_NS or self._is_expired(now)

    def _is_expired(self, now: int) -> bool:
        expires_ns = None if self._given is None else self._given.expires_ns
        return expires_ns is not None and now >= expires_ns - _LEEWAY_NS

    async def _read(self, *, asks_anew: bool) -> None:
        now = self._now()
        identity, shown = self._access.identity, (self._headers, self._given)
        if identity.exec_plugin is not None and (self._given is None or asks_anew or self._is_expired(now)):
            self._given = await run_plugin(identity.exec_plugin, self._access)
        self._headers = _authorization(identity, self._given)
        self._read_ns = now
        if (self._headers, self._given) != shown:
            self.changes += 1


def _authorization(identity: Identity, given: ExecCredential | None) -> dict[str, str]:
    token = given.token if given is not None else ""
    if not token and identity.token_file:
        try:
            token = Path(identity.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InputError("cannot be read as a token", source=identity.token_file) from None
    token = token or identity.token
    if token:
        return {"Authorization": f"Bearer {token}"}
    if identity.username:
        pair = base64.b64encode(f"{identity.username}:{identity.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def _tls_context(access: ClusterAccess, given: ExecCredential | None) -> ssl.SSLContext:
    """Return a verifying context for TLS 1.2 or newer, with the client's certificate if it has one.

    Raises InputError.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority_data or access.authority_file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            if access.authority_data:
                context.load_verify_locations(cadata=access.authority_data.decode("ascii"))
            else:
                context.load_verify_locations(cafile=access.authority_file)
        except (OSError, UnicodeDecodeError):
            source = access.source if access.authority_data else access.authority_file
            raise InputError("holds no certificates of an authority, as PEM", source=source) from None
    identity = access.identity
    certificate, key = (b"", b"") if given is None else given.pair
    certificate, key = certificate or identity.certificate_data, key or identity.key_data
    if certificate or identity.certificate_file:
        _show(context, identity, certificate, key)
    return context


def _show(context: ssl.SSLContext, identity: Identity, certificate: bytes, key: bytes) -> None:
    """Load a client certificate. Python reads keys only from files, so the key is briefly in a temporary file."""
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        paths = []
        for name, data, file in (
            ("certificate", certificate, identity.certificate_file),
            ("key", key, identity.key_file),
        ):
            path = Path(folder) / name
            if data:
                path.touch(mode=0o600)
                path.write_bytes(data)
            paths.append(str(path) if data else file)
        try:
            context.load_cert_chain(paths[0], paths[1] or None)
        except (OSError, ssl.SSLError):
            source = identity.certificate_file or "client-certificate-data"
            raise InputError("is not a certificate with its key in PEM", source=source) from None


def _changed_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns if path else 0
    except OSError:
        return 0


class ExecVariable(msgspec.Struct, frozen=True, kw_only=True):
    """An environment variable of a program."""

    name: str
    value: str = ""


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A program that issues credentials, as in a kubeconfig (client.authentication.k8s.io ExecConfig)."""

    command: str
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provide_cluster_info: bool = False


class Identity(_Secret, frozen=True, kw_only=True):
    """A client's means of authentication; empty fields are not used.

    A token in a file is read again from time to time, since it rotates. Certificates are in a file or, as PEM, in
    ``..._data``; data takes precedence over a file (client-go, rest.Config).
    """

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""
    exec_plugin: ExecPlugin | None = None


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """An API server, and the client's identity.

    ``server`` is its URL. ``name`` is the display name: the context's name, or in-cluster. ``is_insecure`` disables the
    verification of the server's certificate. ``namespace`` is that of the context, "" for none.
    """

    name: str
    server: str
    source: str = ""
    namespace: str = ""
    authority_file: str = ""
    authority_data: bytes = b""
    server_name: str = ""
    is_insecure: bool = False
    proxy: str = ""
    identity: Identity = Identity()


def decoded_base64(text: str, *, source: str, path: str, object_: str = "") -> bytes:
    """Return the bytes that base64 stands for. Raises InputError, without the text, which may be a key."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("is not base64", source=source, object=object_, path=path) from None


def url_problem(url: str, what: str, *, may_have_password: bool = False) -> str:
    """Return the problem of a URL, "" if it is valid. A URL that may contain a password is not shown."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        has_password = "@" in parts.netloc
    except ValueError:
        is_url = has_password = False
    if not is_url:
        shown_url = "" if "@" in url else f"{shown(url)} "
        return f"{shown_url}is not a URL of {what}; write https://HOST:PORT"
    if has_password and not may_have_password:
        return "has a name or a password in it; they belong to the user"
    return ""
