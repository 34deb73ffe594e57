"""API defaults of object fields, for clients that read back what they wrote.

Podium's typed readings know the defaults of their fields. kubectl does not: it expects fields such as the number of
replicas to be present. Source: the SetDefaults functions of pkg/apis, pkg/registry/core/secret, and
plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import ListOf, MapOf, Object, Type, fields_of, is_type


def with_defaults(kind: str, raw: Raw) -> Raw:
    """Return the object with defaults for unset fields; the object itself if nothing is unset."""
    fill = _FILLED.get(kind)
    return with_type_defaults(kind, raw if fill is None else fill(raw))


def _with_spec(raw: Raw, **defaults: Any) -> Raw:
    spec = raw.get("spec", {})
    missing = {name: value for name, value in defaults.items() if isinstance(spec, dict) and name not in spec}
    return {**raw, "spec": {**spec, **missing}} if missing else raw


def _strategy(raw: Raw, field: str, rolling: Raw) -> Raw:
    """Return the object with an update strategy; RollingUpdate is the default."""
    raw = _with_spec(raw, **{field: {}})
    given = raw["spec"].get(field) if isinstance(raw["spec"], dict) else None
    if not isinstance(given, dict) or given.get("type", "RollingUpdate") != "RollingUpdate":
        return raw
    told = given.get("rollingUpdate")
    filled = {"type": "RollingUpdate", "rollingUpdate": {**rolling, **(told if isinstance(told, dict) else {})}}
    return {**raw, "spec": {**raw["spec"], field: filled}}


def _pod(raw: Raw) -> Raw:
    """Return a pod with its defaults, which are more than those of a pod template.

    The volume with the service account token is omitted, since no container reads it.
    """
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return raw
    shares = spec.get("hostNetwork") is True
    filled: Raw = {} if "enableServiceLinks" in spec else {"enableServiceLinks": True}
    if not spec.get("serviceAccountName") and not spec.get("serviceAccount"):
        filled["serviceAccountName"] = "default"
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        if isinstance(containers, list):
            told = [_container(container, shares=shares) for container in containers]
            if told != containers:
                filled[name] = told
    return {**raw, "spec": {**spec, **filled}} if filled else raw


def _container(container: Any, *, shares: bool) -> Any:
    """Return a container whose requests default to its limits; with `shares` (host network), host ports default too."""
    if not isinstance(container, dict):
        return container
    filled: Raw = {}
    resources = container.get("resources")
    if isinstance(resources, dict) and isinstance(limits := resources.get("limits"), dict) and limits:
        requests = resources.get("requests", {})
        if isinstance(requests, dict):
            filled["resources"] = {**resources, "requests": {**limits, **requests}}
    ports = container.get("ports")
    if shares and isinstance(ports, list):
        filled["ports"] = [
            {**port, "hostPort": port.get("hostPort") or port["containerPort"]}
            if isinstance(port, dict) and "containerPort" in port
            else port
            for port in ports
        ]
    return {**container, **filled} if filled else container


def _deployment(raw: Raw) -> Raw:
    raw = _with_spec(raw, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    return _strategy(raw, "strategy", {"maxSurge": "25%", "maxUnavailable": "25%"})


def _stateful_set(raw: Raw) -> Raw:
    retention = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    raw = _with_spec(
        raw,
        replicas=1,
        revisionHistoryLimit=10,
        podManagementPolicy="OrderedReady",
        persistentVolumeClaimRetentionPolicy=retention,
    )
    return _strategy(raw, "updateStrategy", {"partition": 0})


def _daemon_set(raw: Raw) -> Raw:
    return _strategy(_with_spec(raw, revisionHistoryLimit=10), "updateStrategy", {"maxSurge": 0, "maxUnavailable": 1})


def _replica_set(raw: Raw) -> Raw:
    return _with_spec(raw, replicas=1)


def _replication_controller(raw: Raw) -> Raw:
    """Return a ReplicationController whose selector and labels default to those of its template."""
    raw = _with_spec(raw, replicas=1)
    template = raw["spec"].get("template") if isinstance(raw["spec"], dict) else None
    metadata = template.get("metadata") if isinstance(template, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or not labels:
        return raw
    raw = raw if raw["spec"].get("selector") else {**raw, "spec": {**raw["spec"], "selector": labels}}
    own = raw.get("metadata")
    return {**raw, "metadata": {**own, "labels": labels}} if isinstance(own, dict) and not own.get("labels") else raw


def _job(raw: Raw) -> Raw:
    spec = raw.get("spec")
    is_counted = isinstance(spec, dict) and ("completions" in spec or "parallelism" in spec)
    counts = {"parallelism": 1} if is_counted else {"parallelism": 1, "completions": 1}
    is_judged = isinstance(spec, dict) and "podFailurePolicy" in spec
    # With a per-index limit there is no overall limit.
    limit = 2**31 - 1 if isinstance(spec, dict) and "backoffLimitPerIndex" in spec else 6
    return _with_spec(
        raw,
        **counts,
        backoffLimit=limit,
        completionMode="NonIndexed",
        podReplacementPolicy="Failed" if is_judged else "TerminatingOrFailed",
        suspend=False,
    )


def _cron_job(raw: Raw) -> Raw:
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    return _with_spec(raw, concurrencyPolicy="Allow", suspend=False, **limits)


def _volume(raw: Raw) -> Raw:
    return _with_spec(raw, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")


def _storage_class(raw: Raw) -> Raw:
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **raw}


def _priority_class(raw: Raw) -> Raw:
    return {"preemptionPolicy": "PreemptLowerPriority", **raw}


def _autoscaler(raw: Raw) -> Raw:
    return _with_spec(raw, minReplicas=1)


def _network_policy(raw: Raw) -> Raw:
    spec = raw.get("spec")
    egress = ["Egress"] if isinstance(spec, dict) and spec.get("egress") else []
    return _with_spec(raw, policyTypes=["Ingress", *egress])


def _secret(raw: Raw) -> Raw:
    """Return a Secret with its `stringData` merged into `data`."""
    raw = {"type": "Opaque", **raw}
    told = raw.pop("stringData", None)
    if not isinstance(told, dict) or not told:
        return raw
    written = {name: base64.b64encode(str(text).encode()).decode() for name, text in told.items()}
    data = raw.get("data")
    return {**raw, "data": {**(data if isinstance(data, dict) else {}), **written}}


def _role_binding(raw: Raw) -> Raw:
    reference = raw.get("roleRef")
    if not isinstance(reference, dict) or reference.get("apiGroup"):
        return raw
    return {**raw, "roleRef": {**reference, "apiGroup": "rbac.authorization.k8s.io"}}


def _endpoint_slice(raw: Raw) -> Raw:
    """Return an EndpointSlice whose ports all have a name, possibly empty.

    Ports without a name do not appear in the output of kubectl describe.
    """
    ports = raw.get("ports")
    if not isinstance(ports, list):
        return raw
    filled = [{"name": "", "protocol": "TCP", **port} if isinstance(port, dict) else port for port in ports]
    return {**raw, "ports": filled}


_FILLED: Mapping[str, Callable[[Raw], Raw]] = {
    "ClusterRoleBinding": _role_binding,
    "CronJob": _cron_job,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "EndpointSlice": _endpoint_slice,
    "HorizontalPodAutoscaler": _autoscaler,
    "Job": _job,
    "NetworkPolicy": _network_policy,
    "PersistentVolume": _volume,
    "Pod": _pod,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replication_controller,
    "RoleBinding": _role_binding,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
}


_FILE_MODE = 0o644
_TCP: Raw = {"protocol": "TCP"}
_CONTAINER: Raw = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_PLAIN: Mapping[str, Raw] = {
    "ConfigMapVolumeSource": {"defaultMode": _FILE_MODE},
    "Container": _CONTAINER,
    "ContainerPort": _TCP,
    "DownwardAPIVolumeSource": {"defaultMode": _FILE_MODE},
    "EphemeralContainer": _CONTAINER,
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "HostPathVolumeSource": {"type": ""},
    "NetworkPolicyPort": _TCP,
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "ProjectedVolumeSource": {"defaultMode": _FILE_MODE},
    "SecretVolumeSource": {"defaultMode": _FILE_MODE},
    "ServiceAccountTokenProjection": {"expirationSeconds": 3_600},
}
# Types whose numeric fields count as unset when they are 0.
_OPEN_AT_ZERO = frozenset(("Probe",))


def with_type_defaults(kind: str, raw: Raw) -> Raw:
    """Return an object of a built-in kind with nested defaults filled in; the object itself if nothing is unset."""
    return _filled_object(raw, kind) if is_type(kind) else raw


def _filled(value: Any, type_: Type) -> Any:
    """Return the value with defaults filled in; itself if nothing is unset. Values of a wrong type are left alone."""
    match type_:
        case Object(name) if isinstance(value, dict):
            return _filled_object(value, name)
        case ListOf(item) if isinstance(value, list):
            items = [_filled(entry, item) for entry in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        case MapOf(item) if isinstance(value, dict):
            entries = {key: _filled(entry, item) for key, entry in value.items()}
            return entries if any(entries[key] is not value[key] for key in value) else value
    return value


def _filled_object(raw: Raw, name: str) -> Raw:
    filled: Raw = {}
    for field, type_ in _filled_fields(name):
        value = raw.get(field)
        if value:
            new = _filled(value, type_)
            if new is not value:
                filled[field] = new
    for field, default in _PLAIN.get(name, {}).items():
        if _is_open(raw.get(field), name):
            filled[field] = default
    follow = _FOLLOWING.get(name)
    if follow is not None:
        filled |= follow({**raw, **filled})
    return {**raw, **filled} if any(raw.get(field) != value for field, value in filled.items()) else raw


def _is_open(value: Any, name: str) -> bool:
    return value is None or value == "" or (name in _OPEN_AT_ZERO and value == 0)


@cache
def _filled_fields(name: str) -> tuple[tuple[str, Type], ...]:
    """Return the fields of a type that may contain unset defaults."""
    return tuple((field, found.type) for field, found in fields_of(name).items() if _is_concerned(found.type))


@cache
def _is_concerned(type_: Type) -> bool:
    """Return whether a value of the type may contain unset defaults."""
    return not _named_within(type_, frozenset()).isdisjoint({*_PLAIN, *_FOLLOWING})


def _named_within(type_: Type, seen: frozenset[str]) -> frozenset[str]:
    """Return the names of all types within a type, including the type itself and those already `seen`."""
    match type_:
        case ListOf(item) | MapOf(item):
            return _named_within(item, seen)
        case Object(name) if name not in seen:
            seen |= {name}
            for field in fields_of(name).values():
                seen = _named_within(field.type, seen)
    return seen


def _image_policy(image: Any) -> str:
    """Return the default pull policy of an image: Always for the tag latest (parsers.ParseImageName)."""
    name, _, digest = str(image or "").partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _of_container(container: Raw) -> Raw:
    return {} if container.get("imagePullPolicy") else {"imagePullPolicy": _image_policy(container.get("image"))}


def _of_image_volume(source: Raw) -> Raw:
    return {} if source.get("pullPolicy") else {"pullPolicy": _image_policy(source.get("reference"))}


def _of_volume(volume: Raw) -> Raw:
    """Return a volume; one without a source is an emptyDir."""
    return {} if any(value is not None for name, value in volume.items() if name != "name") else {"emptyDir": {}}


def _of_pod_spec(spec: Raw) -> Raw:
    """Return a pod spec with both names of the service account field (Convert_core_PodSpec_To_v1_PodSpec)."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {"serviceAccount": account, "serviceAccountName": account} if account else {}


