"""Reviews: who a client or the holder of a token is, and what users may do.

Source: pkg/registry/authentication, pkg/registry/authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.errors import shown
from podium.api.meta import Raw, object_at
from podium.apirequests import authorization
from podium.server.discovery import REVIEWS
from podium.store.errors import bad_request

_REASON = "this server authorizes every user that it admits"
_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
# The fields of resourceAttributes in the order of `Attributes`.
_FIELDS = ("verb", "group", "resource", "subresource", "namespace", "name")

ADMINISTRATOR = authorization.User()
"""The user of a server without authentication."""

Identify = Callable[[str, Sequence[str]], authorization.User | None]
"""A function that returns the user of a token for some audiences; None for an invalid token."""

_GROUPS = {review.kind: review.group for review in REVIEWS}
_PLURALS = {(review.group, review.plural): review.kind for review in REVIEWS}


def review_at(path: str) -> tuple[str, str] | None:
    """Return the kind of review that a path accepts, and the namespace in the path; None for other paths."""
    parts = path.split("/")
    if parts[1:2] != ["apis"] or parts[3:4] != ["v1"]:
        return None
    kind = _PLURALS.get((parts[2], parts[-1]))
    is_local = kind == "LocalSubjectAccessReview"
    fits = (len(parts) == 7 and parts[4] == "namespaces") if is_local else len(parts) == 5
    return (kind, parts[5] if is_local else "") if fits and kind is not None else None


@dataclass(frozen=True, slots=True)
class Reviews:
    """The answers to reviews; without an ``authorizer`` everything is allowed."""

    identify: Identify
    authorizer: authorization.Authorizer | None

    def reviewed(self, kind: str, body: Any, user: authorization.User = ADMINISTRATOR, namespace: str = "") -> Raw:
        """Return the review with its result for a user. Raises KeyError for a kind that is not a review.

        Raises StoreError 400 for a malformed body, and if required fields are missing.
        """
        group = _GROUPS[kind]
        if not isinstance(body, dict) or body.get("kind", kind) != kind:
            given = body.get("kind") if isinstance(body, dict) else body
            raise bad_request(f"a {kind} is expected, not {shown(given)}")
        review = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": body.get("metadata") or {}}
        spec: Any = body.get("spec") or {}
        if not isinstance(spec, dict):
            raise bad_request(f"spec: {shown(spec)} is not an object")
        if "spec" in body or kind != "SelfSubjectReview":
            review["spec"] = spec
        is_access = kind.endswith("AccessReview")
        if is_access and bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
            raise bad_request("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
        match kind:
            case "SelfSubjectReview":
                status: Mapping[str, Any] = {"userInfo": user.to_dict()}
            case "SelfSubjectRulesReview":
                status = self._rules(user, str(spec.get("namespace") or ""))
            case "TokenReview":
                status = self._token(spec)
            case _:
                status = self._access(spec, user if kind.startswith("Self") else _subject(spec), namespace)
        return {**review, "status": status}

    def _token(self, spec: Raw) -> Raw:
        token, audiences = spec.get("token"), spec.get("audiences")
        wanted = [str(one) for one in audiences] if isinstance(audiences, list) else []
        wanted = wanted or [authorization.ISSUER]
        user = self.identify(token, wanted) if isinstance(token, str) and token else None
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        issued_for = authorization.audiences_of(authorization.unverified_claims(str(token))) or wanted
        common = [audience for audience in wanted if audience in issued_for]
        return {"authenticated": True, "user": user.to_dict(), "audiences": common}

    def _access(self, spec: Raw, user: authorization.User, namespace: str) -> Raw:
        if self.authorizer is None:
            return {"allowed": True, "reason": _REASON}
        given = object_at(spec, "resourceAttributes")
        attributes = authorization.Attributes(*(str(given.get(name) or "") for name in _FIELDS))
        if namespace and attributes.namespace != namespace:
            raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
        if not given:
            path = object_at(spec, "nonResourceAttributes")
            attributes = authorization.Attributes(str(path.get("verb")), path=str(path.get("path")))
        return {"allowed": self.authorizer.allows(user, attributes)}

    def _rules(self, user: authorization.User, namespace: str) -> Mapping[str, Any]:
        if self.authorizer is None or authorization.MASTERS in user.groups:
            return _EVERYTHING
        rules = list(self.authorizer.rules(user, namespace))
        return {
            "resourceRules": [rule for rule in rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }


def _subject(spec: Raw) -> authorization.User:
    """Return the user whose access is reviewed."""
    groups = spec.get("groups")
    return authorization.User(str(spec.get("user") or ""), tuple(map(str, groups)) if isinstance(groups, list) else ())
