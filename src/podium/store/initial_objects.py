"""The objects that every cluster has from its start.

Source: pkg/controlplane (controller/systemnamespaces, kubernetesservice, defaultservicecidr), pkg/registry/scheduling,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy, apiserver's pkg/apis/flowcontrol/bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
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

# Each ClusterRole begins a line, which indented lines continue: its name, "< X" if it aggregates the roles labelled for
# X, "> X" for a role with that label, and its rules, separated by ";". A rule has verbs, then resources, by group after
# a colon, "=" before names, "/" before URLs.
_ROLES = """\
cluster-admin: *: *:*; *: /*
admin < admin
edit < edit > admin
view < view > edit
system:aggregate-to-admin > admin:
  create: authorization.k8s.io:localsubjectaccessreviews;
  all: rbac.authorization.k8s.io:roles,rolebindings
system:aggregate-to-edit > edit:
  read: pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy;
  impersonate: serviceaccounts;
  write: pods,pods/attach,pods/exec,pods/portforward,pods/proxy;
  create: pods/eviction;
  write: configmaps,events,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets;
  write: serviceaccounts,services,services/proxy;
  create: serviceaccounts/token;
  write: apps:daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale;
  write: apps:statefulsets,statefulsets/scale;
  write: autoscaling:horizontalpodautoscalers;
  write: batch:cronjobs,jobs;
  write: policy:poddisruptionbudgets;
  write: networking.k8s.io:ingresses,networkpolicies;
  all: coordination.k8s.io:leases;
  write: resource.k8s.io:resourceclaims,resourceclaimtemplates
system:aggregate-to-view > view:
  read: configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers;
  read: replicationcontrollers/scale,serviceaccounts,services,services/status;
  read: bindings,events,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status;
  read: namespaces,resourcequotas,resourcequotas/status;
  read: discovery.k8s.io:endpointslices;
  read: apps:controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status;
  read: apps:replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status;
  read: autoscaling:horizontalpodautoscalers,horizontalpodautoscalers/status;
  read: batch:cronjobs,cronjobs/status,jobs,jobs/status;
  read: policy:poddisruptionbudgets,poddisruptionbudgets/status;
  read: networking.k8s.io:ingresses,ingresses/status,networkpolicies;
  read: resource.k8s.io:resourceclaims,resourceclaims/status,resourceclaimtemplates
system:auth-delegator: create: authentication.k8s.io:tokenreviews; create: authorization.k8s.io:subjectaccessreviews
system:basic-user:
  create: authorization.k8s.io:selfsubjectaccessreviews,selfsubjectrulesreviews;
  create: authentication.k8s.io:selfsubjectreviews
system:discovery: get: /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
system:public-info-viewer: get: /healthz,/livez,/readyz,/version,/version/
system:monitoring: get: /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*
system:service-account-issuer-discovery:
  get: /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/
system:kube-controller-manager:
  create,patch,update: events events.k8s.io:events;
  create: coordination.k8s.io:leases;
  get,update: coordination.k8s.io:leases=kube-controller-manager;
  create,delete,get,update: secrets,serviceaccounts;
  get: configmaps,namespaces;
  create: serviceaccounts/token authentication.k8s.io:tokenreviews authorization.k8s.io:subjectaccessreviews;
  follow: *:*
system:kube-scheduler:
  create,patch,update: events events.k8s.io:events;
  create,list,watch: coordination.k8s.io:leases;
  get,update: coordination.k8s.io:leases=kube-scheduler;
  all: coordination.k8s.io:leasecandidates;
  read: namespaces,nodes,persistentvolumeclaims,persistentvolumes,pods,replicationcontrollers,services;
  delete: pods;
  create: bindings,pods/binding;
  edit: pods/status persistentvolumes persistentvolumeclaims;
  read: apps:replicasets,statefulsets policy:poddisruptionbudgets;
  create: authentication.k8s.io:tokenreviews authorization.k8s.io:subjectaccessreviews;
  read: storage.k8s.io:csinodes,csidrivers,csistoragecapacities,storageclasses,volumeattachments;
  read: resource.k8s.io:deviceclasses,resourceclaims,resourceslices scheduling.k8s.io:podgroups,workloads;
  edit: resource.k8s.io:resourceclaims,resourceclaims/status resource.k8s.io:resourceclaims/binding
system:kube-dns: follow: endpoints,services discovery.k8s.io:endpointslices
system:volume-scheduler:
  get,list,patch,update,watch: persistentvolumes,persistentvolumeclaims;
  read: storage.k8s.io:storageclasses
system:persistent-volume-provisioner:
  create,delete,get,list,watch: persistentvolumes;
  get,list,update,watch: persistentvolumeclaims;
  read: storage.k8s.io:storageclasses nodes;
  create,patch,update,list,watch: events
system:node-bootstrapper: create,get,list,watch: certificates.k8s.io:certificatesigningrequests
system:node-problem-detector: get: nodes; patch: nodes/status; create,patch,update: events events.k8s.io:events
system:node-proxier:
  follow: services,endpoints discovery.k8s.io:endpointslices networking.k8s.io:servicecidrs;
  read: nodes;
  create,patch,update: events events.k8s.io:events
system:node:
  create: authentication.k8s.io:tokenreviews authorization.k8s.io:subjectaccessreviews,localsubjectaccessreviews;
  read: services,nodes,pods,configmaps,secrets node.k8s.io:runtimeclasses storage.k8s.io:csidrivers;
  create,patch,update: nodes,nodes/status events events.k8s.io:events;
  create,delete: pods;
  edit: pods/status persistentvolumeclaims/status;
  create: pods/eviction serviceaccounts/token;
  get: persistentvolumeclaims,persistentvolumes endpoints storage.k8s.io:volumeattachments;
  create,get,list,watch: certificates.k8s.io:certificatesigningrequests;
  create,delete,get,patch,update: coordination.k8s.io:leases storage.k8s.io:csinodes;
  get: resource.k8s.io:resourceclaims;
  all: resource.k8s.io:resourceslices
"""
# The ClusterRoles of controllers (system:controller:NAME) in the same form, each bound to the account of that name in
# kube-system; those without a "-" may also write Events.
_CONTROLLERS = """\
attachdetach-controller:
  follow: persistentvolumes,persistentvolumeclaims,pods;
  read: nodes storage.k8s.io:csidrivers,csinodes;
  edit: nodes/status;
  create,delete,get,list,watch: storage.k8s.io:volumeattachments
certificate-controller:
  delete,get,list,watch: certificates.k8s.io:certificatesigningrequests;
  update: certificates.k8s.io:certificatesigningrequests/status,certificatesigningrequests/approval;
  approve: certificates.k8s.io:signers=kubernetes.io/kube-apiserver-client-kubelet;
  sign: certificates.k8s.io:signers=kubernetes.io/legacy-unknown,kubernetes.io/kube-apiserver-client;
  sign: certificates.k8s.io:signers=kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving;
  create: authorization.k8s.io:subjectaccessreviews
clusterrole-aggregation-controller -: escalate,get,list,patch,update,watch: rbac.authorization.k8s.io:clusterroles
cronjob-controller:
  get,list,update,watch: batch:cronjobs;
  create,delete,get,list,patch,update,watch: batch:jobs;
  update: batch:cronjobs/status,cronjobs/finalizers;
  delete,list,watch: pods
daemon-set-controller:
  read: extensions:daemonsets apps:daemonsets;
  follow: nodes;
  create,delete,list,patch,watch: pods;
  update: extensions:daemonsets/status,daemonsets/finalizers apps:daemonsets/status,daemonsets/finalizers;
  create: pods/binding;
  create,delete,get,list,patch,update,watch: apps:controllerrevisions
deployment-controller:
  get,list,update,watch: extensions:deployments apps:deployments pods;
  update: extensions:deployments/status,deployments/finalizers apps:deployments/status,deployments/finalizers;
  create,delete,get,list,patch,update,watch: apps:replicasets extensions:replicasets
disruption-controller:
  read: extensions:deployments,replicasets apps:deployments,replicasets,statefulsets replicationcontrollers;
  read: policy:poddisruptionbudgets;
  update: policy:poddisruptionbudgets/status;
  edit: pods/status;
  get: *:*/scale
