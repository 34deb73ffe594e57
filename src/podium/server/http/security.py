"""The server's settings, authentication, and the addresses on which the server may listen.

On loopback every client counts as the user who started the server, unless there are tokens. On any other address each
client needs a token or a certificate, over TLS.
"""

from __future__ import annotations

import hmac
import ipaddress
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from podium.api.errors import InputError, os_error_as, shown
from podium.apirequests import authorization
from podium.apirequests.authorization import (
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    Authorizer,
    FlowControl,
    User,
    groups_of,
)
from podium.store.errors import StoreError, bad_request

_LOOPBACK_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")
_BEARER = "bearer "
_IMPERSONATE = "impersonate-"
_EXTRA = f"{_IMPERSONATE}extra-"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's identity, and whether it may only read."""

    identity: User
    reads_only: bool = False


_STRANGER = Caller(User("system:anonymous", (UNAUTHENTICATED,)), reads_only=True)


def check_settings(settings: ServerSettings) -> None:
    """Raise InputError for an address on which the server must not listen with so little protection."""
    tls = settings.tls
    for token in settings.tokens:
        if len(token.text) < SHORTEST_TOKEN or not token.text.isascii() or not token.text.isprintable():
            raise InputError(f"the token of {shown(token.user)} has to have {SHORTEST_TOKEN} plain letters or more")
    if is_loopback(settings.host):
        return
    where = f"the server cannot listen on {shown(settings.host)}"
    if tls is None:
        raise InputError(f"{where} without TLS: give it a certificate and a key, or listen on 127.0.0.1")
    if not settings.tokens and not tls.client_authority_file:
        raise InputError(f"{where} for everybody: give it a token or an authority for clients' certificates")


def is_loopback(host: str) -> bool:
    """Return whether a host, given as a name or an address, is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() in _LOOPBACK_NAMES


def is_foreign_host(host: str, listens_on: str) -> bool:
    """Return whether a Host header names another machine although the server listens only on loopback.

    A web page's name may resolve to this machine (DNS rebinding); then the header has that name.
    """
    name = host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
    return bool(host) and is_loopback(listens_on) and not is_loopback(name)


def ssl_context(tls: TLS | None) -> ssl.SSLContext | None:
    """Return the TLS context; None for plain connections. Raises InputError for unusable files."""
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    file = tls.certificate_file
    try:
        context.load_cert_chain(tls.certificate_file, tls.key_file or None, password=_no_password)
        if tls.client_authority_file:
            file = tls.client_authority_file
            context.load_verify_locations(cafile=file)
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ValueError) as error:
        raise InputError(f"is not a valid certificate with its key in PEM: {error}", source=file) from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password; give one without")


class Guard:
    """An authenticator of requests."""

    def __init__(self, settings: ServerSettings) -> None:
        self._tokens = [(token.text.encode(), Caller(User(token.user), token.reads_only)) for token in settings.tokens]
        asks_all = bool(settings.tokens) or not is_loopback(settings.host)
        authority = settings.tls is not None and bool(settings.tls.client_authority_file)
        self._anonymous = None if asks_all or authority else Caller(User(settings.anonymous_user))
        self._listens_on = settings.host
        self._identify, self._authorizer = settings.identify, settings.authorizer
        # Host headers that passed the check; few clients use many names for the server.
        self._hosts: set[str] = set()

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raise StoreError 403 for a request that a foreign web page causes a browser to send."""
        host = headers.get("Host", "")
        if host not in self._hosts:
            if is_foreign_host(host, self._listens_on):
                raise forbidden(f"the host {shown(host)} is not this machine")
            if len(self._hosts) < 100:
                self._hosts.add(host)
        origin = headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise forbidden(f"requests of pages from {shown(origin)} are not answered")

    def caller(
        self, headers: Mapping[str, str], certificate: Mapping[str, object] | None, *, is_public: bool = False
    ) -> Caller:
        """Return the caller's identity; a request that `is_public` needs none.

        Raises StoreError 401 for an unknown caller, and 403 for a caller that may not impersonate others.
        """
        header = headers.get("Authorization")
        found: Caller | None = self._anonymous
        if header is not None:
            is_bearer = header[: len(_BEARER)].lower() == _BEARER
            token = header[len(_BEARER) :].strip() if is_bearer else ""
            given = self.holder(token)
            # Without tokens of its own, the server ignores credentials that it does not know.
            is_own = bool(self._tokens) or authorization.unverified_claims(token).get("iss") == authorization.ISSUER
            found = given if given is not None or is_own else found
        elif certificate:
            groups = _subject_names(certificate, "organizationName")
            name = next(iter(_subject_names(certificate, "commonName")), "system:unnamed")
            found = Caller(User(name, (*groups, AUTHENTICATED)))
        if found is None and is_public:
            return _STRANGER
        if found is None:
            raise StoreError(401, "Unauthorized", "Unauthorized")
        other = impersonated(headers)
        if other is None:
            return found
        if found.reads_only or not other.name.isprintable():
            raise forbidden(f"{shown(found.identity.name)} cannot impersonate {shown(other.name)}")
        if self._authorizer is not None:
            for attributes in impersonations(other):
                self._authorizer.check(found.identity, attributes)
        return Caller(other)

    def holder(self, token: str) -> Caller | None:
        """Return the identity that a token gives its holder; None for an invalid token."""
        account = self._identify(token)
        if account is not None:
            return Caller(account)
        given = token.encode("utf-8", "surrogateescape")
        found = None
        # All tokens are compared, so that the duration reveals nothing.
        for text, caller in self._tokens:
            if hmac.compare_digest(text, given):
                found = caller
        return found


