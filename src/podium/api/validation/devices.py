"""Claims for devices, what they are made from, and what nodes offer (pkg/apis/resource/validation)."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.names import label_name_problem
from podium.api.validation.place import Place

_REQUEST_TYPES = ("exactly", "firstAvailable")
_MODES = ("All", "ExactCount")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
# There a request has the fields of what it asks for itself.
_FLAT = "resource.k8s.io/v1beta1"
_EMPTY: tuple[object, ...] = (None, "", False, [])
_MUST_NAME = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"


def check_resource_claim(claim: Place) -> None:
    """A claim: requests of one type each, and constraints about some of them."""
    _check_claim(claim.child_or_empty("spec"), is_flat=claim.text("apiVersion") == _FLAT)


def check_claim_template(template: Place) -> None:
    """A template: the same for what it makes."""
    spec = template.child_or_empty("spec").child_or_empty("spec")
    _check_claim(spec, is_flat=template.text("apiVersion") == _FLAT)


def check_device_class(device_class: Place) -> None:
    """A class: selectors that say something."""
    _check_selectors(device_class.child_or_empty("spec"))


def check_resource_slice(resource_slice: Place) -> None:
    """A slice: devices of different names, for nodes that are said in one way."""
    spec = resource_slice.child_or_empty("spec")
    spec.require("driver")
    spec.child_or_empty("pool").require("name")
    _check_one_of(spec, _PLACES)
    _check_names(spec.objects("devices"))


def _check_claim(spec: Place, *, is_flat: bool) -> None:
    devices = spec.child_or_empty("devices")
    requests = devices.objects("requests")
    _check_names(requests)
    for request in requests:
        if not is_flat:
            _check_one_of(request, _REQUEST_TYPES)
        _check_asked([request] if is_flat and request.has("deviceClassName") else request.objects("firstAvailable"))
        _check_names(request.objects("firstAvailable"))
        exactly = request.child("exactly")
        _check_asked([] if exactly is None else [exactly])
    known = {name for request in requests for name in _names_of(request)}
    for constraint in devices.objects("constraints"):
        if not constraint.has("distinctAttribute"):
            constraint.require("matchAttribute")
        for text in constraint.texts("requests"):
            if text.value not in known:
                text.invalid("", text.value, _MUST_NAME)


def _names_of(request: Place) -> Iterable[str]:
    name = request.text("name")
    return (name, *(f"{name}/{one.text('name')}" for one in request.objects("firstAvailable")))


def _check_asked(asked: Iterable[Place]) -> None:
    """What devices of a class are asked for."""
    for place in asked:
        place.require("deviceClassName")
        _check_selectors(place)
        place.check_one_of("allocationMode", _MODES)
        count = place.number("count")
        if place.text("allocationMode") == "All" and count:
            place.invalid("count", count, "must not be specified when allocationMode is 'All'")


def _check_selectors(place: Place) -> None:
    for selector in place.objects("selectors"):
        cel = selector.child("cel")
        if cel is None:
            selector.required("cel")
        else:
            cel.require("expression")


def _check_names(places: Iterable[Place]) -> None:
    """Each has a name of its own."""
    seen: set[str] = set()
    for place in places:
        name = place.text("name")
        if not name:
            place.required("name")
            continue
        place.check("name", label_name_problem(name))
        if name in seen:
            place.duplicate("name", name)
        seen.add(name)


def _check_one_of(place: Place, names: Iterable[str]) -> None:
    """Exactly one of the fields is given, and not empty."""
    given = [name for name in names if place.value.get(name) not in _EMPTY]
    rule = f"exactly one of {', '.join(f'`{name}`' for name in names)} is required"
    if not given:
        place.required("", rule)
    elif len(given) > 1:
        place.invalid("", f"{{{', '.join(given)}}}", f"{rule}, but multiple fields are set")
