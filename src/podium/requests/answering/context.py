"""What an answer is made from: the store, the rules, and the object that a request brings."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.requests.answering.rules import Rules
from podium.requests.options import check_name
from podium.requests.request import Request, Response
from podium.store.admission.object_defaults import with_defaults
from podium.store.admission.services import with_addresses
from podium.store.api_resource import APIResource
from podium.store.conversion.conversion import as_stored
from podium.store.errors import bad_request
from podium.store.ownership.entries import Manager, Operation
from podium.store.ownership.writer import Writer, shape_of
from podium.store.patches.nulls import without_nulls
from podium.store.store import Store
from podium.store.stored import Stored
from podium.store.verbs.replacement import key_of

_NOBODY: AbstractContextManager[None] = nullcontext()
CREATED: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


@dataclass(frozen=True, slots=True)
class Context:
    """The store that answers, and by which rules.

    `creates_new`: objects that are created are new, and what is the server's to give is not taken from clients.
    """

    store: Store
    rules: Rules
    creates_new: bool

    def object_of(self, request: Request, *, completes: bool = True) -> Raw:
        """The object in the body as it is stored, if it is of the request's kind, name and namespace.

        With what it leaves open, if that `completes` it. Nulls in objects of Kubernetes' own kinds stand for nothing.
        Raises StoreError 400 and 404.
        """
        raw = request.body
        if not isinstance(raw, dict):
            raise bad_request(f"{shown(raw)} is not an object")
        resource = self.store.resources.of(raw)
        if resource.name != request.kind:
            raise bad_request(f"the object is a {resource.name}, and the request is about a {request.kind}")
        raw = _in_place(raw, request)
        if not self.creates_new:
            return raw
        raw = self._as_stored(resource, raw, request.api_version)
        return self.completed(resource, raw) if completes else raw

    def _as_stored(self, resource: APIResource, raw: Raw, api_version: str) -> Raw:
        """The object in the version that is stored, without what stands for nothing. Raises StoreError 400."""
        version = api_version or str(raw["apiVersion"])
        if raw["apiVersion"] != version:
            problem = (
                f"the API version in the data ({shown(raw['apiVersion'])}) does not match the expected API version"
            )
            raise bad_request(f"{problem} ({version})")
        if not resource.is_custom:
            raw = without_nulls(raw, raw)
        return as_stored(resource, raw, version)

    def completed(self, resource: APIResource, raw: Raw) -> Raw:
        """An object of Kubernetes' own kinds with what it leaves open."""
        return with_defaults(resource.name, self._with_addresses(raw) if resource.name == "Service" else raw)

    def writing(self, resource: APIResource, request: Request, now: int) -> AbstractContextManager[None]:
        """Keep account of who writes, where the request says who that is."""
        if not request.field_manager or not self.creates_new:
            return _NOBODY
        return self.store.written_by(self.writer(resource, request, "Update", now))

    def writer(self, resource: APIResource, request: Request, operation: Operation, now: int) -> Writer:
        """Who writes an object by a request."""
        api_version = request.api_version or resource.api_version
        version = api_version if operation == "Update" else ""
        manager = Manager(request.field_manager, operation, version, request.subresource)
        return Writer(manager, resource, shape_of(self.store.resources, resource), api_version, now)

    def _with_addresses(self, service: Raw) -> Raw:
        """A Service with what it has or gets of the cluster's addresses."""
        metadata = service.get("metadata")
        known = {stored.key: stored.raw for stored in self.store.objects("Service")}
        named = isinstance(metadata, dict) and metadata.get("name")
        previous = (
            known.get(key_of({"namespace": "default", **metadata})) if isinstance(metadata, dict) and named else None
        )
        return with_addresses(service, previous, known.values())


def done(stored: Stored) -> Response:
    """The answer that is an object."""
    return Response(object=stored.raw, stored=stored)


def _in_place(raw: Raw, request: Request) -> Raw:
    """The object with the name and the namespace of the request. Raises StoreError 400 for one with others."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return raw
    if request.key:
        check_name(metadata, request.key)
        return _named(raw, metadata, request.key)
    return _placed(raw, metadata, request.namespace) if request.namespace else raw


def _named(raw: Raw, metadata: Raw, key: str) -> Raw:
    """The object with the name and namespace of the request, where it leaves them open."""
    namespace, _, name = key.rpartition("/")
    if metadata.get("name") == name and metadata.get("namespace", "") == namespace:
        return raw
    return {**raw, "metadata": {**metadata, "name": name, **({"namespace": namespace} if namespace else {})}}


def _placed(raw: Raw, metadata: Raw, namespace: str) -> Raw:
    """The object in the namespace of the request. Raises StoreError 400 for one that says it is in another."""
    given = metadata.get("namespace")
    if given == namespace:
        return raw
    if given:
        problem = f"the namespace of the object ({shown(given)}) does not match that of the request"
        raise bad_request(f"{problem} ({shown(namespace)})")
    return {**raw, "metadata": {**metadata, "namespace": namespace}}
