"""Validation of devices: slices, classes, claims and taint rules (pkg/apis/resource/validation).

Expressions are not compiled here: an expression for a newer API server fails in the scheduler.
"""

from __future__ import annotations

from podium.api.cel import MAX_LENGTH
from podium.api.checks import check_amount, check_count
from podium.api.errors import InputError
from podium.api.names import label_value_problem, subdomain_problem
from podium.api.validation.findings import Place
from podium.api.validation.rules import check, check_own_name, check_type, declare

_MOST_PROPERTIES = 32
_VALUES = ("bool", "bools", "int", "ints", "string", "strings", "version", "versions")
_NODES = ("nodeName", "nodeSelector", "allNodes")

declare(
    """\
CELDeviceSelector: expression!
CounterSet: counters!
Device: @device
DeviceClaim: @references
DeviceClaimConfiguration DeviceClassConfiguration: opaque!
DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceClaimTemplateSpec ResourceSlice: spec+
DeviceClassSpec: selectors config extendedResourceName:extended-resource
DeviceConstraint: =matchAttribute|distinctAttribute @constraint
DeviceCounterConsumption: counterSet!:label counters!
DeviceSelector: cel!
DeviceSubRequest ExactDeviceRequest: deviceClassName!:subdomain selectors allocationMode:All|ExactCount @device_count
  tolerations
DeviceTaint: key!:key effect!:NoExecute|NoSchedule|None value:value
DeviceTaintRuleSpec: deviceSelector taint+
DeviceTaintSelector: driver:driver
DeviceToleration: key:key operator:Equal|Exists @device_toleration_value effect:NoExecute|NoSchedule|None
OpaqueDeviceConfiguration: driver!:driver parameters!
ResourceClaimSpec: devices+
ResourcePool: @pool_name resourceSliceCount::positive generation:0..
ResourceSliceSpec: driver!:driver pool+ @nodes_of_slice devices#name sharedCounters#name
""",
    f"""\
AllocationResult: devices nodeSelector
CELDeviceSelector: @short_expression
CapacityRequestPolicy: @usable_policy
CapacityRequirements: requests:..{_MOST_PROPERTIES} requests:amounts
Counter: value:amount
CounterSet DeviceCounterConsumption: counters:..{_MOST_PROPERTIES} counters
Device: @usable_device nodeSelector consumesCounters attributes capacity
DeviceAllocationResult: results:..32 results
DeviceAttribute: @one_value
DeviceCapacity: value:amount requestPolicy
DeviceClaim: requests:..32 constraints:..32 config:..32 requests
DeviceClassSpec: selectors:..32
DeviceRequest: firstAvailable:..32 exactly firstAvailable
DeviceRequestAllocationResult: consumedCapacity:..{_MOST_PROPERTIES} consumedCapacity:amounts
DeviceSubRequest ExactDeviceRequest: selectors:..32 tolerations:..16 @usable_count capacity
ResourceClaim: status
ResourceClaimStatus: reservedFor:..256 allocation
ResourcePool: resourceSliceCount:1..
ResourceSliceSpec: devices:..128 sharedCounters:..32 nodeSelector sharedCounters devices
""",
)


@check
def _device(device: Place) -> None:
    """Check a device of a slice, which selects its nodes itself if the slice says so."""
    if device.owner.flag("perDeviceNodeSelection"):
        _check_nodes(device, _NODES)
    elif device.fields_set(*_NODES):
        rule = "can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        device.invalid("", device.value, f"`nodeName`, `nodeSelector` and `allNodes` {rule}")
    for name, attribute in device.mapping("attributes"):
        _check_qualified_name(attribute, "", name)
        if not isinstance(attribute.value, dict) or len(attribute.fields_set(*_VALUES)) != 1:
            attribute.invalid("", attribute.value, "exactly one value must be specified")
    for name, capacity in device.mapping("capacity"):
        _check_qualified_name(capacity, "", name)
    for consumed in device.objects("consumesCounters"):
        check_type(consumed, "DeviceCounterConsumption")
    for taint in device.objects("taints"):
        check_type(taint, "DeviceTaint")


@check
def _usable_device(device: Place) -> None:
    """Refuse a device with too many properties."""
    properties = [*device.child_or_empty("attributes").value, *device.child_or_empty("capacity").value]
    check_count(properties, device.path("attributes"), _MOST_PROPERTIES)
    check_count(device.entries("consumesCounters"), device.path("consumesCounters"), _MOST_PROPERTIES)
    check_count(device.entries("taints"), device.path("taints"), 16)


@check
def _one_value(attribute: Place) -> None:
    if len(attribute.fields_set("int", "bool", "string", "version")) > 1:
        raise InputError("has several values; give one", path=attribute.path())


