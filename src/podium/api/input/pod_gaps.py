"""The text formats of a List's items, JSON and YAML, and the positions of pod-specific values in a dumped pod."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from podium.api import errors, names, times
from podium.api.input import json, yaml
from podium.api.meta import Raw
from podium.api.pod import Pod

ACCESS = "kube-api-access-"
"""The prefix of the volume for API access; the rest of its name is specific to the pod."""

MARK = "podium.gap."
"""The text that stands for a value, before the number of its gap."""

MARKED = re.compile(re.escape(MARK) + r"([0-9]+)")


def address_key(address: str) -> str:
    """Return the key of managed fields that names an address of the pod."""
    return f'k:{{"ip":"{address}"}}'


MARKED_KEY = re.compile(re.escape(address_key(MARK)).replace(re.escape(MARK), MARKED.pattern))
_OWNED = msgspec.json.encode(address_key(MARK)).partition(MARK.encode())[0]
_MARKED_OWNED = re.compile(re.escape(_OWNED) + re.escape(MARK.encode()) + rb'([0-9]+)\\"\}":')
_COUNT = re.compile(rb'restartCount"?: *(?P<count>[0-9]+)(?=[ ,}\r\n])')
# The spec refers to keys of labels: then its validity depends on these.
_LABEL_KEYS = b"atchLabelKeys"
_PLAIN_TEXT = r"[A-Za-z0-9][-_.:/A-Za-z0-9]*"
_TIME_TEXT = r"[-+.:TZ0-9]+"
_TIME = re.compile(times.PLAIN_TIME.encode())
_CACHE = 16_384

HOSTNAME = "hostname"
LABELS = ("statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index")
"""The labels with pod-specific values: the name and the index of a StatefulSet's pod."""

_MOUNTS = {"volumeMounts": [{"name": "volume"}]}
_ENDED = {"terminated": {"startedAt": "time", "finishedAt": "time", "containerID": "container"}}
_STATE = {"running": {"startedAt": "time"}, **_ENDED}
_STATUSES = [{"containerID": "container", "restartCount": "count", "state": _STATE, "lastState": _ENDED, **_MOUNTS}]
_NODE_SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"values": ["node"]}]}]}
_OWN: dict[str, Any] = {
    "metadata": {
        "name": "name",
        "uid": "uid",
        "resourceVersion": "version",
        "creationTimestamp": "creation",
        "managedFields": [{"time": "time"}],
        "labels": dict(zip(LABELS, ("name", "index"), strict=True)),
    },
    "spec": {
        "nodeName": "node",
        HOSTNAME: "name",
        # A pod of a DaemonSet has its node's name in its affinity.
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR}},
        "containers": [_MOUNTS],
        "initContainers": [_MOUNTS],
        "ephemeralContainers": [_MOUNTS],
        "volumes": [{"name": "volume"}],
    },
    "status": {
        "startTime": "start",
        "conditions": [{"lastTransitionTime": "time"}],
        "containerStatuses": _STATUSES,
        "initContainerStatuses": _STATUSES,
        "ephemeralContainerStatuses": _STATUSES,
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
    "name": names.SUBDOMAIN,
    "uid": _PLAIN_TEXT,
    "version": _PLAIN_TEXT,
    "creation": _TIME_TEXT,
    "time": _TIME_TEXT,
    "start": _TIME_TEXT,
    "node": names.SUBDOMAIN,
    "volume": f"(?={ACCESS}){names.LABEL_NAME}",
    "address": r"[0-9a-f]+(?:[.:]+[0-9a-f]+){2,}",
    "container": r"[a-z-]+://[-_.0-9A-Za-z]+",
    "index": "[0-9]{1,9}",
    "count": "0|[1-9][0-9]{0,8}",
}
"""The usual form of each value, as an ASCII pattern without spaces: values of this form cause no findings.

For a time, the pattern only restricts the characters; see `is_time`."""

TIMES = ("creation", "time", "start")

_FORMS = {what: re.compile(form, re.ASCII) for what, form in FORMS.items()}


class Gap(msgspec.Struct, frozen=True):
    """A pod-specific value in a text: its type, the name of its field, and its start and end.

    The name is "" if the value is part of a key; `is_bare` says that it is text without quotes.
    """

    what: str
    field: str
    value: str
    start: int
    end: int
    is_bare: bool


