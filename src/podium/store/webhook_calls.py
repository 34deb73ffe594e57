"""Calls of webhooks, of admission and of conversion: where they go, and the answers so far.

A webhook's answer takes time, and requests are answered at once. So a request that needs an answer ends with
`CallNeededError`; its caller makes the call, and asks again with the answer.

Source: apiserver (pkg/util/webhook/client.go, pkg/util/proxy/proxy.go).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.api.errors import PodiumError
from podium.api.meta import Raw, object_at, objects_at
from podium.store.listing import ReadableStore


class WebhookCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a webhook: its URL, the name for which its certificate must be valid, and the body.

    `authority` holds the CA certificates in PEM, "" for those of the system. `server_name` is "" for that of the URL.
    """

    url: str
    body: Raw
    server_name: str = ""
    authority: str = ""
    seconds: float = 10

    @property
    def key(self) -> str:
        """The identity of the call: equal calls have equal answers within one request."""
        return hashlib.sha256(msgspec.json.encode((self.url, self.body), order="deterministic")).hexdigest()


class WebhookAnswer(msgspec.Struct, frozen=True):
    """The answer to a call: the body, or the problem of a call that failed."""

    body: Any = None
    problem: str = ""


class CallNeededError(PodiumError):
    """The end of a request that needs the answer to a call."""

    def __init__(self, call: WebhookCall) -> None:
        super().__init__(f"the webhook {call.url} has to be called first")
        self.call = call


WebhookAnswers = dict[str, WebhookAnswer]
"""The answers that a request has got so far, by the key of the call."""


class WebhookCalls:
    """The calls of webhooks on behalf of a store, with the `answers` to those of the current request."""

    def __init__(self, store: ReadableStore) -> None:
        self._store = store
        self.answers = WebhookAnswers()

    def ask(self, config: Raw, body: Raw, seconds: float, query: str = "") -> WebhookAnswer:
        """Return the answer of the webhook with this `clientConfig`; an unreachable one is an answer with a problem.

        Raises CallNeededError if the answer is not known yet.
        """
        url, server_name, service = str(config.get("url")), "", config.get("service")
        if service:
            namespace, name = str(service.get("namespace")), str(service.get("name"))
            try:
                address = _address(self._store, namespace, name, int(service.get("port") or 443))
            except LookupError as error:
                return WebhookAnswer(problem=str(error))
            path = str(service.get("path") or "/").lstrip("/")
            url, server_name = f"https://{address}/{path}", f"{name}.{namespace}.svc"
        call = WebhookCall(
            url=f"{url}?{query}" if query else url,
            body=body,
            server_name=server_name,
            authority=base64.b64decode(str(config.get("caBundle") or "")).decode("ascii", "replace"),
            seconds=seconds,
        )
        answer = self.answers.get(call.key)
        if answer is None:
            raise CallNeededError(call)
        return answer


def review_uid(*asked: object) -> str:
    """Return the uid of a review, which is the same for equal questions."""
    uid = hashlib.md5(msgspec.json.encode(asked), usedforsecurity=False).hexdigest()
    return f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"


def _address(store: ReadableStore, namespace: str, name: str, port: int) -> str:
    """Return the host and port of a service's first ready endpoint. Raises LookupError."""
    service = store.find("Service", f"{namespace}/{name}")
    if service is None:
        raise LookupError(f'service "{name}" not found')
    spec = object_at(service.raw, "spec")
    if spec.get("type") == "ExternalName":
        return f"{spec.get('externalName')}:{port}"
    wanted = next((each.get("name", "") for each in objects_at(spec, "ports") if each.get("port") == port), None)
    if wanted is None:
        raise LookupError(f'no service port {port} found for service "{name}"')
    for holder, host in _ready_hosts(store, namespace, name):
        for each in objects_at(holder, "ports"):
            if each.get("name", "") == wanted:
                return f"[{host}]:{each['port']}" if ":" in host else f"{host}:{each['port']}"
    raise LookupError(f'no endpoints available for service "{name}"')


def _ready_hosts(store: ReadableStore, namespace: str, name: str) -> Iterator[tuple[Raw, str]]:
    """Yield the addresses of a service's ready endpoints, each after the object with their ports."""
    for stored in store.objects("EndpointSlice", namespace):
        if stored.object.metadata.labels.get("kubernetes.io/service-name") == name:
            for endpoint in objects_at(stored.raw, "endpoints"):
                if endpoint.get("addresses") and object_at(endpoint, "conditions").get("ready") is not False:
                    yield stored.raw, endpoint["addresses"][0]
    endpoints = store.find("Endpoints", f"{namespace}/{name}")
    for subset in objects_at(endpoints.raw if endpoints is not None else {}, "subsets"):
        if subset.get("addresses"):
            yield subset, subset["addresses"][0]["ip"]
