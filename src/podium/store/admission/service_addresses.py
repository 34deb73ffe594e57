"""The addresses and node ports of Services: what they get and what they cannot have, and the ranges of addresses.

Source: pkg/registry/core/service/storage (alloc.go), pkg/controller/servicecidrs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from podium.api.meta import Raw, list_at, object_at, objects_at, value_at
from podium.store.stored import condition_of

SERVICE_NETWORK = "10.96.0.0/16"
"""The range of the addresses of Services."""

_NETWORK = ipaddress.IPv4Network(SERVICE_NETWORK)
_NODE_PORTS = range(30_000, 32_768)
# In the order in which Services get them: the first ones are kept for Services that state theirs (portallocator).
_PORTS_IN_ORDER = (*_NODE_PORTS[86:], *_NODE_PORTS[:86])
_AFFINITY_SECONDS = 10_800
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_ALLOCATED = (*_OF_ADDRESSES, "healthCheckNodePort")
_OF_BALANCERS = ("allocateLoadBalancerNodePorts", "loadBalancerClass")
KUBERNETES_ADDRESS = str(_NETWORK[1])
"""The address of the Service `kubernetes`, the first of the range."""

RANGE_FINALIZER = "networking.k8s.io/service-cidr-finalizer"
"""The finalizer of a ServiceCIDR, until no Service needs its addresses."""

READY_RANGE = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
"""The condition of a ServiceCIDR from which Services get addresses."""

_REFERENCED = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
IN_USE_RANGE = {"type": "Ready", "status": "False", "reason": "Terminating", "message": _REFERENCED}
"""The condition of a deleted ServiceCIDR that Services still need."""


def service_networks(ranges: Iterable[Raw]) -> list[ipaddress.IPv4Network]:
    """Return the networks from which Services get addresses, those of the default range first.

    `ranges` are the ServiceCIDRs, by name. Without any, the default range counts.
    """
    usable = [
        raw
        for raw in ranges
        if "deletionTimestamp" not in raw["metadata"]
        and condition_of(objects_at(raw, "status", "conditions"), "Ready").get("status") != "False"
    ]
    usable.sort(key=lambda raw: raw["metadata"]["name"] != "kubernetes")
    cidrs = [str(cidr) for raw in usable for cidr in list_at(raw, "spec", "cidrs")] or [SERVICE_NETWORK]
    return [ipaddress.IPv4Network(cidr) for cidr in cidrs if ":" not in cidr]


def is_range_needed(name: str, ranges: Iterable[Raw], services: Iterable[Raw]) -> bool:
    """Return whether Services have addresses that are in the ServiceCIDR of that name and in no other one."""
    cidrs = ((raw["metadata"]["name"], cidr) for raw in ranges for cidr in list_at(raw, "spec", "cidrs"))
    networks = [(of == name, ipaddress.ip_network(cidr)) for of, cidr in cidrs]
    held = (value_at(service, "spec", "clusterIP") for service in services)
    addresses = [ipaddress.ip_address(address) for address in held if address not in (None, "", "None")]
    around = ([is_own for is_own, network in networks if address in network] for address in addresses)
    return any(found and all(found) for found in around)


def with_addresses(
    raw: Raw, previous: Raw | None, others: Iterable[Raw], networks: Iterable[ipaddress.IPv4Network] = (_NETWORK,)
) -> Raw:
    """Return a Service, which has its other defaults, with its allocations: those that it had before, or free ones.

    `others` are all Services.
    """
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    before = {} if previous is None else previous.get("spec", {})
    spec = _without_former(spec, before)
    if spec["type"] == "ExternalName":
        return {**raw, "spec": {name: value for name, value in spec.items() if name != "internalTrafficPolicy"}}
    taken = [service.get("spec", {}) for service in others]
    address = spec.get("clusterIP") or before.get("clusterIP")
    if not address:
        used = {other.get("clusterIP") for other in taken}
        addresses = (str(network[number]) for network in networks for number in _in_order(network.num_addresses))
        # "None" means a headless Service.
        address = next((free for free in addresses if free not in used), "None")
    spec = {
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        **({"externalTrafficPolicy": "Cluster"} if _is_external(spec) else {}),
        **({"allocateLoadBalancerNodePorts": True} if spec["type"] == "LoadBalancer" else {}),
        **spec,
        "clusterIP": address,
    }
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
    if spec["type"] in _WITH_NODE_PORTS and isinstance(spec.get("ports"), list):
        if spec.get("allocateLoadBalancerNodePorts") is not False:
            spec["ports"] = _with_node_ports(spec["ports"], before.get("ports", []), taken)
        if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
            used = _node_ports_of([*taken, spec])
            free = before.get("healthCheckNodePort") or next(port for port in _PORTS_IN_ORDER if port not in used)
            spec.setdefault("healthCheckNodePort", free)
    return {**raw, "spec": spec}


def _in_order(size: int) -> Iterator[int]:
    """Return the numbers of addresses in the order in which Services get them (ipallocator's calculateRangeOffset)."""
    kept = min(max(16, size // 16), 256) if size > 16 else 1
    return chain(range(kept + 1, size - 1), range(2, kept + 1))


def without_allocations(raw: Raw, given: Raw) -> Raw:
    """Return a Service with its defaults, but of its addresses and ports only those that the `given` one states."""
    spec, stated = object_at(raw, "spec"), object_at(given, "spec")
    kept = {name: value for name, value in spec.items() if name in stated or name not in _ALLOCATED}
    return {**raw, "spec": {**kept, **({"ports": stated["ports"]} if "ports" in stated else {})}}


def _without_former(spec: Raw, before: Raw) -> Raw:
    """Return a Service's spec without unchanged fields that its new type does not have (dropTypeDependentFields)."""
    type_, former = spec["type"], before.get("type")
    names: list[str] = []
    if type_ == "ExternalName" != former:
        names += _OF_ADDRESSES
    if former == "LoadBalancer" != type_:
        names += _OF_BALANCERS
    if spec.get("clusterIP") != before.get("clusterIP"):
        names.append("clusterIPs")
    if _is_external(before) and not _is_external(spec):
        names.append("externalTrafficPolicy")
    if type_ != "LoadBalancer" or spec.get("externalTrafficPolicy") != "Local":
        names.append("healthCheckNodePort")
    dropped = {name for name in names if name in before and spec.get(name) == before[name]}
    spec = {name: value for name, value in spec.items() if name not in dropped} if dropped else spec
    if former in _WITH_NODE_PORTS and type_ not in _WITH_NODE_PORTS and spec.get("ports") == before.get("ports"):
        ports = [{name: value for name, value in port.items() if name != "nodePort"} for port in spec.get("ports", ())]
        spec = {**spec, "ports": ports}
    return spec


def _is_external(spec: Raw) -> bool:
    """Return whether a Service takes traffic from outside the cluster, and so has a policy for it."""
    type_ = spec.get("type")
    return type_ in _WITH_NODE_PORTS or (type_ == "ClusterIP" and bool(spec.get("externalIPs")))


def _with_node_ports(ports: list[Any], before: list[Raw], taken: list[Raw]) -> list[Any]:
    """Return the ports of a Service with node ports; those of one number in several protocols share one."""
    stated = [port for port in ports if isinstance(port, dict) and isinstance(port.get("nodePort"), int)]
    used = _node_ports_of(taken) | {port["nodePort"] for port in stated}
    known = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in before}
    shared = {port["port"]: port["nodePort"] for port in stated if isinstance(port.get("port"), int)}
    free_ports = (number for number in _PORTS_IN_ORDER if number not in used)
    found: list[Any] = []
    for port in ports:
        if isinstance(port, dict) and isinstance(port.get("port"), int) and not port.get("nodePort"):
            free = known.get((port["port"], port["protocol"])) or shared.get(port["port"]) or next(free_ports, None)
            shared[port["port"]] = free
            found.append(port if free is None else {**port, "nodePort": free})
        else:
            found.append(port)
    return found


def _node_ports_of(specs: Iterable[Raw]) -> set[Any]:
    ports = {port.get("nodePort") for spec in specs for port in spec.get("ports", ())}
    return ports | {spec.get("healthCheckNodePort") for spec in specs}


def allocation_problem(
    raw: Raw, previous: Raw | None, others: Iterable[Raw], networks: Iterable[ipaddress.IPv4Network] = (_NETWORK,)
) -> tuple[str, str] | None:
    """Return the field of a Service with an address or port that it cannot have, and the problem; None for none.

    What it had before stays. ``others`` are the other Services. Source: pkg/registry/core/service/storage/alloc.go.
    """
    spec, before = object_at(raw, "spec"), {} if previous is None else previous["spec"]
    taken, address = [other["spec"] for other in others], spec.get("clusterIP")
    # The check of updates refuses an address in the place of another.
    is_new = spec.get("type") != "ExternalName" and address != "None" and not before.get("clusterIP")
    if is_new and (problem := _address_problem(str(address), taken, networks)):
        return "spec.clusterIPs", f'Invalid value: ["{address}"]: failed to allocate IP {address}: {problem}'
    used, own = _node_ports_of(taken), _node_ports_of([before])
    for index, port in enumerate(objects_at(spec, "ports") if spec.get("type") in _WITH_NODE_PORTS else ()):
        number, problem = port.get("nodePort"), ""
        if not isinstance(number, int) or number in own:
            continue
        if number not in _NODE_PORTS:
            valid = f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
            problem = f"provided port is not in the valid range. The range of valid ports is {valid}"
        elif number in used:
            problem = "provided port is already allocated"
        if problem:
            return f"spec.ports[{index}].nodePort", f"Invalid value: {number}: {problem}"
    return None


def _address_problem(address: str, taken: Iterable[Raw], networks: Iterable[ipaddress.IPv4Network]) -> str:
    """Return why a Service cannot have an address; "" if it can, and for no address, which validation reports."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return ""
    around = next((network for network in networks if ip in network), None)
    if around is None:
        return "the provided network does not match the current range"
    if ip in (around[0], around[-1]):
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {around}"
    return "provided IP is already allocated" if any(other.get("clusterIP") == address for other in taken) else ""
