"""How a Job selects its pods (pkg/registry/batch/job/strategy.go, generateSelector)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.api.meta import Raw

_UID, _NAME = "controller-uid", "job-name"
_BATCH = "batch.kubernetes.io/"
_OWN = (f"{_BATCH}{_UID}", f"{_BATCH}{_NAME}", _UID, _NAME)


def selecting_its_own(job: Raw, name: str, uid: str) -> Raw:
    """A new Job that selects the pods of its template by its uid, unless it has a selector of its owner's making."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    selector = spec.get("selector") or {}
    matched = {_OWN[0]: uid, **(selector.get("matchLabels") or {})}
    return _selecting(job, {**selector, "matchLabels": matched}, dict(zip(_OWN, (uid, name, uid, name), strict=True)))


def selecting_as_before(job: Raw, previous: Raw) -> Raw:
    """A Job that is updated, which may leave out what it was given when it was created.

    Nobody has read it yet: one that is malformed stays so, for reading to tell.
    """
    before = previous.get("spec") or {}
    selector = before.get("selector")
    if not selector or not _has_place(job) or (job.get("spec") or {}).get("selector"):
        return job
    given = _labels(before)
    return _selecting(job, selector, {name: given[name] for name in _OWN if name in given})


def _has_place(job: Raw) -> bool:
    """Whether there is a template in it that labels can be given to."""
    value: Any = job
    for name in ("spec", "template", "metadata", "labels"):
        value = value.get(name)
        if not value:
            return value is None or isinstance(value, dict)
        if not isinstance(value, dict):
            return False
    return True


def _selecting(job: Raw, selector: Raw, labels: Mapping[str, str]) -> Raw:
    spec = job.get("spec") or {}
    template = spec.get("template") or {}
    metadata = {**(template.get("metadata") or {}), "labels": {**labels, **_labels(spec)}}
    return {**job, "spec": {**spec, "template": {**template, "metadata": metadata}, "selector": selector}}


def _labels(spec: Raw) -> Raw:
    """The labels of a Job's template."""
    labels: Raw = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return labels
