"""Conversion of custom objects between the versions of their kind, by their `apiVersion` alone or by a webhook.

Source: apiextensions-apiserver (pkg/apiserver/conversion/webhook_converter.go, pkg/apiserver/schema/pruning).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.api.meta import Raw, list_at, object_at, value_at
from podium.api.structural.structural import Structural, shaped
from podium.store.errors import StoreError
from podium.store.webhook_calls import WebhookCalls, review_uid

REVIEW_VERSIONS = ("v1", "v1beta1")
"""The versions of ConversionReview; a webhook gets the first one that its definition lists."""

_GROUP = "apiextensions.k8s.io"
_SECONDS = 30
# What differs between two attempts of one request, and between the versions of an object.
_NOT_SENT = frozenset(("managedFields", "resourceVersion", "uid"))
_IDENTITY = (("name", "name"), ("namespace", "namespace"), ("UID", "uid"))
_CONVERTED_METADATA = ("labels", "annotations")

Converter = Callable[[Sequence[Raw], str], list[Raw]]
"""A function that returns objects of one kind in the version of an `apiVersion`.

It raises StoreError 500 if the webhook fails, and CallNeededError if its answer is not known yet.
"""


def converter_of(definition: Raw, structurals: Mapping[str, Structural], webhooks: WebhookCalls) -> Converter:
    """Return the converter of the kind of a definition. Fields that the wanted version does not know are pruned."""
    conversion = object_at(definition, "spec", "conversion")

    def convert(raws: Sequence[Raw], api_version: str) -> list[Raw]:
        if conversion.get("strategy") == "Webhook":
            found = _by_webhook(object_at(conversion, "webhook"), raws, api_version, webhooks)
        else:
            found = [{**raw, "apiVersion": api_version} for raw in raws]
        structural = structurals.get(api_version)
        return found if structural is None else [shaped(raw, structural, fills=False)[0] for raw in found]

    return convert


def _by_webhook(hook: Raw, raws: Sequence[Raw], api_version: str, webhooks: WebhookCalls) -> list[Raw]:
    version = next(one for one in list_at(hook, "conversionReviewVersions") if one in REVIEW_VERSIONS)
    metadata = ({name: value for name, value in raw["metadata"].items() if name not in _NOT_SENT} for raw in raws)
    sent = [{**raw, "metadata": kept} for raw, kept in zip(raws, metadata, strict=True)]
    uid = review_uid(api_version, sent)
    request = {"uid": uid, "desiredAPIVersion": api_version, "objects": sent}
    review = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}
    answer = webhooks.ask(object_at(hook, "clientConfig"), review, _SECONDS)
    name = f"conversion webhook for {raws[0]['apiVersion']}, Kind={raws[0]['kind']}"
    if problem := answer.problem or _review_problem(answer.body, version, uid):
        raise _failure(f"{name} failed: {problem}")
    found = list_at(answer.body, "response", "convertedObjects")
    if len(found) != len(raws):
        raise _failure(f"{name} returned {len(found)} objects, expected {len(raws)}")
    for index, (before, after) in enumerate(zip(sent, found, strict=True)):
        if problem := _object_problem(before, after, api_version):
            raise _failure(f"{name} returned invalid converted object at index {index}: {problem}")
    return [{**after, "metadata": _restored(raw, after)} for raw, after in zip(raws, found, strict=True)]


def _restored(raw: Raw, converted: Raw) -> Raw:
    """Return the metadata of an object, of which a conversion changes labels and annotations alone."""
    changed = {name: object_at(converted, "metadata", name) for name in _CONVERTED_METADATA}
    kept = {name: value for name, value in raw["metadata"].items() if name not in changed}
    return {**kept, **{name: value for name, value in changed.items() if value}}


def _review_problem(review: Any, version: str, uid: str) -> str:
    """Return why an answer is not a successful one to the review; "" if it is."""
    response = value_at(review, "response")
    if version == "v1":
        given = f"{value_at(review, 'apiVersion') or ''}, Kind={value_at(review, 'kind') or ''}"
        wanted = f"{_GROUP}/v1, Kind=ConversionReview"
        if given != wanted:
            return f"expected webhook response of {wanted}, got {given}"
    if not isinstance(response, dict):
        return "no response provided"
    if version == "v1" and response.get("uid") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
    result = object_at(response, "result")
    status = result.get("status") or ""
    if status != "Success":
        return str(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    return ""


def _object_problem(before: Raw, after: Any, api_version: str) -> str:
    """Return why an object is not the converted form of another one; "" if it is."""
    given, kind = value_at(after, "apiVersion"), value_at(after, "kind")
    if given != api_version:
        return f"invalid groupVersion (expected {api_version}, received {given})"
    if kind != before["kind"]:
        return f"invalid kind (expected {before['kind']}, received {kind})"
    metadata = value_at(after, "metadata")
    if not isinstance(metadata, dict):
        return "missing metadata in converted object"
    for name, field in _IDENTITY:
        old, new = before["metadata"].get(field) or "", metadata.get(field) or ""
        if old != new:
            return f"must have the same {name}: {old} != {new}"
    for field in _CONVERTED_METADATA:
        values = metadata.get(field) or {}
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            return f"invalid metadata.{field} in converted object"
    return ""


def _failure(message: str) -> StoreError:
    return StoreError(500, "", message, status_message=message)