endpoint-controller: read: services,pods; create,delete,get,list,update,watch: endpoints; create: endpoints/restricted
endpointslice-controller:
  read: services,pods,nodes;
  update: services/finalizers;
  create,delete,get,list,update,watch: discovery.k8s.io:endpointslices
endpointslicemirroring-controller:
  read: services,endpoints;
  update: services/finalizers,endpoints/finalizers;
  create,delete,get,list,update,watch: discovery.k8s.io:endpointslices
ephemeral-volume-controller: read: pods; update: pods/finalizers; create,get,list,watch: persistentvolumeclaims
expand-controller:
  get,list,patch,update,watch: persistentvolumes;
  edit: persistentvolumeclaims/status;
  read: persistentvolumeclaims;
  get: services
generic-garbage-collector: delete,get,list,patch,update,watch: *:*
horizontal-pod-autoscaler:
  read: autoscaling:horizontalpodautoscalers custom.metrics.k8s.io:* external.metrics.k8s.io:*;
  update: autoscaling:horizontalpodautoscalers/status;
  get,update: *:*/scale;
  follow: pods metrics.k8s.io:pods
job-controller:
  get,list,patch,update,watch: batch:jobs;
  update: batch:jobs/status,jobs/finalizers;
  create,delete,list,patch,watch: pods
