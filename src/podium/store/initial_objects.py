"""The objects that every cluster has from its start.

Source: pkg/controlplane (controller/systemnamespaces, kubernetesservice, defaultservicecidr), pkg/registry/scheduling,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy, apiserver's pkg/apis/flowcontrol/bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from podium.api.meta import Raw, key_of
from podium.api.policy import SYSTEM_CLASSES
from podium.store.admission.defaults import with_defaults
from podium.store.admission.service_addresses import (
    KUBERNETES_ADDRESS,
    RANGE_FINALIZER,
    READY_RANGE,
    SERVICE_NETWORK,
    with_addresses,
)
from podium.store.store import Store

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_CLASSES = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster.",
    "system-node-critical": "Used for system critical pods that must not be moved from their node.",
}
_RBAC = "rbac.authorization.k8s.io"
_AGGREGATE = f"{_RBAC}/aggregate-to-"
# The endpoint of the Service kubernetes. An endpoint may not be a loopback address, so it is one for documents.
_SERVER_ADDRESS, _SERVER_PORT = "192.0.2.1", 6443
_SERVER_LABELS = {"component": "apiserver", "provider": "kubernetes"}
_NEVER = "1970-01-01T00:00:00Z"

# In `cluster_roles.txt` each ClusterRole begins a line, which indented lines continue: its name, "< X" if it aggregates
# the roles labelled for X, "> X" for a role with that label, and its rules, separated by ";". A rule has verbs, then
# resources, by group after a colon, "=" before names, "/" before URLs. After an empty line come the ClusterRoles of
# controllers (system:controller:NAME), each bound to the account of that name in kube-system; those without a "-" may
# also write Events.
_TEXT = resources.files("podium.store").joinpath("cluster_roles.txt").read_text(encoding="utf-8")
_ROLES, _CONTROLLERS = _TEXT.split("\n\n")
_EVENTS = "create,patch,update: events events.k8s.io:events"
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_READ = ("get", "list", "watch")
_VERBS = {
    "all": (*_WRITE, *_READ),
    "edit": ("patch", "update"),
    "follow": ("list", "watch"),
    "read": _READ,
    "write": _WRITE,
}
# ClusterRoleBindings of the same name as the role, with its subjects: groups in system:, users before "@".
_BINDINGS = """
cluster-admin system:masters
system:basic-user system:authenticated
system:discovery system:authenticated
system:kube-controller-manager @system:kube-controller-manager
system:kube-dns kube-system/kube-dns
system:kube-scheduler @system:kube-scheduler
system:monitoring system:monitoring
system:node-proxier @system:kube-proxy
system:public-info-viewer system:authenticated system:unauthenticated
system:service-account-issuer-discovery system:serviceaccounts
system:volume-scheduler @system:kube-scheduler
"""
_FLOW = "flowcontrol.apiserver.k8s.io"
# PriorityLevelConfigurations: name, shares, percentage to lend, and queues, hand size and queue length if it queues.
_LEVELS = """
catch-all        5   0
exempt           0   0
global-default   20  50 128 6 50
leader-election  10  0  16 4 50
node-high        40  25 64 6 50
system           30  33 64 6 50
workload-high    40  50 128 6 50
workload-low     100 90 128 6 50
"""
# FlowSchemas: name, level, precedence, distinguisher, subjects as above, and "|" before rules as above. Without rules
# they match all requests.
_FLOWS = """
exempt exempt 1 - system:masters
probes exempt 2 - system:authenticated system:unauthenticated | get: /healthz,/livez,/readyz
system-leader-election leader-election 100 ByUser @system:kube-controller-manager @system:kube-scheduler kube-system/*
  | create,get,update: coordination.k8s.io:leases
endpoint-controller workload-high 150 ByUser @system:kube-controller-manager kube-system/endpoint-controller
  kube-system/endpointslicemirroring-controller | create,get,update: endpoints
workload-leader-election leader-election 200 ByUser kube-system/* | create,get,update: coordination.k8s.io:leases
system-node-high node-high 400 ByUser system:nodes | *: nodes,nodes/status coordination.k8s.io:leases
system-nodes system 500 ByUser system:nodes
kube-controller-manager workload-high 800 ByNamespace @system:kube-controller-manager
kube-scheduler workload-high 800 ByNamespace @system:kube-scheduler
kube-system-service-accounts workload-high 900 ByNamespace kube-system/*
service-accounts workload-low 9000 ByUser system:serviceaccounts
global-default global-default 9900 ByUser system:authenticated system:unauthenticated
catch-all catch-all 10000 ByUser system:authenticated system:unauthenticated
"""


def create_initial_objects(store: Store, *, now: int) -> None:
    """Create the initial objects that are missing; those that were deleted come back at the next start."""
    for raw in initial_objects():
        if store.find(raw["kind"], key_of(raw["metadata"])) is None:
            # The others lack nothing that a new object gets, and need no validation.
            store.create(raw, now=now, is_new=raw["kind"] in ("Namespace", "Service"))


@cache
def initial_objects() -> tuple[Raw, ...]:
    """Return the objects in creation order; service accounts follow from their namespaces."""
    return tuple(with_defaults(raw["kind"], raw) for raw in _objects())


def _objects() -> Iterator[Raw]:
    for name in NAMESPACES:
        yield _object("v1", "Namespace", {"name": name})
    for name, description in _CLASSES.items():
        content = {"value": SYSTEM_CLASSES[name], "globalDefault": False, "description": description}
        yield _object("scheduling.k8s.io/v1", "PriorityClass", {"name": name}, **content)
    yield from _kubernetes_service()
    for line in _lines(_ROLES):
        head, _, rules = line.partition(": ")
        yield _role(head, *filter(None, rules.split("; ")))
    bindings = _lines(_BINDINGS)
    for line in _lines(_CONTROLLERS):
        head, _, rules = line.partition(": ")
        account, *without_events = head.split()
        name = f"system:controller:{account}"
        yield _role(name, *rules.split("; "), *(() if without_events else (_EVENTS,)))
        bindings.append(f"{name} kube-system/{account}")
    for line in bindings:
        name, *subjects = line.split()
        role_ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
        found = [_subject(text, apiGroup=_RBAC) for text in subjects]
        yield _object(f"{_RBAC}/v1", "ClusterRoleBinding", _rbac_metadata(name), roleRef=role_ref, subjects=found)
    for line in _lines(_LEVELS):
        yield _level(*line.split())
    for line in _lines(_FLOWS):
        yield _flow_schema(line)


def _lines(table: str) -> list[str]:
    """Return the lines of a table, each with those that continue it."""
    return table.strip().replace("\n  ", " ").splitlines()


def _object(api_version: str, kind: str, metadata: Raw, **content: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _kubernetes_service() -> Iterator[Raw]:
    """Yield the Service kubernetes with its endpoints, and the range of its address."""
    metadata = {"name": "kubernetes", "namespace": "default"}
    spec = {"clusterIP": KUBERNETES_ADDRESS, "ports": [{"name": "https", "port": 443, "targetPort": _SERVER_PORT}]}
    service = with_defaults("Service", _object("v1", "Service", {**metadata, "labels": _SERVER_LABELS}, spec=spec))
    yield with_addresses(service, None, ())
    ports = [{"name": "https", "port": _SERVER_PORT, "protocol": "TCP"}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subsets = [{"addresses": [{"ip": _SERVER_ADDRESS}], "ports": ports}]
    yield _object("v1", "Endpoints", {**metadata, "labels": labels}, subsets=subsets)
    yield _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        addressType="IPv4",
        endpoints=[{"addresses": [_SERVER_ADDRESS], "conditions": {"ready": True}}],
        ports=ports,
    )
    yield _object(
        "networking.k8s.io/v1",
        "ServiceCIDR",
        {"name": "kubernetes", "finalizers": [RANGE_FINALIZER]},
        spec={"cidrs": [SERVICE_NETWORK]},
        status={"conditions": [{**READY_RANGE, "lastTransitionTime": _NEVER}]},
    )


def _rbac_metadata(name: str, labels: Raw | None = None) -> Raw:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


def _subject(text: str, **group: str) -> Raw:
    """Return a user or a group of this API group, or a service account."""
    namespace, _, account = text.partition("/")
    if account:
        return {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    return {"kind": "User" if text[0] == "@" else "Group", "name": text.removeprefix("@"), **group}


def _role(head: str, *rules: str) -> Raw:
    """Return a ClusterRole; the controller of aggregation fills in the rules of those that aggregate others."""
    name, *relations = head.split()
    related = dict(zip(relations[::2], relations[1::2], strict=True))
    metadata = _rbac_metadata(name, {_AGGREGATE + related[">"]: "true"} if ">" in related else None)
    content: Raw = {"rules": [rule for text in rules for rule in _rules(text)]}
    if "<" in related:
        content["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {_AGGREGATE + related["<"]: "true"}}]}
    return _object(f"{_RBAC}/v1", "ClusterRole", metadata, **content)


def _rules(text: str) -> Iterator[Raw]:
    """Yield the policy rules of a line, one for each group."""
    verbs, places = text.split(": ", 1)
    allowed = [verb for word in verbs.split(",") for verb in _VERBS.get(word, (word,))]
    for place in places.split():
        if place.startswith("/"):
            yield {"verbs": allowed, "nonResourceURLs": ["*"] if place == "/*" else place.split(",")}
            continue
        group, _, resources = place.rpartition(":")
        resources, _, names = resources.partition("=")
        rule: Raw = {"verbs": allowed, "apiGroups": [group], "resources": resources.split(",")}
        yield {**rule, "resourceNames": names.split(",")} if names else rule


def _level(name: str, shares: str, lendable: str, *queueing: str) -> Raw:
    own: Raw = {"nominalConcurrencyShares": int(shares), "lendablePercent": int(lendable)}
    if name == "exempt":
        spec: Raw = {"type": "Exempt", "exempt": own}
    else:
        names = ("queues", "handSize", "queueLengthLimit")
        queues = dict(zip(names, map(int, queueing), strict=False))
        response: Raw = {"type": "Queue", "queuing": queues} if queueing else {"type": "Reject"}
        spec = {"type": "Limited", "limited": {**own, "limitResponse": response}}
    return _object(f"{_FLOW}/v1", "PriorityLevelConfiguration", _flow_metadata(name), spec=spec, status={})


def _flow_schema(line: str) -> Raw:
    head, _, rules = line.partition(" | ")
    name, level, precedence, distinguisher, *subjects = head.split()
    found = list(_rules(rules or "*: *:* /*"))
    named = [(subject.pop("kind"), subject) for subject in map(_subject, subjects)]
    matched: Raw = {"subjects": [{"kind": kind, kind[0].lower() + kind[1:]: names} for kind, names in named]}
    everywhere = {"clusterScope": True, "namespaces": ["*"]}
    for field, key in (("resourceRules", "resources"), ("nonResourceRules", "nonResourceURLs")):
        if chosen := [rule if key != "resources" else {**rule, **everywhere} for rule in found if key in rule]:
            matched[field] = chosen
    spec: Raw = {
        "matchingPrecedence": int(precedence),
        "priorityLevelConfiguration": {"name": level},
        "rules": [matched],
        **({} if distinguisher == "-" else {"distinguisherMethod": {"type": distinguisher}}),
    }
    status = {"conditions": [{**dangling_condition(level), "lastTransitionTime": _NEVER}]}
    return _object(f"{_FLOW}/v1", "FlowSchema", _flow_metadata(name), spec=spec, status=status)


def dangling_condition(level: str, *, exists: bool = True) -> Raw:
    """Return the condition that says whether the priority level of a FlowSchema is missing."""
    message = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" '
    status, reason, end = (
        ("False", "Found", "and it exists") if exists else ("True", "NotFound", "but there is no such object")
    )
    return {"type": "Dangling", "status": status, "reason": reason, "message": message + end}


def _flow_metadata(name: str) -> Raw:
    return {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}
