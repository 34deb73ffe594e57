"""A fast reader for the pods of a dump, most of which belong to few classes.

A pod is split into metadata, spec and status. In the text of each part, markers replace the pod-specific values: its
name, uid, node, addresses, times and so on. Parts that are then equal form a class, regardless of the pods' owners. A
class is read and validated once, provided that all markers are in positions where the value does not affect validation.
The markers also are the gaps of a stencil, which reads further pods of the same owner in a fraction of the time. A pod
with any finding is left to `podium.api.objects`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import replace

from podium.api.checks import check
from podium.api.errors import InputError
from podium.api.input.dumped_pod_parts import (
    ACCESS,
    ADDRESS,
    CONTAINER_ID,
    IDENTIFIER,
    Observed,
    OwnMetadata,
    OwnNames,
    Parts,
    bound_to,
    named,
    own_volumes_of,
)
from podium.api.input.exact_json import UncertainError, decode, decode_with_nulls
from podium.api.input.pod_gaps import FORMS, JSON, Gap, is_time
from podium.api.input.pod_stencil import NamedIn, ReadPod
from podium.api.input.pod_stencils import OwnerStencils, PodStencils
from podium.api.meta import ObjectMeta, Raw
from podium.api.names import label_name_problem, label_value_problem, subdomain_problem
from podium.api.pod import Pod, PodSpec, PodStatus
from podium.api.reading import read
from podium.api.schemas.schema import Object
from podium.api.schemas.slips import slips
from podium.api.schemas.structure import fits, fits_with_nulls
from podium.api.validation import pods
from podium.api.validation.findings import Findings, Place
from podium.api.validation.objects import check_finalizers, check_metadata, check_usable, refuse_metadata

_SORTS = 2_048
_FRAMES = 256
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_PARTS = ("metadata", "spec", "status")

# The markers of pod-specific values. Each is valid wherever such a value is expected, and occurs in no pod.
_MARK = b"podium-mark-"
_MARK_TEXT = _MARK.decode()
_NAME, _UID, _VERSION, _NODE = (_MARK + what for what in (b"name", b"uid", b"version", b"node"))
_VOLUME = ACCESS.encode() + _MARK + b"volume"
_INDEX = _MARK + b"index"
_FIXED = (_NAME, _UID, _VERSION, _NODE, _VOLUME, _INDEX)
_NAME_LABEL, _INDEX_LABEL = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_OWN_INDEX = re.compile(rb'"%b"[ \t\r\n]*:[ \t\r\n]*"([0-9]{1,9})"' % _INDEX_LABEL.encode())
# Numbered, since there may be several.
_ADDRESS, _CONTAINER = _MARK + b"address-", _MARK + b"container-"
_ANY_TIME = "2000-01-01T00:00:00Z"
_TIME_MARK = f'"{_ANY_TIME}"'.encode()
_TIME = re.compile(rb'"([12][0-9]{3}-[0-9]{2}-[0-9]{2}T[-+.:0-9]+Z?)"')
_MARKS = re.compile(rb"%b[a-z]+(?:-[0-9]+)?|%b|%b" % (_MARK, _VOLUME, _ANY_TIME.encode()))
_WHAT = {
    **{_NAME: "name", _UID: "uid", _VERSION: "version", _NODE: "node", _VOLUME: "volume"},
    **{_ADDRESS: "address", _CONTAINER: "container", _INDEX: "index"},
}
_OWNED_ADDRESS = b'"k:{\\"ip\\":\\"'
_KEY = re.compile(rb'"([A-Za-z]+)"[ \t\r\n]*:[ \t\r\n]*"\Z')
_KEY_BYTES = 128
_TIME_KEYS = {b"creationTimestamp": "creation", b"startTime": "start"}
_LABEL_KEYS = b"atchLabelKeys"
# Separators that no value contains: between the values of one kind, and between the kinds.
_BETWEEN, _APART = " ", "|"
_NOT_OBSERVED = Observed()

# The valid positions of each marker: an object lists those of its fields, a list that of each item.
_FIELDS = object()
_TIME_PLACE = _ANY_TIME.encode()
_MOUNTS = {"volumeMounts": [{"name": _VOLUME}]}
_ENDED = {"terminated": {"startedAt": _TIME_PLACE, "finishedAt": _TIME_PLACE, "containerID": _CONTAINER}}
_STATE = {"running": {"startedAt": _TIME_PLACE}, **_ENDED}
_STATUSES = [{"containerID": _CONTAINER, "state": _STATE, "lastState": _ENDED, **_MOUNTS}]
_NODE_SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"values": [_NODE]}]}]}
_METADATA_PLACES = {
    "name": _NAME,
    "uid": _UID,
    "resourceVersion": _VERSION,
    "creationTimestamp": _TIME_PLACE,
    "managedFields": [{"time": _TIME_PLACE, "fieldsV1": _FIELDS}],
    "labels": {_NAME_LABEL: _NAME, _INDEX_LABEL: _INDEX},
}
_SPEC_PLACES = {
    "nodeName": _NODE,
    "hostname": _NAME,
    # A pod of a DaemonSet has its node's name in its affinity.
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR}},
    "containers": [_MOUNTS],
    "initContainers": [_MOUNTS],
    "ephemeralContainers": [_MOUNTS],
    "volumes": [{"name": _VOLUME}],
}
_STATUS_PLACES = {
    "startTime": _TIME_PLACE,
    "conditions": [{"lastTransitionTime": _TIME_PLACE}],
    "containerStatuses": _STATUSES,
    "initContainerStatuses": _STATUSES,
    "ephemeralContainerStatuses": _STATUSES,
    "hostIP": _ADDRESS,
    "hostIPs": [{"ip": _ADDRESS}],
    "podIP": _ADDRESS,
    "podIPs": [{"ip": _ADDRESS}],
}


@dataclass(frozen=True, slots=True)
class _Metadata:
    """The metadata of a class of pods, and whether names and indexes are labels, as in a StatefulSet.

    `has_others` says that managed fields name further addresses: a pod with one of these would have that key twice.
    """

    text: bytes
    metadata: ObjectMeta
    labels: bytes
    is_named: bool
    is_indexed: bool
    has_others: bool

    @property
    def allows_stencil(self) -> bool:
        """Whether the content of the gaps is enough to read other pods of the class."""
        return not self.has_others

    @property
    def own_label_types(self) -> tuple[tuple[str, str], ...]:
        """The labels with pod-specific values, each with the type of its value."""
        return ((_NAME_LABEL, "name"),) * self.is_named + ((_INDEX_LABEL, "index"),) * self.is_indexed

    def own_labels(self, name: str, index: str) -> dict[str, str]:
        """Return the pod-specific labels of a pod."""
        labels = dict(self.metadata.labels)
        if self.is_named:
            labels[_NAME_LABEL] = name
        if self.is_indexed:
            labels[_INDEX_LABEL] = index
        return labels


@dataclass(frozen=True, slots=True)
class _Spec:
    """The spec of a class of pods.

    `own_volumes` are the indexes of the volumes with pod-specific names. `is_bound` says that the affinity names the
    node, `has_hostname` that the hostname is the pod's name, `has_others` that further volumes could have the name that
    another pod uses.
    """

    text: bytes
    spec: PodSpec
    own_volumes: tuple[int, ...]
    is_bound: bool
    has_hostname: bool
    has_others: bool

    @property
    def allows_stencil(self) -> bool:
        """Whether the content of the gaps is enough to read other pods of the class."""
        return not self.has_others


@dataclass(frozen=True, slots=True)
class _Status:
    """The status of a class of pods."""

    text: bytes
    status: PodStatus


_NO_STATUS = _Status(b"", PodStatus())


@dataclass(slots=True)
class _Values:
    """The values that the markers replace in the text of a pod; empty for absent ones."""

    name: bytes
    uid: bytes
    version: bytes
    node: str
    volume: str
    addresses: list[bytes]
    containers: list[bytes]
    index: str = ""

    @classmethod
    def of(cls, own: OwnMetadata, names: OwnNames, observed: Observed) -> Self:
        """Return the values of a pod. Raises InputError for invalid names."""
        volume = next((volume.name for volume in names.volumes if volume.name.startswith(ACCESS)), "")
        if volume:
            check(label_name_problem(volume), "")
        if names.node_name:
            check(subdomain_problem(names.node_name), "")
        fixed = own.name.encode(), own.uid.encode(), own.resource_version.encode()
        return cls(*fixed, names.node_name, volume, observed.addresses, observed.container_ids)

    def packed(self, times: Iterable[Iterable[bytes]]) -> str:
        """Return the values in the form of `SharedText`, with the times of each part."""
        texts = self.node.encode(), self.volume.encode(), self.index.encode()
        fixed = self.name, self.uid, self.version, *texts
        kinds = (fixed, self.addresses, self.containers, *times)
        return _APART.encode().join(map(_BETWEEN.encode().join, kinds)).decode()


@dataclass(frozen=True, slots=True)
class SharedText:
    """The text of a pod in terms of its classes; `bytes` reconstructs it.

    `values` holds the values of the markers in order, and the times of each part.
    """

    frame: tuple[bytes, ...]
    parts: tuple[bytes, ...]
    values: str

    def __bytes__(self) -> bytes:
        kinds = self.values.encode().split(_APART.encode())
        fixed, addresses, containers, *times = (values.split(_BETWEEN.encode()) for values in kinds)
        marked = [*zip(_FIXED, fixed, strict=True), *_numbered(_ADDRESS, addresses), *_numbered(_CONTAINER, containers)]
        parts = [_filled(part, marked, some) for part, some in zip(self.parts, times, strict=True)]
        return b"".join(piece for pair in zip(self.frame, (*parts, b""), strict=True) for piece in pair)


class _Own(NamedTuple):
    """The pod-specific values that a reading has; None for times that the pod does not have."""

    name: str
    uid: str
    version: str
    created: str | None
    node: str
    volume: str
    pod_index: str
    started: str | None


class DumpedPods:
    """A reader of dumped pods that caches the classes it has found."""

    def __init__(self) -> None:
        self._stencils = PodStencils(JSON)
        self._item = msgspec.json.Decoder(Parts)
        self._own_metadata = msgspec.json.Decoder(OwnMetadata)
        self._own_names = msgspec.json.Decoder(OwnNames)
        self._observed = msgspec.json.Decoder(Observed)
        self._frame = lru_cache(maxsize=_FRAMES)(_read_frame)
        self._metadata_of = lru_cache(maxsize=_SORTS)(_read_metadata)
        self._spec_of = lru_cache(maxsize=_SORTS)(_read_spec)
        self._status_of = lru_cache(maxsize=_SORTS)(_read_status)
        # Interned strings, however many pods use them.
        self._kept: dict[str, str] = {}

    def read(self, text: bytes, common: Raw) -> ReadPod | None:
        """Return the pod if it is valid without any finding; None if that is uncertain, and for other objects.

        `common` is what the List states for its items.
        """
        alike = self._stencils.of(text, common)
        found = alike.read(text)
        if found is not None:
            return found
        try:
            item = self._item.decode(text)
            api_version = common.get("apiVersion") if item.api_version is None else item.api_version
            kind = common.get("kind") if item.kind is None else item.kind
            if (api_version, kind) != ("v1", "Pod") or _MARK in text or _TIME_MARK in text:
                return None
            return self._read(text, item, alike)
        except (UncertainError, InputError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None

    def shared_text(self, text: bytes) -> SharedText | None:
        """Return the text of a valid pod in terms of its classes; None for any other text."""
        try:
            item = self._item.decode(text)
            if (item.api_version, item.kind) != ("v1", "Pod") or _MARK in text or _TIME_MARK in text:
                return None
            found = self._read(text, item, None)
        except (UncertainError, InputError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        return found.text if found is not None and isinstance(found.text, SharedText) else None

    def form(self, frame: tuple[bytes, ...], parts: tuple[bytes, ...]) -> PodForm | None:
        """Return the form of pods with these shared parts; None if some of them may have findings."""
        try:
            return self._form(frame, parts)
        except (UncertainError, InputError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None

    def _form(self, frame: tuple[bytes, ...], parts: tuple[bytes, ...]) -> PodForm | None:
        if not 2 <= len(parts) <= len(_PARTS) or len(frame) != len(parts) + 1 or self._frame(frame) is None:
            return None
        metadata, spec = self._metadata_of(parts[0], _NODE in parts[1]), None
        # Label keys refer to labels of each pod; such pods are read one by one.
        if _LABEL_KEYS not in parts[1]:
            spec = self._spec_of(parts[1], b"", _UID not in parts[0])
        status = self._status_of(parts[2]) if len(parts) > 2 else _NO_STATUS
        if metadata is None or spec is None or status is None:
            return None
        if metadata.has_others or spec.has_others or metadata.metadata.name != _NAME.decode():
            return None
        # The node is in the affinity only if the pod is on it.
        if spec.spec.node_name != (_NODE.decode() if _NODE in parts[1] else ""):
            return None
        return PodForm(frame, parts, (metadata, spec, status), self._pod)

    def _read(self, text: bytes, item: Parts, alike: OwnerStencils | None) -> ReadPod | None:
        parts = [(name, bytes(part)) for name in _PARTS if len(part := getattr(item, name))]
        around = _around(text, parts)
        frame = self._frame(around)
        if frame is None:
            return None
        own, names = self._own_metadata.decode(parts[0][1]), self._own_names.decode(parts[1][1])
        observed = self._observed.decode(parts[2][1]) if len(parts) > 2 else _NOT_OBSERVED
        values = _Values.of(own, names, observed)
        found = [
            _marked_metadata(parts[0][1], values, own.times),
            (_marked_spec(parts[1][1], values, names.hostname), []),
        ]
        if len(parts) > 2:
            found.append(_marked_status(parts[2][1], values, observed.times))
        metadata = self._metadata_of(found[0][0], bool(names.node_name))
        spec = None if metadata is None else self._spec(metadata, found[1][0], own, values)
        status = self._status_of(found[2][0]) if len(found) > 2 else _NO_STATUS
        if metadata is None or spec is None or status is None:
            return None
        pod = self._pod(metadata, spec, status.status, _own_values(own, observed, values))
        times = [times for _, times in found]
        if alike is not None and metadata.allows_stencil and spec.allows_stencil:
            marked = b"".join(
                piece for pair in zip(frame, (*(part for part, _ in found), b""), strict=True) for piece in pair
            )
            named_in = NamedIn(metadata.own_label_types, spec.has_hostname)
            alike.learn(text, pod, lambda: _gaps(marked, values, chain.from_iterable(times)), named_in)
        texts = (metadata.text, spec.text, status.text)[: len(found)]
        return ReadPod(pod, SharedText(frame, texts, values.packed(times)))

    def _spec(self, metadata: _Metadata, text: bytes, own: OwnMetadata, values: _Values) -> _Spec | None:
        """Return the class of a spec text for pods with such metadata; None if it is uncertain."""
        if metadata.is_named and label_value_problem(own.name) is not None:
            return None
        labels = b""
        if _LABEL_KEYS in text:
            labels = metadata.labels
            if metadata.is_named or metadata.is_indexed:
                labels = msgspec.json.encode(metadata.own_labels(own.name, values.index))
        spec = self._spec_of(text, labels, not own.uid)
        is_wrong = spec is not None and spec.has_hostname and label_name_problem(own.name) is not None
        return None if is_wrong else spec

    def _pod(self, shared: _Metadata, of_spec: _Spec, status: PodStatus, own: _Own) -> Pod:
        """Return the pod of these classes with its specific values."""
        kept = self._kept
        created, started = own.created, own.started
        metadata = replace(
            shared.metadata,
            name=own.name,
            uid=own.uid,
            resource_version=own.version,
            creation_timestamp=None if created is None else kept.setdefault(created, created),
        )
        if shared.is_named or shared.is_indexed:
            metadata = replace(metadata, labels=shared.own_labels(own.name, own.pod_index))
        node = kept.setdefault(own.node, own.node)
        spec = named(of_spec.spec, node, of_spec.own_volumes, own.volume)
        if of_spec.is_bound and spec.affinity is not None:
            spec = replace(spec, affinity=bound_to(spec.affinity, _NODE.decode(), node))
        if started is not None:
            status = replace(status, start_time=kept.setdefault(started, started))
        return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec, status=status)


def _own_values(own: OwnMetadata, observed: Observed, values: _Values) -> _Own:
    return _Own(
        own.name,
        own.uid,
        own.resource_version,
        own.creation_timestamp,
        values.node,
        values.volume,
        values.index,
        observed.start_time,
    )


class PodForm:
    """A reader of pods that share their parts, by the values of each as a `SharedText` has them."""

    __slots__ = ("_created", "_metadata", "_pattern", "_pod", "_spec", "_started", "_status", "frame", "parts")

    def __init__(
        self,
        frame: tuple[bytes, ...],
        parts: tuple[bytes, ...],
        shared: tuple[_Metadata, _Spec, _Status],
        pod: Callable[[_Metadata, _Spec, PodStatus, _Own], Pod],
    ) -> None:
        self.frame, self.parts, self._pod = frame, parts, pod
        self._metadata, self._spec, self._status = shared
        text = b"".join(parts)
        own = tuple(mark in text for mark in _FIXED)
        numbers = tuple(len({*re.findall(rb"%b[0-9]+" % mark, text)}) for mark in (_ADDRESS, _CONTAINER))
        self._pattern = _values_pattern(own, numbers, tuple(part.count(_TIME_MARK) for part in parts))
        self._created = _place_of_time(parts[0], _creation_in)
        self._started = _place_of_time(b"".join(parts[2:]), _start_in)

    def read(self, values: str) -> ReadPod | None:
        """Return the pod with these values; None if they are unusual."""
        found = self._pattern.fullmatch(values)
        if found is None or _MARK_TEXT in values or _ANY_TIME in values:
            return None
        name, uid, version, node, volume, index, addresses, *parts_times = found.groups()
        addresses = addresses.split(_BETWEEN)
        if len({*addresses}) < len(addresses) or not self._allows(name):
            return None
        times = [times.split(_BETWEEN) for times in parts_times]
        if not all(is_time(time.encode()) for part in times for time in part if time):
            return None
        created = self._metadata.metadata.creation_timestamp if self._created is None else times[0][self._created]
        started = None if self._started is None else times[2][self._started]
        own = _Own(name, uid, version, created, node, volume, index, started)
        pod = self._pod(self._metadata, self._spec, self._status.status, own)
        return ReadPod(pod, SharedText(self.frame, self.parts, values))

    def _allows(self, name: str) -> bool:
        """Return whether the name is valid everywhere it occurs."""
        if self._metadata.is_named and label_value_problem(name) is not None:
            return False
        return not self._spec.has_hostname or label_name_problem(name) is None


@lru_cache(maxsize=_FRAMES)
def _values_pattern(own: tuple[bool, ...], numbers: tuple[int, ...], times: tuple[int, ...]) -> re.Pattern[str]:
    """Return the pattern of the values of pods with these fixed values, numbers of addresses and ids, and times."""
    forms = (FORMS["name"], IDENTIFIER, IDENTIFIER, FORMS["node"], FORMS["volume"], "[0-9]{1,9}")
    fixed = _BETWEEN.join(f"({form if is_own else ''})" for form, is_own in zip(forms, own, strict=True))
    addresses, containers = (
        _BETWEEN.join([form] * number) for form, number in zip((ADDRESS, CONTAINER_ID), numbers, strict=True)
    )
    of_parts = [_BETWEEN.join(["[-+.:TZ0-9]+"] * number) for number in times]
    kinds = (fixed, f"({addresses})", containers, *(f"({part})" for part in of_parts))
    return re.compile(re.escape(_APART).join(kinds), re.ASCII)


def _creation_in(metadata: bytes) -> str | None:
    return msgspec.json.decode(metadata, type=OwnMetadata).creation_timestamp


def _start_in(status: bytes) -> str | None:
    return msgspec.json.decode(status, type=Observed).start_time


def _place_of_time(part: bytes, time_in: Callable[[bytes], str | None]) -> int | None:
    """Return which of the times of a part is the one that `time_in` finds in it; None if it is none of these."""
    first, *pieces = part.split(_TIME_MARK)
    if not pieces:
        return None
    times = [f"2000-01-01T00:00:00.{number:09}Z" for number in range(len(pieces))]
    filled = b"".join((first, *(b'"%b"%b' % (time.encode(), rest) for time, rest in zip(times, pieces, strict=True))))
    found = time_in(filled)
    return times.index(found) if found in times else None


def _marked_metadata(text: bytes, values: _Values, own_times: set[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the metadata with markers, and its times."""
    text, times = _without_times(text, own_times)
    text = _with_mark(_with_mark(_with_mark(text, values.name, _NAME), values.uid, _UID), values.version, _VERSION)
    for number, address in enumerate(values.addresses):
        # It occurs there within a key of managed fields.
        text = text.replace(b'\\"%b\\"' % address, b'\\"%b%d\\"' % (_ADDRESS, number))
    if b"/pod-index" in text:
        index = _OWN_INDEX.search(text)
        if index is not None:
            values.index = index[1].decode()
            text = b"".join((text[: index.start(1)], _INDEX, text[index.end(1) :]))
    return text, times


