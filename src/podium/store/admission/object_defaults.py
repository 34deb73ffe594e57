"""What clients find filled in who read the objects that they have written.

Those who read such an object here know the defaults of its fields by themselves; kubectl does not, and asks for the
number of replicas that everybody has. Source: the SetDefaults functions of pkg/apis, pkg/registry/core/secret, and
plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from podium.api.meta import Raw
from podium.store.admission.type_defaults import with_type_defaults


def with_defaults(kind: str, raw: Raw) -> Raw:
    """The object with what it leaves open; itself where that is nothing."""
    fill = _FILLED.get(kind)
    return with_type_defaults(kind, raw if fill is None else fill(raw))


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


def _pod(raw: Raw) -> Raw:
    """A pod, of which more is filled in than of a template.

    The volume with the account's token is left out, since no container reads it.
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
    """A container that requests what limits it, and where it `shares` the network of its node has its ports there."""
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
    """A ReplicationController, which selects and has the labels of its template."""
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
    # With a limit for each index there is none for all of them together.
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
    "Pod": _pod,
    "PriorityClass": _priority_class,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replication_controller,
    "RoleBinding": _role_binding,
    "Secret": _secret,
    "StatefulSet": _stateful_set,
    "StorageClass": _storage_class,
}