legacy-service-account-token-cleaner -:
  get: configmaps=kube-apiserver-legacy-service-account-token-tracking;
  delete,patch: secrets
namespace-controller -:
  delete,get,list,watch: namespaces;
  update: namespaces/finalize,namespaces/status;
  delete,deletecollection,get,list,watch: *:*
node-controller:
  delete,get,list,patch,update,watch: nodes;
  edit: nodes/status,pods/status;
  delete,get,list,watch: pods
persistent-volume-binder:
  create,delete,get,list,update,watch: persistentvolumes;
  get,list,update,watch: persistentvolumeclaims;
  update: persistentvolumes/status,persistentvolumeclaims/status;
  create,delete,get,list,watch: pods;
  read: storage.k8s.io:storageclasses;
  follow: nodes;
  watch: events;
  get: services
pod-garbage-collector -: delete,list,watch: pods; read: nodes; patch: pods/status
pv-protection-controller: get,list,update,watch: persistentvolumes
pvc-protection-controller: get,list,update,watch: persistentvolumeclaims; read: pods
replicaset-controller:
  get,list,update,watch: apps:replicasets extensions:replicasets;
  create,delete,list,patch,watch: pods;
  update: apps:replicasets/status,replicasets/finalizers extensions:replicasets/status,replicasets/finalizers
replication-controller:
  get,list,update,watch: replicationcontrollers;
  create,delete,list,patch,watch: pods;
  update: replicationcontrollers/status,replicationcontrollers/finalizers
resource-claim-controller:
  read: pods;
  update: pods/finalizers;
  create,delete,get,list,watch: resource.k8s.io:resourceclaims;
  edit: resource.k8s.io:resourceclaims,resourceclaims/status pods/status
resourcequota-controller: follow: *:*; update: resourcequotas/status
root-ca-cert-publisher: create,update: configmaps
route-controller: follow: nodes; patch: nodes/status
selinux-warning-controller: read: persistentvolumes,persistentvolumeclaims,pods storage.k8s.io:csidrivers
service-account-controller: create: serviceaccounts
service-cidrs-controller:
  get,list,patch,update,watch: networking.k8s.io:servicecidrs;
  read: networking.k8s.io:ipaddresses;
  edit: networking.k8s.io:servicecidrs/finalizers,servicecidrs/status
service-controller: read: services; edit: services/status; follow: nodes
statefulset-controller:
  follow: pods;
  read: apps:statefulsets;
  update: apps:statefulsets/status,statefulsets/finalizers pods/finalizers;
  create,delete,get,patch,update: pods;
  create,delete,get,list,patch,update,watch: apps:controllerrevisions;
  create,delete,get,list,update,watch: persistentvolumeclaims
ttl-after-finished-controller: delete,get,list,watch: batch:jobs
ttl-controller: list,patch,update,watch: nodes
validatingadmissionpolicy-status-controller:
  read: admissionregistration.k8s.io:validatingadmissionpolicies;
  get,patch,update: admissionregistration.k8s.io:validatingadmissionpolicies/status
volumeattributesclass-protection-controller:
  read: persistentvolumeclaims,persistentvolumes;
  get,list,update,watch: storage.k8s.io:volumeattributesclasses
"""
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
