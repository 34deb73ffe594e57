"""Classes of devices, rules that taint them, and what these have in common with claims and slices.

Source: pkg/apis/resource/validation. Expressions are not compiled here: what a newer API server knows is for the
scheduler to stumble over.
"""

from __future__ import annotations

from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.validation.amounts import is_extended
from podium.api.validation.place import Place

_EFFECTS = ("NoExecute", "NoSchedule", "None")
_MAX_DRIVER = 63


def check_device_class(device_class: Place) -> None:
    """What devices of a class are like, and the extended resource that stands for it."""
    spec = device_class.child_or_empty("spec")
    check_selectors(spec)
    for configuration in spec.objects("config"):
        check_configuration(configuration)
    name = spec.value.get("extendedResourceName")
    if isinstance(name, str) and not is_extended(name):
        spec.invalid("extendedResourceName", name, "must be a valid extended resource name")


def check_device_taint_rule(rule: Place) -> None:
    """The devices that a rule is about, and their taint."""
    spec = rule.child_or_empty("spec")
    selector = spec.child("deviceSelector")
    if selector is not None and selector.text("driver"):
        check_driver_name(selector, "driver")
    check_device_taint(spec.child_or_empty("taint"))


def check_device_taint(taint: Place) -> None:
    """A taint of devices: its key and its effect (validateDeviceTaint)."""
    taint.require("key", "effect")
    if taint.text("key"):
        taint.check("key", label_key_problem(taint.text("key")))
    taint.check("value", label_value_problem(taint.text("value")))
    check_effect(taint)


def check_effect(place: Place) -> None:
    """The effect of a taint, where one is given."""
    place.check_one_of("effect", _EFFECTS)


def check_selectors(place: Place) -> None:
    """Selectors of devices, each with an expression."""
    for selector in place.objects("selectors"):
        expression = selector.child("cel")
        if expression is None:
            selector.required("cel")
        else:
            expression.require("expression")


def check_configuration(configuration: Place) -> None:
    """Settings for a driver (validateDeviceConfiguration)."""
    opaque = configuration.child("opaque")
    if opaque is None:
        configuration.required("opaque")
    else:
        check_driver_name(opaque, "driver")
        opaque.require("parameters")


def check_driver_name(place: Place, name: str) -> None:
    """The name of a driver, which is that of a domain (ValidateCSIDriverName)."""
    driver = place.text(name)
    if not driver:
        place.required(name)
    elif len(driver) > _MAX_DRIVER:
        place.invalid(name, driver, f"must be no more than {_MAX_DRIVER} characters")
    else:
        place.check(name, subdomain_problem(driver.lower()))


def check_qualified_name(place: Place, name: str, qualified: str) -> None:
    """The name of an attribute or a capacity: an identifier, after a driver's domain if it has one."""
    domain, slash, identifier = qualified.rpartition("/")
    if slash and subdomain_problem(domain.lower()) is not None:
        place.invalid(name, qualified, "before '/' stands the domain of a driver, such as gpu.example.com")
    elif not identifier.isidentifier() or not identifier.isascii():
        place.invalid(name, qualified, "the name has letters, digits and '_', and no digit at its beginning")
