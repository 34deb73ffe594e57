"""How Services, endpoints, and what lets traffic in are shown (printService, printIngress and so on)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import (
    NONE,
    UNSET,
    age,
    entries,
    label_selector,
    labels,
    name,
    number,
    some,
    text,
    texts,
    value,
)
from podium.server.tables.column import AGE, NAME, SELECTOR, Cells, Column, Printer

_SERVICE_COLUMNS = (
    NAME,
    Column("Type", "How the service is reached."),
    Column("Cluster-IP", "The service's address within the cluster."),
    Column("External-IP", "The service's addresses from without."),
    Column("Port(s)", "The ports of the service."),
    AGE,
    SELECTOR,
)
_ENDPOINTS = Column("Endpoints", "The addresses behind the service.")
_SLICE_COLUMNS = (
    NAME,
    Column("AddressType", "What the addresses are."),
    Column("Ports", "The ports of the addresses."),
    _ENDPOINTS,
    AGE,
)
_INGRESS_COLUMNS = (
    NAME,
    Column("Class", "The class of the ingress."),
    Column("Hosts", "The hosts that the rules are for."),
    Column("Address", "Where traffic comes in."),
    Column("Ports", "The ports on which traffic comes in."),
    AGE,
)
_INGRESS_CLASS_COLUMNS = (
    NAME,
    Column("Controller", "Who sees to ingresses of the class."),
    Column("Parameters", "What the controller is to know beside."),
    AGE,
)
_POLICY_COLUMNS = (NAME, Column("Pod-Selector", "Which pods the policy is for."), AGE)


def _service(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    addresses = texts(spec, "clusterIPs") or [text(spec, "clusterIP", default=NONE)]
    return (
        name(raw),
        text(spec, "type", default="ClusterIP"),
        addresses[0],
        _external(raw),
        ",".join(map(_port, entries(spec, "ports"))) or NONE,
        age(raw, now),
        labels(value(spec, "selector")),
    )


def _external(raw: Raw) -> str:
    """The addresses of a service from without, by its type (getServiceExternalIP)."""
    spec = value(raw, "spec")
    given = texts(spec, "externalIPs")
    match text(spec, "type", default="ClusterIP"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join((*_load_balancer(raw), *given)) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
    return "<unknown>"


def _load_balancer(raw: Raw) -> list[str]:
    ingress = entries(raw, "status", "loadBalancer", "ingress")
    return sorted({text(one, "ip") or text(one, "hostname") for one in ingress} - {""})


def _port(port: Raw) -> str:
    outside = f":{number(port, 'nodePort')}" if number(port, "nodePort") > 0 else ""
    return f"{number(port, 'port')}{outside}/{text(port, 'protocol', default='TCP')}"


def _endpoints(raw: Raw, now: int) -> Cells:
    found = [
        address
        for subset in entries(raw, "subsets")
        for address in _addresses(entries(subset, "addresses"), entries(subset, "ports"))
    ]
    return name(raw), some(found) or NONE, age(raw, now)


def _addresses(addresses: list[Raw], ports: list[Raw]) -> list[str]:
    ips = [text(address, "ip") for address in addresses]
    if not ports:
        return ips
    return [
        f"[{ip}]:{number(port, 'port')}" if ":" in ip else f"{ip}:{number(port, 'port')}"
        for port in ports
        for ip in ips
    ]


def _slice(raw: Raw, now: int) -> Cells:
    ports = [text(port, "port") or text(port, "name", default="*") for port in entries(raw, "ports")]
    addresses = [address for endpoint in entries(raw, "endpoints") for address in texts(endpoint, "addresses")]
    return name(raw), text(raw, "addressType"), some(ports) or UNSET, some(addresses) or UNSET, age(raw, now)


def _ingress(raw: Raw, now: int) -> Cells:
    rules = entries(raw, "spec", "rules")
    hosts = [host for host in (text(rule, "host") for rule in rules[:3]) if host]
    more = f" + {len(rules) - 3} more..." if len(rules) > 3 and hosts else ""
    return (
        name(raw),
        text(raw, "spec", "ingressClassName", default=NONE),
        f"{','.join(hosts)}{more}" or "*",
        ",".join(_load_balancer(raw)),
        "80, 443" if entries(raw, "spec", "tls") else "80",
        age(raw, now),
    )


def _ingress_class(raw: Raw, now: int) -> Cells:
    parameters = value(raw, "spec", "parameters")
    shown = NONE
    if isinstance(parameters, dict):
        group = text(parameters, "apiGroup")
        shown = f"{text(parameters, 'kind')}{f'.{group}' if group else ''}/{text(parameters, 'name')}"
    return name(raw), text(raw, "spec", "controller"), shown, age(raw, now)


def _policy(raw: Raw, now: int) -> Cells:
    return name(raw), label_selector(value(raw, "spec", "podSelector")), age(raw, now)


PRINTERS = {
    ("", "Endpoints"): Printer((NAME, _ENDPOINTS, AGE), _endpoints),
    ("", "Service"): Printer(_SERVICE_COLUMNS, _service),
    ("discovery.k8s.io", "EndpointSlice"): Printer(_SLICE_COLUMNS, _slice),
    ("networking.k8s.io", "Ingress"): Printer(_INGRESS_COLUMNS, _ingress),
    ("networking.k8s.io", "IngressClass"): Printer(_INGRESS_CLASS_COLUMNS, _ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): Printer(_POLICY_COLUMNS, _policy),
}