def forbidden(problem: str) -> StoreError:
    """Return the refusal of an identified caller."""
    return StoreError(403, "Forbidden", f"forbidden: {problem}")


def impersonated(headers: Mapping[str, str]) -> User | None:
    """Return the identity that a request assumes, None for none (apiserver's pkg/endpoints/filters/impersonation).

    Raises StoreError 400 for parts of an identity without a user.
    """
    impersonation = [(name.lower(), value) for name, value in headers.items() if name.lower().startswith(_IMPERSONATE)]
    values = dict(impersonation)
    user = values.get(f"{_IMPERSONATE}user", "")
    if not user:
        parts = ", ".join(f"{name.removeprefix(_IMPERSONATE)} {value!r}" for name, value in impersonation if value)
        if not parts:
            return None
        raise bad_request(f"requested {parts} without impersonating a user name")
    groups = [value for name, value in impersonation if name == f"{_IMPERSONATE}group"]
    extra: dict[str, list[str]] = {}
    for name, value in impersonation:
        if name.startswith(_EXTRA):
            extra.setdefault(unquote(name.removeprefix(_EXTRA)), []).append(value)
    groups = groups or list(groups_of(user))
    implied = UNAUTHENTICATED if UNAUTHENTICATED in groups or user == _STRANGER.identity.name else AUTHENTICATED
    return User(user, tuple(dict.fromkeys((*groups, implied))), values.get(f"{_IMPERSONATE}uid", ""), extra)


def impersonations(user: User) -> Iterator[Attributes]:
    """Yield what someone who impersonates this user must be allowed to do."""
    if user.name.startswith(authorization.ACCOUNT):
        namespace, _, name = user.name.removeprefix(authorization.ACCOUNT).partition(":")
        yield Attributes("impersonate", "", "serviceaccounts", "", namespace, name)
    else:
        yield Attributes("impersonate", "", "users", "", "", user.name)
    implied = (*groups_of(user.name), AUTHENTICATED, UNAUTHENTICATED)
    for group in user.groups:
        if group not in implied:
            yield Attributes("impersonate", "", "groups", "", "", group)
    group = "authentication.k8s.io"
    if user.uid:
        yield Attributes("impersonate", group, "uids", "", "", user.uid)
    for name, values in user.extra.items():
        for value in values:
            yield Attributes("impersonate", group, "userextras", name, "", value)


def _subject_names(certificate: Mapping[str, object], wanted: str) -> tuple[str, ...]:
    """Return the values of a name in the subject of a certificate."""
    subject = certificate.get("subject", ())
    names = [pair for pairs in subject for pair in pairs] if isinstance(subject, tuple) else []
    return tuple(str(value) for name, value in names if name == wanted and value)


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
    with os_error_as("cannot be read", path):
        mode = stat.S_IMODE(file.stat().st_mode)
        with file.open(encoding="utf-8", errors="replace") as opened:
            token = opened.read(_LONGEST + 1).strip()
    if not is_shared and sys.platform != "win32" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("others than its owner can read or write it; chmod 600 would be right", source=path)
    if not token or len(token) > _LONGEST or any(character.isspace() for character in token):
        raise InputError("one token is needed, and nothing else", source=path)
    if len(token) < SHORTEST_TOKEN:
        raise InputError(f"holds a token of less than {SHORTEST_TOKEN} letters; make it longer", source=path)
    return token
