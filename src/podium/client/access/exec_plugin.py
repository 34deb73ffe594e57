"""Programs that give out credentials. They run only where people allow it, without a shell.

Source: k8s.io/client-go/plugin/pkg/client/auth/exec, client.authentication.k8s.io/v1.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress

import msgspec

from podium.api.errors import PodiumError, escape
from podium.api.times import parse_time
from podium.client.access.cluster_access import ClusterAccess, ExecPlugin

_TIMEOUT_S = 60.0
_MOST_BYTES = 1 << 20
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecError(PodiumError):
    """A plugin gave no credentials."""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class ExecCredential(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin gave out; ``expires_ns`` None for what holds until it is refused."""

    token: str
    certificate_data: bytes
    key_data: bytes
    expires_ns: int | None

    def __repr__(self) -> str:
        """Nothing of it: secrets have no place in logs."""
        return "<ExecCredential>"

    __str__ = __repr__


async def run_plugin(plugin: ExecPlugin, access: ClusterAccess) -> ExecCredential:
    """Run a plugin for its credentials. Raises ExecError with what is wrong; its output is shown to nobody."""
    if plugin.api_version not in _VERSIONS:
        raise ExecError(f"exec plugin {plugin.command}: {plugin.api_version} is none of {', '.join(_VERSIONS)}")
    environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": _info(plugin, access)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise ExecError(f"exec plugin {plugin.command}: {error.strerror or error}{escape(hint, 500)}") from None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise ExecError(f"exec plugin {plugin.command}: gave no answer in {_TIMEOUT_S:.0f}s") from None
    finally:
        # Who waits for it may have no more time; what it has started itself ends with it.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise ExecError(f"exec plugin {plugin.command}: ended with code {process.returncode}")
    return _read(plugin, output)


def _info(plugin: ExecPlugin, access: ClusterAccess) -> str:
    spec: dict[str, object] = {"interactive": False}
    if plugin.provides_cluster_info:
        spec["cluster"] = {
            "server": access.server,
            **({"tls-server-name": access.server_name} if access.server_name else {}),
            **({"insecure-skip-tls-verify": True} if access.is_insecure else {}),
        }
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _read(plugin: ExecPlugin, output: bytes) -> ExecCredential:
    try:
        credential = msgspec.json.decode(output[:_MOST_BYTES], type=_Credential)
        expires = credential.status.expiration_timestamp if credential.status else ""
        expires_ns = parse_time(expires) if expires else None
    except (msgspec.DecodeError, ValueError):
        raise ExecError(f"exec plugin {plugin.command}: what it wrote is no ExecCredential") from None
    status = credential.status
    if credential.api_version != plugin.api_version or credential.kind != "ExecCredential" or status is None:
        raise ExecError(f"exec plugin {plugin.command}: what it wrote is no ExecCredential of {plugin.api_version}")
    has_pair = bool(status.client_certificate_data) and bool(status.client_key_data)
    if not status.token and not has_pair:
        raise ExecError(f"exec plugin {plugin.command}: gave neither a token nor a certificate with its key")
    return ExecCredential(
        token=status.token,
        certificate_data=status.client_certificate_data.encode() if has_pair else b"",
        key_data=status.client_key_data.encode() if has_pair else b"",
        expires_ns=expires_ns,
    )