def _marked_spec(text: bytes, values: _Values, hostname: str) -> bytes:
    """Return the spec with markers."""
    text = _with_mark(_with_mark(text, values.node.encode(), _NODE), values.volume.encode(), _VOLUME)
    return _with_mark(text, values.name, _NAME) if hostname.encode() == values.name else text


def _marked_status(text: bytes, values: _Values, own_times: set[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the status with markers, and its times."""
    text, times = _without_times(text, own_times)
    for number, address in enumerate(values.addresses):
        text = _with_mark(text, address, b"%b%d" % (_ADDRESS, number))
    for number, container in enumerate(values.containers):
        text = _with_mark(text, container, b"%b%d" % (_CONTAINER, number))
    return _with_mark(text, values.volume.encode(), _VOLUME), times


def _gaps(marked: bytes, values: _Values, times: Iterable[bytes]) -> list[Gap]:
    """Return the positions of the marked values in a pod's text, in order."""
    of_mark = {
        **dict(_numbered(_ADDRESS, values.addresses)),
        **dict(_numbered(_CONTAINER, values.containers)),
        **dict(
            zip(
                _FIXED,
                (
                    *(values.name, values.uid, values.version),
                    *(values.node.encode(), values.volume.encode(), values.index.encode()),
                ),
                strict=True,
            )
        ),
    }
    waiting = iter(times)
    gaps: list[Gap] = []
    shift = 0
    for found in _MARKS.finditer(marked):
        mark = found[0]
        is_time = mark == _ANY_TIME.encode()
        value = next(waiting) if is_time else of_mark[mark]
        start = found.start() + shift
        shift += len(value) - len(mark)
        what = _WHAT[mark.rstrip(b"0123456789")] if not is_time else _time_at(marked, found.start())
        gaps.append(
            Gap(
                what,
                value.decode(),
                start,
                start + len(value),
                marked[found.start() - 2 : found.start() - 1] == b"\\",
                False,
            )
        )
    return gaps


def _time_at(marked: bytes, start: int) -> str:
    """Return which of a pod's times is at a position."""
    key = _KEY.search(marked, max(0, start - _KEY_BYTES), start)
    return "time" if key is None else _TIME_KEYS.get(key[1], "time")


def _with_mark(text: bytes, value: bytes, mark: bytes) -> bytes:
    """Return the text with the marker in place of each string that equals the value."""
    return text.replace(b'"%b"' % value, b'"%b"' % mark) if value else text


def _without_times(text: bytes, own: set[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the text with one marker for all these times, and the time at each position."""
    pieces = _TIME.split(text)
    found = pieces[1::2]
    if own.issuperset(found):
        return _TIME_MARK.join(pieces[::2]), found
    parts = [pieces[0]]
    for time, rest in zip(found, pieces[2::2], strict=True):
        parts += (_TIME_MARK if time in own else b'"%b"' % time, rest)
    return b"".join(parts), [time for time in found if time in own]


def _numbered(mark: bytes, values: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    return [(b"%b%d" % (mark, number), value) for number, value in enumerate(values)]


def _filled(part: bytes, marked: Iterable[tuple[bytes, bytes]], times: Iterable[bytes]) -> bytes:
    """Return a part with the values and times in place of the markers."""
    first, *pieces = part.split(_TIME_MARK)
    text = b"".join((first, *(b'"%b"%b' % pair for pair in zip(times, pieces, strict=False))))
    # Descending order: a longer marker may have a higher number.
    for mark, value in sorted(marked, reverse=True):
        text = text.replace(mark, value)
    return text


def _around(text: bytes, parts: Iterable[tuple[str, bytes]]) -> tuple[bytes, ...]:
    """Return the pieces of text around the values of these consecutive fields. Raises UncertainError."""
    kept: list[bytes] = []
    place = 0
    for name, value in parts:
        key = f'"{name}"'.encode()
        at = text.find(key, place)
        colon = None if at < 0 else _COLON.match(text, at + len(key))
        if colon is None or not text.startswith(value, colon.end()):
            raise UncertainError
        kept.append(text[place : colon.end()])
        place = colon.end() + len(value)
    return (*kept, text[place:])


def _read_frame(pieces: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """Return the pieces if a pod without its parts contains nothing else and nothing twice; otherwise None."""
    try:
        found = decode(b"0".join(pieces))
    except UncertainError:
        return None
    is_pod = isinstance(found, dict) and {"metadata": 0, "spec": 0}.items() <= found.items()
    return pieces if is_pod else None


def _read_metadata(text: bytes, has_node: bool) -> _Metadata | None:
    """Return the class of the metadata; None if there are findings."""
    try:
        raw = decode(text)
        if not isinstance(raw, dict) or not _stand_right(raw, _METADATA_PLACES) or not raw.get("namespace"):
            return None
        if not fits(raw, Object("ObjectMeta")):
            return None
        metadata = read(raw, ObjectMeta)
        refuse_metadata(Pod(metadata=metadata), namespaced=True)
    except (UncertainError, InputError):
        return None
    if any(slips(Pod(metadata=metadata))):
        return None
    findings = Findings()
    place = Place(raw, findings)
    check_metadata(place, namespaced=True)
    check_finalizers(place)
    pods.check_pod_annotations(place, Place({"nodeName": "any"} if has_node else {}, findings))
    if findings:
        return None
    labels = metadata.labels
    is_named, is_indexed = labels.get(_NAME_LABEL) == _NAME.decode(), labels.get(_INDEX_LABEL) == _INDEX.decode()
    owned = msgspec.json.encode(raw.get("managedFields"))
    has_others = owned.count(_OWNED_ADDRESS) != owned.count(_OWNED_ADDRESS + _ADDRESS)
    return _Metadata(_compact(text), metadata, msgspec.json.encode(labels), is_named, is_indexed, has_others)


def _read_spec(text: bytes, labels: bytes, is_new: bool) -> _Spec | None:
    """Return the class of a spec; None if there are findings.

    `labels` are the pods' labels if the spec refers to their keys, otherwise empty.
    """
    try:
        raw = decode(text)
        if not fits(raw, Object("PodSpec")) or not _stand_right(raw, _SPEC_PLACES):
            return None
        spec = read(raw, PodSpec)
        check_usable(Place(raw, Findings()), "PodSpec")
    except (UncertainError, InputError):
        return None
    if any("ephemeral" in volume for volume in raw.get("volumes", ())) or not raw.get("containers"):
        return None
    if not labels and _LABEL_KEYS in msgspec.json.encode(raw):
        return None
    findings = Findings()
    context = pods.PodContext("any", msgspec.json.decode(labels or b"{}"), is_new=is_new)
    pods.check_pod_spec(Place(raw, findings), context)
    own_volumes = own_volumes_of(spec, _VOLUME.decode())
    shared = named(spec, "", own_volumes, "")
    is_bound = shared.affinity is not None and _NODE in msgspec.json.encode(shared.affinity)
    if is_bound and shared.affinity is not None:
        shared = replace(shared, affinity=bound_to(shared.affinity, _NODE.decode(), ""))
    if findings or _MARK in msgspec.json.encode(shared) or any(slips(Pod(spec=spec))):
        return None
    written = msgspec.json.encode(raw)
    has_others = written.count(f'"{ACCESS}'.encode()) != written.count(b'"%b"' % _VOLUME)
    return _Spec(_compact(text), spec, own_volumes, is_bound, raw.get("hostname") == _NAME.decode(), has_others)


def _read_status(text: bytes) -> _Status | None:
    """Return the class of a status, independent of its times; None if there are findings."""
    try:
        raw, _ = decode_with_nulls(text)
        if not fits_with_nulls(raw, Object("PodStatus")) or not _stand_right(raw, _STATUS_PLACES):
            return None
        status = read(raw, PodStatus)
        check_usable(Place(raw, Findings()), "PodStatus")
    except (UncertainError, InputError):
        return None
    rest = msgspec.json.encode(replace(status, start_time=None))
    return None if _TIME_MARK in rest or _MARK in rest else _Status(_compact(text), status)


def _compact(text: bytes) -> bytes:
    return msgspec.json.format(text, indent=-1)


def _stand_right(value: Any, places: Any) -> bool:
    """Return whether each marker in a value is a whole string in one of its valid positions."""
    match value:
        case str():
            if _MARK_TEXT not in value and _ANY_TIME not in value:
                return True
            return isinstance(places, bytes) and value.rstrip("0123456789").encode() == places.rstrip(b"0123456789")
        case list():
            return all(_stand_right(item, places[0] if isinstance(places, list) else None) for item in value)
        case dict():
            if places is _FIELDS:
                return _are_addresses(msgspec.json.encode(value))
            within = places if isinstance(places, dict) else {}
            return all(_stand_right(key, None) and _stand_right(item, within.get(key)) for key, item in value.items())
    return True


def _are_addresses(fields: bytes) -> bool:
    """Return whether all markers in managed fields replace addresses in keys."""
    return fields.count(_MARK) == fields.count(b'\\"%b' % _ADDRESS) and _ANY_TIME.encode() not in fields
