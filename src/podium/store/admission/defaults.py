"""API defaults of object fields, for clients that read back what they wrote.

Podium's typed readings know the defaults of their fields. kubectl does not: it expects fields such as the number of
replicas to be present. The catalogue has the defaults that depend on nothing else; functions fill in the others.
Source: the SetDefaults functions of pkg/apis, pkg/registry/core/secret, and plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec

from podium.api.meta import NAMESPACE_NAME_LABEL, Raw, list_at, object_at, objects_at
from podium.api.pod import PodSpec
from podium.api.quantity import canonical_quantity, milli_value
from podium.api.resource_requests import pod_level_requests
from podium.api.schemas.schema import Leaf, ListOf, MapOf, Object, Type, defaults_of, fields_of, is_type


def with_defaults(kind: str, raw: Raw) -> Raw:
    """Return the object with defaults for unset fields and canonical amounts; the object itself if it has these."""
    fill = _OF_KIND.get(kind)
    raw = raw if fill is None else fill(raw)
    return _filled_object(raw, kind) if is_type(kind) else raw


def _pod(raw: Raw) -> Raw:
    """Return a pod with its defaults, which are more than those of a pod template."""
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
            defaulted = [_container(container, shares=shares) for container in containers]
            if defaulted != containers:
                filled[name] = defaulted
    grace = spec.get("terminationGracePeriodSeconds")
    if type(grace) is int and grace < 0:
        filled["terminationGracePeriodSeconds"] = 1
    if requests := _pod_level_requests({**spec, **filled}):
        filled["resources"] = {**spec["resources"], "requests": requests}
    return {**raw, "spec": {**spec, **filled}} if filled else raw


def without_account(raw: Raw, given: Raw) -> Raw:
    """Return a pod with its defaults without the default service account, unless the `given` pod states one.

    It is not a default of the API: admission sets it, as the token's volume (plugin/pkg/admission/serviceaccount).
    """
    names = ("serviceAccount", "serviceAccountName")
    if any(object_at(given, "spec").get(name) for name in names):
        return raw
    return {**raw, "spec": {name: value for name, value in object_at(raw, "spec").items() if name not in names}}


ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where containers find the token of their service account."""

_NAMESPACE_FIELD = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
TOKEN_SOURCES: list[Raw] = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _NAMESPACE_FIELD}]}},
]
"""The sources of the volume with this token."""


def with_token_volume(raw: Raw, account: Raw) -> Raw:
    """Return a new pod with the volume of the token of its service account, unless pod or account opt out.

    A pod without pull secrets gets those of the account. All pods of an account name the volume alike, so that they can
    share a specification. Source: plugin/pkg/admission/serviceaccount.
    """
    spec, pulls = object_at(raw, "spec"), account.get("imagePullSecrets")
    if pulls and not spec.get("imagePullSecrets"):
        spec = {**spec, "imagePullSecrets": pulls}
        raw = {**raw, "spec": spec}
    automounts = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if automounts is False or not isinstance(spec.get("volumes", []), list):
        return raw
    name = f"kube-api-access-{str(object_at(account, 'metadata').get('uid', 'none'))[:5]}"
    mount, filled = {"name": name, "readOnly": True, "mountPath": ACCOUNT_FOLDER}, dict[str, list[Any]]()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(list_at(spec, field)):
            mounts = container.get("volumeMounts", []) if isinstance(container, dict) else None
            known = [one.get("mountPath") for one in objects_at(container, "volumeMounts")]
            if isinstance(mounts, list) and ACCOUNT_FOLDER not in known:
                filled.setdefault(field, [*spec[field]])[index] = {**container, "volumeMounts": [*mounts, mount]}
    if not filled:
        return raw
    if not any(volume.get("name") == name for volume in objects_at(spec, "volumes")):
        volume = {"name": name, "projected": {"defaultMode": 420, "sources": TOKEN_SOURCES}}
        filled["volumes"] = [*spec.get("volumes", []), volume]
    return {**raw, "spec": {**spec, **filled}}