def _of_stateful_set_spec(spec: Raw) -> Raw:
    """Return a StatefulSet spec whose claim templates have a type and the phase Pending."""
    claims = spec.get("volumeClaimTemplates")
    if not isinstance(claims, list) or not claims:
        return {}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
    return {"volumeClaimTemplates": [{**head, **claim} if isinstance(claim, dict) else claim for claim in claims]}


# Defaults that depend on other fields of the object.
_FOLLOWING: Mapping[str, Callable[[Raw], Raw]] = {
    "Container": _of_container,
    "EphemeralContainer": _of_container,
    "ImageVolumeSource": _of_image_volume,
    "PodSpec": _of_pod_spec,
    "StatefulSetSpec": _of_stateful_set_spec,
    "Volume": _of_volume,
}


_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
_FIRST_ADDRESS = 2
_NODE_PORTS = range(30_000, 32_768)
_AFFINITY_SECONDS = 10_800
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
KUBERNETES_ADDRESS = str(_NETWORK[1])
"""The address of the Service `kubernetes`, the first of the range."""


def with_addresses(raw: Raw, previous: Raw | None, others: Iterable[Raw]) -> Raw:
    """Return the Service with its defaults and allocations: those that it had before, or free ones.

    `others` are all Services.
    """
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
        spec["ports"] = _with_node_ports(ports, spec["type"], before.get("ports", []), taken)
    return {**raw, "spec": spec}


def _with_node_ports(ports: list[Any], type_: str, before: list[Raw], taken: list[Raw]) -> list[Any]:
    used = {port.get("nodePort") for spec in taken for port in spec.get("ports", ())}
    known = {(port.get("port"), port.get("protocol", "TCP")): port.get("nodePort") for port in before}
    free_ports = (number for number in _NODE_PORTS if number not in used)
    found: list[Any] = []
    for port in ports:
        if not isinstance(port, dict) or "port" not in port:
            found.append(port)
            continue
        filled = {"protocol": "TCP", "targetPort": port["port"], **port}
        if type_ in _WITH_NODE_PORTS and not filled.get("nodePort"):
            kept = known.get((filled["port"], filled["protocol"]))
            free = kept or next(free_ports, None)
            if free is not None:
                filled["nodePort"] = free
                used.add(free)
        found.append(filled)
    return found


def _free_address(taken: set[Any]) -> str:
    """Return the first free address; "None", which means a headless Service, if all are taken."""
    number = next((n for n in range(_FIRST_ADDRESS, _NETWORK.num_addresses - 1) if str(_NETWORK[n]) not in taken), None)
    return "None" if number is None else str(_NETWORK[number])
