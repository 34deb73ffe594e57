"""What clients find filled in who read the objects that they have written: the defaults of kinds other than pods.

Of pods and their templates it is what kubectl cannot do without. Those who read such an object here know the defaults
of its fields by themselves; kubectl does not, and asks for the number of replicas that everybody has. Source: the
SetDefaults functions of pkg/apis, and pkg/registry/core/secret.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.api.meta import Raw


def with_defaults(kind: str, raw: Raw) -> Raw:
    """The object with what it leaves open; itself where that is nothing."""
    fill, path = _FILLED.get(kind), _POD_SPECS.get(kind)
    raw = raw if fill is None else fill(raw)
    return raw if path is None else _changed(raw, path, _with_token_lifetimes)


def _with_spec(raw: Raw, **defaults: Any) -> Raw:
    spec = raw.get("spec", {})
    missing = {name: value for name, value in defaults.items() if isinstance(spec, dict) and name not in spec}
    return {**raw, "spec": {**spec, **missing}} if missing else raw


def _strategy(raw: Raw, field: str, rolling: Raw) -> Raw:
    """The object with a strategy of updates, which is to roll where it does not say."""
    raw = _with_spec(raw, **{field: {}})
    given = raw["spec"].get(field) if isinstance(raw["spec"], dict) else None
    if not isinstance(given, dict) or given.get("type", "RollingUpdate") != "RollingUpdate":
        return raw
    told = given.get("rollingUpdate")
    filled = {"type": "RollingUpdate", "rollingUpdate": {**rolling, **(told if isinstance(told, dict) else {})}}
    return {**raw, "spec": {**raw["spec"], field: filled}}


def _changed(raw: Raw, path: Sequence[str], change: Callable[[Raw], Raw]) -> Raw:
    """The object with the part at a path changed; itself where nothing is."""
    if not path:
        return change(raw)
    part = raw.get(path[0])
    new = _changed(part, path[1:], change) if isinstance(part, dict) else part
    return raw if new is part else {**raw, path[0]: new}


def _with_token_lifetimes(spec: Raw) -> Raw:
    """A pod's specification, in which each token of a projected volume says how long it lasts: an hour."""
    volumes = spec.get("volumes")
    if not isinstance(volumes, list):
        return spec
    filled = [
        _changed(volume, ("projected",), _with_lifetimes) if isinstance(volume, dict) else volume for volume in volumes
    ]
    return {**spec, "volumes": filled} if any(a is not b for a, b in zip(filled, volumes, strict=True)) else spec


def _with_lifetimes(projected: Raw) -> Raw:
    sources = projected.get("sources")
    if not isinstance(sources, list):
        return projected
    token = ("serviceAccountToken",)
    filled = [_changed(source, token, _with_lifetime) if isinstance(source, dict) else source for source in sources]
    return {**projected, "sources": filled}


def _with_lifetime(token: Raw) -> Raw:
    return {"expirationSeconds": 3_600, **token}


def _deployment(raw: Raw) -> Raw:
    raw = _with_spec(raw, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    return _strategy(raw, "strategy", {"maxSurge": "25%", "maxUnavailable": "25%"})


def _stateful_set(raw: Raw) -> Raw:
    raw = _with_spec(raw, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")
    return _strategy(raw, "updateStrategy", {"partition": 0})


def _daemon_set(raw: Raw) -> Raw:
    return _strategy(_with_spec(raw, revisionHistoryLimit=10), "updateStrategy", {"maxSurge": 0, "maxUnavailable": 1})


def _replica_set(raw: Raw) -> Raw:
    return _with_spec(raw, replicas=1)


def _job(raw: Raw) -> Raw:
    spec = raw.get("spec")
    is_counted = isinstance(spec, dict) and ("completions" in spec or "parallelism" in spec)
    counts = {"parallelism": 1} if is_counted else {"parallelism": 1, "completions": 1}
    return _with_spec(raw, **counts, backoffLimit=6, completionMode="NonIndexed", suspend=False)


def _cron_job(raw: Raw) -> Raw:
    limits = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    return _with_spec(raw, concurrencyPolicy="Allow", suspend=False, **limits)


def _claim(raw: Raw) -> Raw:
    return _with_spec(raw, volumeMode="Filesystem")


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
    """A Secret; what is given as text becomes data."""
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
    """An EndpointSlice whose ports have names, be they empty; kubectl describes no others."""
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
    "PersistentVolumeClaim": _claim,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replica_set,
    "RoleBinding": _role_binding,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
}
_TEMPLATE = ("spec", "template", "spec")
# Where kinds have the specification of pods.
_POD_SPECS: Mapping[str, tuple[str, ...]] = {
    "CronJob": ("spec", "jobTemplate", *_TEMPLATE),
    "DaemonSet": _TEMPLATE,
    "Deployment": _TEMPLATE,
    "Job": _TEMPLATE,
    "Pod": ("spec",),
    "PodTemplate": ("template", "spec"),
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
}
