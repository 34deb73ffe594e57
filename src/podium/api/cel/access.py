"""The authorizer of expressions, which says what a user may do (apiserver's pkg/cel/library/authz.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from podium.api.cel.values import FunctionTable, Value

_TYPES = ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
AUTHORIZER, PATH, GROUP, RESOURCE, DECISION = (f"kubernetes.authorization.{name}" for name in _TYPES)
# A tenth of upstream's cost, as the cost limit of policies is a tenth of upstream's.
_COST = 35_000

May = Callable[[str, Mapping[str, str]], bool]
"""A function that returns whether the user, or a service account (`namespace:name`), may do what these parts say."""


@dataclass(frozen=True)
class PathCheck:
    """A check of what the user or an ``account`` may do, with the ``parts`` that are stated so far."""

    cel_type: ClassVar[str] = PATH
    may: May
    account: str
    parts: Mapping[str, str]

    def stating(self, part: str, text: str) -> PathCheck:
        return replace(self, parts={**self.parts, part: text})

    def decision(self, verb: str) -> AccessDecision:
        return AccessDecision(self.may(self.account, {**self.parts, "verb": verb}))


class GroupCheck(PathCheck):
    """A check within an API group."""

    cel_type: ClassVar[str] = GROUP


class ResourceCheck(PathCheck):
    """A check of a resource."""

    cel_type: ClassVar[str] = RESOURCE


@dataclass(frozen=True)
class AccessDecision:
    """The answer to a check. Errors do not occur, and reasons are not given."""

    cel_type: ClassVar[str] = DECISION
    is_allowed: bool


class AuthorizerValue(dict[str, Value]):
    """An authorizer for the user or a service account; its only entry is the check of the request itself."""

    cel_type: ClassVar[str] = AUTHORIZER

    def __init__(self, may: May, account: str = "", request: Mapping[str, str] | None = None) -> None:
        super().__init__({} if request is None else {"requestResource": ResourceCheck(may, account, request)})
        self.may, self.account = may, account


def fill(table: FunctionTable) -> None:
    """Add the methods of authorizers, checks and decisions."""
    add = table.method
    add("path", (AUTHORIZER, "string"), PATH, lambda a, path: PathCheck(a.may, a.account, {"path": path}))
    add("group", (AUTHORIZER, "string"), GROUP, lambda a, group: GroupCheck(a.may, a.account, {"group": group}))
    account = AUTHORIZER, "string", "string"
    add("serviceAccount", account, AUTHORIZER, lambda a, *names: AuthorizerValue(a.may, ":".join(names)))
    resource = GROUP, "string"
    add("resource", resource, RESOURCE, lambda a, b: ResourceCheck(a.may, a.account, {**a.parts, "resource": b}))
    for part in ("subresource", "namespace", "name"):
        add(part, (RESOURCE, "string"), RESOURCE, lambda a, text, part=part: a.stating(part, text))
    for part in ("fieldSelector", "labelSelector"):
        # Roles do not distinguish selectors.
        add(part, (RESOURCE, "string"), RESOURCE, lambda a, _: a)
    for check in (PATH, RESOURCE):
        add("check", (check, "string"), DECISION, lambda a, verb: a.decision(verb), lambda *_: _COST)
    add("allowed", (DECISION,), "bool", lambda a: a.is_allowed)
    add("errored", (DECISION,), "bool", lambda _: False)
    for text in ("error", "reason"):
        add(text, (DECISION,), "string", lambda _: "")
