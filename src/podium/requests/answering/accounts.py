"""Tokens of service accounts (authentication.k8s.io/v1 TokenRequest)."""

from __future__ import annotations

import base64
import json
from typing import Any

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.requests.answering.context import Context
from podium.requests.request import Request, Response
from podium.store.errors import bad_request

_SECOND = 10**9
_DEFAULT_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3_600, 600, 2**32


def create_token(context: Context, request: Request, now: int) -> Response:
    """A token that names the account and opens nothing: it is not signed, and the server goes by its own tokens."""
    account = context.store.get(request.kind, request.key)
    body = request.body if isinstance(request.body, dict) else {}
    spec = body.get("spec") or {}
    seconds = spec.get("expirationSeconds") if isinstance(spec, dict) else None
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    if not isinstance(spec, dict) or type(seconds) is not int or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise bad_request(
            f"spec.expirationSeconds is a whole number of seconds from {_LEAST_SECONDS} to {_MOST_SECONDS}"
        )
    metadata = account.raw["metadata"]
    expires = now + seconds * _SECOND
    claims = {
        "aud": spec.get("audiences") or [],
        "exp": expires // _SECOND,
        "iat": now // _SECOND,
        "sub": f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
    }
    status = {"token": _unsigned(claims), "expirationTimestamp": format_time(expires)}
    answer: Raw = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "spec": {**spec, "expirationSeconds": seconds},
        "status": status,
    }
    return Response(code=201, object=answer)


def _unsigned(claims: Raw) -> str:
    """A JSON Web Token without a signature (RFC 7519, section 6)."""
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(value: Any) -> str:
    written = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")
