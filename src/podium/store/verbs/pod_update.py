"""What an update may change of a pod's spec (pkg/apis/core/validation, ValidatePodUpdate)."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.store.admission.object_defaults import with_defaults
from podium.store.errors import StoreError, invalid
from podium.store.stored import Stored

_CONTAINERS = ("containers", "initContainers")
_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod_update(previous: Stored, spec: Raw) -> None:
    """Raise StoreError 422 for a spec with changes that no update makes.

    Images change, and deadlines come nearer; tolerations are added; scheduling gates are taken off, and while there
    are any, the nodes that the pod may run on can be narrowed down.
    """
    if spec == previous.raw["spec"]:
        return
    # What one of them leaves open is what the other says, where that is the default.
    old, spec = (with_defaults("Pod", {"spec": given})["spec"] for given in (previous.raw["spec"], spec))
    _check_containers(previous, old, spec)
    _check_deadline(previous, old.get("activeDeadlineSeconds"), spec.get("activeDeadlineSeconds"))
    _check_tolerations(previous, old.get("tolerations", ()), spec.get("tolerations", ()))
    _check_gates(previous, old.get("schedulingGates", ()), spec.get("schedulingGates", ()))
    allowed = {"activeDeadlineSeconds", "tolerations", "schedulingGates", *_CONTAINERS}
    if old.get("schedulingGates"):
        _check_narrowing(previous, old, spec)
        allowed |= {"nodeSelector", "affinity"}
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        allowed.add("terminationGracePeriodSeconds")
    for field in sorted({*old, *spec} - allowed):
        # Nothing, an empty list and an empty object are all the same to Kubernetes.
        if (old.get(field) or None) != (spec.get(field) or None):
            raise _forbidden(previous, "spec", f"{_FORBIDDEN}; this one changes `spec.{field}`")


def _check_containers(previous: Stored, old: Raw, spec: Raw) -> None:
    for field in _CONTAINERS:
        before, after = old.get(field, ()), spec.get(field, ())
        if len(before) != len(after):
            raise _forbidden(previous, f"spec.{field}", "pod updates may not add or remove containers")
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            if {**one, "image": ""} != {**other, "image": ""}:
                raise _forbidden(previous, "spec", f"{_FORBIDDEN}; this one changes `spec.{field}[{index}]`")


def _check_deadline(previous: Stored, old: Any, new: Any) -> None:
    if old == new:
        return
    if type(new) is not int or not 0 <= new <= 2**31 - 1 or (old is not None and new > old):
        most = "the deadline that it had" if old is not None else "2147483647"
        problem = f"must be a whole number of seconds, and at most {most}"
        raise invalid(previous.resource, previous.key, problem, "spec.activeDeadlineSeconds")


def _check_tolerations(previous: Stored, old: Any, new: Any) -> None:
    kept = [_without_seconds(one) for one in new]
    if any(_without_seconds(one) not in kept for one in old):
        problem = "existing tolerations stay as they are, but for their tolerationSeconds"
        raise _forbidden(previous, "spec.tolerations", problem)


def _without_seconds(toleration: Raw) -> Raw:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _check_gates(previous: Stored, old: Any, new: Any) -> None:
    names = {gate["name"] for gate in old}
    added = [gate["name"] for gate in new if gate["name"] not in names]
    if added:
        problem = f"only deletion is allowed, but found new scheduling gate {added[0]}"
        raise _forbidden(previous, "spec.schedulingGates", problem)


def _check_narrowing(previous: Stored, old: Raw, spec: Raw) -> None:
    """That a gated pod's node selector and required node affinity keep all their conditions."""
    selector = spec.get("nodeSelector", {})
    if any(selector.get(key) != value for key, value in old.get("nodeSelector", {}).items()):
        raise _forbidden(previous, "spec.nodeSelector", "only additions are allowed, no mutations or deletions")
    before, after = dict(old.get("affinity", {})), dict(spec.get("affinity", {}))
    narrowed = _terms_narrowed(before.pop("nodeAffinity", {}), after.pop("nodeAffinity", {}))
    if not narrowed or before != after:
        problem = "of a gated pod, conditions can be added to required node affinity, and preferred ones changed"
        raise _forbidden(previous, "spec.affinity", problem)


def _terms_narrowed(old: Raw, new: Raw) -> bool:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    before = old.get(required, {}).get("nodeSelectorTerms", ())
    after = new.get(required, {}).get("nodeSelectorTerms", ())
    if not before:
        return True
    return len(before) == len(after) and all(
        all(one in other.get(field, ()) for one in term.get(field, ()))
        for term, other in zip(before, after, strict=True)
        for field in ("matchExpressions", "matchFields")
    )


def _forbidden(previous: Stored, path: str, problem: str) -> StoreError:
    return invalid(previous.resource, previous.key, f"Forbidden: {problem}", path, "FieldValueForbidden")
