"""Users, the tokens of service accounts, and authorization by roles and their bindings (RBAC).

Tokens are JSON Web Tokens signed with a key of the server (HS256). Source: apiserver's pkg/authentication (user,
serviceaccount), pkg/serviceaccount/claims.go, plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from podium.api.meta import Raw, list_at, object_at, objects_at
from podium.api.times import SECOND
from podium.store.errors import StoreError
from podium.store.listing import ReadableStore

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""The group whose members may do everything."""

ACCOUNT = "system:serviceaccount:"
"""The beginning of the user name of a service account."""

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and the audience of those that name none."""

_EXTRA = "authentication.kubernetes.io/"


class User(Struct, frozen=True):
    """A user, as kube-apiserver's authenticators provide it."""

    name: str = "system:admin"
    groups: tuple[str, ...] = (MASTERS, AUTHENTICATED)
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = {}

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
    if not isinstance(claims.get("exp"), int) or now // SECOND >= claims["exp"]:
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
    for place in ("pod", "node"):
        if found := object_at(about, place):
            extra |= {f"{_EXTRA}{place}-{name}": [str(found[name])] for name in ("name", "uid")}
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


def token_claims(account: Raw, bound: Sequence[Raw], audiences: Any, seconds: int, now: int) -> Raw:
    """Return the claims of a token for an account, bound to a secret, or to a pod with its node."""
    metadata = account["metadata"]
    about: Raw = {
        "namespace": metadata["namespace"],
        "serviceaccount": {"name": metadata["name"], "uid": metadata["uid"]},
    }
    for raw in bound:
        about[raw["kind"].lower()] = {name: raw["metadata"][name] for name in ("name", "uid")}
    issued = now // SECOND
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


_KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_ALL = "*"


class Attributes(NamedTuple):
    """The attributes of a request: those of a resource, or a `path` outside the API objects."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Authorizer:
    """An authorizer of requests by the roles and bindings in a store. Members of `system:masters` may do everything."""

    def __init__(self, store: ReadableStore) -> None:
        self._store = store
        self._seen: tuple[int, ...] = ()
        # By subject, such as ("Group", "admins"): the namespaces and rules of its bindings; "" is the whole cluster.
        self._granted: dict[tuple[str, str], list[tuple[str, list[Raw]]]] = {}

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Return whether the user may send such a request."""
        if MASTERS in user.groups:
            return True
        return any(covers(rule, attributes) for rule in self.rules(user, attributes.namespace))

    def check(self, user: User, attributes: Attributes) -> None:
        """Raise StoreError 403 for a request that the user may not send."""
        if not self.allows(user, attributes):
            raise forbidden(user, attributes)

    def rules(self, user: User, namespace: str) -> Iterator[Raw]:
        """Yield the rules that apply to a user in a namespace, or in the whole cluster for ""."""
        seen = tuple(self._store.changes(kind) for kind in _KINDS)
        if seen != self._seen:
            self._seen, self._granted = seen, {}
            for stored in (*self._store.objects("ClusterRoleBinding"), *self._store.objects("RoleBinding")):
                scope, reference = stored.object.metadata.namespace, object_at(stored.raw, "roleRef")
                kind, name = str(reference.get("kind")), str(reference.get("name"))
                role = self._store.find(kind, f"{scope}/{name}" if kind == "Role" else name)
                granted = [] if role is None else objects_at(role.raw, "rules")
                for subject in objects_at(stored.raw, "subjects"):
                    self._granted.setdefault(_subject(subject, scope), []).append((scope, granted))
        for holder in (("User", user.name), *(("Group", group) for group in user.groups)):
            for scope, rules in self._granted.get(holder, ()):
                if scope in ("", namespace):
                    yield from rules


def _subject(subject: Raw, namespace: str) -> tuple[str, str]:
    kind, name = str(subject.get("kind")), str(subject.get("name"))
    if kind == "ServiceAccount":
        return "User", f"{ACCOUNT}{subject.get('namespace') or namespace}:{name}"
    return kind, name


def covers(rule: Raw, attributes: Attributes) -> bool:
    """Return whether a rule covers a request."""
    if not lists(rule, "verbs", attributes.verb):
        return False
    if attributes.path:
        path = attributes.path
        urls = list_at(rule, "nonResourceURLs")
        return any(path.startswith(url[:-1]) if url.endswith(_ALL) else path == url for url in urls)
    names = list_at(rule, "resourceNames")
    resources = (attributes.full_resource, f"*/{attributes.subresource}" if attributes.subresource else _ALL, _ALL)
    return (
        lists(rule, "apiGroups", attributes.group)
        and any(one in resources for one in list_at(rule, "resources"))
        and (not names or attributes.name in names)
    )


def lists(rule: Raw, field: str, value: str) -> bool:
    """Return whether a rule lists a value, or all of them."""
    found = list_at(rule, field)
    return value in found or _ALL in found


def forbidden(user: User, attributes: Attributes) -> StoreError:
    """Return the refusal of a request in kube-apiserver's words."""
    subject = f'User "{user.name}" cannot {attributes.verb}'
    if attributes.path:
        message = f'forbidden: {subject} path "{attributes.path}"'
        return StoreError(403, "Forbidden", message, status_message=message)
    group = f".{attributes.group}" if attributes.group else ""
    named = f' "{attributes.name}"' if attributes.name else ""
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    what = f'resource "{attributes.full_resource}" in API group "{attributes.group}" {where}'
    message = f"{attributes.resource}{group}{named} is forbidden: {subject} {what}"
    details = {"group": attributes.group, "kind": attributes.resource, "name": attributes.name}
    details = {name: value for name, value in details.items() if value}
    return StoreError(403, "Forbidden", message, details, status_message=message)
