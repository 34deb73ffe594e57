"""Admission webhooks: what they are asked, and what their answers mean.

Source: apiserver (pkg/admission/plugin/webhook: generic/webhook.go, mutating and validating dispatcher.go,
errors/statuserror.go, request/admissionreview.go).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace

from podium.api.meta import Raw, object_at, objects_at
from podium.apirequests.admission import policies
from podium.apirequests.admission.policies import AdmissionAttributes
from podium.store.errors import StoreError, bad_request, forbidden
from podium.store.patching import json_patch
from podium.store.store import Store
from podium.store.webhook_calls import WebhookAnswer, review_uid

_VERSIONS = ("v1", "v1beta1")
_DEFAULT_SECONDS = 10


class Webhooks:
    """The webhooks of a store, asked about requests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutated(self, attributes: AdmissionAttributes, warnings: list[str]) -> Raw | None:
        """Return the object as the mutating webhooks change it, None if none does. Raises as `_response` does.

        Webhooks that were asked, and want it, are asked again after a later one has changed the object.
        """
        before, after = attributes.object, dict[str, Raw | None]()
        for is_again in (False, True):
            for hook in self._hooks("MutatingWebhookConfiguration"):
                has_changed = after.get(hook["name"], attributes.object) is not attributes.object
                is_due = not is_again or (has_changed and hook.get("reinvocationPolicy") == "IfNeeded")
                if is_due and self._applies(hook, attributes):
                    attributes = self._mutate(hook, attributes, warnings)
                    after[hook["name"]] = attributes.object
        return attributes.object if attributes.object is not before else None

    def _mutate(self, hook: Raw, attributes: AdmissionAttributes, warnings: list[str]) -> AdmissionAttributes:
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

    def validate(self, attributes: AdmissionAttributes, warnings: list[str]) -> None:
        """Call the validating webhooks. Raises as `_response` does."""
        for hook in self._hooks("ValidatingWebhookConfiguration"):
            if self._applies(hook, attributes):
                self._response(hook, attributes, warnings)

    def _hooks(self, kind: str) -> Iterator[Raw]:
        """Yield the webhooks by the name of their configuration and in its order."""
        for stored in self._store.objects(kind):
            yield from objects_at(stored.raw, "webhooks")

    def _applies(self, hook: Raw, attributes: AdmissionAttributes) -> bool:
        """Return whether a webhook applies to a request. Raises StoreError 403 if its conditions cannot say."""
        if not policies.matches(self._store, hook, attributes, listed="rules"):
            return False
        evaluation = policies.PolicyEvaluation(attributes, policies.namespace_of(self._store, attributes), None, {})
        try:
            return evaluation.meets(objects_at(hook, "matchConditions"))
        except policies.AdmissionPolicyError as error:
            if hook.get("failurePolicy") == "Ignore":
                return False
            raise forbidden(attributes.resource, attributes.key, str(error)) from None

    def _response(self, hook: Raw, attributes: AdmissionAttributes, warnings: list[str]) -> Raw:
        """Return the response of a webhook that allows the request, {} for one that failed and may.

        Raises StoreError if it denies the request, and CallNeededError if its answer is not known yet.
        """
        if attributes.dry_run and hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook["name"]}" does not support dry run')
        answer = self._ask(hook, attributes)
        problem, response = answer.problem, object_at(answer.body, "response")
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

    def _ask(self, hook: Raw, attributes: AdmissionAttributes) -> WebhookAnswer:
        objects = {"object": _as_sent(attributes.object), "oldObject": _as_sent(attributes.old)}
        request = {**attributes.as_request(), **objects}
        request["uid"] = review_uid(hook["name"], request)
        version = next((each for each in hook.get("admissionReviewVersions") or () if each in _VERSIONS), "v1")
        body = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
        seconds = hook.get("timeoutSeconds") or _DEFAULT_SECONDS
        return self._store.webhooks.ask(object_at(hook, "clientConfig"), body, seconds, f"timeout={seconds}s")


def _as_sent(raw: Raw | None) -> Raw | None:
    """Return an object without what differs between two attempts of one request."""
    metadata = {name: value for name, value in object_at(raw, "metadata").items() if name != "managedFields"}
    return raw and {**raw, "metadata": metadata}


def _internal(hook: Raw, problem: str) -> StoreError:
    return StoreError(
        500, "InternalError", f'Internal error occurred: failed calling webhook "{hook["name"]}": {problem}'
    )


def _denial(hook: Raw, status: Raw) -> StoreError:
    """Return the refusal of a request by a webhook, with its code, reason and message."""
    denied = f'admission webhook "{hook["name"]}" denied the request'
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = status.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    return StoreError(code, str(status.get("reason") or ""), message, object_at(status, "details"))
