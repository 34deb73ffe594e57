"""What an update may change of a Job (pkg/apis/batch/validation, ValidateJobSpecUpdate)."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.store.admission.object_defaults import with_defaults
from podium.store.errors import invalid
from podium.store.stored import Stored

_FIXED = ("podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_DIRECTING = ("nodeSelector", "tolerations", "schedulingGates")
_IMMUTABLE = "field is immutable"


def check_job_update(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for a Job with changes that no update makes.

    Its template stays, but for where its pods are to run as long as it is suspended and has not started.
    """
    if raw.get("spec") == previous.raw.get("spec"):
        return
    # What one of them leaves open is what the other says, where that is the default.
    old, new = (with_defaults("Job", {"spec": given.get("spec", {})})["spec"] for given in (previous.raw, raw))
    for field in _FIXED:
        if (old.get(field) or None) != (new.get(field) or None):
            raise invalid(previous.resource, previous.key, _IMMUTABLE, f"spec.{field}")
    if (previous.raw.get("spec") or {}).get("completions") != (raw.get("spec") or {}).get("completions"):
        _check_completions(previous, old, new)
    is_open = old.get("suspend") is True and not previous.raw.get("status", {}).get("startTime")
    if _fixed_part(old.get("template"), is_open=is_open) != _fixed_part(new.get("template"), is_open=is_open):
        raise invalid(previous.resource, previous.key, _IMMUTABLE, "spec.template")


def _check_completions(previous: Stored, old: Raw, new: Raw) -> None:
    """They stay; those of an indexed Job may change together with its parallelism."""
    if old.get("completions") == new.get("completions"):
        return
    if new.get("completionMode") != "Indexed":
        raise invalid(previous.resource, previous.key, _IMMUTABLE, "spec.completions")
    if new.get("completions") != new.get("parallelism"):
        problem = "can only be modified in tandem with spec.parallelism"
        raise invalid(previous.resource, previous.key, problem, "spec.completions")


def _fixed_part(template: Any, *, is_open: bool) -> Any:
    """What stays of a template. Of an open one where its pods run, their marks, and what they request do not.

    That they may request something else comes with MutablePodResourcesForSuspendedJobs.
    """
    if not is_open or not isinstance(template, dict):
        return template
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity" and value}
    kept = {name: value for name, value in spec.items() if name not in (*_DIRECTING, "affinity")}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [{**container, "resources": None} for container in kept[name]]
    marks = {name: value for name, value in metadata.items() if name not in ("annotations", "labels") and value}
    return marks, affinity, kept
