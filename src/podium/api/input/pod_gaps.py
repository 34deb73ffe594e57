"""The positions of pod-specific values in the text of a dumped pod."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input.dumped_pod_parts import ACCESS, ADDRESS, CONTAINER_ID
from podium.api.input.yaml import parse_part
from podium.api.names import LABEL_NAME, SUBDOMAIN
from podium.api.pod import Pod, PodSpec
from podium.api.times import PLAIN_TIME

_MARK = "podium.gap."
_MARKED = re.compile(re.escape(_MARK) + r"([0-9]+)")
_OWNED = b'"k:{\\"ip\\":\\"'
_MARKED_OWNED = re.compile(re.escape(_OWNED) + re.escape(_MARK.encode()) + rb'([0-9]+)\\"\}":')
_PLAIN_TEXT = r"[-_.:/A-Za-z0-9]+"
_TIME_TEXT = r"[-+.:TZ0-9]+"
_TIME = re.compile(PLAIN_TIME.encode())
_CACHE = 16_384

_MOUNTS = {"volumeMounts": [{"name": "volume"}]}
_STATUSES = [{"containerID": "container", "state": {"running": {"startedAt": "time"}}, **_MOUNTS}]
_NODE_SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"values": ["node"]}]}]}
_OWN: dict[str, Any] = {
    "metadata": {
        "name": "name",
        "uid": "uid",
        "resourceVersion": "version",
        "creationTimestamp": "creation",
        "managedFields": [{"time": "time"}],
    },
    "spec": {
        "nodeName": "node",
        # A pod of a DaemonSet has its node's name in its affinity.
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR}},
        "containers": [_MOUNTS],
        "initContainers": [_MOUNTS],
        "volumes": [{"name": "volume"}],
    },
    "status": {
        "startTime": "start",
        "conditions": [{"lastTransitionTime": "time"}],
        "containerStatuses": _STATUSES,
        "initContainerStatuses": _STATUSES,
        "hostIP": "address",
        "hostIPs": [{"ip": "address"}],
        "podIP": "address",
        "podIPs": [{"ip": "address"}],
    },
}
"""The positions of pod-specific values, and their types. The single item of a list applies to all items."""

SHARED = ("name", "node", "volume", "address")
"""Values that, if equal in several positions of one pod, are equal there in every pod."""

FORMS = {
    "name": SUBDOMAIN,
    "uid": _PLAIN_TEXT,
    "version": _PLAIN_TEXT,
    "creation": _TIME_TEXT,
    "time": _TIME_TEXT,
    "start": _TIME_TEXT,
    "node": SUBDOMAIN,
    "volume": f"(?={ACCESS}){LABEL_NAME}",
    "address": ADDRESS,
    "container": CONTAINER_ID,
    "index": "[0-9]{1,9}",
}
"""The usual form of each value, as an ASCII pattern: values of this form cause no findings.

For a time, the pattern only restricts the characters; see `is_time`."""

TIMES = ("creation", "time", "start")

_FORMS = {what: re.compile(form, re.ASCII) for what, form in FORMS.items()}


@dataclass(frozen=True, slots=True)
class Form:
    """A text format: how a text is parsed, the delimiters of a value, and the pod's owner.

    After `patience` pods of an owner, a stencil is made of one. `decode` raises one of `UNREADABLE` for an unreadable
    text.
    """

    decode: Callable[[bytes], Any]
    opening: tuple[bytes, ...]
    closing: tuple[bytes, ...]
    owners: tuple[bytes, bytes]
    patience: int


UNREADABLE = (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

JSON = Form(
    decode=msgspec.json.decode,
    opening=(b'"',),
    closing=(b'"', b'\\"'),
    owners=(b'"ownerReferences"', b"]"),
    patience=1,
)
YAML = Form(
    decode=lambda text: parse_part(text.decode(), 0)[0],
    opening=(b'"', b"'", b" "),
    closing=(b'"', b"'", b"\n", b'\\"'),
    owners=(b"\n    ownerReferences:\n", b"\n    resourceVersion:"),
    # Finding the gaps takes as long as reading a few pods.
    patience=3,
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A pod-specific value in a text: its type, and its start and end.

    `is_key` says that it is part of a key, and `is_bare` that it is unquoted.
    """

    what: str
    value: str
    start: int
    end: int
    is_key: bool
    is_bare: bool


