"""Users, the tokens of service accounts, and the rules about users' requests: roles (RBAC) and FlowSchemas.

Tokens are JSON Web Tokens signed with a key of the server (HS256). All requests are limited alike, whatever their
priority level. Source: apiserver's pkg/authentication (user, serviceaccount), pkg/serviceaccount/claims.go,
plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation, pkg/util/flowcontrol (apf_controller.go, rule.go).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct

from podium.api.meta import Raw, list_at, object_at, objects_at, value_at
from podium.api.times import SECOND
from podium.store.errors import StoreError
from podium.store.listing import ReadableStore
from podium.store.stored import Stored

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""The group whose members may do everything."""

ACCOUNT = "system:serviceaccount:"
"""The beginning of the user name of a service account."""

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""The issuer of tokens, and the audience of those that name none."""

_EXTRA = "authentication.kubernetes.io/"
_FLOW, _LEVEL = "FlowSchema", "PriorityLevelConfiguration"
_HEADER = "X-Kubernetes-PF-{}-UID"
_MOST_KNOWN = 1_000


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
    return ("system:serviceaccounts", f"system:serviceaccounts:{name.removeprefix(ACCOUNT).partition(':')[0]}")


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


GRANTING = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
"""The kinds whose objects grant rights."""

_GROUP = "rbac.authorization.k8s.io"
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
        seen = tuple(self._store.changes(kind) for kind in GRANTING)
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
    is_of_kind = lists(rule, "apiGroups", attributes.group) and any(
        one in resources for one in list_at(rule, "resources")
    )
    return is_of_kind and (not names or attributes.name in names)


def check_grant(
    store: ReadableStore, user: User, held: Sequence[Raw], granting: Stored, previous: Stored | None
) -> None:
    """Raise StoreError 403 for a role or binding that grants more than the rules ``held`` before, 404 without its role.

    The user may grant more with the verb `escalate` on the role, or `bind` on the role that is bound; also with a
    change of the ``previous`` object's owners and finalizers alone. Source: pkg/registry/rbac (policybased/storage.go
    of each kind, validation/rule.go, helpers.go).
    """
    if previous is not None and _without_owners(previous.raw) == _without_owners(granting.raw):
        return
    raw, scope, name = granting.raw, granting.object.metadata.namespace, granting.object.metadata.name
    resource, reference = granting.resource, object_at(granting.raw, "roleRef")
    kind, bound = str(reference.get("kind")), str(reference.get("name"))
    asked = Attributes("bind", _GROUP, f"{kind.lower()}s", namespace=scope, name=bound)
    if not reference:
        asked = Attributes("escalate", _GROUP, resource.plural, namespace=scope, name=name)
    if MASTERS in user.groups or any(covers(rule, asked) for rule in held):
        return
    if reference:
        raw = store.get(kind, f"{scope}/{bound}" if kind == "Role" else bound).raw
    problem, missing = "", _missing(objects_at(raw, "rules"), held)
    if missing:
        groups, lines = _quoted(user.groups), sorted(_right_text(right, verbs) for right, verbs in missing.items())
        problem = f'user "{user.name}" (groups={groups}) is attempting to grant RBAC permissions not currently held:'
        problem = "\n".join([problem, *lines])
    elif "aggregationRule" in granting.raw:
        # It may come to grant all rights, and a user that has these could escalate.
        problem = "must have cluster-admin privileges to use the aggregationRule"
    if problem:
        message = f'{resource.qualified} "{name}" is forbidden: {problem}'
        details = {"group": _GROUP, "kind": resource.plural, "name": name}
        raise StoreError(403, "Forbidden", message, details, status_message=message)


def _without_owners(raw: Raw) -> Raw:
    """Return an object without what the garbage collector changes."""
    names = ("finalizers", "managedFields", "ownerReferences", "resourceVersion")
    return {**raw, "metadata": {name: value for name, value in raw["metadata"].items() if name not in names}}


def _missing(granted: Iterable[Raw], held: Sequence[Raw]) -> dict[Attributes, list[str]]:
    """Return the rights that the granted rules have beyond those held, without a verb, each with its verbs."""
    missing: dict[Attributes, list[str]] = {}
    for right in (right for rule in granted for right in _rights_of(rule)):
        if not any(covers(rule, right) for rule in held):
            missing.setdefault(right._replace(verb=""), []).append(right.verb)
    return missing


def _rights_of(rule: Raw) -> Iterator[Attributes]:
    """Yield the single rights of a rule, each with one verb; without a name those on all objects."""
    for verb in list_at(rule, "verbs"):
        yield from (Attributes(verb, path=url) for url in list_at(rule, "nonResourceURLs"))
        for group, resource in product(list_at(rule, "apiGroups"), list_at(rule, "resources")):
            kind, _, subresource = resource.partition("/")
            for name in list_at(rule, "resourceNames") or [""]:
                yield Attributes(verb, group, kind, subresource, name=name)


def _right_text(right: Attributes, verbs: Sequence[str]) -> str:
    """Return a right as kube-apiserver prints a rule."""
    parts = {"APIGroups": [right.group], "Resources": [right.full_resource]}
    if right.path:
        parts = {"NonResourceURLs": [right.path]}
    elif right.name:
        parts["ResourceNames"] = [right.name]
    listed = (f"{name}:{_quoted(values)}" for name, values in {**parts, "Verbs": verbs}.items())
    return f"{{{', '.join(listed)}}}"


def _quoted(values: Sequence[str]) -> str:
    return f"[{' '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"


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


class FlowControl:
    """The FlowSchemas and priority levels in a store."""

    def __init__(self, store: ReadableStore) -> None:
        self._store = store
        self._seen: tuple[int, ...] = ()
        # The rules of each FlowSchema and its response headers, by precedence.
        self._flows: list[tuple[list[Raw], dict[str, str]]] = []
        # The headers of requests that were classified, by user, groups and attributes.
        self._known: dict[tuple[str, tuple[str, ...], Attributes], dict[str, str]] = {}

    def headers(self, user: User, attributes: Attributes) -> Mapping[str, str]:
        """Return the response headers with the uids of the FlowSchema and the priority level of a request."""
        seen = self._store.changes(_FLOW), self._store.changes(_LEVEL)
        if seen != self._seen or len(self._known) >= _MOST_KNOWN:
            self._seen, self._flows, self._known = seen, list(self._by_precedence()), {}
        request = user.name, user.groups, attributes._replace(name="")
        if request not in self._known:
            found = (headers for rules, headers in self._flows if any(_matches(rule, *request) for rule in rules))
            self._known[request] = next(found, {})
        return self._known[request]

    def _by_precedence(self) -> Iterator[tuple[list[Raw], dict[str, str]]]:
        flows = self._store.objects(_FLOW)
        for flow in sorted(flows, key=lambda flow: (value_at(flow.raw, "spec", "matchingPrecedence") or 0, flow.key)):
            level = self._store.find(_LEVEL, str(value_at(flow.raw, "spec", "priorityLevelConfiguration", "name")))
            if level is not None:
                headers = {_HEADER.format("FlowSchema"): flow.uid, _HEADER.format("PriorityLevel"): level.uid}
                yield objects_at(flow.raw, "spec", "rules"), headers


def _matches(rule: Raw, user: str, groups: tuple[str, ...], attributes: Attributes) -> bool:
    """Return whether a rule of a FlowSchema matches a request."""
    if not any(_is_subject(subject, user, groups) for subject in objects_at(rule, "subjects")):
        return False
    if attributes.path:
        return any(covers(one, attributes) for one in objects_at(rule, "nonResourceRules"))
    namespace = attributes.namespace
    return any(
        covers(one, attributes) and (lists(one, "namespaces", namespace) if namespace else one.get("clusterScope"))
        for one in objects_at(rule, "resourceRules")
    )


def _is_subject(subject: Raw, user: str, groups: tuple[str, ...]) -> bool:
    match subject:
        case {"kind": "Group", "group": {"name": name}}:
            return name == "*" or name in groups
        case {"kind": "User", "user": {"name": name}}:
            return name in ("*", user)
        case {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}:
            account = f"{ACCOUNT}{namespace}:"
            return user.startswith(account) if name == "*" else user == f"{account}{name}"
    return False
