"""Admission webhooks: what they are asked, and what their answers mean.

A webhook's answer takes time, and requests are answered at once. So a request that needs an answer ends with
`CallNeededError`; its caller makes the call, and asks again with the answer.

Source: apiserver (pkg/admission/plugin/webhook: generic/webhook.go, mutating and validating dispatcher.go,
errors/statuserror.go, request/admissionreview.go).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from podium.api.meta import Raw, object_at, objects_at
from podium.apirequests.admission import policies
from podium.store.errors import StoreError, bad_request, forbidden
from podium.store.patching import json_patch
from podium.store.store import Store

_API_VERSION = "admission.k8s.io/v1"
_DEFAULT_SECONDS = 10


class WebhookCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a webhook: its URL, the name for which its certificate must be valid, and the body.

    `authority` holds the CA certificates in PEM, "" for those of the system. `server_name` is "" for that of the URL.
    """

    url: str
    body: Raw
    server_name: str = ""
    authority: str = ""
    seconds: float = _DEFAULT_SECONDS

    @property
    def key(self) -> str:
        """The identity of the call: equal calls have equal answers within one request."""
        return hashlib.sha256(msgspec.json.encode((self.url, self.body), order="deterministic")).hexdigest()


class WebhookAnswer(msgspec.Struct, frozen=True):
    """The answer to a call: the body, or the problem of a call that failed."""

    body: Any = None
    problem: str = ""


class CallNeededError(Exception):
    """The end of a request that needs the answer to a call."""

    def __init__(self, call: WebhookCall) -> None:
        super().__init__(call.url)
        self.call = call


WebhookAnswers = dict[str, WebhookAnswer]
"""The answers that a request has got so far, by the key of the call."""