def gaps_in(text: bytes, pod: Pod, form: TextForm) -> list[Gap]:
    """Return the positions of the pod-specific values, in order.

    Return none if another pod's value could collide with an equal one: volume names are unique, as are owners' keys.
    """
    # The normalized encoding, whatever escape sequences the text has.
    value = form.decode(text)
    written = msgspec.json.encode(value)
    if MARK.encode() in written:
        return []
    meant = {
        "name": pod.metadata.name,
        "node": pod.spec.node_name,
        "volume": next((volume.name for volume in pod.spec.volumes if volume.name.startswith(ACCESS)), ""),
    }
    own = {found.value for found in _own_in(value, _OWN) if _is_usual(found, meant)}
    counts = [found.span("count") for found in _COUNT.finditer(text)]
    marks = sorted([*(place for found in own for place in _written(text, found, form)), *counts])
    parts: list[bytes] = []
    place = 0
    for number, (start, end) in enumerate(marks):
        mark = f"{MARK}{number}"
        parts += (text[place:start], (f'"{mark}"' if (start, end) in counts else mark).encode())
        place = end
    try:
        marked = form.decode(b"".join((*parts, text[place:])))
    except UNREADABLE:
        return []
    gaps: list[Gap] = []
    for number, found in _marked_in(marked):
        start, end = marks[number]
        what, field, own_value = found.what, found.field, text[start:end].decode()
        if _is_usual(_Own(what, field, own_value), meant):
            gaps.append(Gap(what, field, own_value, start, end, what != "count" and text.startswith(b"\n", end)))
    owned = sum(not gap.field for gap in gaps)
    volumes = sum(gap.what == "volume" for gap in gaps)
    if written.count(_OWNED) != owned or written.count(f'"{ACCESS}'.encode()) != volumes:
        return []
    if _LABEL_KEYS in written and any(gap.field in LABELS for gap in gaps):
        return []
    return sorted(gaps, key=lambda gap: gap.start)


class _Own(msgspec.Struct, frozen=True, gc=False):
    """A value in a position of `_OWN`: its type, the name of its field, and the value."""

    what: str
    field: str
    value: str


def _own_in(value: Any, places: Any, field: str = "") -> list[_Own]:
    """Return the pod-specific values in these positions of a value."""
    if type(places) is str:
        return [_Own(places, field, value)] if type(value) is str else []
    found: list[_Own] = []
    if type(places) is list:
        for item in value if type(value) is list else ():
            found += _own_in(item, places[0], field)
    elif type(value) is dict:
        for key, place in places.items():
            if key in value:
                found += _own_in(value[key], place, key)
    return found


def _marked_in(value: Any) -> Iterator[tuple[int, _Own]]:
    """Yield the markers in a value, each with its number."""
    for found in _own_in(value, _OWN):
        mark = MARKED.fullmatch(found.value)
        if mark is not None:
            yield int(mark[1]), found
    managed = (value.get("metadata") or {}).get("managedFields")
    for owned in _MARKED_OWNED.finditer(msgspec.json.encode(managed)):
        yield int(owned[1]), _Own("address", "", "")


def _is_usual(found: _Own, meant: dict[str, str]) -> bool:
    """Return whether the value is the pod's own, and of the usual form."""
    what, value = found.what, found.value
    if value != meant.get(what, value) or _FORMS[what].fullmatch(value) is None:
        return False
    return what not in TIMES or is_time(value.encode())


@lru_cache(maxsize=_CACHE)
def is_time(text: bytes) -> bool:
    """Return whether it is a time in the usual form; a separate pattern, since it takes long to compile."""
    return _TIME.match(text) is not None


def _written(text: bytes, value: str, form: TextForm) -> Iterator[tuple[int, int]]:
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


UNREADABLE = (errors.InputError, json.UncertainError, msgspec.MsgspecError, TypeError, ValueError, RecursionError)
"""The errors for an unreadable text."""

# An item is in the list within the List.
_LIST_DEPTH = 1


@dataclass(frozen=True, slots=True)
class TextForm:
    """A text format.

    `read` returns a value without nulls except in lists; it raises one of `UNREADABLE` for an unreadable text, or if
    only a full parse can decide. `decode` is faster, for texts that `read` takes, and may leave nulls.
    `status` returns only the status of an object. `owners` delimit the pod's owner. After `patience` pods of an owner,
    a stencil is made of one. `keeps_values` says that decoding takes so long that a value is kept once it is read.
    """

    read: Callable[[bytes], Any]
    decode: Callable[[bytes], Any]
    status: Callable[[bytes], Raw]
    opening: tuple[bytes, ...]
    closing: tuple[bytes, ...]
    owners: tuple[bytes, bytes]
    patience: int
    keeps_values: bool


class _StatusAlone(msgspec.Struct):
    status: Raw | None = None


_STATUS = msgspec.json.Decoder(_StatusAlone)


def _from_yaml(item: bytes) -> Any:
    (value,) = yaml.parse_part(item.decode(), _LIST_DEPTH)
    return value


# Functions by name, because documents are sent to other processes.
def _status_of_json(item: bytes) -> Raw:
    return _STATUS.decode(item).status or {}


def _status_of_yaml(item: bytes) -> Raw:
    status: Raw = _from_yaml(item).get("status", {})
    return status


JSON = TextForm(
    read=json.decode,
    decode=msgspec.json.decode,
    status=_status_of_json,
    opening=(b'"',),
    closing=(b'"', b'\\"'),
    owners=(b'"ownerReferences"', b"]"),
    patience=1,
    keeps_values=False,
)
YAML = TextForm(
    read=_from_yaml,
    decode=_from_yaml,
    status=_status_of_yaml,
    opening=(b'"', b"'", b" "),
    closing=(b'"', b"'", b"\n", b'\\"'),
    owners=(b"\n    ownerReferences:\n", b"\n    resourceVersion:"),
    # Finding the gaps takes as long as reading a few pods.
    patience=3,
    keeps_values=True,
)
