"""Authorization by roles and their bindings (RBAC).

Source: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from podium.api.meta import Raw
from podium.api.nested import list_at, object_at, objects_at
from podium.apirequests.identity import ACCOUNT, MASTERS, User
from podium.store.errors import StoreError
from podium.store.listing import ReadableStore

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
        return any(_matches(rule, attributes) for rule in self.rules(user, attributes.namespace))

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


def _matches(rule: Raw, attributes: Attributes) -> bool:
    """Return whether a rule covers a request."""
    if not _has(rule, "verbs", attributes.verb):
        return False
    if attributes.path:
        path = attributes.path
        urls = list_at(rule, "nonResourceURLs")
        return any(path.startswith(url[:-1]) if url.endswith(_ALL) else path == url for url in urls)
    names = list_at(rule, "resourceNames")
    resources = (attributes.full_resource, f"*/{attributes.subresource}" if attributes.subresource else _ALL, _ALL)
    return (
        _has(rule, "apiGroups", attributes.group)
        and any(one in resources for one in list_at(rule, "resources"))
        and (not names or attributes.name in names)
    )


def _has(rule: Raw, field: str, value: str) -> bool:
    found = list_at(rule, field)
    return value in found or _ALL in found


def forbidden(user: User, attributes: Attributes) -> StoreError:
    """Return the refusal of a request in kube-apiserver's words."""
    who = f'User "{user.name}" cannot {attributes.verb}'
    if attributes.path:
        message = f'forbidden: {who} path "{attributes.path}"'
        return StoreError(403, "Forbidden", message, status_message=message)
    group = f".{attributes.group}" if attributes.group else ""
    named = f' "{attributes.name}"' if attributes.name else ""
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    what = f'resource "{attributes.full_resource}" in API group "{attributes.group}" {where}'
    message = f"{attributes.resource}{group}{named} is forbidden: {who} {what}"
    details = {"group": attributes.group, "kind": attributes.resource, "name": attributes.name}
    details = {name: value for name, value in details.items() if value}
    return StoreError(403, "Forbidden", message, details, status_message=message)
