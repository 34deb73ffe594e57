"""What the types within objects have where nobody says: containers and their probes, volumes, ports.

Where such a type stands follows from the schemas, so that a pod's specification is filled in wherever there is one.
Source: pkg/apis/core/v1/defaults.go, and the marks `+default` of k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import ListOf, MapOf, Object, Type, fields_of, is_type

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
# Types whose numbers are open where they are 0.
_OPEN_AT_ZERO = frozenset(("Probe",))


def with_type_defaults(kind: str, raw: Raw) -> Raw:
    """An object of a kind of Kubernetes' own with what is open within it; itself where that is nothing."""
    return _filled_object(raw, kind) if is_type(kind) else raw


def _filled(value: Any, type_: Type) -> Any:
    """The value with what is open in it; itself where nothing is. What is not of the type stays as it is."""
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
    """The fields of a type in which something may be open."""
    return tuple((field, found.type) for field, found in fields_of(name).items() if _is_concerned(found.type))


@cache
def _is_concerned(type_: Type) -> bool:
    """Whether something in a value of the type may be open."""
    return not _named_within(type_, frozenset()).isdisjoint({*_PLAIN, *_FOLLOWING})


def _named_within(type_: Type, seen: frozenset[str]) -> frozenset[str]:
    """The names of all types in a type, itself and those that were `seen` among them."""
    match type_:
        case ListOf(item) | MapOf(item):
            return _named_within(item, seen)
        case Object(name) if name not in seen:
            seen |= {name}
            for field in fields_of(name).values():
                seen = _named_within(field.type, seen)
    return seen


def _image_policy(image: Any) -> str:
    """How an image is pulled of which nobody says: the latest always (parsers.ParseImageName)."""
    name, _, digest = str(image or "").partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _of_container(container: Raw) -> Raw:
    return {} if container.get("imagePullPolicy") else {"imagePullPolicy": _image_policy(container.get("image"))}


def _of_image_volume(source: Raw) -> Raw:
    return {} if source.get("pullPolicy") else {"pullPolicy": _image_policy(source.get("reference"))}


def _of_volume(volume: Raw) -> Raw:
    """A volume of which nobody says what it is lasts as long as the pod."""
    return {} if any(value is not None for name, value in volume.items() if name != "name") else {"emptyDir": {}}


def _of_pod_spec(spec: Raw) -> Raw:
    """The account goes by two names (Convert_core_PodSpec_To_v1_PodSpec)."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {"serviceAccount": account, "serviceAccountName": account} if account else {}


def _of_stateful_set_spec(spec: Raw) -> Raw:
    """The claims of a StatefulSet say what they are, and that they are not bound."""
    claims = spec.get("volumeClaimTemplates")
    if not isinstance(claims, list) or not claims:
        return {}
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}
    return {"volumeClaimTemplates": [{**head, **claim} if isinstance(claim, dict) else claim for claim in claims]}


# What follows from what else an object says.
_FOLLOWING: Mapping[str, Callable[[Raw], Raw]] = {
    "Container": _of_container,
    "EphemeralContainer": _of_container,
    "ImageVolumeSource": _of_image_volume,
    "PodSpec": _of_pod_spec,
    "StatefulSetSpec": _of_stateful_set_spec,
    "Volume": _of_volume,
}
