"""What the server answers beside objects: discovery, schemas, reviews, tables, and bodies in protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is asked for at a path where there are no stored objects.

    `body` is decoded, None for none; `user` is who asks.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    accept: str = ""
    body: Any = None
    user: str = ""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that is made already; `etag` says when it is another, "" where nobody may keep it."""

    body: bytes
    content_type: str = "application/json"
    code: int = 200
    etag: str = ""


class Documents(Protocol):
    """Documents and forms that the server itself knows nothing about."""

    def document(self, inquiry: Inquiry) -> Document | None:
        """What is at a path; None where there is nothing. Raises StoreError for what is asked in a wrong way."""
        ...

    def takes_body(self, path: str) -> bool:
        """Whether something is posted to a path."""
        ...

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include_object: str) -> Raw:
        """The objects as a Table (meta/v1), without the metadata of their list.

        `include_object` is None, Metadata or Object: what comes with each row.
        """
        ...

    def decoded(self, body: bytes) -> Raw:
        """The object of a body in protobuf. Raises ValueError."""
        ...


class NoDocuments:
    """Nothing but objects, as JSON and YAML."""

    def document(self, inquiry: Inquiry) -> Document | None:
        """See `Documents`."""
        return None

    def takes_body(self, path: str) -> bool:
        """See `Documents`."""
        return False

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include_object: str) -> Raw:
        """See `Documents`."""
        raise StoreError(406, "NotAcceptable", "this server makes no tables; application/json is what it can give")

    def decoded(self, body: bytes) -> Raw:
        """See `Documents`."""
        raise StoreError(415, "UnsupportedMediaType", "this server reads application/json and application/yaml")
