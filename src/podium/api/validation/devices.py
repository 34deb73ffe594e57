"""Validation of devices: slices, classes, claims and taint rules (pkg/apis/resource/validation).

Expressions are not compiled here: an expression for a newer API server fails in the scheduler.
"""

from __future__ import annotations

from podium.api.cel import MAX_LENGTH
from podium.api.checks import check_amount, check_count
from podium.api.errors import InputError
from podium.api.names import subdomain_problem
from podium.api.validation.findings import Place
from podium.api.validation.rules import check, declare

_MOST_PROPERTIES = 32
_NODES = ("nodeName", "nodeSelector", "allNodes")

declare(
    """\
CELDeviceSelector: expression!
CounterSet: counters!
Device: @device nodeName:subdomain nodeSelector consumesCounters taints attributes
DeviceAttribute: ^bool|bools|int|ints|string!|strings|version|versions*
DeviceClaim: requests#name requests @references constraints config
DeviceClaimConfiguration: requests## opaque!
DeviceClassConfiguration: opaque!
DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceClaimTemplateSpec ResourceSlice: spec+
DeviceClassSpec: selectors config extendedResourceName:extended-resource
DeviceConstraint: requests## =matchAttribute|distinctAttribute @constraint
DeviceCounterConsumption: counterSet!:label counters!
DeviceRequest: =exactly|firstAvailable exactly firstAvailable#name firstAvailable
DeviceSelector: cel!
DeviceSubRequest ExactDeviceRequest: deviceClassName!:subdomain selectors allocationMode:All|ExactCount @device_count
  tolerations
DeviceTaint: key!:key effect!:NoExecute|NoSchedule|None value:value
DeviceTaintRuleSpec: deviceSelector taint+
DeviceTaintSelector: driver:driver
DeviceToleration: key:key operator:Equal|Exists @toleration_value effect:NoExecute|NoSchedule|None
OpaqueDeviceConfiguration: driver!:driver parameters!
ResourceClaimSpec: devices+
ResourcePool: name!:subdomains resourceSliceCount::positive generation:0..
ResourceSliceSpec: driver!:driver pool+ @slice nodeName:subdomain nodeSelector devices#name sharedCounters#name
""",
    f"""\
AllocationResult: devices nodeSelector
CELDeviceSelector: @short_expression
CapacityRequestPolicy: @usable_policy
CapacityRequirements: requests:..{_MOST_PROPERTIES} requests:amounts
Counter: value:amount
CounterSet DeviceCounterConsumption: counters:..{_MOST_PROPERTIES} counters
Device: @usable_device consumesCounters:..{_MOST_PROPERTIES} taints:..16 nodeSelector
  consumesCounters attributes capacity
DeviceAllocationResult: results:..32 results
DeviceCapacity: value:amount requestPolicy
DeviceClaim: requests:..32 constraints:..32 config:..32 requests
DeviceClassSpec: selectors:..32
DeviceRequest: firstAvailable:..32 exactly firstAvailable
DeviceRequestAllocationResult: consumedCapacity:..{_MOST_PROPERTIES} consumedCapacity:amounts
DeviceSubRequest ExactDeviceRequest: selectors:..32 tolerations:..16 count:1.. capacity
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
    for name, property_ in (*device.mapping("attributes"), *device.mapping("capacity")):
        _check_qualified_name(property_, "", name)


@check
def _usable_device(device: Place) -> None:
    """Refuse a device with too many properties."""
    properties = [*device.child_or_empty("attributes").value, *device.child_or_empty("capacity").value]
    check_count(properties, device.path("attributes"), _MOST_PROPERTIES)


@check
def _usable_policy(policy: Place) -> None:
    range_ = policy.child_or_empty("validRange").value
    amounts = [policy.value.get("default"), *policy.value.get("validValues", ())]
    for amount in (*amounts, *(range_.get(name) for name in ("min", "max", "step"))):
        check_amount(amount, policy.path())


@check
def _slice(spec: Place) -> None:
    """Check what selects the nodes of a slice, and how many devices it has: fewer with taints or shared counters."""
    devices = spec.objects("devices")
    is_detailed = any(device.value.get("taints") or device.value.get("consumesCounters") for device in devices)
    spec.check_number("devices", 64 if is_detailed else 128)
    _check_nodes(spec, (*_NODES, "perDeviceNodeSelection"))
    selector = spec.child_or_empty("nodeSelector")
    if len(selector.entries("nodeSelectorTerms")) > 1:
        selector.invalid("nodeSelectorTerms", [], "must have exactly one node selector term")
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


@check
def _short_expression(selector: Place) -> None:
    length = len(selector.text("expression"))
    if length > MAX_LENGTH:
        raise InputError(f"has {length} characters; at most {MAX_LENGTH} are allowed", path=selector.path("expression"))


@check
def _references(devices: Place) -> None:
    """Check that constraints and configurations refer to requests of the claim."""
    known: set[str] = set()
    for request in devices.objects("requests"):
        alternatives = [f"/{alternative.text('name')}" for alternative in request.objects("firstAvailable")]
        known |= {f"{request.text('name')}{alternative}" for alternative in ("", *alternatives)}
    rule = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    for place in (*devices.objects("constraints"), *devices.objects("config")):
        for reference in place.texts("requests"):
            if reference.value not in known:
                reference.invalid("", reference.value, rule)


@check
def _device_count(request: Place) -> None:
    mode, count = request.text("allocationMode", "ExactCount"), request.number("count")
    if mode == "All" and count:
        request.invalid("count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count is not None and count <= 0:
        request.invalid("count", count, "must be greater than zero")


@check
def _constraint(constraint: Place) -> None:
    rule = "a fully qualified name must be a domain and a name separated by a slash"
    for name in constraint.fields_set("matchAttribute", "distinctAttribute"):
        attribute = constraint.text(name)
        _check_qualified_name(constraint, name, attribute)
        if "/" not in attribute:
            constraint.invalid(name, attribute, rule)


def _check_qualified_name(place: Place, name: str, qualified: str) -> None:
    """Check the name of an attribute or a capacity: an identifier, optionally after a driver's domain."""
    domain, slash, identifier = qualified.rpartition("/")
    if slash and subdomain_problem(domain.lower()) is not None:
        place.invalid(name, qualified, "the part before '/' must be the domain of a driver, such as gpu.example.com")
    elif not identifier.isidentifier() or not identifier.isascii():
        place.invalid(name, qualified, "the name has letters, digits and '_', and no digit at its beginning")
