"""A line about each request that may change something: who asked for what, when, and what was answered.

Source: k8s.io/apiserver (pkg/apis/audit/v1), at the level Metadata, which has no bodies in it.
"""

from __future__ import annotations

from typing import Any

from podium.api.times import format_exact_time
from podium.requests.wire.paths import Place
from podium.server.http.exchange import Exchange
from podium.store.encoding import encoded

_LONGEST = 1_024


def audit_line(exchange: Exchange, code: int, received_ns: int, sent_ns: int) -> bytes:
    """What is kept of a request: an Event of audit.k8s.io/v1."""
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": exchange.reply_headers["Audit-Id"],
        "stage": "ResponseComplete",
        "requestURI": exchange.request.raw_path[:_LONGEST],
        "verb": exchange.subject.verb.lower(),
        "user": {"username": exchange.caller.user},
        "sourceIPs": [exchange.request.remote or ""],
        "userAgent": exchange.headers.get("User-Agent", "")[:_LONGEST],
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": format_exact_time(received_ns),
        "stageTimestamp": format_exact_time(sent_ns),
    }
    if exchange.place is not None:
        event["objectRef"] = _reference(exchange.place)
    return encoded(event)


def _reference(place: Place) -> dict[str, str]:
    found = {
        "resource": place.resource.plural,
        "namespace": place.namespace,
        "name": place.name,
        "apiGroup": place.resource.group,
        "apiVersion": place.resource.version,
        "subresource": place.subresource,
    }
    return {name: value for name, value in found.items() if value}
