"""The server's settings: address, authentication, and limits for clients."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.api.errors import InputError
from podium.apirequests.authorization import Authorizer, User
from podium.server.flow_control import FlowControl

SHORTEST_TOKEN = 16
"""The minimum length of a token in characters."""

_LONGEST = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits, with the defaults of kube-apiserver (apiserver, pkg/server/config.go and secure_serving.go).

    A request in flight is one that is processed now; watches do not count. At most `pending_bytes` are buffered for a
    watcher that does not read; more is sent after it has read them. A client that does not read for `stall_seconds` is
    disconnected.
    """

    body_bytes: int = 3 * 1024 * 1024
    header_bytes: int = 1024 * 1024
    header_seconds: float = 32.0
    idle_seconds: float = 90.0
    request_seconds: float = 60.0
    reads_in_flight: int = 400
    writes_in_flight: int = 200
    watches: int = 10_000
    watch_seconds: float = 1_800.0
    bookmark_seconds: float = 60.0
    pending_bytes: int = 1024 * 1024
    stall_seconds: float = 30.0
    handshake_seconds: float = 10.0
    stop_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    """PEM files: the server's certificate and key, and the CA certificates for client certificates."""

    certificate_file: str
    key_file: str
    client_authority_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token, and the identity that it gives. Its text appears in no message and no log."""

    text: str = field(repr=False)
    user: str = "kubernetes-admin"
    reads_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a server. Port 0 selects a free port.

    A client without a token or a certificate is `anonymous_user`, if the server allows that. `checks` are readiness
    checks by name; each returns the problem, "" if healthy. `audit` receives a line of JSON for each request that may
    change something. `collectors` add metrics. `identify` returns the user of a token that the cluster issued, and
    `authorizer` decides what users may do; without it they may do everything. `flows` are named in responses.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: TLS | None = None
    tokens: tuple[Token, ...] = ()
    anonymous_user: str = "kubernetes-admin"
    limits: ServerLimits = ServerLimits()
    checks: tuple[tuple[str, Callable[[], str]], ...] = ()
    audit: Callable[[bytes], None] | None = None
    collectors: tuple[Any, ...] = ()
    identify: Callable[[str], User | None] = field(default=lambda _: None, repr=False)
    authorizer: Authorizer | None = None
    flows: FlowControl | None = None


def read_token(path: str, *, is_shared: bool = False) -> str:
    """Return the token in a file; one that is mounted into a container may be ``is_shared`` with its group.

    Raises InputError for a file that cannot be read, that other users can read, or that holds no token.
    """
    file = Path(path)
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        with file.open(encoding="utf-8", errors="replace") as opened:
            token = opened.read(_LONGEST + 1).strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if not is_shared and sys.platform != "win32" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("others than its owner can read or write it; chmod 600 would be right", source=path)
    if not token or len(token) > _LONGEST or any(character.isspace() for character in token):
        raise InputError("one token is needed, and nothing else", source=path)
    if len(token) < SHORTEST_TOKEN:
        raise InputError(f"holds a token of less than {SHORTEST_TOKEN} letters; make it longer", source=path)
    return token
