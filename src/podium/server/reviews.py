"""Reviews: who somebody is, and what they may do.

The server knows no authorization: whoever is let in is an administrator, and every review says so. Source:
k8s.io/api/authentication/v1, k8s.io/api/authorization/v1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.store.errors import bad_request

_REASON = "everybody whom this server lets in is an administrator"
_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: a name and groups, as kube-apiserver's authenticators give them."""

    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")

    def to_dict(self) -> Raw:
        """The UserInfo of authentication/v1."""
        return {"username": self.name, "groups": list(self.groups)}


ADMINISTRATOR = User()
"""Who asks where nobody has to say who they are."""


def reviewed(kind: str, body: Any, user: User = ADMINISTRATOR, *, is_authenticated: bool = False) -> Raw:
    """The review with its answer. Raises KeyError for a kind that is no review.

    `is_authenticated` says whether a TokenReview's token is one that the server takes. Raises StoreError 400 for a body
    that is no such review.
    """
    group = _KINDS[kind]
    if not isinstance(body, dict) or body.get("kind", kind) != kind:
        raise bad_request(f"a {kind} is expected, not {shown(body.get('kind') if isinstance(body, dict) else body)}")
    review = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": body.get("metadata") or {}}
    if "spec" in body or kind != "SelfSubjectReview":
        review["spec"] = _spec(kind, body)
    return {**review, "status": _status(kind, user, is_authenticated)}


_KINDS = {
    "LocalSubjectAccessReview": "authorization.k8s.io",
    "SelfSubjectAccessReview": "authorization.k8s.io",
    "SelfSubjectReview": "authentication.k8s.io",
    "SelfSubjectRulesReview": "authorization.k8s.io",
    "SubjectAccessReview": "authorization.k8s.io",
    "TokenReview": "authentication.k8s.io",
}
REVIEWS = frozenset(_KINDS)
"""The kinds of reviews."""


def _spec(kind: str, body: Raw) -> Raw:
    """What is to be reviewed. Raises StoreError 400 where it does not say what."""
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise bad_request(f"spec: {shown(spec)} is not an object")
    is_access = kind.endswith("AccessReview")
    if is_access and bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        raise bad_request("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
    return spec


def _status(kind: str, user: User, is_authenticated: bool) -> Raw:
    if kind == "SelfSubjectReview":
        return {"userInfo": user.to_dict()}
    if kind == "SelfSubjectRulesReview":
        return _EVERYTHING
    if kind == "TokenReview":
        return {"authenticated": True, "user": user.to_dict()} if is_authenticated else {"user": {}}
    return {"allowed": True, "reason": _REASON}
