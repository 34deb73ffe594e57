"""The non-object responses of a Kubernetes API server, derived from the kinds that a backend serves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.apirequests.paths import not_allowed
from podium.apirequests.request import Request
from podium.controllers.indexes import SelectorIndex
from podium.server import discovery
from podium.server.backend import Backend, DocumentRequest, ServedDocument
from podium.server.discovery import AGGREGATED, AGGREGATED_VERSIONS, REVIEWS, served_kinds
from podium.server.openapi import definition_of, document, document_path, index
from podium.server.protobuf import decode
from podium.server.resource_metrics import METRICS_VERSION, ResourceMetrics
from podium.server.tables.cells import NONE
from podium.server.tables.columns import BUDGET, table_of
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.errors import bad_request
from podium.store.stored import encoded

_REASON = "everybody whom this server lets in is an administrator"
_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


@dataclass(frozen=True, slots=True)
class User:
    """A user: a name and groups, as kube-apiserver's authenticators provide them."""

    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")

    def to_dict(self) -> Raw:
        return {"username": self.name, "groups": list(self.groups)}


ADMINISTRATOR = User()
"""The user of a server without authentication."""

_GROUPS = {review.kind: review.group for review in REVIEWS}
_PLURALS = {(review.group, review.plural): review.kind for review in REVIEWS}


def reviewed(kind: str, body: Any, user: User = ADMINISTRATOR, *, is_authenticated: bool = False) -> Raw:
    """Return the review with its result. Raises KeyError for a kind that is not a review.

    `is_authenticated` says whether a TokenReview's token is valid. Raises StoreError 400 for a malformed body, and if
    required fields are missing.
    """
    group = _GROUPS[kind]
    if not isinstance(body, dict) or body.get("kind", kind) != kind:
        raise bad_request(f"a {kind} is expected, not {shown(body.get('kind') if isinstance(body, dict) else body)}")
    review = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": body.get("metadata") or {}}
    if "spec" in body or kind != "SelfSubjectReview":
        spec = review["spec"] = body.get("spec") or {}
        if not isinstance(spec, dict):
            raise bad_request(f"spec: {shown(spec)} is not an object")
        is_access = kind.endswith("AccessReview")
        if is_access and bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
            raise bad_request("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
    return {**review, "status": _status(kind, user, is_authenticated)}


def _status(kind: str, user: User, is_authenticated: bool) -> Raw:
    match kind:
        case "SelfSubjectReview":
            return {"userInfo": user.to_dict()}
        case "SelfSubjectRulesReview":
            return _EVERYTHING
        case "TokenReview":
            return {"authenticated": True, "user": user.to_dict()} if is_authenticated else {"user": {}}
    return {"allowed": True, "reason": _REASON}


def _review_at(path: str) -> str | None:
    """Return the kind of review that a path accepts; None for other paths."""
    parts = path.split("/")
    if parts[1:2] != ["apis"] or parts[3:4] != ["v1"]:
        return None
    kind = _PLURALS.get((parts[2], parts[-1]))
    is_local = kind == "LocalSubjectAccessReview"
    fits = (len(parts) == 7 and parts[4] == "namespaces") if is_local else len(parts) == 5
    return kind if fits else None


_JSON = "application/json"
_OPENAPI, _OPENAPI_2 = "/openapi/v3", "/openapi/v2"
_METRICS = f"/apis/{METRICS_VERSION}/"
_AS_AGGREGATED = "APIGroupDiscoveryList"


class KubernetesDocuments:
    """Discovery, schemas, reviews, metrics, tables and protobuf for the kinds of a backend.

    Documents follow changes of the kinds, and are cached between changes. `takes_token` says whether a token is valid.
    """

    def __init__(self, backend: Backend, takes_token: Callable[[str], bool] = bool) -> None:
        self._backend = backend
        self._takes_token = takes_token
        self._metrics = ResourceMetrics(backend)
        self._version = -1
        self._kinds: list[APIResource] = []
        # Cached documents, by path and format.
        self._made: dict[tuple[str, str], ServedDocument] = {}

    def document(self, inquiry: DocumentRequest) -> ServedDocument | None:
        """Return the document at a path, or None. Raises StoreError for an invalid request."""
        path = inquiry.path.rstrip("/") or "/"
        kind = _review_at(path)
        if kind is not None:
            return self._review(kind, inquiry)
        if path.startswith(_METRICS):
            _check_read(inquiry)
            found = self._metrics.at(path.removeprefix(_METRICS).split("/"), inquiry.query)
            return None if found is None else ServedDocument(body=encoded(found))
        made = _version_2(inquiry.accept) if path == _OPENAPI_2 else self._cached(path, inquiry.accept)
        if made is not None:
            _check_read(inquiry)
        return made

    def takes_body(self, path: str) -> bool:
        """Return whether a path accepts POST requests, as reviews do."""
        return _review_at(path.rstrip("/")) is not None

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include_object: str) -> Raw:
        """Return the objects as a Table, without list metadata; pods include their budgets, for `-o wide`.

        `include_object` is None, Metadata or Object: the object data in each row. Raises StoreError 400.
        """
        table = table_of(resource, objects, now, include_object)
        if (resource.group, resource.kind) == ("", "Pod"):
            table["columnDefinitions"].append(BUDGET.to_dict())
            for row, names in zip(table["rows"], self._budgets_of(objects), strict=True):
                row["cells"].append(names)
        return table

    def _budgets_of(self, pods: Sequence[Raw]) -> Iterator[str]:
        """Yield the names of the budgets that select each pod."""
        by_namespace: dict[str, SelectorIndex[str]] = {}
        for pod in pods:
            metadata = pod.get("metadata", {})
            namespace = metadata.get("namespace", "")
            if namespace not in by_namespace:
                by_namespace[namespace] = index = SelectorIndex[str]()
                listed = self._backend.answer(Request(verb="list", kind="PodDisruptionBudget", namespace=namespace))
                for stored in () if listed.page is None else listed.page.items:
                    if isinstance(stored.object, PodDisruptionBudget):
                        index.put(stored.object.metadata.name, compile_label_selector(stored.object.spec.selector))
            found = by_namespace[namespace].matching(metadata.get("labels") or {})
            yield ",".join(sorted(found)) or NONE

    def decoded(self, body: bytes) -> Raw:
        """Return the object in a protobuf body. Raises ValueError."""
        return decode(body)

    def _review(self, kind: str, inquiry: DocumentRequest) -> ServedDocument:
        if inquiry.method != "POST":
            raise not_allowed()
        user = User(inquiry.user) if inquiry.user else ADMINISTRATOR
        spec = inquiry.body.get("spec") if isinstance(inquiry.body, dict) else None
        token = spec.get("token") if isinstance(spec, dict) else None
        is_authenticated = isinstance(token, str) and self._takes_token(token)
        review = reviewed(kind, inquiry.body, user, is_authenticated=is_authenticated)
        return ServedDocument(body=encoded(review), code=201)

    def _cached(self, path: str, accept: str) -> ServedDocument | None:
        """Return a discovery or OpenAPI document, cached until the kinds change."""
        resources = self._backend.resources
        if self._version != resources.version:
            self._follow(resources)
        form = _aggregated_version(accept) if path in ("/api", "/apis") else ""
        made = self._made.get((path, form))
        if made is None:
            raw = self._schemas(path) if path.startswith(_OPENAPI) else self._discovery(path, form)
            if raw is None:
                return None
            body = encoded(raw)
            type_ = f"{_JSON};g={AGGREGATED};v={form};as={_AS_AGGREGATED}" if form else _JSON
            etag = f'"{hashlib.sha256(body).hexdigest()}"'
            made = self._made[path, form] = ServedDocument(body=body, content_type=type_, etag=etag)
        return made

    def _follow(self, resources: APIResources) -> None:
        """Update for added or changed kinds; the schemas of built-in kinds do not change."""
        self._version, self._kinds = resources.version, served_kinds(resources.all())
        custom = {version for found in resources.all() if found.is_custom for version in found.served_versions}
        built_in = {kind.api_version for kind in self._kinds} - custom
        kept = {f"{_OPENAPI}/{document_path(version)}" for version in built_in}
        self._made = {of: made for of, made in self._made.items() if of[0] in kept}

    def _discovery(self, path: str, form: str) -> Raw | None:
        if form:
            return discovery.aggregated(self._kinds, form, is_core=path == "/api")
        match path.split("/")[1:]:
            case ["api"]:
                return discovery.api_versions()
            case ["apis"]:
                return discovery.group_list(self._kinds)
            case ["apis", name]:
                return discovery.group(self._kinds, name)
            case ["api", version]:
                return discovery.resource_list(self._kinds, version)
            case ["apis", name, version]:
                return discovery.resource_list(self._kinds, f"{name}/{version}")
        return None

    def _schemas(self, path: str) -> Raw | None:
        versions = {document_path(kind.api_version): kind.api_version for kind in self._kinds}
        if path == _OPENAPI:
            return index({version: self._schema_hash(place) for place, version in versions.items()})
        version = versions.get(path.removeprefix(f"{_OPENAPI}/"))
        if version is None:
            return None
        resources = self._backend.resources
        kinds = [
            (kind, resources.served_at(version, kind.plural)) for kind in self._kinds if kind.api_version == version
        ]
        definitions = {kind.kind: definition_of(self._definition(kind), version) for kind, _ in kinds}
        return document(kinds, version, definitions)

    def _schema_hash(self, place: str) -> str:
        made = self._cached(f"{_OPENAPI}/{place}", "")
        if made is None:
            raise AssertionError(f"{place} is served and has no document")
        return made.etag.strip('"')

    def _definition(self, kind: APIResource) -> Raw | None:
        """Return the CustomResourceDefinition of a kind, or None."""
        request = Request(verb="get", kind="CustomResourceDefinition", key=f"{kind.plural}.{kind.group}")
        return self._backend.answer(request).object if "." in kind.group else None


