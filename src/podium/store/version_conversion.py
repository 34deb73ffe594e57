"""Conversion between the versions of a kind; `podium.store.custom_conversion` has that of custom kinds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from podium.api.forms import KindForm, form_of
from podium.api.meta import Raw
from podium.store.api_resources import APIResource
from podium.store.errors import StoreError

_ANNOTATION = "autoscaling.alpha.kubernetes.io/"
_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_KEPT = (("spec", "metrics"), ("spec", "behavior"), ("status", "currentMetrics"), ("status", "conditions"))


def to_v1(raw: Raw) -> Raw:
    """Return an autoscaling/v2 autoscaler as autoscaling/v1."""
    parts = {"spec": dict(raw.get("spec", {})), "status": {"currentReplicas": 0, **raw.get("status", {})}}
    annotations = dict(raw["metadata"].get("annotations", {}))
    for part, field in _KEPT:
        value = parts[part].pop(field, None)
        if field in ("metrics", "currentMetrics"):
            value = _without_cpu(parts[part], value or [], field == "metrics")
        if value:
            annotations[_annotation(field)] = json.dumps(value, separators=(",", ":"))
    metadata = {**raw["metadata"], "annotations": annotations} if annotations else raw["metadata"]
    return {**raw, "metadata": metadata, **{name: value for name, value in parts.items() if name in raw}}


def to_v2(raw: Raw) -> Raw:
    """Return an autoscaling/v1 autoscaler as autoscaling/v2."""
    metadata = raw.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    annotations = dict(metadata.get("annotations") or {})
    parts = {name: dict(raw[name]) if isinstance(raw.get(name), dict) else {} for name in ("spec", "status")}
    for part, field, share in (("spec", "metrics", _TARGET), ("status", "currentMetrics", _CURRENT)):
        metrics = _read(annotations.pop(_annotation(field), None))
        value = parts[part].pop(share, None)
        cpu = [] if value is None else [_cpu(value, "target" if part == "spec" else "current")]
        if cpu or metrics:
            parts[part][field] = [*cpu, *metrics]
    for part, field in (("spec", "behavior"), ("status", "conditions")):
        if kept := _read(annotations.pop(_annotation(field), None)):
            parts[part][field] = kept
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {**raw, "metadata": metadata, **{name: value for name, value in parts.items() if name in raw}}


def _without_cpu(part: Raw, metrics: list[Any], is_target: bool) -> list[Any]:
    """Return the metrics without the first CPU utilization metric, which v1 has a field for."""
    share = "target" if is_target else "current"
    for index, metric in enumerate(metrics):
        resource = metric.get("resource", {}) if isinstance(metric, dict) else {}
        value = resource.get(share, {}).get("averageUtilization")
        if resource.get("name") == "cpu" and value is not None:
            part[_TARGET if is_target else _CURRENT] = value
            return [*metrics[:index], *metrics[index + 1 :]]
    return metrics


def _cpu(value: Any, share: str) -> Raw:
    amount: Raw = {"averageUtilization": value}
    if share == "target":
        amount = {"type": "Utilization", **amount}
    return {"type": "Resource", "resource": {"name": "cpu", share: amount}}


def _annotation(field: str) -> str:
    return _ANNOTATION + {"currentMetrics": "current-metrics"}.get(field, field)


def _read(text: Any) -> Any:
    """Return the value of a JSON annotation; [] if it is absent or unreadable."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, list | dict) else []


_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {other: name for name, other in _NAMES.items()}
_SELECTED = (("regarding.", "involvedObject."), ("reportingController", "reportingComponent"))


def to_core(raw: Raw) -> Raw:
    """Return an events.k8s.io Event as a core Event."""
    return {_CORE_NAMES.get(name, name): value for name, value in raw.items()}


_FORMS = {
    ("events.k8s.io/v1", "Event"): KindForm(
        to_core, lambda raw: {_NAMES.get(name, name): value for name, value in raw.items()}
    ),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): KindForm(to_v2, to_v1),
}
"""The forms besides those that inputs may have (`podium.api.forms`), by `apiVersion` and kind."""


OWNED_NAMES = {"autoscaling/v1": {"f:metrics": f"f:{_TARGET}", "f:currentMetrics": f"f:{_CURRENT}"}}
"""By `apiVersion`: the names in managed fields that differ from those of the stored version, by the latter."""


def _form_of(resource: APIResource, api_version: str) -> KindForm | None:
    of = api_version, resource.kind
    return None if resource.is_custom else _FORMS.get(of) or form_of(*of)


def converted(resource: APIResource, raws: Sequence[Raw], api_version: str) -> list[Raw]:
    """Return objects in another version than the one that they are stored in. Raises as their converter does."""
    if resource.converter is not None:
        return resource.converter(raws, api_version)
    form = _form_of(resource, api_version)
    return [{**(raw if form is None else form.from_stored(raw)), "apiVersion": api_version} for raw in raws]


def as_stored(resource: APIResource, raw: Raw, api_version: str) -> Raw:
    """Return an object of the requested version in the storage version."""
    if api_version in ("", resource.api_version):
        return raw
    form = _form_of(resource, api_version)
    return {**(raw if form is None else form.to_stored(raw)), "apiVersion": resource.api_version}


def stored_selector(field_selector: str, api_version: str) -> str:
    """Return a field selector over objects of a version as one over stored objects."""
    if api_version != "events.k8s.io/v1":
        return field_selector
    parts = field_selector.split(",")
    for theirs, ours in _SELECTED:
        parts = [ours + part.removeprefix(theirs) if part.startswith(theirs) else part for part in parts]
    return ",".join(parts)


def refused_as(error: StoreError, kind: str, api_version: str) -> StoreError:
    """Return a refusal that names stored fields with the field names of the requested version."""
    form = form_of(api_version, kind)
    return error if form is None else error.reworded(form.in_its_words)
