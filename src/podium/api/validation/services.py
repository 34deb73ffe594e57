"""Services (core/validation, ValidateService)."""

from __future__ import annotations

from podium.api.names import label_name_problem, subdomain_problem
from podium.api.validation.containers import PROTOCOLS
from podium.api.validation.formats import cidr_problem, ip_problem, port_problem
from podium.api.validation.place import Place
from podium.api.validation.probes import check_port
from podium.api.validation.selectors import check_labels

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_HEADLESS = "None"


def check_service(service: Place) -> None:
    """A service: its ports, and whom it fronts."""
    spec = service.child_or_empty("spec")
    type_, is_headless = spec.text("type", "ClusterIP"), spec.text("clusterIP") == _HEADLESS
    spec.check_one_of("type", _TYPES)
    if type_ == "ExternalName":
        _check_external_name(spec)
    elif not is_headless and not spec.objects("ports"):
        spec.required("ports")
    if is_headless and type_ in ("LoadBalancer", "NodePort"):
        spec.invalid("clusterIP", _HEADLESS, f"may not be set to 'None' for {type_} services")
    _check_ports(spec, type_)
    check_labels(spec, "selector")
    spec.check_one_of("sessionAffinity", ("ClientIP", "None"))
    for address in spec.texts("externalIPs"):
        address.check("", ip_problem(address.value))
    for block in spec.texts("loadBalancerSourceRanges"):
        block.check("", cidr_problem(block.value.strip()))
    if spec.texts("loadBalancerSourceRanges") and type_ != "LoadBalancer":
        spec.forbidden("loadBalancerSourceRanges", "may only be used when `type` is 'LoadBalancer'")
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        spec.check_one_of(name, ("Cluster", "Local"))


def _check_external_name(spec: Place) -> None:
    name = spec.text("externalName").removesuffix(".")
    if name:
        spec.check("externalName", subdomain_problem(name))
    else:
        spec.required("externalName")
    if spec.text("clusterIP"):
        spec.forbidden("clusterIPs", "may not be set for ExternalName services")


def _check_ports(spec: Place, type_: str) -> None:
    ports = spec.objects("ports")
    names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    on_nodes: set[tuple[str, int]] = set()
    for port in ports:
        _check_name(port, names, is_needed=len(ports) > 1)
        number, protocol = port.number("port") or 0, port.text("protocol", "TCP")
        port.check("port", port_problem(number))
        port.check_one_of("protocol", PROTOCOLS)
        if port.has("targetPort") and port.value["targetPort"] not in (0, ""):
            check_port(port, "targetPort")
        if (protocol, number) in seen:
            port.duplicate("", f"{protocol}/{number}")
        seen.add((protocol, number))
        on_node = port.number("nodePort")
        if on_node and type_ == "ClusterIP":
            port.forbidden("nodePort", "may not be used when `type` is 'ClusterIP'")
        elif on_node and (protocol, on_node) in on_nodes:
            port.duplicate("nodePort", on_node)
        on_nodes.add((protocol, on_node or 0))


def _check_name(port: Place, names: set[str], is_needed: bool) -> None:
    name = port.text("name")
    if name and name in names:
        port.duplicate("name", name)
    elif name:
        port.check("name", label_name_problem(name))
    elif is_needed:
        port.required("name")
    names.add(name)