def _pod_level_requests(spec: Raw) -> Raw:
    """Return the pod-level requests of a pod with pod-level limits; {} for any other (defaultPodRequests)."""
    resources = object_at(spec, "resources")
    limits, stated = object_at(resources, "limits"), object_at(resources, "requests")
    if not limits:
        return {}
    try:
        found = pod_level_requests(msgspec.convert(spec, PodSpec))
        equal = {name for name, limit in limits.items() if found.get(name) == milli_value(limit)}
    except (msgspec.ValidationError, ValueError):
        # Validation reports it.
        return {}
    amounts = {name: f"{milli}m" if milli % 1_000 else str(milli // 1_000) for name, milli in found.items()}
    return {**amounts, **{name: limits[name] for name in equal}, **stated}


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


def _replication_controller(raw: Raw) -> Raw:
    """Return a ReplicationController whose selector and labels default to those of its template."""
    labels = object_at(raw, "spec", "template", "metadata", "labels")
    if labels and not raw["spec"].get("selector"):
        raw = {**raw, "spec": {**raw["spec"], "selector": labels}}
    return _labelled(raw)


def _labelled(raw: Raw) -> Raw:
    """Return a workload whose labels default to those of its template."""
    labels, own = object_at(raw, "spec", "template", "metadata", "labels"), raw.get("metadata")
    if not labels or not isinstance(own, dict) or own.get("labels"):
        return raw
    return {**raw, "metadata": {**own, "labels": labels}}


def _job(raw: Raw) -> Raw:
    """Return a Job with its defaults, which the template of a CronJob does not have."""
    raw = _labelled(raw)
    spec = raw.get("spec", {})
    if not isinstance(spec, dict):
        return raw
    is_counted = "completions" in spec or "parallelism" in spec
    defaults = {
        "parallelism": 1,
        **({} if is_counted else {"completions": 1}),
        # With a per-index limit there is no overall limit.
        "backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in spec else 6,
        "completionMode": "NonIndexed",
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        "suspend": False,
    }
    return raw if defaults.keys() <= spec.keys() else {**raw, "spec": {**spec, **defaults, **spec}}


def with_name_label(raw: Raw) -> Raw:
    """Return a namespace that is labelled with its name, whatever the label says."""
    metadata = object_at(raw, "metadata")
    name, labels = metadata.get("name"), metadata.get("labels", {})
    if not name or not isinstance(labels, dict) or labels.get(NAMESPACE_NAME_LABEL) == name:
        return raw
    return {**raw, "metadata": {**metadata, "labels": {**labels, NAMESPACE_NAME_LABEL: name}}}


def _secret(raw: Raw) -> Raw:
    """Return a Secret with its `stringData` merged into `data`."""
    texts = object_at(raw, "stringData")
    rest = {name: value for name, value in raw.items() if name != "stringData"}
    if not texts:
        return rest
    written = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
    return {**rest, "data": {**object_at(raw, "data"), **written}}


_HORIZONTAL_METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
]
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALING_RULES: Mapping[str, Raw] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _PERCENT],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_PERCENT]},
}


def _autoscaler(raw: Raw) -> Raw:
    """Return a HorizontalPodAutoscaler with a metric, and with the rules of a behavior that it states."""
    spec = object_at(raw, "spec")
    if not spec.get("metrics"):
        raw = {**raw, "spec": {**spec, "metrics": _HORIZONTAL_METRICS}}
    behavior = spec.get("behavior")
    if isinstance(behavior, dict) and behavior:
        rules = {name: {**default, **object_at(behavior, name)} for name, default in _SCALING_RULES.items()}
        raw = {**raw, "spec": {**raw["spec"], "behavior": rules}}
    return raw


_OF_KIND: Mapping[str, Callable[[Raw], Raw]] = {
    "HorizontalPodAutoscaler": _autoscaler,
    "Job": _job,
    "Namespace": with_name_label,
    "Node": lambda raw: raw if "spec" in raw else {**raw, "spec": {}},
    "Pod": _pod,
    "ReplicationController": _replication_controller,
    "Secret": _secret,
}


def _filled(value: Any, type_: Type) -> Any:
    """Return the value with defaults and canonical amounts; itself if it has these. Wrong values are left alone."""
    match type_:
        case Leaf("quantity") if isinstance(value, str | int | float):
            with suppress(ValueError):
                found = canonical_quantity(value)
                return value if found == value else found
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
    defaults, nested = _plan_of(name)
    filled: Raw = {}
    for field, default, zero in defaults:
        if raw.get(field) in zero:
            filled[field] = default
    if (follow := _FOLLOWING.get(name)) is not None:
        filled |= follow({**raw, **filled})
    for field, type_ in nested:
        value = filled.get(field, raw.get(field))
        if value is not None:
            new = _filled(value, type_)
            if new is not value:
                filled[field] = new
    return {**raw, **filled} if any(raw.get(field) != value for field, value in filled.items()) else raw


@cache
def _plan_of(name: str) -> tuple[list[tuple[str, Any, tuple[Any, ...]]], list[tuple[str, Type]]]:
    """Return a type's defaults, each with the values that count as unset, and the fields that contain others.

    A zero value counts as unset unless JSON distinguishes it from an absent one.
    """
    fields = fields_of(name)
    defaults = [
        (field, default, (None,) if fields[field].keeps_zero else (None, "", 0))
        for field, default in defaults_of(name).items()
    ]
    return defaults, [(field, found.type) for field, found in fields.items() if _is_concerned(found.type)]


