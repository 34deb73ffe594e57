"""Tolerations, spread constraints and scheduling gates of a pod (core/validation)."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.names import label_key_problem, label_value_problem
from podium.api.requirement import parse_int64
from podium.api.validation.affinity import check_label_keys
from podium.api.validation.place import Place
from podium.api.validation.selectors import check_label_selector

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def check_tolerations(place: Place) -> None:
    """The tolerations of a pod, or of a RuntimeClass (ValidateTolerations)."""
    for toleration in place.objects("tolerations"):
        key, operator = toleration.text("key"), toleration.text("operator", "Equal")
        if key:
            toleration.check("key", label_key_problem(key))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            toleration.invalid("operator", toleration.text("operator"), detail)
        if toleration.has("tolerationSeconds") and toleration.text("effect") != "NoExecute":
            toleration.invalid(
                "effect", toleration.text("effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set"
            )
        toleration.check_one_of("operator", _OPERATORS)
        toleration.check_one_of("effect", EFFECTS)
        _check_value(toleration, operator)


def check_spread(spec: Place, labels: Mapping[str, str]) -> None:
    """The spread constraints of a pod with those labels (validateTopologySpreadConstraints)."""
    seen: set[tuple[str, str]] = set()
    for place in spec.objects("topologySpreadConstraints"):
        skew = place.number("maxSkew") or 0
        if skew <= 0:
            place.invalid("maxSkew", skew, "must be greater than zero")
        key, action = place.text("topologyKey"), place.text("whenUnsatisfiable")
        if not key:
            place.required("topologyKey", "can not be empty")
        place.require("whenUnsatisfiable")
        place.check_one_of("whenUnsatisfiable", _ACTIONS)
        if (key, action) in seen:
            place.duplicate("", f"{{{key}, {action}}}")
        seen.add((key, action))
        _check_domains(place, action)
        place.check_one_of("nodeAffinityPolicy", _POLICIES)
        place.check_one_of("nodeTaintsPolicy", _POLICIES)
        check_label_keys(place, "matchLabelKeys", labels)
        check_label_selector(place, "labelSelector")


def check_gates(spec: Place, is_new: bool) -> None:
    """The scheduling gates of a pod, which has no node when it is created with them."""
    seen: set[str] = set()
    gates = spec.objects("schedulingGates")
    for gate in gates:
        name = gate.text("name")
        gate.check("", label_key_problem(name))
        if name in seen:
            gate.duplicate("", name)
        seen.add(name)
    if gates and is_new and spec.text("nodeName"):
        spec.forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")


def _check_value(toleration: Place, operator: str) -> None:
    value = toleration.text("value")
    if operator == "Equal":
        toleration.check("value", label_value_problem(value))
    elif operator == "Exists" and value:
        toleration.invalid("value", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt") and parse_int64(value) is None:
        toleration.invalid("value", value, f"must be a 64-bit integer when `operator` is '{operator}'")


def _check_domains(constraint: Place, action: str) -> None:
    domains = constraint.number("minDomains")
    if domains is None:
        return
    if domains <= 0:
        constraint.invalid("minDomains", domains, "must be greater than zero")
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        constraint.invalid("minDomains", domains, detail)
