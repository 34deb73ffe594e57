"""The functions that make the cells of `podium.server.tables.cells`.

Each takes the object and the time, and the arguments of its column. Source: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podium.api import times
from podium.api.budget_limits import full_ns, rate_of
from podium.api.meta import Raw, list_at, object_at, objects_at, value_at
from podium.api.policy import POLICY_ANNOTATION, PREEMPTION_POLICIES, PodDisruptionBudget
from podium.api.storage import IS_DEFAULT_CLASS, STORAGE_CLASS
from podium.server.tables import cells
from podium.server.tables.cells import NONE, UNSET, condition, count, number, shown, some, text, texts
from podium.store.stored import condition_of

_LIMITS = "limits."
_ROLE_PREFIX, _ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"
# The conditions of a job that determine its status, the most significant first.
_ENDED, _HELD_UP = ("Complete", "Failed"), ("Suspended", "FailureTarget")
_GANG = ("spec", "schedulingPolicy", "gang")


def _with_name(raw: Any, first: str) -> str:
    return f"{text(raw, first)}/{text(raw, 'name')}"


# Configuration and access


def _subjects(raw: Raw, now: int, kind: str) -> str:
    found = [one for one in objects_at(raw, "subjects") if one.get("kind") == kind]
    return ", ".join(_with_name(one, "namespace") if kind == "ServiceAccount" else text(one, "name") for one in found)


def _quota_usage(raw: Raw, now: int, which: str) -> str:
    """Return the used and the allowed amount of each resource: of the limits, or of all others."""
    hard, used = object_at(raw, "status", "hard"), object_at(raw, "status", "used")
    listed = (name for name in sorted(hard) if name.startswith(_LIMITS) is (which == "limits"))
    return ", ".join(f"{name}: {shown(used.get(name, 0))}/{shown(hard[name])}" for name in listed)


def _request_condition(raw: Raw, now: int) -> str:
    found = {text(one, "type") for one in objects_at(raw, "status", "conditions")}
    status = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    issued = ",Issued" if text(raw, "status", "certificate") else ""
    return f"{status}{',Failed' if 'Failed' in found else ''}{issued}"


def _availability(raw: Raw, now: int) -> str:
    available = condition_of(objects_at(raw, "status", "conditions"), "Available") or {"status": "Unknown"}
    status, reason = text(available, "status"), text(available, "reason")
    return f"{status} ({reason})" if reason and status not in ("True", "Unknown") else status


# Policies


def _budget_rate(raw: Raw, now: int, which: str) -> str:
    """Return the effective rate, or the number of disruptions that it allows (`left`)."""
    try:
        budget = msgspec.convert(raw, PodDisruptionBudget)
        rate = rate_of(budget)
        left = NONE if rate is None else str(max(0, rate.tokens(full_ns(budget, rate), now)))
    except (ValueError, msgspec.ValidationError):
        return NONE if which == "left" else "<invalid>"
    return left if which == "left" else NONE if rate is None else str(rate)


def _preemption_policy(raw: Raw, now: int) -> str:
    annotated = text(raw, "metadata", "annotations", POLICY_ANNOTATION)
    policy = annotated if annotated in PREEMPTION_POLICIES else text(raw, "preemptionPolicy")
    return policy or PREEMPTION_POLICIES[0]


def _policy_caps(raw: Raw, now: int) -> str:
    caps, ends = objects_at(raw, "spec", "caps"), {"Namespace": " per namespace"}
    listed = (
        f"{text(cap, 'component', default='*')}={text(cap, 'max')}{ends.get(text(cap, 'per'), '')}" for cap in caps
    )
    return ",".join(listed) or NONE


def _policy_priorities(raw: Raw, now: int) -> str:
    found = value_at(raw, "spec", "priorities")
    given = found.split(">") if isinstance(found, str) else list_at(found)
    return ">".join(shown(one).strip() for one in given) or NONE


def _parameters(raw: Raw, now: int) -> str:
    """Return the parameters of a policy's binding: their name, in any namespace unless one is given, or a selector."""
    reference = value_at(raw, "spec", "paramRef")
    if reference is None:
        return UNSET
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace', default='*')}/{name}"
    return cells.label_selector(value_at(reference, "selector"))


