"""The other forms of objects: API versions whose fields differ from those of the version that Podium stores.

PodGroups and Workloads are stored as scheduling.k8s.io/v1alpha2, and claims and slices as resource.k8s.io/v1. Fields
that the stored version does not have are dropped. Source: pkg/apis/resource/v1beta1/conversion.go and v1alpha3, and for
1.37 k8s.io/api/scheduling/v1beta1/types.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from podium.api.meta import Raw, object_at
from podium.api.pod_group import OLDER_VERSION, SCHEDULED, from_older_form, in_older_words, to_older_form


class KindForm(NamedTuple):
    """A form of a kind: its conversion to the stored form, the conversion back, and its names in a path or message."""

    to_stored: Callable[[Raw], Raw]
    from_stored: Callable[[Raw], Raw]
    in_its_words: Callable[[str], str] = str


def form_of(api_version: str, kind: str) -> KindForm | None:
    """Return the form of a kind in an API version; None if that version has the stored one."""
    return _FORMS.get((api_version, kind))


def _changed(value: Any, changes: Mapping[str, Callable[[Any], Any]]) -> Any:
    """Return an object with some of its fields replaced; items of lists one by one, other values as they are."""
    if isinstance(value, list):
        return [_changed(item, changes) for item in value]
    if not isinstance(value, dict) or not value.keys() & changes.keys():
        return value
    return {name: changes[name](field) if name in changes else field for name, field in value.items()}


def _at(*path: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes the value at a path; the items of a list one by one."""
    if not path:
        return lambda value: [change(item) for item in value] if isinstance(value, list) else change(value)
    inner = _at(*path[1:], change=change)
    return lambda value: _changed(value, {path[0]: inner})


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    return {names.get(name, name): field for name, field in value.items()} if isinstance(value, dict) else value


_MODES = {"Pod": "single", "PodGroup": "all"}
_NEWER_MODES = {newer: mode for mode, newer in _MODES.items()}
_FIRST_SCHEDULED = "PodGroupInitiallyScheduled"
_DROPPED = ("parentCompositePodGroupName", "preemptionPolicy")


def _from_mode(mode: Any) -> Any:
    chosen = [_NEWER_MODES[name] for name in object_at(mode) if name in _NEWER_MODES]
    return chosen[0] if len(chosen) == 1 else mode


def _condition(old: str, new: str) -> Callable[[Any], Any]:
    return lambda conditions: _changed(conditions, {"type": lambda type_: new if type_ == old else type_})


def _group_to_newer(raw: Raw) -> Raw:
    def spec(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return _renamed(_changed({"disruptionMode": "Pod", **value}, _TO_NEWER), {"podGroupTemplateRef": "workloadRef"})

    conditions = _at("conditions", change=_condition(SCHEDULED, _FIRST_SCHEDULED))
    return dict(_changed(raw, {"spec": spec, "status": conditions}))


def _group_from_newer(raw: Raw) -> Raw:
    def spec(value: Any) -> Any:
        reference = {"workloadRef": lambda ref: {"workload": _renamed(ref, {"templateName": "podGroupTemplateName"})}}
        value = _changed(value, {"disruptionMode": _from_mode, **reference})
        return _renamed(_without(value), {"workloadRef": "podGroupTemplateRef"})

    conditions = _at("conditions", change=_condition(_FIRST_SCHEDULED, SCHEDULED))
    return dict(_changed(raw, {"spec": spec, "status": conditions}))


def _without(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: field for name, field in value.items() if name not in _DROPPED}


_TO_NEWER: dict[str, Callable[[Any], Any]] = {
    "disruptionMode": lambda mode: {_MODES[mode]: {}} if isinstance(mode, str) and mode in _MODES else mode,
    "podGroupTemplateRef": lambda ref: _renamed(object_at(ref, "workload"), {"podGroupTemplateName": "templateName"}),
}
_TEMPLATES = ("spec", "podGroupTemplates")
_NEWER_GROUP = KindForm(
    _group_from_newer,
    _group_to_newer,
    lambda text: (
        text.replace("podGroupTemplateRef.workload", "workloadRef")
        .replace("podGroupTemplateRef", "workloadRef")
        .replace("podGroupTemplateName", "templateName")
    ),
)
_NEWER_WORKLOAD = KindForm(
    _at(*_TEMPLATES, change=lambda template: _changed(_without(template), {"disruptionMode": _from_mode})),
    _at(*_TEMPLATES, "disruptionMode", change=_TO_NEWER["disruptionMode"]),
)

# The fields of a request for devices that stay beside those in `exactly`.
_OF_REQUEST = ("name", "exactly", "firstAvailable")


def _request_from_older(request: Any) -> Any:
    """Return a request with the fields in `exactly` that v1beta1 has in the request itself."""
    if not isinstance(request, dict) or not request.get("deviceClassName"):
        return request
    exactly = {name: value for name, value in request.items() if name not in _OF_REQUEST}
    return {**{name: value for name, value in request.items() if name in _OF_REQUEST}, "exactly": exactly}


def _request_to_older(request: Any) -> Any:
    exactly = object_at(request, "exactly")
    return {name: value for name, value in request.items() if name != "exactly"} | exactly if exactly else request


def _device_from_older(device: Any) -> Any:
    """Return a device with the fields that v1beta1 has in `basic`; a capacity of v1alpha3 is an amount alone."""
    if not isinstance(device, dict) or not isinstance(basic := device.get("basic"), dict):
        return device
    capacity = basic.get("capacity")
    if isinstance(capacity, dict):
        amounts = {name: each if isinstance(each, dict) else {"value": each} for name, each in capacity.items()}
        basic = {**basic, "capacity": amounts}
    return {name: value for name, value in device.items() if name != "basic"} | basic


def _device_to_older(device: Any, *, plain: bool) -> Any:
    if not isinstance(device, dict):
        return device
    basic = {name: value for name, value in device.items() if name != "name"}
    if plain and isinstance(capacity := basic.get("capacity"), dict):
        basic["capacity"] = {name: object_at(each).get("value", each) for name, each in capacity.items()}
    return {**({"name": device["name"]} if "name" in device else {}), "basic": basic}


_REQUESTS, _DEVICES = ("spec", "devices", "requests"), ("spec", "devices")


def _in_claim(*path: str) -> KindForm:
    return KindForm(
        _at(*path, *_REQUESTS, change=_request_from_older),
        _at(*path, *_REQUESTS, change=_request_to_older),
        lambda text: text.replace(".exactly", ""),
    )


def _in_slice(*, plain: bool) -> KindForm:
    return KindForm(
        _at(*_DEVICES, change=_device_from_older),
        _at(*_DEVICES, change=lambda device: _device_to_older(device, plain=plain)),
        lambda text: re.sub(r"\bspec\.devices\[(\d+)\](?=\.(?!name\b))", r"spec.devices[\1].basic", text),
    )


_FORMS: Mapping[tuple[str, str], KindForm] = {
    (OLDER_VERSION, "PodGroup"): KindForm(from_older_form, to_older_form, in_older_words),
    **{
        (f"scheduling.k8s.io/{version}", kind): form
        for version in ("v1beta1", "v1alpha3")
        for kind, form in (("PodGroup", _NEWER_GROUP), ("Workload", _NEWER_WORKLOAD))
    },
    **{
        (f"resource.k8s.io/{version}", kind): form
        for version in ("v1beta1", "v1alpha3")
        for kind, form in (
            ("ResourceClaim", _in_claim()),
            ("ResourceClaimTemplate", _in_claim("spec")),
            ("ResourceSlice", _in_slice(plain=version == "v1alpha3")),
        )
    },
}
