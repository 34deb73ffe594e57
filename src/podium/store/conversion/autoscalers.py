"""HorizontalPodAutoscalers as autoscaling/v1 has them, and as autoscaling/v2 does (pkg/apis/autoscaling/v1).

The older version knows of a share of CPU alone; what it cannot say stands in annotations, so that it is not lost by
whoever writes that version. They have upstream's names, and hold the fields as v2 has them.
"""

from __future__ import annotations

import json
from typing import Any

from podium.api.meta import Raw

_ANNOTATION = "autoscaling.alpha.kubernetes.io/"
_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"
_KEPT = (("spec", "metrics"), ("spec", "behavior"), ("status", "currentMetrics"), ("status", "conditions"))


def to_v1(raw: Raw) -> Raw:
    """An autoscaler of v2 as one of v1."""
    parts = {name: dict(raw.get(name, {})) for name in ("spec", "status")}
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
    """An autoscaler of v1 as one of v2."""
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
        kept = _read(annotations.pop(_annotation(field), None))
        if kept:
            parts[part][field] = kept
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {**raw, "metadata": metadata, **{name: value for name, value in parts.items() if name in raw}}


def _without_cpu(part: Raw, metrics: list[Any], is_target: bool) -> list[Any]:
    """The metrics but for the first share of CPU, which v1 has a field for."""
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
    """What an annotation holds; [] where that is nothing."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, list | dict) else []