def _aggregated_version(accept: str) -> str:
    """Return the version of aggregated discovery if the client prefers it to other supported types; "" otherwise."""
    for clause in accept.split(","):
        name, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if name not in (_JSON, "application/*", "*/*"):
            continue
        if parameters.get("g") != AGGREGATED:
            return ""
        if parameters.get("as") == _AS_AGGREGATED and parameters.get("v") in AGGREGATED_VERSIONS:
            return parameters["v"]
    return ""


def _check_read(inquiry: DocumentRequest) -> None:
    if inquiry.method not in ("GET", "HEAD"):
        raise not_allowed()


# The content type of the protobuf form in responses; requests use a name with an @, invalid in media types.
_PROTOBUF_2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def _version_2(accept: str) -> ServedDocument:
    """Return the document of OpenAPI v2, which has no content but its head, as JSON or as protobuf."""
    version, title = "2.0", "Kubernetes"
    if "proto-openapi.spec.v2" in accept:
        # swagger = 1, info = 2; in info title = 1, version = 2
        info = _text(1, title.encode()) + _text(2, version.encode())
        return ServedDocument(body=_text(1, version.encode()) + _text(2, info), content_type=_PROTOBUF_2)
    head = {"swagger": version, "info": {"title": title, "version": version}}
    return ServedDocument(body=encoded({**head, "paths": {}, "definitions": {}}))


def _text(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data