# Services


def _parent(raw: Raw, now: int) -> str:
    """Return the resource, namespace and name of the object that has an address."""
    parent = object_at(raw, "spec", "parentRef")
    of = ".".join(filter(None, (text(parent, "resource"), text(parent, "group"))))
    return "/".join(filter(None, (of, text(parent, "namespace"), text(parent, "name")))) or NONE


def _external_addresses(raw: Raw, now: int) -> str:
    """Return the external addresses of a service, by its type (getServiceExternalIP)."""
    given = texts(raw, "spec", "externalIPs")
    match text(raw, "spec", "type", default="ClusterIP"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join((*_load_balancer(raw), *given)) or "<pending>"
        case "ExternalName":
            return text(raw, "spec", "externalName")
    return cells.UNKNOWN


def _load_balancer(raw: Raw) -> list[str]:
    ingress = objects_at(raw, "status", "loadBalancer", "ingress")
    return sorted({text(one, "ip") or text(one, "hostname") for one in ingress} - {""})


def _service_port(port: Raw) -> str:
    outside = f":{number(port, 'nodePort')}" if number(port, "nodePort") > 0 else ""
    return f"{number(port, 'port')}{outside}/{text(port, 'protocol', default='TCP')}"


def _endpoints(raw: Raw, now: int) -> str:
    found: list[str] = []
    for subset in objects_at(raw, "subsets"):
        ips = [text(address, "ip") for address in objects_at(subset, "addresses")]
        ports = [number(port, "port") for port in objects_at(subset, "ports")]
        found += [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for port in ports for ip in ips] if ports else ips
    return some(found) or NONE


def _ingress_hosts(raw: Raw, now: int) -> str:
    rules = objects_at(raw, "spec", "rules")
    hosts = [host for host in (text(rule, "host") for rule in rules[:3]) if host]
    more = f" + {len(rules) - 3} more..." if len(rules) > 3 and hosts else ""
    return f"{','.join(hosts)}{more}" or "*"


def _ingress_parameters(raw: Raw, now: int) -> str:
    parameters = value_at(raw, "spec", "parameters")
    if not isinstance(parameters, dict):
        return NONE
    group = text(parameters, "apiGroup")
    return f"{text(parameters, 'kind')}{f'.{group}' if group else ''}/{text(parameters, 'name')}"


# Nodes and volumes


def _node_status(raw: Raw, now: int) -> str:
    ready = condition(raw, "Ready")
    status = "Unknown" if not ready else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if value_at(raw, "spec", "unschedulable") is True else status


def _node_roles(raw: Raw, now: int) -> str:
    given = object_at(raw, "metadata", "labels")
    named = {key.removeprefix(_ROLE_PREFIX) for key in given if key.startswith(_ROLE_PREFIX)}
    return ",".join(sorted({*named, text(given, _ROLE)} - {""})) or NONE


def _node_address(raw: Raw, now: int, type_: str) -> str:
    found = (text(one, "address") for one in objects_at(raw, "status", "addresses") if one.get("type") == type_)
    return next(found, NONE)


def _claim_state(raw: Raw, now: int) -> str:
    is_deleted = bool(value_at(raw, "metadata", "deletionTimestamp"))
    is_allocated = value_at(raw, "status", "allocation") is not None
    states = {
        "deleted": is_deleted,
        "pending": not is_allocated and not is_deleted,
        "allocated": is_allocated,
        "reserved": is_allocated and bool(objects_at(raw, "status", "reservedFor")),
    }
    return ",".join(state for state, holds in states.items() if holds)


def _class_name(raw: Raw, now: int) -> str:
    annotations = value_at(raw, "metadata", "annotations")
    is_default = any(text(annotations, annotation) == "true" for annotation in IS_DEFAULT_CLASS)
    return f"{text(raw, 'metadata', 'name')}{' (default)' if is_default else ''}"


# Workloads


def _autoscaler_targets(raw: Raw, now: int) -> str:
    """Return current and target values of the first two metrics (formatHPAMetrics); autoscaling/v1 has one."""
    wanted = text(raw, "spec", "targetCPUUtilizationPercentage")
    if wanted:
        current = text(raw, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {f'{current}%' if current else '<unknown>'}/{wanted}%"
    metrics, measured = objects_at(raw, "spec", "metrics"), objects_at(raw, "status", "currentMetrics")
    found = [_target(metric, measured[index] if index < len(measured) else {}) for index, metric in enumerate(metrics)]
    listed = ", ".join(found[:2])
    return (f"{listed} + {len(found) - 2} more..." if len(found) > 2 else listed) or NONE


def _target(metric: Raw, measured: Raw) -> str:
    type_ = text(metric, "type")
    part = f"{type_[:1].lower()}{type_[1:]}"
    wanted, current = value_at(metric, part, "target"), value_at(measured, part, "current")
    label = f"{text(metric, part, 'name')}: " if part in ("resource", "containerResource") else ""
    for field, unit in (("averageValue", ""), ("averageUtilization", "%"), ("value", "")):
        if value_at(wanted, field) is not None:
            found = text(current, field)
            return f"{label}{f'{found}{unit}' if found else '<unknown>'}/{text(wanted, field)}{unit}"
    return f"{label}<unknown>/<auto>"


def _job_status(raw: Raw, now: int) -> str:
    held = [type_ for type_ in (*_ENDED, *_HELD_UP) if condition(raw, type_) == "True"]
    if value_at(raw, "metadata", "deletionTimestamp") and (not held or held[0] in _HELD_UP):
        return "Terminating"
    return held[0] if held else "Running"


def _job_completions(raw: Raw, now: int) -> str:
    succeeded, wanted = number(raw, "status", "succeeded"), value_at(raw, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = number(raw, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(raw: Raw, now: int) -> str:
    start, end = (times.time_of(value_at(raw, "status", field)) for field in ("startTime", "completionTime"))
    return "" if start is None else times.human_duration((now if end is None else end) - start)


def _controller(raw: Raw, now: int) -> str:
    for owner in objects_at(raw, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            group = text(owner, "apiVersion").rpartition("/")[0]
            kind = text(owner, "kind").lower()
            return f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{text(owner, 'name')}"
    return NONE


def _is_bound(raw: Raw) -> bool:
    return bool(text(raw, "spec", "volumeName"))


CELL_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "": lambda raw, _: None,
    # Cells of many kinds
    "condition": lambda raw, _, type_, default: condition(raw, type_) or default,
    "count": lambda raw, _, path: count(raw, *path),
    "flag": lambda raw, _, path: value_at(raw, *path) is True,
    "joined": lambda raw, _, path, field: ",".join(text(one, field) for one in objects_at(raw, *path)),
    "labels": lambda raw, _, path: cells.labels(value_at(raw, *path)),
    "number": lambda raw, _, path: number(raw, *path),
    "reference": lambda raw, _, path: _with_name(value_at(raw, *path), "kind"),
    "reference_in_namespace": lambda raw, _, path, absent="": (
        absent if value_at(raw, *path) is None else _with_name(value_at(raw, *path), "namespace")
    ),
    "selector": lambda raw, _, path: cells.label_selector(value_at(raw, *path)),
    "text": lambda raw, _, path, default="": text(raw, *path, default=default),
    "texts": lambda raw, _, path: ",".join(texts(raw, *path)) or NONE,
    # Configuration, access and policies
    "availability": _availability,
    "budget_rate": _budget_rate,
    "entry_count": lambda raw, _: count(raw, "data") + count(raw, "binaryData"),
    "gang": lambda raw, _: "Basic" if value_at(raw, *_GANG) is None else "Gang",
    "gang_count": lambda raw, _: NONE if value_at(raw, *_GANG) is None else str(value_at(raw, *_GANG, "minCount")),
    "parameter_kind": lambda raw, _: (
        "/".join(text(raw, "spec", "paramKind", field) for field in ("apiVersion", "kind")).strip("/") or UNSET
    ),
    "parameters": _parameters,
    "policy_caps": _policy_caps,
    "policy_priorities": _policy_priorities,
    "preemption_policy": _preemption_policy,
    "quota_usage": _quota_usage,
    "request_condition": _request_condition,
    "requested_duration": lambda raw, _: (
        times.human_duration(number(raw, "spec", "expirationSeconds") * 10**9)
        if type(value_at(raw, "spec", "expirationSeconds")) is int
        else NONE
    ),
    "subjects": _subjects,
    # Services
    "cluster_address": lambda raw, _: (
        next(iter(texts(raw, "spec", "clusterIPs")), "") or text(raw, "spec", "clusterIP", default=NONE)
    ),
    "endpoints": _endpoints,
    "external_addresses": _external_addresses,
    "ingress_hosts": _ingress_hosts,
    "ingress_parameters": _ingress_parameters,
    "ingress_ports": lambda raw, _: "80, 443" if objects_at(raw, "spec", "tls") else "80",
    "load_balancer": lambda raw, _: ",".join(_load_balancer(raw)),
    "parent": _parent,
    "service_ports": lambda raw, _: ",".join(map(_service_port, objects_at(raw, "spec", "ports"))) or NONE,
    "slice_addresses": lambda raw, _: (
        some([address for endpoint in objects_at(raw, "endpoints") for address in texts(endpoint, "addresses")])
        or UNSET
    ),
    "slice_ports": lambda raw, _: (
        some([text(port, "port") or text(port, "name", default="*") for port in objects_at(raw, "ports")]) or UNSET
    ),
    # Nodes and volumes
    "access_modes": lambda raw, _, path: cells.access_modes(texts(raw, *path)),
    "attach_required": lambda raw, _: value_at(raw, "spec", "attachRequired") is not False,
    "bound_capacity": lambda raw, _: text(raw, "status", "capacity", "storage", default="0") if _is_bound(raw) else "",
    "bound_modes": lambda raw, _: cells.access_modes(texts(raw, "status", "accessModes")) if _is_bound(raw) else "",
    "claim_state": _claim_state,
    "class_name": _class_name,
    "node_address": _node_address,
    "node_roles": _node_roles,
    "node_status": _node_status,
    "storage_class": lambda raw, _: (
        text(raw, "metadata", "annotations", STORAGE_CLASS) or text(raw, "spec", "storageClassName")
    ),
    "token_requests": lambda raw, _: (
        UNSET
        if value_at(raw, "spec", "tokenRequests") is None
        else ",".join(text(request, "audience") for request in objects_at(raw, "spec", "tokenRequests"))
    ),
    "volume_phase": lambda raw, _: (
        "Terminating" if value_at(raw, "metadata", "deletionTimestamp") else text(raw, "status", "phase")
    ),
    # Workloads
    "autoscaler_targets": _autoscaler_targets,
    "controller": _controller,
    "job_completions": _job_completions,
    "job_duration": _job_duration,
    "job_status": _job_status,
    "ready_replicas": lambda raw, _: f"{number(raw, 'status', 'readyReplicas')}/{number(raw, 'spec', 'replicas')}",
    "since": lambda raw, now, path: NONE if value_at(raw, *path) is None else cells.since(raw, now, *path),
    "suspension": lambda raw, _: {True: "True", False: "False"}.get(value_at(raw, "spec", "suspend"), UNSET),
}
"""The functions by name."""
