"""All that an API server of Kubernetes answers beside objects, made from the kinds that a backend serves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from podium.api.meta import Raw
from podium.requests.request import Request
from podium.requests.wire.verbs import not_allowed
from podium.server.backend import Backend
from podium.server.discovery.documents import (
    AGGREGATED,
    AGGREGATED_VERSIONS,
    aggregated,
    api_versions,
    group,
    group_list,
    resource_list,
)
from podium.server.discovery.served import ServedKind, served_kinds
from podium.server.documents import Document, Inquiry
from podium.server.metrics import METRICS_VERSION
from podium.server.openapi.documents import definition_of, document, document_path, index
from podium.server.openapi.version_2 import PROTOBUF_TYPE, empty_document, empty_protobuf
from podium.server.protobuf.decoding import decode
from podium.server.reviews import ADMINISTRATOR, REVIEWS, User, reviewed
from podium.server.tables.table import table_of
from podium.server.usage import Usage
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.encoding import encoded

_JSON = "application/json"
_OPENAPI = "/openapi/v3"
_OPENAPI_2 = "/openapi/v2"
_METRICS = f"/apis/{METRICS_VERSION}/"
_AS_AGGREGATED = "APIGroupDiscoveryList"
_SAFE = ("GET", "HEAD")


class KubernetesDocuments:
    """Discovery, schemas, reviews, metrics, tables and protobuf for the kinds of a backend.

    They follow the kinds as these come and go; what does not change is made once. `takes_token` says whether a token is
    one that the server lets people in with.
    """

    def __init__(self, backend: Backend, takes_token: Callable[[str], bool] = bool) -> None:
        self._backend = backend
        self._takes_token = takes_token
        self._usage = Usage(backend)
        self._version = -1
        self._kinds: list[ServedKind] = []
        # What was made already, by path and form.
        self._made: dict[tuple[str, str], Document] = {}

    def document(self, inquiry: Inquiry) -> Document | None:
        """What is at a path; None where there is nothing. Raises StoreError for what is asked in a wrong way."""
        path = inquiry.path.rstrip("/") or "/"
        kind = _review_at(path)
        if kind is not None:
            return self._review(kind, inquiry)
        if path.startswith(_METRICS):
            _check_read(inquiry)
            found = self._usage.at(path.removeprefix(_METRICS).split("/"), inquiry.query)
            return None if found is None else Document(body=encoded(found))
        made = _version_2(inquiry.accept) if path == _OPENAPI_2 else self._kept(path, inquiry.accept)
        if made is not None:
            _check_read(inquiry)
        return made

    def takes_body(self, path: str) -> bool:
        """Whether something is posted to a path: a review."""
        return _review_at(path.rstrip("/")) is not None

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include_object: str) -> Raw:
        """The objects as a Table, without the metadata of their list. Raises StoreError 400."""
        return table_of(resource, objects, now, include_object)

    def decoded(self, body: bytes) -> Raw:
        """The object of a body in protobuf. Raises ValueError."""
        return decode(body)

    def _review(self, kind: str, inquiry: Inquiry) -> Document:
        if inquiry.method != "POST":
            raise not_allowed()
        user = User(inquiry.user) if inquiry.user else ADMINISTRATOR
        spec = inquiry.body.get("spec") if isinstance(inquiry.body, dict) else None
        token = spec.get("token") if isinstance(spec, dict) else None
        is_authenticated = isinstance(token, str) and self._takes_token(token)
        return Document(body=encoded(reviewed(kind, inquiry.body, user, is_authenticated=is_authenticated)), code=201)

    def _kept(self, path: str, accept: str) -> Document | None:
        """A document of discovery or OpenAPI, which is kept as long as the kinds are the same."""
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
            made = self._made[path, form] = Document(body=body, content_type=type_, etag=f'"{_hash(body)}"')
        return made

    def _follow(self, resources: APIResources) -> None:
        """Take in that kinds have come or changed; the schemas of Kubernetes' own stay as they are."""
        self._version, self._kinds = resources.version, served_kinds(resources.all())
        custom = {version for found in resources.all() if found.is_custom for version in found.served_versions}
        built_in = {kind.api_version for kind in self._kinds} - custom
        kept = {f"{_OPENAPI}/{document_path(version)}" for version in built_in}
        self._made = {of: made for of, made in self._made.items() if of[0] in kept}

    def _discovery(self, path: str, form: str) -> Raw | None:
        if form:
            return aggregated(self._kinds, form, is_core=path == "/api")
        match path.split("/")[1:]:
            case ["api"]:
                return api_versions()
            case ["apis"]:
                return group_list(self._kinds)
            case ["apis", name]:
                return group(self._kinds, name)
            case ["api", version]:
                return resource_list(self._kinds, version)
            case ["apis", name, version]:
                return resource_list(self._kinds, f"{name}/{version}")
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
        return document(
            kinds, version, {kind.kind: definition_of(self._definition(kind), version) for kind, _ in kinds}
        )

    def _schema_hash(self, place: str) -> str:
        made = self._kept(f"{_OPENAPI}/{place}", "")
        if made is None:
            raise AssertionError(f"{place} is served and has no document")
        return made.etag.strip('"')

    def _definition(self, kind: ServedKind) -> Raw | None:
        """The CustomResourceDefinition of a kind; None for one that has none."""
        request = Request(verb="get", kind="CustomResourceDefinition", key=f"{kind.plural}.{kind.group}")
        return self._backend.answer(request).object if "." in kind.group else None


def _review_at(path: str) -> str | None:
    """The kind of review that is posted to a path; None for another path."""
    parts = path.split("/")
    if parts[1:2] != ["apis"] or parts[3:4] != ["v1"]:
        return None
    kind = _REVIEW_AT.get((parts[2], parts[-1]))
    is_local = kind == "LocalSubjectAccessReview"
    fits = (len(parts) == 7 and parts[4] == "namespaces") if is_local else len(parts) == 5
    return kind if fits else None


_REVIEW_AT = {
    (kind.group, kind.plural): kind.kind for kind in served_kinds([]) if kind.kind in REVIEWS and kind.version == "v1"
}


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that is asked for before anything else that can be given; "" for none."""
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


def _version_2(accept: str) -> Document:
    if "proto-openapi.spec.v2" in accept:
        return Document(body=empty_protobuf(), content_type=PROTOBUF_TYPE)
    return Document(body=encoded(empty_document()))


def _check_read(inquiry: Inquiry) -> None:
    if inquiry.method not in _SAFE:
        raise not_allowed()


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
