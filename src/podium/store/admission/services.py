"""What a Service gets: an address within the cluster, and ports of the nodes where it asks for them.

Nothing listens there; clients expect the fields. Source: pkg/registry/core/service (alloc.go), pkg/apis/core/v1
(SetDefaults_Service).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from podium.api.meta import Raw

_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_FIRST_ADDRESS = 2
_NODE_PORTS = range(30_000, 32_768)
_AFFINITY_SECONDS = 10_800
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
KUBERNETES_ADDRESS = str(_NETWORK[1])
"""The address of the Service `kubernetes`, the first of the range."""


def with_addresses(raw: Raw, previous: Raw | None, others: Iterable[Raw]) -> Raw:
    """The Service with its defaults, and what was allocated to it before or is free; `others` are all Services."""
    spec = raw.get("spec", {})
    if not isinstance(spec, dict):
        return raw
    before = {} if previous is None else previous.get("spec", {})
    spec = {"type": "ClusterIP", "sessionAffinity": "None", **spec}
    if spec["type"] == "ExternalName":
        return {**raw, "spec": spec}
    taken = [service.get("spec", {}) for service in others]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = before.get("clusterIP") or _free_address({other.get("clusterIP") for other in taken})
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _WITH_NODE_PORTS or spec.get("externalIPs"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
    ports = spec.get("ports")
    if isinstance(ports, list):
        spec["ports"] = _with_ports(ports, spec["type"], before.get("ports", []), taken)
    return {**raw, "spec": spec}


def _with_ports(ports: list[Any], type_: str, before: list[Raw], taken: list[Raw]) -> list[Any]:
    used = {port.get("nodePort") for spec in taken for port in spec.get("ports", ())}
    known = {(port.get("port"), port.get("protocol", "TCP")): port.get("nodePort") for port in before}
    found: list[Any] = []
    for port in ports:
        if not isinstance(port, dict) or "port" not in port:
            found.append(port)
            continue
        filled = {"protocol": "TCP", "targetPort": port["port"], **port}
        if type_ in _WITH_NODE_PORTS and not filled.get("nodePort"):
            kept = known.get((filled["port"], filled["protocol"]))
            free = kept or next((number for number in _NODE_PORTS if number not in used), None)
            if free is not None:
                filled["nodePort"] = free
                used.add(free)
        found.append(filled)
    return found


def _free_address(taken: set[Any]) -> str:
    """The first address that nobody has; "None", which is a Service without one, when all are taken."""
    number = next((n for n in range(_FIRST_ADDRESS, _NETWORK.num_addresses - 1) if str(_NETWORK[n]) not in taken), None)
    return "None" if number is None else str(_NETWORK[number])
