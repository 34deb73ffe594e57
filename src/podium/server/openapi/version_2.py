"""`/openapi/v2`: a document that says nothing.

Clients that know OpenAPI v3 still ask for it before they take a List, and older ones before they take anything; of
kinds that are not in it they check nothing, and leave that to the server. Most ask for protobuf, in which it is the two
fields that every document has (gnostic, openapiv2/OpenAPIv2.proto).
"""

from __future__ import annotations

from podium.api.meta import Raw

PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What its protobuf is called in a reply; in requests there is an @ that no media type may have."""

_VERSION = "2.0"
_TITLE = "Kubernetes"
_SWAGGER_FIELD, _INFO_FIELD = 1, 2
_TITLE_FIELD, _INFO_VERSION_FIELD = 1, 2


def empty_document() -> Raw:
    """The document in JSON."""
    return {"swagger": _VERSION, "info": {"title": _TITLE, "version": _VERSION}, "paths": {}, "definitions": {}}


def empty_protobuf() -> bytes:
    """The same in protobuf."""
    info = _text(_TITLE_FIELD, _TITLE.encode()) + _text(_INFO_VERSION_FIELD, _VERSION.encode())
    return _text(_SWAGGER_FIELD, _VERSION.encode()) + _text(_INFO_FIELD, info)


def _text(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2, len(data))) + data
