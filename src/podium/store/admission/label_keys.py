"""matchLabelKeys and mismatchLabelKeys, turned into selector requirements when a pod is created.

The rules of pkg/registry/core/pod/strategy.go (mutatePodAffinity, mutateTopologySpreadConstraints): the scheduler reads
the selectors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.meta import Raw

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(spec: Raw, labels: Mapping[str, str]) -> Raw:
    """The pod spec with the pod's own values of those labels in its selectors; `spec` itself where it has none."""
    constraints = spec.get("topologySpreadConstraints")
    if constraints:
        spec = _replaced(spec, "topologySpreadConstraints", [_merged(constraint, labels) for constraint in constraints])
    affinity = spec.get("affinity")
    if affinity:
        for name in ("podAffinity", "podAntiAffinity"):
            if name in affinity:
                affinity = _replaced(affinity, name, _merged_affinity(affinity[name], labels))
        spec = _replaced(spec, "affinity", affinity)
    return spec


def _merged_affinity(affinity: Raw, labels: Mapping[str, str]) -> Raw:
    affinity = _each(affinity, _REQUIRED, lambda term: _merged(term, labels))
    return _each(
        affinity,
        _PREFERRED,
        lambda weighted: _replaced(weighted, "podAffinityTerm", _merged(weighted["podAffinityTerm"], labels)),
    )


def _each(affinity: Raw, field: str, change: Callable[[Raw], Raw]) -> Raw:
    return _replaced(affinity, field, [change(one) for one in affinity[field]]) if field in affinity else affinity


def _merged(term: Raw, labels: Mapping[str, str]) -> Raw:
    """The affinity term or spread constraint with its keys in its selector; a missing selector stays missing."""
    selector = term.get("labelSelector")
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field, ())
        if key in labels
    ]
    if selector is None or not added:
        return term
    expressions = [*selector.get("matchExpressions", ()), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}


def _replaced(raw: Raw, field: str, value: object) -> Raw:
    return raw if raw[field] == value else {**raw, field: value}
