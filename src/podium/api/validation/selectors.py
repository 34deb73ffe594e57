"""Labels, and selectors of objects and of nodes (apimachinery's validation of meta/v1, core/validation)."""

from __future__ import annotations

from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.requirement import NAME_FIELD
from podium.api.validation.place import Place

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")
_COMPARING = ("Gt", "Lt")


def check_labels(place: Place, name: str) -> None:
    """The labels in a field, or equalities on them."""
    for key, value in place.text_mapping(name).items():
        problem = label_key_problem(key) or label_value_problem(value)
        if problem is not None:
            place.child_or_empty(name).check(key, problem)


def check_label_selector(place: Place, name: str) -> None:
    """The selector of objects in a field (ValidateLabelSelector)."""
    selector = place.child(name)
    if selector is None:
        return
    check_labels(selector, "matchLabels")
    for requirement in selector.objects("matchExpressions"):
        if _has_operator(requirement, (*_WITH_VALUES, *_WITHOUT_VALUES)):
            _check_presence(requirement)
        requirement.check("key", label_key_problem(requirement.text("key")))
        _check_values(requirement)


def check_node_selector(place: Place, name: str) -> None:
    """The selector of nodes in a field, which has at least one term."""
    selector = place.child(name)
    if selector is None:
        return
    terms = selector.objects("nodeSelectorTerms")
    if not terms:
        selector.required("nodeSelectorTerms", "must have at least one node selector term")
    for term in terms:
        check_node_selector_term(term)


def check_node_selector_term(term: Place, allows_any_value: bool = False) -> None:
    """The conditions of a term on labels and on the name; preferred terms may ask for any value."""
    for place in term.objects("matchExpressions"):
        if _has_operator(place, (*_WITH_VALUES, *_WITHOUT_VALUES, *_COMPARING)):
            _check_presence(place)
        place.check("key", label_key_problem(place.text("key")))
        if not allows_any_value:
            _check_values(place)
    for place in term.objects("matchFields"):
        _check_field(place)


def check_topology_term(term: Place) -> None:
    """The conditions of a storage class's topology, each key once and each value once."""
    keys: set[str] = set()
    for place in term.objects("matchLabelExpressions"):
        key = place.text("key")
        values = place.texts("values")
        if not values:
            place.required("values")
        seen: set[str] = set()
        for value in values:
            if value.value in seen:
                value.duplicate("", value.value)
            seen.add(value.value)
        place.check("key", label_key_problem(key))
        if key in keys:
            place.duplicate("key", key)
        keys.add(key)


def _has_operator(requirement: Place, known: tuple[str, ...]) -> bool:
    operator = requirement.text("operator")
    if operator not in known:
        requirement.invalid("operator", operator, "not a valid selector operator")
    return operator in known


def _check_presence(requirement: Place) -> None:
    """That there are as many values as the operator takes."""
    operator, values = requirement.text("operator"), requirement.texts("values")
    if operator in _WITH_VALUES and not values:
        requirement.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES and values:
        requirement.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in _COMPARING and len(values) != 1:
        requirement.required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def _check_values(requirement: Place) -> None:
    for value in requirement.texts("values"):
        value.check("", label_value_problem(value.value))


def _check_field(requirement: Place) -> None:
    values = requirement.texts("values")
    if _has_operator(requirement, _WITH_VALUES) and len(values) != 1:
        requirement.required(
            "values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    key = requirement.text("key")
    if key != NAME_FIELD:
        requirement.invalid("key", key, "not a valid field selector key")
        return
    for value in values:
        value.check("", subdomain_problem(value.value))