@cache
def _is_concerned(type_: Type) -> bool:
    """Return whether a value of the type may contain unset defaults or amounts; no type contains itself."""
    match type_:
        case ListOf(item) | MapOf(item):
            return _is_concerned(item)
        case Object(name):
            has_own = name in _FOLLOWING or bool(defaults_of(name))
            return has_own or any(_is_concerned(field.type) for field in fields_of(name).values())
    return type_ == Leaf("quantity")


def _image_policy(image: Any) -> str:
    """Return the default pull policy of an image: Always for the tag latest (parsers.ParseImageName)."""
    name, _, digest = str(image or "").partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _of_container(container: Raw) -> Raw:
    return {} if container.get("imagePullPolicy") else {"imagePullPolicy": _image_policy(container.get("image"))}


def _of_device_request(request: Raw) -> Raw:
    mode = request.get("allocationMode") or "ExactCount"
    count = {"count": 1} if mode == "ExactCount" and not request.get("count") else {}
    return {"allocationMode": mode, **count}


def _of_network_policy_spec(spec: Raw) -> Raw:
    return {} if spec.get("policyTypes") else {"policyTypes": ["Ingress", *(["Egress"] if spec.get("egress") else [])]}


def _of_pod_spec(spec: Raw) -> Raw:
    """Return both names of the service account field (Convert_core_PodSpec_To_v1_PodSpec)."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {"serviceAccount": account, "serviceAccountName": account} if account else {}


def _of_stateful_set_spec(spec: Raw) -> Raw:
    """Return claim templates with a type and the phase Pending."""
    claims = spec.get("volumeClaimTemplates")
    if not isinstance(claims, list) or not claims:
        return {}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
    return {"volumeClaimTemplates": [{**head, **claim} if isinstance(claim, dict) else claim for claim in claims]}


def _of_strategy(strategy: Raw) -> Raw:
    is_given = isinstance(strategy.get("rollingUpdate"), dict)
    return {} if is_given or strategy["type"] != "RollingUpdate" else {"rollingUpdate": {}}


def _of_volume(volume: Raw) -> Raw:
    """Return a source: a volume without one is an emptyDir."""
    return {} if any(value is not None for name, value in volume.items() if name != "name") else {"emptyDir": {}}


# By type, a function that returns the defaults that depend on other fields of the object.
_FOLLOWING: Mapping[str, Callable[[Raw], Raw]] = {
    "Container": _of_container,
    "DaemonSetUpdateStrategy": _of_strategy,
    "DeploymentStrategy": _of_strategy,
    "DeviceSubRequest": _of_device_request,
    "ExactDeviceRequest": _of_device_request,
    "EphemeralContainer": _of_container,
    "ImageVolumeSource": lambda source: (
        {} if source.get("pullPolicy") else {"pullPolicy": _image_policy(source.get("reference"))}
    ),
    "NetworkPolicySpec": _of_network_policy_spec,
    "NodeStatus": lambda status: (
        {} if status.get("allocatable") or not status.get("capacity") else {"allocatable": status["capacity"]}
    ),
    "PodSpec": _of_pod_spec,
    "ServicePort": lambda port: {"targetPort": port["port"]} if port.get("port") and not port.get("targetPort") else {},
    "StatefulSetSpec": _of_stateful_set_spec,
    "StatefulSetUpdateStrategy": _of_strategy,
    "Volume": _of_volume,
}


TAINTING = ("DeviceTaintRule", "ResourceSlice")
"""The kinds with taints of devices."""


def with_taint_times(raw: Raw, previous: Raw, time: str) -> Raw:
    """Return an object of a kind in `TAINTING` whose taints have times, those without one this time.

    So has a rule with another effect than its `previous` form, unless the time changes as well. Source:
    pkg/apis/resource/v1/defaults.go, pkg/registry/resource/devicetaintrule/strategy.go.
    """
    spec, added = object_at(raw, "spec"), {"timeAdded": time}
    if taint := object_at(spec, "taint"):
        before = object_at(previous, "spec", "taint")
        changed = {name for name in ("effect", "timeAdded") if before and before.get(name) != taint.get(name)}
        return {**raw, "spec": {**spec, "taint": {**added, **taint, **(added if changed == {"effect"} else {})}}}
    devices = [
        {**device, "taints": [{**added, **taint} for taint in taints]} if taints else device
        for device in objects_at(spec, "devices")
        for taints in [objects_at(device, "taints")]
    ]
    return {**raw, "spec": {**spec, "devices": devices}} if devices else raw
