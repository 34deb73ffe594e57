"""Shows who one is, with each request anew: tokens and certificates rotate while a process lives.

Source: k8s.io/client-go/transport (cachingTokenSource, certRotation), rest (Config).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from podium.api.errors import InputError
from podium.client.access.cluster_access import ClusterAccess, Identity
from podium.client.access.exec_plugin import ExecCredential, ExecError, run_plugin

_REREAD_NS = 60 * 10**9
# What is about to expire is not used any more.
_LEEWAY_NS = 60 * 10**9


class Credentials:
    """The headers and the TLS context of a request.

    ``now`` is the time, for what expires. Nothing is run unless ``allows_exec``.
    """

    def __init__(self, access: ClusterAccess, now: Callable[[], int], *, allows_exec: bool = False) -> None:
        """Raises InputError for a context that asks for a program, where that is not allowed."""
        plugin = access.identity.exec_plugin
        if plugin is not None and not allows_exec:
            problem = f"has the program {plugin.command} run for its credentials; allow that with --allow-exec-plugins"
            raise InputError(problem, source=access.source, object=f"context {access.name}")
        self._access = access
        self._now = now
        self._headers: dict[str, str] = {}
        self.changes = 0
        """How often what is shown has become something else."""
        self._read_ns: int | None = None
        self._given: ExecCredential | None = None
        # Many requests may find at once that they have nothing to show; one of them looks for all.
        self._reading = asyncio.Lock()
        self._context: ssl.SSLContext | None = None
        # What the context was made of: the certificate files' times of change, and what a plugin gave out.
        self._made_of: object = None

    async def headers(self) -> dict[str, str]:
        """What a request says of who asks. Raises InputError and ExecError."""
        if self._is_old():
            async with self._reading:
                if self._is_old():
                    await self._read(asks_anew=False)
        return self._headers

    async def renew(self, refused: int) -> bool:
        """The API server has refused what was shown after so many ``changes``; whether there is something else to show.

        What there was is shown until there is. Raises InputError and ExecError.
        """
        async with self._reading:
            if self.changes == refused:
                await self._read(asks_anew=True)
        return self.changes != refused

    def tls(self) -> ssl.SSLContext | None:
        """The TLS context for a connection, made anew when certificates change; None for plain HTTP."""
        if not self._access.server.startswith("https://"):
            return None
        made_of = (*map(_changed_ns, self._files()), self._given)
        if self._context is None or made_of != self._made_of:
            self._context = _tls_context(self._access, self._given)
            self._made_of = made_of
        return self._context

    def _files(self) -> list[str]:
        identity = self._access.identity
        return [self._access.authority_file, identity.certificate_file, identity.key_file]

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
    """Verified TLS 1.2 or newer, with the client's certificate where it has one. Raises InputError."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif access.authority_data or access.authority_file:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _trust(context, access)
    identity = access.identity
    certificate = (given.certificate_data if given is not None else b"") or identity.certificate_data
    key = (given.key_data if given is not None else b"") or identity.key_data
    if certificate or identity.certificate_file:
        _show(context, identity, certificate, key)
    return context


def _trust(context: ssl.SSLContext, access: ClusterAccess) -> None:
    try:
        if access.authority_data:
            context.load_verify_locations(cadata=access.authority_data.decode("ascii"))
        else:
            context.load_verify_locations(cafile=access.authority_file)
    except (OSError, UnicodeDecodeError):
        source = access.source if access.authority_data else access.authority_file
        raise InputError("holds no certificates of an authority, as PEM", source=source) from None


def _show(context: ssl.SSLContext, identity: Identity, certificate: bytes, key: bytes) -> None:
    """Have the context show a certificate. Python reads keys from files alone; they lie in one for a moment."""
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
            raise InputError("is no certificate with its key, as PEM", source=source) from None


def _changed_ns(path: str) -> int:
    if not path:
        return 0
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


__all__ = ["Credentials", "ExecError"]
