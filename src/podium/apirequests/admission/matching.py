"""The requests that a policy, a binding or a webhook applies to.

Source: apiserver (pkg/admission/plugin/webhook/predicates, pkg/admission/plugin/policy/matching).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from podium.api.meta import Raw
from podium.api.nested import key_of, object_at
from podium.api.reading import read
from podium.api.selectors import LabelSelector, compile_label_selector
from podium.apirequests.authorization import lists
from podium.store.api_resource import APIResource
from podium.store.store import Store

CONFIGURING = (
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)
"""The kinds whose objects switch admission on."""

_SCOPES = {True: "Namespaced", False: "Cluster"}
EXEMPT = frozenset(
    (
        *(*CONFIGURING, "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"),
        *("TokenReview", "SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"),
    )
)
"""The kinds about whose objects no policy and no webhook is asked: those that configure admission, and reviews."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """A request as admission sees it: the object that it writes, the one before, and the user.

    `object` is None for deletions, `old` for creations. `operation` is CREATE, UPDATE or DELETE.
    """

    operation: str
    resource: APIResource
    api_version: str
    subresource: str = ""
    object: Raw | None = None
    old: Raw | None = None
    user: str = ""
    dry_run: bool = False

    @property
    def metadata(self) -> Raw:
        return object_at(self.old if self.object is None else self.object, "metadata")

    @property
    def namespace(self) -> str:
        """The namespace of the object, "" for none."""
        return str(self.metadata.get("namespace") or "default") if self.resource.namespaced else ""

    @property
    def key(self) -> str:
        return key_of(self.metadata) if self.metadata.get("name") else ""

    def as_request(self) -> Raw:
        """Return the request as policies and webhooks see it."""
        group, _, version = self.api_version.rpartition("/")
        kind = {"group": group, "version": version, "kind": self.resource.kind}
        resource = {"group": group, "version": version, "resource": self.resource.plural}
        return {
            "kind": kind,
            "resource": resource,
            **({"subResource": self.subresource, "requestSubResource": self.subresource} if self.subresource else {}),
            "requestKind": kind,
            "requestResource": resource,
            **({"name": self.metadata["name"]} if self.metadata.get("name") else {}),
            **({"namespace": self.namespace} if self.namespace else {}),
            "operation": self.operation,
            "userInfo": {"username": self.user, "groups": ["system:masters", "system:authenticated"]},
            "dryRun": self.dry_run,
        }


def matches(store: Store, rules: Raw, attributes: Attributes, *, listed: str = "resourceRules") -> bool:
    """Return whether the rules and selectors of a policy (MatchResources) or a webhook apply to a request."""

    def are_met(field: str) -> bool:
        found: Iterable[Raw] = rules.get(field) or ()
        return any(_rule_matches(rule, attributes, rules.get("matchPolicy") != "Exact") for rule in found)

    return are_met(listed) and _is_selected(store, rules, attributes) and not are_met("excludeResourceRules")


def matches_binding(store: Store, rules: Raw | None, attributes: Attributes) -> bool:
    """Return whether the rules of a binding apply; without rules, those of the policy decide."""
    if rules is None or rules.get("resourceRules"):
        return rules is None or matches(store, rules, attributes)
    return _is_selected(store, rules, attributes)


def namespace_of(store: Store, attributes: Attributes) -> Raw | None:
    """Return the namespace of a request's object, None for cluster-scoped objects."""
    if attributes.resource.name == "Namespace":
        return attributes.object or attributes.old
    stored = store.find("Namespace", attributes.namespace) if attributes.namespace else None
    return None if stored is None else stored.raw


def _is_selected(store: Store, rules: Raw, attributes: Attributes) -> bool:
    namespaces = rules.get("namespaceSelector")
    if namespaces and (attributes.namespace or attributes.resource.name == "Namespace"):
        namespace = namespace_of(store, attributes)
        if not selects(namespaces, object_at(namespace, "metadata", "labels")):
            return False
    objects = rules.get("objectSelector")
    versions = (raw for raw in (attributes.object, attributes.old) if raw is not None)
    return not objects or any(selects(objects, object_at(raw, "metadata", "labels")) for raw in versions)


def selects(selector: Raw, labels: Mapping[str, Any]) -> bool:
    """Return whether a label selector in wire form matches labels."""
    return compile_label_selector(read(selector, LabelSelector)).matches({**labels})


def _rule_matches(rule: Raw, attributes: Attributes, is_equivalent: bool) -> bool:
    resource = attributes.resource
    if not lists(rule, "operations", attributes.operation):
        return False
    # A namespace also counts as an object in itself.
    scopes = ("Namespaced", "Cluster") if resource.name == "Namespace" else (_SCOPES[resource.namespaced],)
    if (rule.get("scope") or "*") not in ("*", *scopes):
        return False
    versions = {attributes.api_version, *(resource.served_versions if is_equivalent else ())}
    if not any(
        lists(rule, "apiGroups", version.rpartition("/")[0]) and lists(rule, "apiVersions", version.rpartition("/")[2])
        for version in versions
    ):
        return False
    names = rule.get("resourceNames")
    if names and attributes.metadata.get("name") not in names:
        return False
    plural, part = resource.plural, attributes.subresource
    wanted = {f"{plural}/{part}", f"{plural}/*", f"*/{part}", "*/*"} if part else {plural, "*", "*/*"}
    return bool(wanted & {*(rule.get("resources") or ())})
