"""The responses of a Kubernetes API server other than stored objects: documents about kinds, and resource metrics.

The documents derive from the kinds that a backend serves. The metrics are those of metrics.k8s.io, for `kubectl top`: a
simulated container uses what it requests. A usage stated by the pod (`podium.dev/cpu-usage`, `podium.dev/memory-usage`)
is attributed to its first container. The total cpu usage of a node is limited to its capacity. Source:
k8s.io/metrics/pkg/apis/metrics/v1beta1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value
from podium.api.resource_requests import requests_of
from podium.api.selectors import compile_label_selector
from podium.api.times import format_time
from podium.api.use import Use
from podium.apirequests.authorization import Authorizer, User
from podium.apirequests.http_mapping import not_allowed
from podium.apirequests.parameters import Query, read_parameters
from podium.apirequests.request import Request
from podium.controllers.indexes import SelectorIndex
from podium.controllers.kubelets import pod_run
from podium.server import discovery
from podium.server.backend import Backend, ServedDocument
from podium.server.openapi import definition_of, document, document_of_v2, document_path
from podium.server.protobuf import bytes_field
from podium.server.reviews import ADMINISTRATOR, Identify, Reviews, review_at
from podium.server.tables.cells import NONE
from podium.server.tables.columns import BUDGET, table_of
from podium.store import custom_kinds
from podium.store.api_resources import APIResource, APIResources
from podium.store.errors import StoreError
from podium.store.listing import ListOptions
from podium.store.stored import encoded

METRICS_VERSION = "metrics.k8s.io/v1beta1"
"""The API version of the metrics."""


_Type = TypeVar("_Type", bound=Kubernetes)


def _containers(pod: Pod, use: Use) -> list[Raw]:
    """Return the containers, each with its share of the pod's usage."""
    annotations, containers = pod.metadata.annotations, pod.spec.containers
    says_cpu = pod_run.annotated_amount(annotations, pod_run.CPU_USAGE) is not None
    says_memory = pod_run.annotated_amount(annotations, pod_run.MEMORY_USAGE) is not None
    requests = [requests_of(container.resources) for container in containers]
    cpu = _parts(use.cpu_milli, [milli_value(amounts.get(CPU, 0)) for amounts in requests], says_cpu)
    memory = _parts(use.memory_bytes, [whole_value(amounts.get(MEMORY, 0)) for amounts in requests], says_memory)
    return [{"name": of.name, "usage": _usage(*used)} for of, *used in zip(containers, cpu, memory, strict=True)]


def _parts(used: int, requested: Sequence[int], is_said: bool) -> list[int]:
    """Return each container's usage: proportional to its request; a usage stated by the pod goes to the first one."""
    total = sum(requested)
    if is_said or not total:
        return [used, *(0 for _ in requested[1:])]
    parts = [used * amount // total for amount in requested]
    parts[0] += used - sum(parts)
    return parts


def _usage(cpu_milli: int, memory_bytes: int) -> Raw:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes // 1_024}Ki"}


def _list(kind: str, found: Iterable[tuple[Kubernetes, Raw]], now: int) -> Raw:
    """Return a list of the metrics of objects, given with their usage."""
    items, time = [], format_time(now)
    for object_, usage in found:
        metadata: Raw = {"name": object_.metadata.name, "creationTimestamp": time}
        if object_.metadata.namespace:
            metadata["namespace"] = object_.metadata.namespace
        if object_.metadata.labels:
            metadata["labels"] = object_.metadata.labels
        head = {"kind": kind, "apiVersion": METRICS_VERSION, "metadata": metadata}
        items.append({**head, "timestamp": time, "window": "10s", **usage})
    return {"kind": f"{kind}List", "apiVersion": METRICS_VERSION, "metadata": {}, "items": items}


def resource_metrics(backend: Backend, path: Sequence[str], query: Query) -> Raw | None:
    """Return the metrics of a backend's nodes or pods at a path within the group, or None.

    Raises StoreError 404 for a node that does not exist and for a pod that does not run, and 400 for malformed
    selectors.
    """
    requested = read_parameters(query).options
    namespace = path[1] if path[0] == "namespaces" and path[2:3] == ["pods"] else ""
    kind, name, *rest = (*(path[2:] if namespace else path), "")
    if kind not in ("nodes", "pods") or rest not in ([], [""]) or (kind == "pods" and name and not namespace):
        return None
    options = ListOptions(label_selector=requested.label_selector, field_selector=requested.field_selector)
    if name:
        options = ListOptions(field_selector=f"metadata.name={name}")
    # A pod's share of its node's cpu depends on all other pods there.
    running: dict[str, list[Pod]] = {}
    for pod in filter(pod_run.is_running, _all(backend, Pod, ListOptions())):
        running.setdefault(pod.spec.node_name, []).append(pod)
    nodes = {node.metadata.name: node for node in _all(backend, Node, ListOptions())}
    uses = {on: pod_run.pod_uses(nodes.get(on), pods) for on, pods in running.items()}
    if kind == "nodes":
        shown: list[tuple[Kubernetes, Raw]] = []
        for node in _all(backend, Node, options):
            there = uses.get(node.metadata.name, {}).values()
            usage = _usage(sum(use.cpu_milli for use in there), sum(use.memory_bytes for use in there))
            shown.append((node, {"usage": usage}))
        found = _list("NodeMetrics", shown, backend.now())
    else:
        pods = _all(backend, Pod, options, namespace)
        used = [(pod, uses.get(pod.spec.node_name, {}).get(pod_run.uid_of(pod))) for pod in pods]
        shown = [(pod, {"containers": _containers(pod, its)}) for pod, its in used if its is not None]
        found = _list("PodMetrics", shown, backend.now())
    if not name:
        return found
    if found["items"]:
        only: Raw = found["items"][0]
        return only
    details = {"name": name, "group": "metrics.k8s.io", "kind": kind}
    full_name = f"{namespace}/{name}" if namespace else name
    raise StoreError(404, "NotFound", f'{kind}.metrics.k8s.io "{full_name}" not found', details)


def _all(backend: Backend, type_: type[_Type], options: ListOptions, namespace: str = "") -> Iterator[_Type]:
    """Yield the objects of a kind. Raises StoreError as the backend answers."""
    response = backend.answer(Request(verb="list", kind=type_.__name__, namespace=namespace, options=options))
    if response.error is not None:
        raise response.error
    for stored in response.page.items if response.page is not None else ():
        if isinstance(stored.object, type_):
            yield stored.object


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
        self._kinds: list[APIResource] = []
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

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include: str, version: str) -> Raw:
        """Return the objects as a Table, without list metadata; pods include their budgets, for `-o wide`.

        `include` is None, Metadata or Object: the object data in each row.
        """
        table = table_of(resource, objects, now, include, version)
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

    def _follow(self, resources: APIResources) -> None:
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
