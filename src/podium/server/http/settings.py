"""How the server is set up: where it listens, whom it lets in, and what one client can take of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


class Collector(Protocol):
    """What tells metrics, as prometheus_client asks for them."""

    def collect(self) -> Iterator[Any]:
        """The families of metrics."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What there is at most, as kube-apiserver has it (apiserver, pkg/server/config.go and secure_serving.go).

    A request in flight is one that is answered now; watches do not count. `pending_bytes` wait for a watcher who does
    not read; more is sent when it has read them. Whoever does not read for `stall_seconds` is dropped.
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
    """Files in PEM: the server's certificate and key, and those whose signature makes a client's certificate good."""

    certificate_file: str
    key_file: str
    client_authority_file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a client shows to be let in, and whom that makes it. Its text is in no message and no log."""

    text: str = field(repr=False)
    user: str = "kubernetes-admin"
    reads_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server is set up. Port 0 is any that is free.

    Who comes without a token or a certificate is `anonymous_user`, where the server may do without. `checks` are by
    name what has to be well for the server to be ready: each answers with what is wrong, "" for nothing.
    `audit` takes a line of JSON about each request that may change something. `collectors` tell further metrics.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: TLS | None = None
    tokens: tuple[Token, ...] = ()
    anonymous_user: str = "kubernetes-admin"
    limits: Limits = Limits()
    checks: tuple[tuple[str, Callable[[], str]], ...] = ()
    audit: Callable[[bytes], None] | None = None
    collectors: tuple[Collector, ...] = ()
