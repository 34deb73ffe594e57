"""Near which pods and on which nodes a pod may run, or would rather run (core/validation, validateAffinity)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podium.api.names import label_key_problem, label_name_problem
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_label_selector, check_node_selector, check_node_selector_term

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NEEDS_SELECTOR = "must not be specified when labelSelector is not set"


def check_affinity(spec: Place, labels: Mapping[str, str]) -> None:
    """All affinities of a pod with those labels."""
    affinity = spec.child("affinity")
    if affinity is None:
        return
    to_nodes = affinity.child("nodeAffinity")
    if to_nodes is not None:
        check_node_selector(to_nodes, _REQUIRED)
        for place in to_nodes.objects(_PREFERRED):
            _check_weight(place)
            check_node_selector_term(place.child_or_empty("preference"), allows_any_value=True)
    for name in ("podAffinity", "podAntiAffinity"):
        to_pods = affinity.child(name)
        if to_pods is None:
            continue
        for term in to_pods.objects(_REQUIRED):
            _check_term(term, labels)
        for place in to_pods.objects(_PREFERRED):
            _check_weight(place)
            _check_term(place.child_or_empty("podAffinityTerm"), labels)


def check_label_keys(place: Place, name: str, labels: Mapping[str, str]) -> None:
    """Keys that stand for the pod's own labels in the selector beside them, which does not have them by itself.

    What the API server puts in the selector for them when the pod is created does not count.
    """
    keys = place.texts(name)
    if not keys:
        return
    if not place.has("labelSelector"):
        place.forbidden(name, _NEEDS_SELECTOR)
    selected = _selected_keys(place, labels)
    for key in keys:
        key.check("", label_key_problem(key.value))
        if name == "matchLabelKeys" and selected[key.value]:
            key.invalid("", key.value, "exists in both matchLabelKeys and labelSelector")


def _selected_keys(place: Place, labels: Mapping[str, str]) -> Counter[str]:
    selector = place.child_or_empty("labelSelector")
    found = Counter(selector.text_mapping("matchLabels"))
    for requirement in selector.objects("matchExpressions"):
        key = requirement.text("key")
        is_merged = (
            key in labels
            and requirement.value.get("operator") == "In"
            and requirement.value.get("values") == [labels[key]]
        )
        found[key] += not is_merged
    return found


def _check_weight(preferred: Place) -> None:
    weight = preferred.number("weight") or 0
    if not 1 <= weight <= 100:
        preferred.invalid("weight", weight, "must be in the range 1-100")


def _check_term(term: Place, labels: Mapping[str, str]) -> None:
    check_label_selector(term, "labelSelector")
    check_label_selector(term, "namespaceSelector")
    for name in term.texts("namespaces"):
        name.check("", label_name_problem(name.value))
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        check_label_keys(term, field, labels)
    without = {text.value for text in term.texts("mismatchLabelKeys")}
    for key in term.texts("matchLabelKeys"):
        if key.value in without:
            key.invalid("", key.value, "exists in both matchLabelKeys and mismatchLabelKeys")
    if term.text("topologyKey"):
        term.check("topologyKey", label_key_problem(term.text("topologyKey")))
    else:
        term.required("topologyKey", "can not be empty")
