"""Validation of selectors, affinity, tolerations, spread constraints and scheduling gates.

Source: apimachinery (pkg/apis/meta/v1/validation), core/validation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.selectors import NAME_FIELD
from podium.api.validation.findings import Place
from podium.api.validation.rules import check, declare, report_repeats

_WITH_VALUES, _WITHOUT_VALUES, _COMPARING = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")

declare(
    """\
Affinity: nodeAffinity podAffinity podAntiAffinity
LabelSelector: matchLabels:labels matchExpressions
LabelSelectorRequirement: @label_requirement
NodeAffinity PodAffinity PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution
  preferredDuringSchedulingIgnoredDuringExecution
NodeSelector: nodeSelectorTerms!
NodeSelectorRequirement: @node_requirement
NodeSelectorTerm: matchExpressions matchFields
PodAffinityTerm: labelSelector namespaceSelector namespaces:label @label_keys topologyKey!:key
PreferredSchedulingTerm: weight::weight preference+
Toleration: @toleration operator:Equal|Exists effect:NoSchedule|PreferNoSchedule|NoExecute @toleration_value
TopologySpreadConstraint: maxSkew::positive topologyKey!:key whenUnsatisfiable!:DoNotSchedule|ScheduleAnyway @domains
  minDomains:1.. nodeAffinityPolicy:Honor|Ignore nodeTaintsPolicy:Honor|Ignore @label_keys labelSelector
WeightedPodAffinityTerm: weight::weight podAffinityTerm+
""",
    # Scheduling compares these entries with one another. 10,000 values can name every node of a large cluster.
    """\
LabelSelector: matchExpressions:..1000
LabelSelectorRequirement NodeSelectorRequirement: values:..10000
NodeAffinity: preferredDuringSchedulingIgnoredDuringExecution:..1000
NodeSelector: nodeSelectorTerms:..1000
NodeSelectorTerm: matchExpressions:..1000 matchFields:..1000
PodAffinity PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution:..1000
  preferredDuringSchedulingIgnoredDuringExecution:..1000
PodAffinityTerm: namespaces:..1000
PreferredSchedulingTerm WeightedPodAffinityTerm: weight:1..100
""",
)


def only_one(place: Place, given: list[str], missing: str, several: str) -> Place | None:
    """Report that none, or more than one, of some fields is set; return the object in the first one."""
    if not given and missing:
        place.required("", missing)
    for name in given[1:]:
        place.forbidden(name, several)
    return place.child(given[0]) if given else None


@check
def _label_requirement(requirement: Place) -> None:
    _check_operator(requirement, (*_WITH_VALUES, *_WITHOUT_VALUES))
    requirement.check("key", label_key_problem(requirement.text("key")))
    _check_values(requirement)


@check
def _node_requirement(requirement: Place) -> None:
    """Check a requirement on a node's labels, or on its name; those of preferred terms may have any value."""
    key, operator, values = requirement.text("key"), requirement.text("operator"), requirement.texts("values")
    if requirement.field == "matchFields":
        if operator not in _WITH_VALUES:
            requirement.invalid("operator", operator, "not a valid selector operator")
        elif len(values) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            requirement.required("values", detail)
        if key != NAME_FIELD:
            requirement.invalid("key", key, "not a valid field selector key")
            return
        for value in values:
            value.check("", subdomain_problem(value.value))
        return
    _check_operator(requirement, (*_WITH_VALUES, *_WITHOUT_VALUES, *_COMPARING))
    requirement.check("key", label_key_problem(key))
    if ".preference." not in requirement.path():
        _check_values(requirement)


def _check_operator(requirement: Place, known: tuple[str, ...]) -> None:
    """Check that the operator is known, and that the number of values fits it."""
    operator, values = requirement.text("operator"), requirement.texts("values")
    if operator not in known:
        requirement.invalid("operator", operator, "not a valid selector operator")
    elif operator in _WITH_VALUES and not values:
        requirement.required("values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _WITHOUT_VALUES and values:
        requirement.forbidden("values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in _COMPARING and len(values) != 1:
        requirement.required("values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def _check_values(requirement: Place) -> None:
    for value in requirement.texts("values"):
        value.check("", label_value_problem(value.value))


@check
def _label_keys(place: Place) -> None:
    """Check the keys whose labels a selector gets from the pod; they must not be in the selector themselves.

    Selector entries that the API server added for them at the pod's creation do not count.
    """
    selected = _selected_keys(place, place.context.labels)
    without = {text.value for text in place.texts("mismatchLabelKeys")}
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = place.texts(name)
        if keys and not place.has("labelSelector"):
            place.forbidden(name, "must not be specified when labelSelector is not set")
        for key in keys:
            key.check("", label_key_problem(key.value))
            if name == "matchLabelKeys" and selected[key.value]:
                key.invalid("", key.value, "exists in both matchLabelKeys and labelSelector")
    for key in place.texts("matchLabelKeys"):
        if key.value in without:
            key.invalid("", key.value, "exists in both matchLabelKeys and mismatchLabelKeys")


def _selected_keys(place: Place, labels: Mapping[str, str]) -> Counter[str]:
    selector = place.child_or_empty("labelSelector")
    found = Counter(list(selector.text_mapping("matchLabels")))
    for requirement in selector.objects("matchExpressions"):
        key, stated = requirement.text("key"), requirement.value
        is_merged = key in labels and (stated.get("operator"), stated.get("values")) == ("In", [labels[key]])
        found[key] += not is_merged
    return found


@check
def _toleration(toleration: Place) -> None:
    """Check the key and the seconds of a toleration (ValidateTolerations)."""
    key, operator, effect = toleration.text("key"), toleration.text("operator"), toleration.text("effect")
    if key:
        toleration.check("key", label_key_problem(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        toleration.invalid("operator", operator, detail)
    if toleration.has("tolerationSeconds") and effect != "NoExecute":
        toleration.invalid("effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")


@check
def _toleration_value(toleration: Place) -> None:
    operator, value = toleration.text("operator", "Equal"), toleration.text("value")
    if operator == "Equal":
        toleration.check("value", label_value_problem(value))
    elif operator == "Exists" and value:
        toleration.invalid("value", value, "value must be empty when `operator` is 'Exists'")


@check
def _domains(constraint: Place) -> None:
    domains, action = constraint.number("minDomains"), constraint.text("whenUnsatisfiable")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        constraint.invalid("minDomains", domains, detail)


@check
def _spread(spec: Place) -> None:
    """Check that no two spread constraints have the same topology and action (validateTopologySpreadConstraints)."""
    report_repeats(
        spec.objects("topologySpreadConstraints"),
        "",
        lambda place: f"{{{place.text('topologyKey')}, {place.text('whenUnsatisfiable')}}}",
    )


@check
def _gates(spec: Place) -> None:
    """Check that the scheduling gates have valid, unique names; a new gated pod must not have a node."""
    gates = report_repeats(spec.objects("schedulingGates"), "", lambda gate: gate.text("name"))
    for gate in gates:
        gate.check("", label_key_problem(gate.text("name")))
    if gates and spec.context.is_new and spec.text("nodeName"):
        spec.forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")
