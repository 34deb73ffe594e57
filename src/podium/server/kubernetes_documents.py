"""The non-object responses of a Kubernetes API server, derived from the kinds that a backend serves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.apirequests.authorization import Authorizer, User
from podium.apirequests.http_mapping import not_allowed
from podium.apirequests.request import Request
from podium.controllers.indexes import SelectorIndex
from podium.server import discovery
from podium.server.backend import Backend, ServedDocument
from podium.server.openapi import definition_of, document, document_of_v2, document_path
from podium.server.protobuf import bytes_field
from podium.server.resource_metrics import METRICS_VERSION, resource_metrics
from podium.server.reviews import ADMINISTRATOR, Identify, Reviews, review_at
from podium.server.tables.cells import NONE
from podium.server.tables.columns import BUDGET, table_of
from podium.store import api_resources, custom_kinds
from podium.store.stored import encoded

_JSON = "application/json"
_OPENAPI, _OPENAPI_2 = "/openapi/v3", "/openapi/v2"
_METRICS = f"/apis/{METRICS_VERSION}/"
_AS_AGGREGATED = "APIGroupDiscoveryList"
# The head of the document of OpenAPI v2, for clients that ask for protobuf: swagger = 1, info = 2; in info title = 1,
# version = 2. Requests name the content type with an @, which is invalid in media types.
_PROTOBUF_2 = ServedDocument(
    body=bytes_field(1, b"2.0") + bytes_field(2, bytes_field(1, b"Kubernetes") + bytes_field(2, b"2.0")),
    content_type="application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)


class KubernetesDocuments:
    """Discovery, schemas, reviews, metrics and tables for the kinds of a backend.

    Documents follow changes of the kinds, and are cached between changes. `identify` returns the user of a token.
    Without an `authorizer` users may do everything.
    """

    def __init__(
        self,
        backend: Backend,
        identify: Identify = lambda _token, _audiences: None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self._backend = backend
        self._reviews = Reviews(identify, authorizer)
        self._version = -1
        self._kinds: list[api_resources.APIResource] = []
        # Cached documents, by path and format.
        self._made: dict[tuple[str, str], ServedDocument] = {}

    def document(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        accept: str = "",
        body: Any = None,
        user: User = ADMINISTRATOR,
    ) -> ServedDocument | None:
        """Return the document at a path, or None; `body` is decoded. Raises StoreError for an invalid request."""
        path = path.rstrip("/") or "/"
        review = review_at(path)
        if review is not None:
            if method != "POST":
                raise not_allowed()
            kind, namespace = review
            return ServedDocument(body=encoded(self._reviews.reviewed(kind, body, user, namespace)), code=201)
        if path.startswith(_METRICS):
            found = resource_metrics(self._backend, path.removeprefix(_METRICS).split("/"), query)
            return None if found is None else ServedDocument(body=encoded(found))
        is_protobuf = path == _OPENAPI_2 and "proto-openapi.spec.v2" in accept
        return _PROTOBUF_2 if is_protobuf else self._cached(path, accept)

    def table(self, resource: api_resources.APIResource, objects: Sequence[Raw], now: int, include_object: str) -> Raw:
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

    def _cached(self, path: str, accept: str) -> ServedDocument | None:
        """Return a discovery or OpenAPI document, cached until the kinds change."""
        resources = self._backend.resources
        if self._version != resources.version:
            self._follow(resources)
        form = _aggregated_version(accept) if path in ("/api", "/apis") else ""
        made = self._made.get((path, form))
        if made is None:
            raw = self._schemas(path) if path.startswith("/openapi/") else self._discovery(path, form)
            if raw is None:
                return None
            body = encoded(raw)
            type_ = f"{_JSON};g={discovery.AGGREGATED};v={form};as={_AS_AGGREGATED}" if form else _JSON
            etag = f'"{hashlib.sha256(body).hexdigest()}"'
            made = self._made[path, form] = ServedDocument(body=body, content_type=type_, etag=etag)
        return made

    def _follow(self, resources: api_resources.APIResources) -> None:
        """Update for added or changed kinds; the schemas of built-in kinds do not change."""
        self._version, self._kinds = resources.version, discovery.served_kinds(resources.all())
        custom = {version for found in resources.all() if found.is_custom for version in found.served_versions}
        built_in = {kind.api_version for kind in self._kinds} - custom
        kept = {f"{_OPENAPI}/{document_path(version)}" for version in built_in}
        self._made = {of: made for of, made in self._made.items() if of[0] in kept}

    def _discovery(self, path: str, form: str) -> Raw | None:
        if form:
            return discovery.aggregated(self._kinds, form, is_core=path == "/api")
        match path.split("/")[1:]:
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
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
        if path in (_OPENAPI, _OPENAPI_2):
            made = {place: found for place in versions if (found := self._cached(f"{_OPENAPI}/{place}", ""))}
            if path == _OPENAPI_2:
                return document_of_v2(msgspec.json.decode(found.body) for found in made.values())
            # The hashes are for client caches.
            hashes = {place: found.etag.strip('"') for place, found in made.items()}
            urls = {place: f"{_OPENAPI}/{place}?hash={found}" for place, found in hashes.items()}
            return {"paths": {place: {"serverRelativeURL": url} for place, url in urls.items()}}
        version = versions.get(path.removeprefix(f"{_OPENAPI}/"))
        if version is None:
            return None
        resources = self._backend.resources
        kinds = [
            (kind, resources.served_at(version, kind.plural)) for kind in self._kinds if kind.api_version == version
        ]
        definitions: dict[str, Raw | None] = {}
        for kind, _ in kinds:
            request = Request(verb="get", kind=custom_kinds.DEFINITION, key=kind.qualified)
            custom = self._backend.answer(request).object if "." in kind.group else None
            definitions[kind.kind] = definition_of(custom, version)
        return document(kinds, version, definitions)


def _aggregated_version(accept: str) -> str:
    """Return the version of aggregated discovery if the client prefers it to other supported types; "" otherwise."""
    for clause in accept.split(","):
        name, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if name not in (_JSON, "application/*", "*/*"):
            continue
        if parameters.get("g") != discovery.AGGREGATED:
            return ""
        if parameters.get("as") == _AS_AGGREGATED and parameters.get("v") in discovery.AGGREGATED_VERSIONS:
            return parameters["v"]
    return ""
