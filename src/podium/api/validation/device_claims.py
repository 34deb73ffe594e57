"""Claims for devices, and templates for them (pkg/apis/resource/validation)."""

from __future__ import annotations

from collections.abc import Set

from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.validation.devices import (
    check_configuration,
    check_effect,
    check_qualified_name,
    check_selectors,
)
from podium.api.validation.metadata import check_own_name
from podium.api.validation.place import Place

_MODES = ("All", "ExactCount")
_OPERATORS = ("Equal", "Exists")
_ATTRIBUTES = ("matchAttribute", "distinctAttribute")


def check_resource_claim(claim: Place) -> None:
    """What a claim asks for."""
    _check_devices(claim.child_or_empty("spec").child_or_empty("devices"))


def check_resource_claim_template(template: Place) -> None:
    """What the claims that are made from a template ask for."""
    _check_devices(template.child_or_empty("spec").child_or_empty("spec").child_or_empty("devices"))


def _check_devices(devices: Place) -> None:
    known: set[str] = set()
    names: set[str] = set()
    for request in devices.objects("requests"):
        name = check_own_name(request, names)
        known |= {name, *(f"{name}/{alternative}" for alternative in _check_request(request))}
    for constraint in devices.objects("constraints"):
        _check_references(constraint, known)
        _check_constraint(constraint)
    for configuration in devices.objects("config"):
        _check_references(configuration, known)
        check_configuration(configuration)


def _check_request(request: Place) -> set[str]:
    """A request, in v1 or as v1beta1 has it; returns the names of its alternatives."""
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    alternatives = request.objects("firstAvailable")
    exact = request.child("exactly") or (request if request.text("deviceClassName") else None)
    if exact is not None:
        _check_wanted(exact)
        if alternatives:
            request.invalid("", request.value, f"{rule}, but multiple fields are set")
    elif not alternatives:
        request.required("", rule)
    names: set[str] = set()
    for alternative in alternatives:
        check_own_name(alternative, names)
        _check_wanted(alternative)
    return names


def _check_wanted(wanted: Place) -> None:
    """The class of the devices, and how many of them."""
    class_name = wanted.text("deviceClassName")
    if class_name:
        wanted.check("deviceClassName", subdomain_problem(class_name))
    else:
        wanted.required("deviceClassName")
    check_selectors(wanted)
    wanted.check_one_of("allocationMode", _MODES)
    count = wanted.number("count")
    if wanted.text("allocationMode") == "All" and count:
        wanted.invalid("count", count, "must not be specified when allocationMode is 'All'")
    elif count is not None and count < 0:
        wanted.invalid("count", count, "must be greater than zero")
    for toleration in wanted.objects("tolerations"):
        _check_toleration(toleration)


def _check_toleration(toleration: Place) -> None:
    key, value = toleration.text("key"), toleration.text("value")
    if key:
        toleration.check("key", label_key_problem(key))
    toleration.check_one_of("operator", _OPERATORS)
    if toleration.text("operator") != "Exists":
        toleration.check("value", label_value_problem(value))
    elif value:
        toleration.invalid("value", value, "must be empty for operator `Exists`")
    check_effect(toleration)


def _check_references(place: Place, known: Set[str]) -> None:
    """The requests that something is about, each of them once, with an alternative after a slash."""
    rule = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    seen: set[str] = set()
    for reference in place.texts("requests"):
        if reference.value in seen:
            reference.duplicate("", reference.value)
        elif reference.value not in known:
            reference.invalid("", reference.value, rule)
        seen.add(reference.value)


def _check_constraint(constraint: Place) -> None:
    given = [name for name in _ATTRIBUTES if constraint.has(name)]
    if len(given) != 1:
        constraint.required("", 'exactly one of "matchAttribute" or "distinctAttribute" is required')
        return
    attribute = constraint.text(given[0])
    check_qualified_name(constraint, given[0], attribute)
    if "/" not in attribute:
        rule = "a fully qualified name must be a domain and a name separated by a slash"
        constraint.invalid(given[0], attribute, rule)