@check
def _usable_policy(policy: Place) -> None:
    range_ = policy.child_or_empty("validRange").value
    amounts = [policy.value.get("default"), *policy.value.get("validValues", ())]
    for amount in (*amounts, *(range_.get(name) for name in ("min", "max", "step"))):
        check_amount(amount, policy.path())


@check
def _pool_name(pool: Place) -> None:
    pool.require("name")
    for part in pool.text("name").split("/") if pool.text("name") else ():
        pool.check("name", subdomain_problem(part))


@check
def _nodes_of_slice(spec: Place) -> None:
    _check_nodes(spec, (*_NODES, "perDeviceNodeSelection"))
    if spec.has("sharedCounters") and spec.has("devices"):
        spec.invalid("", spec.value, "only one of `sharedCounters` or `devices` is allowed")


def _check_nodes(place: Place, fields: tuple[str, ...]) -> None:
    """Check that exactly one of the fields selects the nodes."""
    rule = f"exactly one of {', '.join(f'`{name}`' for name in fields)} is required"
    given = place.fields_set(*fields)
    if not given:
        place.required("", rule)
    elif len(given) > 1:
        place.invalid("", place.value, f"{rule}, but multiple fields are set")
    for name in given:
        if place.value[name] is False or place.value[name] == "":
            place.invalid(name, place.value[name], "must be either unset or set to what it is for")
    if place.text("nodeName"):
        place.check("nodeName", subdomain_problem(place.text("nodeName")))
    selector = place.child("nodeSelector")
    if selector is not None:
        check_type(selector, "NodeSelector")


@check
def _short_expression(selector: Place) -> None:
    length = len(selector.text("expression"))
    if length > MAX_LENGTH:
        raise InputError(f"has {length} characters; at most {MAX_LENGTH} are allowed", path=selector.path("expression"))


@check
def _references(devices: Place) -> None:
    """Check the requests of a claim, and the constraints and configurations that refer to them."""
    known: set[str] = set()
    names: set[str] = set()
    for request in devices.objects("requests"):
        name = check_own_name(request, names)
        known |= {name, *(f"{name}/{alternative}" for alternative in _check_request(request))}
    rule = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    for place in (*devices.objects("constraints"), *devices.objects("config")):
        seen: set[str] = set()
        for reference in place.texts("requests"):
            if reference.value in seen:
                reference.duplicate("", reference.value)
            elif reference.value not in known:
                reference.invalid("", reference.value, rule)
            seen.add(reference.value)
        check_type(place, "DeviceConstraint" if place.field == "constraints" else "DeviceClaimConfiguration")


def _check_request(request: Place) -> set[str]:
    """Check a request; return the names of its alternatives."""
    rule = "exactly one of `exactly` or `firstAvailable` is required"
    alternatives = request.objects("firstAvailable")
    exact = request.child("exactly")
    if exact is not None:
        check_type(exact, "ExactDeviceRequest")
        if alternatives:
            request.invalid("", request.value, f"{rule}, but multiple fields are set")
    elif not alternatives:
        request.required("", rule)
    names: set[str] = set()
    for alternative in alternatives:
        check_own_name(alternative, names)
        check_type(alternative, "DeviceSubRequest")
    return names


@check
def _device_count(request: Place) -> None:
    count = request.number("count")
    if request.text("allocationMode") == "All" and count:
        request.invalid("count", count, "must not be specified when allocationMode is 'All'")
    elif count is not None and count < 0:
        request.invalid("count", count, "must be greater than zero")


@check
def _usable_count(request: Place) -> None:
    count = request.number("count")
    if request.text("allocationMode", "ExactCount") == "ExactCount" and count is not None and count < 1:
        raise InputError(f"{count} is out of range; it must be 1 or more", path=request.path("count"))


@check
def _device_toleration_value(toleration: Place) -> None:
    value = toleration.text("value")
    if toleration.text("operator") != "Exists":
        toleration.check("value", label_value_problem(value))
    elif value:
        toleration.invalid("value", value, "must be empty for operator `Exists`")


@check
def _constraint(constraint: Place) -> None:
    given = constraint.fields_set("matchAttribute", "distinctAttribute")
    if len(given) != 1:
        return
    attribute = constraint.text(given[0])
    _check_qualified_name(constraint, given[0], attribute)
    if "/" not in attribute:
        rule = "a fully qualified name must be a domain and a name separated by a slash"
        constraint.invalid(given[0], attribute, rule)


def _check_qualified_name(place: Place, name: str, qualified: str) -> None:
    """Check the name of an attribute or a capacity: an identifier, optionally after a driver's domain."""
    domain, slash, identifier = qualified.rpartition("/")
    if slash and subdomain_problem(domain.lower()) is not None:
        place.invalid(name, qualified, "the part before '/' must be the domain of a driver, such as gpu.example.com")
    elif not identifier.isidentifier() or not identifier.isascii():
        place.invalid(name, qualified, "the name has letters, digits and '_', and no digit at its beginning")
