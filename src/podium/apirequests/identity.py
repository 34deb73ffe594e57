"""Users, and the tokens of service accounts, which are JSON Web Tokens signed with a key of the server (HS256).

Source: apiserver's pkg/authentication (user, serviceaccount), pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.api.meta import Raw
from podium.api.nested import object_at, value_at
from podium.store.listing import ReadableStore

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""The group whose members may do everything."""

ACCOUNT = "system:serviceaccount:"
"""The beginning of the user name of a service account."""

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and the audience of those that name none."""

_SECOND = 10**9
_EXTRA = "authentication.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class User:
    """A user, as kube-apiserver's authenticators provide it."""

    name: str = "system:admin"
    groups: tuple[str, ...] = (MASTERS, AUTHENTICATED)
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def to_dict(self) -> Raw:
        found: Raw = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {name: list(values) for name, values in self.extra.items()}
        return found


def groups_of(name: str) -> tuple[str, ...]:
    """Return the groups that a user name implies."""
    if not name.startswith(ACCOUNT):
        return ()
    namespace = name.removeprefix(ACCOUNT).partition(":")[0]
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def issued_token(key: bytes, claims: Raw) -> str:
    """Return a token with these claims."""
    head = {"alg": "HS256", "kid": "podium"}
    signed = ".".join(_text(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
    return f"{signed}.{_text(hmac.digest(key, signed.encode(), hashlib.sha256))}"


def token_user(
    store: ReadableStore, key: bytes, token: str, now: int, audiences: Sequence[str] = (ISSUER,)
) -> User | None:
    """Return the service account of a valid token for one of the audiences; None for any other text.

    The account, and the object to which the token is bound, must still exist. Without a key no token is valid.
    """
    if not key:
        return None
    signed, _, signature = token.rpartition(".")
    right = _text(hmac.digest(key, signed.encode("utf-8", "surrogateescape"), hashlib.sha256))
    if not hmac.compare_digest(right.encode(), signature.encode("utf-8", "surrogateescape")):
        return None
    claims = unverified_claims(token)
    if claims.get("iss") != ISSUER or not set(audiences) & set(audiences_of(claims)):
        return None
    if not isinstance(claims.get("exp"), int) or now // _SECOND >= claims["exp"]:
        return None
    about = object_at(claims, "kubernetes.io")
    namespace, account = about.get("namespace"), object_at(about, "serviceaccount")
    extra = {f"{_EXTRA}credential-id": [f"JTI={claims.get('jti')}"]}
    for kind, field_name in (("ServiceAccount", "serviceaccount"), ("Pod", "pod"), ("Secret", "secret")):
        bound = object_at(about, field_name)
        if bound:
            stored = store.find(kind, f"{namespace}/{bound.get('name')}")
            if stored is None or stored.uid != bound.get("uid"):
                return None
    if pod := object_at(about, "pod"):
        extra |= {f"{_EXTRA}pod-name": [str(pod["name"])], f"{_EXTRA}pod-uid": [str(pod["uid"])]}
    name = f"{ACCOUNT}{namespace}:{account.get('name')}"
    return User(name, (*groups_of(name), AUTHENTICATED), str(account.get("uid", "")), extra)


def audiences_of(claims: Raw) -> list[str]:
    """Return the audiences of a token's claims."""
    found = claims.get("aud")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def unverified_claims(token: str) -> Raw:
    """Return the claims in a text that may be a token; none if it is not one."""
    try:
        text = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (IndexError, ValueError, binascii.Error, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token_claims(account: Raw, bound: tuple[str, Raw] | None, audiences: Any, seconds: int, now: int) -> Raw:
    """Return the claims of a token for a service account, and for the pod or secret to which it is bound."""
    metadata = account["metadata"]
    about: Raw = {
        "namespace": metadata["namespace"],
        "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
    }
    if bound is not None:
        kind, raw = bound
        about[kind.lower()] = {"name": value_at(raw, "metadata", "name"), "uid": value_at(raw, "metadata", "uid")}
    issued = now // _SECOND
    identity = hashlib.sha256(json.dumps([about, audiences, now]).encode()).hexdigest()[:32]
    return {
        "aud": audiences,
        "exp": issued + seconds,
        "iat": issued,
        "iss": ISSUER,
        "jti": identity,
        "kubernetes.io": about,
        "nbf": issued,
        "sub": f"{ACCOUNT}{metadata['namespace']}:{metadata['name']}",
    }