def gaps_in(text: bytes, pod: Pod, form: Form) -> list[Gap]:
    """Return the positions of the pod-specific values, in order.

    Return none if another pod's value could collide with an equal one: volume names are unique, as are owners' keys.
    """
    value = form.decode(text)
    # The normalized encoding, whatever escape sequences the text has.
    written = msgspec.json.encode(value)
    if _MARK.encode() in written:
        return []
    own = {found for what, found in _own_in(value, _OWN) if _is_own(what, found, pod)}
    marks = sorted(place for found in own for place in _written(text, found, form))
    parts: list[bytes] = []
    place = 0
    for number, (start, end) in enumerate(marks):
        parts += (text[place:start], f"{_MARK}{number}".encode())
        place = end
    gaps: list[Gap] = []
    try:
        marked = form.decode(b"".join((*parts, text[place:])))
    except UNREADABLE:
        return []
    for what, number, is_key in _marked_in(marked):
        start, end = marks[number]
        found = text[start:end].decode()
        if _is_own(what, found, pod):
            gaps.append(Gap(what, found, start, end, is_key, text.startswith(b"\n", end)))
    owned = sum(gap.is_key for gap in gaps)
    volumes = sum(gap.what == "volume" for gap in gaps)
    if written.count(_OWNED) != owned or written.count(f'"{ACCESS}'.encode()) != volumes:
        return []
    return sorted(gaps, key=lambda gap: gap.start)


def _own_in(value: Any, places: Any) -> Iterator[tuple[str, str]]:
    """Yield the pod-specific values in these positions of a value, each with its type."""
    if isinstance(places, str):
        if isinstance(value, str):
            yield places, value
    elif isinstance(places, list):
        if isinstance(value, list):
            for item in value:
                yield from _own_in(item, places[0])
    elif isinstance(value, dict):
        for key, place in places.items():
            if key in value:
                yield from _own_in(value[key], place)


def _marked_in(value: Any) -> Iterator[tuple[str, int, bool]]:
    """Yield the markers in a value: the type of each, its number, and whether it is in a key."""
    for what, found in _own_in(value, _OWN):
        mark = _MARKED.fullmatch(found)
        if mark is not None:
            yield what, int(mark[1]), False
    for manager in value["metadata"].get("managedFields") or ():
        for owned in _MARKED_OWNED.finditer(msgspec.json.encode(manager.get("fieldsV1"))):
            yield "address", int(owned[1]), True


def _is_own(what: str, value: str, pod: Pod) -> bool:
    """Return whether the value is the pod's own, and of the usual form."""
    meant = {"node": pod.spec.node_name, "volume": _access_of(pod.spec)}.get(what, value)
    is_meant = value == meant and _FORMS[what].fullmatch(value) is not None
    return is_meant and (what not in TIMES or is_time(value.encode()))


@lru_cache(maxsize=_CACHE)
def is_time(text: bytes) -> bool:
    """Return whether it is a time in the usual form; a separate pattern, since it takes long to compile."""
    return _TIME.match(text) is not None


def _written(text: bytes, value: str, form: Form) -> Iterator[tuple[int, int]]:
    """Yield the positions of the value as a whole string, or within a key."""
    wanted = value.encode()
    place = text.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        if text.startswith(form.closing, end) and text.endswith(form.opening, 0, place):
            yield place, end
            place = text.find(wanted, end)
        else:
            place = text.find(wanted, place + 1)


def _access_of(spec: PodSpec) -> str:
    """Return the name of the pod's volume for API access, "" without one."""
    return next((volume.name for volume in spec.volumes if volume.name.startswith(ACCESS)), "")
