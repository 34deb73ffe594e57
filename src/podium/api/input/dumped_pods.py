"""Pods of a dump, of which there are many of few sorts.

What pods of one template share is read and judged once: their specifications are the same but for the names of node,
host, and the volume through which a pod reaches the API server. What each has for itself is looked at part by part.
Pods are read here of which there is nothing to say; every other is for `podium.api.objects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType

import msgspec
from msgspec.structs import replace

from podium.api.checks import check, check_time
from podium.api.errors import InputError
from podium.api.input.dumped_pod_parts import ACCESS, Managed, Observed, OwnNames, Parts, named, own_volumes_of
from podium.api.input.exact_json import Text, UncertainError, decode, decode_with_nulls
from podium.api.input.pod_gaps import JSON
from podium.api.input.pod_stencil import ReadPod
from podium.api.input.pod_stencils import PodStencils
from podium.api.meta import ObjectMeta, Raw
from podium.api.names import label_name_problem, subdomain_problem
from podium.api.pod import Pod, PodSpec, PodStatus
from podium.api.reading import read
from podium.api.schemas.schema import Object
from podium.api.schemas.slips import slips
from podium.api.schemas.structure import fits, fits_with_nulls
from podium.api.soundness.objects import check_metadata
from podium.api.soundness.pod import check_pod_spec, check_pod_status
from podium.api.validation import pods
from podium.api.validation.finding import Finding
from podium.api.validation.metadata import check_metadata as find_in_metadata
from podium.api.validation.metadata import check_pod_annotations
from podium.api.validation.place import Place

_SHAPES = 2_048
_SMALL = 16_384
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_ANY = "any"
_ANY_ACCESS = f'"{ACCESS}{_ANY}"'.encode()
_ANY_TIME = b'"2000-01-01T00:00:00Z"'
_ANY_TEXT = b'"podium.dev/any"'
_OWN_NAMES = (("nodeName", subdomain_problem), ("hostname", label_name_problem))
_OWN_METADATA = ("name", "uid", "resourceVersion")
_PARTS = ("metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class _Shape:
    """What pods share: their specification, and where in it the volume stands that each names in its own way."""

    spec: PodSpec
    own_volumes: tuple[int, ...]


class DumpedPods:
    """Reads pods of a dump one after another, and keeps what was found about those that were like them."""

    def __init__(self) -> None:
        self._stencils = PodStencils(JSON)
        self._item = msgspec.json.Decoder(Parts)
        self._managed = msgspec.json.Decoder(Managed)
        self._own_names = msgspec.json.Decoder(OwnNames)
        self._observed = msgspec.json.Decoder(Observed)
        self._shared_status = lru_cache(maxsize=_SHAPES)(_read_status)
        self._shape = lru_cache(maxsize=_SHAPES)(_read_shape)
        self._is_frame = lru_cache(maxsize=_SMALL)(_is_frame)
        self._are_fields = lru_cache(maxsize=_SHAPES)(_are_fields)
        self._shared_metadata = lru_cache(maxsize=_SHAPES)(_read_metadata)

    def read(self, text: bytes, common: Raw) -> ReadPod | None:
        """The pod, which is right in every respect; None for one of which that is not certain, and for what is none.

        `common` is what the List says of its items.
        """
        alike = self._stencils.of(text, common)
        found = alike.read(text)
        if found is not None:
            return found
        pod = self._read_closely(text, common)
        if pod is None:
            return None
        alike.learn(text, pod)
        return ReadPod(pod, text)

    def _read_closely(self, text: bytes, common: Raw) -> Pod | None:
        try:
            item = self._item.decode(text)
            api_version = common.get("apiVersion") if item.api_version is None else item.api_version
            kind = common.get("kind") if item.kind is None else item.kind
            if (api_version, kind) != ("v1", "Pod"):
                return None
            return self._read(text, item)
        except (UncertainError, InputError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None

    def _read(self, text: bytes, item: Parts) -> Pod | None:
        parts = [(name, getattr(item, name)) for name in _PARTS if len(getattr(item, name))]
        if not self._is_frame(_without(text, parts)):
            return None
        own_names = self._own_names.decode(item.spec)
        volume = next((named.name for named in own_names.volumes if named.name.startswith(ACCESS)), "")
        observed = self._observed.decode(item.status) if len(item.status) else Observed()
        metadata = self._metadata(item.metadata, observed.addresses, bool(own_names.node_name))
        spec = self._spec(bytes(item.spec), own_names, volume, metadata)
        status = self._status(bytes(item.status), observed, volume) if len(item.status) else PodStatus()
        return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec, status=status)

    def _metadata(self, text: Text, addresses: Iterable[str], has_node: bool) -> ObjectMeta:
        """The metadata of a pod with those addresses. Raises UncertainError."""
        managers = [
            managed_field.fields
            for managed_field in self._managed.decode(text).managed_fields
            if len(managed_field.fields)
        ]
        for fields in managers:
            written = bytes(fields)
            for address in addresses:
                # They stand there as keys: two keys that are the same stay the same.
                written = written.replace(address.encode(), _ANY.encode())
            if not self._are_fields(written):
                raise UncertainError
        raw = decode(_without(bytes(text), [("fieldsV1", fields) for fields in managers]))
        if not isinstance(raw, dict):
            raise UncertainError
        raw.pop("managedFields", None)
        created = raw.pop("creationTimestamp", None)
        own = {name: raw.pop(name, "") for name in _OWN_METADATA}
        if not own["name"] or {*map(type, own.values())} != {str} or type(created) not in (str, NoneType):
            raise UncertainError
        check(subdomain_problem(own["name"]), "")
        check_time(created, "")
        shared = self._shared_metadata(msgspec.json.encode(raw), not own["uid"], has_node)
        if shared is None:
            raise UncertainError
        return replace(
            shared,
            name=own["name"],
            uid=own["uid"],
            resource_version=own["resourceVersion"],
            creation_timestamp=created,
        )

    def _spec(self, text: bytes, own_names: OwnNames, volume: str, metadata: ObjectMeta) -> PodSpec:
        """The specification of a pod with such metadata. Raises UncertainError."""
        for name, problem in _OWN_NAMES:
            own = own_names.node_name if name == "nodeName" else own_names.hostname
            if own:
                check(problem(own), "")
                text = _with_any(text, name, own)
        if volume:
            if label_name_problem(volume) is not None or _ANY_ACCESS in text:
                raise UncertainError
            text = text.replace(f'"{volume}"'.encode(), _ANY_ACCESS)
        shape = self._shape(text, msgspec.json.encode(metadata.labels), not metadata.uid)
        if shape is None:
            raise UncertainError
        return named(shape.spec, own_names.node_name, shape.own_volumes, volume)

    def _status(self, text: bytes, observed: Observed, volume: str) -> PodStatus:
        """What was observed of a pod. Raises UncertainError."""
        if _ANY_TIME in text:
            raise UncertainError
        for time in observed.times:
            text = text.replace(f'"{time}"'.encode(), _ANY_TIME)
        for own in (*observed.addresses, *observed.container_ids, *([volume] if volume else [])):
            text = text.replace(f'"{own}"'.encode(), _ANY_TEXT)
        shared = self._shared_status(text)
        if shared is None:
            raise UncertainError
        return shared if observed.start_time is None else replace(shared, start_time=observed.start_time)


def _without(text: bytes, parts: Iterable[tuple[str, msgspec.Raw]]) -> bytes:
    """The object without the values of these fields, which follow one another. Raises UncertainError."""
    kept: list[bytes] = []
    place = 0
    for name, part in parts:
        key, value = f'"{name}"'.encode(), bytes(part)
        at = text.find(key, place)
        colon = None if at < 0 else _COLON.match(text, at + len(key))
        if colon is None or not text.startswith(value, colon.end()):
            raise UncertainError
        kept += (text[place : colon.end()], b"0")
        place = colon.end() + len(value)
    kept.append(text[place:])
    return b"".join(kept)


def _is_frame(frame: bytes) -> bool:
    """Whether nothing else is in a pod whose parts are left out, and nothing twice."""
    try:
        found = decode(frame)
    except UncertainError:
        return False
    return isinstance(found, dict) and {"metadata": 0, "spec": 0}.items() <= found.items()


def _are_fields(text: bytes) -> bool:
    """Whether it is an object, in which nothing is given twice."""
    try:
        return isinstance(decode_with_nulls(text)[0], dict)
    except UncertainError:
        return False


def _read_metadata(text: bytes, is_new: bool, has_node: bool) -> ObjectMeta | None:
    """The metadata that pods have in common, of any name; None where there is something to say about them."""
    raw = {**msgspec.json.decode(text), "name": _ANY, **({} if is_new else {"uid": _ANY})}
    if not raw.get("namespace") or not fits(raw, Object("ObjectMeta")):
        return None
    findings: list[Finding] = []
    place = Place(raw, findings)
    find_in_metadata(place, namespaced=True)
    check_pod_annotations(place, Place({"nodeName": _ANY if has_node else ""}, findings))
    try:
        metadata = read(raw, ObjectMeta)
        check_metadata(Pod(metadata=metadata), namespaced=True)
    except InputError:
        return None
    return None if findings else metadata


def _read_status(text: bytes) -> PodStatus | None:
    """What was observed of pods at whatever times; None where there is something to say about it."""
    try:
        raw, _ = decode_with_nulls(text)
        if not fits_with_nulls(raw, Object("PodStatus")):
            return None
        status = read(raw, PodStatus)
        check_pod_status(status)
    except (UncertainError, InputError):
        return None
    rest = msgspec.json.encode(replace(status, start_time=None))
    return None if _ANY_TIME in rest or _ANY_TEXT in rest else status


def _with_any(text: bytes, name: str, own: str) -> bytes:
    """The specification with any name in place of the pod's own; as it is where that cannot be told for certain."""
    key = f'"{name}"'.encode()
    at = text.find(key)
    colon = None if at < 0 else _COLON.match(text, at + len(key))
    value = f'"{own}"'.encode()
    if colon is None or not text.startswith(value, colon.end()) or text.find(key, colon.end()) >= 0:
        return text
    return b"".join((text[: colon.end()], f'"{_ANY}"'.encode(), text[colon.end() + len(value) :]))


def _read_shape(text: bytes, labels: bytes, is_new: bool) -> _Shape | None:
    """What pods of a specification and labels share; None where there is something to say about them."""
    try:
        raw = decode(text)
        if not fits(raw, Object("PodSpec")):
            return None
        spec = read(raw, PodSpec)
        check_pod_spec(spec, ".spec")
    except (UncertainError, InputError):
        return None
    if any("ephemeral" in volume for volume in raw.get("volumes", ())) or not raw.get("containers"):
        return None
    findings: list[Finding] = []
    owner = pods.Owner(_ANY, msgspec.json.decode(labels), is_new=is_new)
    pods.check_pod_spec(Place(raw, findings), owner)
    own_volumes = own_volumes_of(spec, ACCESS + _ANY)
    unnamed = tuple(
        replace(volume, name="") if place in own_volumes else volume for place, volume in enumerate(spec.volumes)
    )
    is_elsewhere = _ANY_ACCESS in msgspec.json.encode(replace(spec, volumes=unnamed))
    if findings or is_elsewhere or any(slips(Pod(spec=spec))):
        return None
    return _Shape(spec, own_volumes)