class Webhooks:
    """The webhooks of a store, asked about requests."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.answers = WebhookAnswers()

    def mutated(self, attributes: policies.AdmissionAttributes, warnings: list[str]) -> Raw | None:
        """Return the object as the mutating webhooks change it, None if none does. Raises as `_response` does.

        Webhooks that want it are asked again after a later one has changed the object.
        """
        before = attributes.object
        changed_after: dict[str, Any] = {}
        for hook in self._hooks("MutatingWebhookConfiguration", attributes):
            attributes = self._mutate(hook, attributes, warnings)
            changed_after[str(hook["name"])] = attributes.object
        for hook in self._hooks("MutatingWebhookConfiguration", attributes):
            after_call = changed_after.get(str(hook["name"]), before)
            if hook.get("reinvocationPolicy") == "IfNeeded" and after_call is not attributes.object:
                attributes = self._mutate(hook, attributes, warnings)
        return attributes.object if attributes.object is not before else None

    def _mutate(
        self, hook: Raw, attributes: policies.AdmissionAttributes, warnings: list[str]
    ) -> policies.AdmissionAttributes:
        response = self._response(hook, attributes, warnings)
        if not response.get("patch"):
            return attributes
        try:
            patch = json.loads(base64.b64decode(response["patch"], validate=True))
            result = json_patch(attributes.object, patch)
        except (ValueError, TypeError, StoreError) as error:
            raise _internal(hook, f"failed to apply its patch: {error}") from None
        if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
            raise _internal(hook, "its patch leaves no object with metadata")
        return attributes if result == attributes.object else replace(attributes, object=result)

    def validate(self, attributes: policies.AdmissionAttributes, warnings: list[str]) -> None:
        """Call the validating webhooks. Raises as `_response` does."""
        for hook in self._hooks("ValidatingWebhookConfiguration", attributes):
            self._response(hook, attributes, warnings)

    def _hooks(self, kind: str, attributes: policies.AdmissionAttributes) -> Iterator[Raw]:
        """Yield the webhooks that apply to a request, by the name of their configuration and in its order."""
        for stored in self._store.objects(kind):
            for hook in objects_at(stored.raw, "webhooks"):
                if not policies.matches(self._store, hook, attributes, listed="rules"):
                    continue
                namespace = policies.namespace_of(self._store, attributes)
                try:
                    applies = policies.PolicyEvaluation(attributes, namespace, None, {}).meets(
                        objects_at(hook, "matchConditions")
                    )
                except policies.AdmissionPolicyError as error:
                    if hook.get("failurePolicy") == "Ignore":
                        continue
                    raise forbidden(attributes.resource, attributes.key, str(error)) from None
                if applies:
                    yield hook

    def _response(self, hook: Raw, attributes: policies.AdmissionAttributes, warnings: list[str]) -> Raw:
        """Return the response of a webhook that allows the request, {} for one that failed and may.

        Raises StoreError if it denies the request, and CallNeededError if its answer is not known yet.
        """
        if attributes.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        try:
            call = self._call(hook, attributes)
            answer = self.answers.get(call.key)
            if answer is None:
                raise CallNeededError(call)
            problem = answer.problem
        except LookupError as error:
            answer, problem = WebhookAnswer(), str(error)
        response = object_at(answer.body, "response")
        if not problem and not isinstance(response.get("allowed"), bool):
            problem = "received invalid webhook response: expected webhook response of admission.k8s.io/v1 with allowed"
        if problem:
            if hook.get("failurePolicy") == "Ignore":
                return {}
            raise _internal(hook, f"failed to call webhook: {problem}")
        warnings += [str(text) for text in response.get("warnings") or ()]
        if not response["allowed"]:
            raise _denial(hook, object_at(response, "status"))
        return response

    def _call(self, hook: Raw, attributes: policies.AdmissionAttributes) -> WebhookCall:
        """Return the call of a webhook. Raises LookupError for a service without an address."""
        request = {
            **attributes.as_request(),
            "object": _as_sent(attributes.object),
            "oldObject": _as_sent(attributes.old),
            "options": None,
        }
        uid = hashlib.md5(msgspec.json.encode((hook["name"], request)), usedforsecurity=False).hexdigest()
        request["uid"] = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"
        body = {"kind": "AdmissionReview", "apiVersion": _API_VERSION, "request": request}
        config, server_name = object_at(hook, "clientConfig"), ""
        url, service = str(config.get("url")), config.get("service")
        if service:
            namespace, name = str(service.get("namespace")), str(service.get("name"))
            address = _address(self._store, namespace, name, int(service.get("port") or 443))
            path = str(service.get("path") or "/").lstrip("/")
            url, server_name = f"https://{address}/{path}", f"{name}.{namespace}.svc"
        seconds = hook.get("timeoutSeconds") or _DEFAULT_SECONDS
        return WebhookCall(
            url=f"{url}{'&' if '?' in url else '?'}timeout={seconds}s",
            body=body,
            server_name=server_name,
            authority=base64.b64decode(str(config.get("caBundle") or "")).decode("ascii", "replace"),
            seconds=seconds,
        )


def _as_sent(raw: Raw | None) -> Raw | None:
    """Return an object without what differs between two attempts of one request."""
    if raw is None:
        return None
    metadata = {name: value for name, value in raw["metadata"].items() if name != "managedFields"}
    return {**raw, "metadata": metadata}


def _address(store: Store, namespace: str, name: str, port: int) -> str:
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


def _ready_hosts(store: Store, namespace: str, name: str) -> Iterator[tuple[Raw, str]]:
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


def _internal(hook: Raw, problem: str) -> StoreError:
    message = f'Internal error occurred: failed calling webhook "{hook["name"]}": {problem}'
    return StoreError(500, "InternalError", message)


def _denial(hook: Raw, status: Raw) -> StoreError:
    """Return the refusal of a request by a webhook, with its code, reason and message."""
    denied = f'admission webhook "{hook["name"]}" denied the request'
    explanation = status.get("message") or status.get("reason")
    code = status.get("code")
    is_error = isinstance(code, int) and code >= 400
    details = object_at(status, "details")
    return StoreError(
        code if is_error and isinstance(code, int) else 400,
        str(status.get("reason") or ""),
        f"{denied}: {explanation}" if explanation else f"{denied} without explanation",
        details,
    )
