"""Where in the text of a dumped pod stands what it has for itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from podium.api.input.dumped_pod_parts import ACCESS, ADDRESS, CONTAINER_ID
from podium.api.names import label_name_problem, subdomain_problem
from podium.api.pod import Pod, PodSpec
from podium.api.times import PLAIN_TIME

_MARK = "podium.gap."
_MARKED = re.compile(re.escape(_MARK) + r"([0-9]+)")
_OWNED = b'"k:{\\"ip\\":\\"'
_MARKED_OWNED = re.compile(re.escape(_OWNED) + re.escape(_MARK.encode()) + rb'([0-9]+)\\"\}":')
_PLAIN_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_PLAIN_TEXT = re.compile(r"[-_.:/A-Za-z0-9]+", re.ASCII)
_TIME = re.compile(PLAIN_TIME)
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
        # So a pod of a DaemonSet is bound to its node.
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
"""Where a pod has something for itself, and what it is. Of a list, each item is as the one that stands here."""

SHARED = ("node", "volume", "address")
"""Of these, what is the same in several places of one pod is the same there in every pod."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Where in a text a pod has something for itself: what, and where it begins and ends."""

    what: str
    value: str
    start: int
    end: int


def gaps_in(text: bytes, pod: Pod) -> list[Gap]:
    """Where the pod's own values stand for what they are, in order.

    None at all where another pod's could meet one like them: volumes have one name each, and so have owners' keys.
    """
    value = msgspec.json.decode(text)
    # As it is written here, whatever escape sequences the text has.
    written = msgspec.json.encode(value)
    if _MARK.encode() in written:
        return []
    own = {found for what, found in _own_in(value, _OWN) if _is_own(what, found, pod)}
    marks = sorted(place for found in own for place in _quoted(text, found))
    parts: list[bytes] = []
    place = 0
    for number, (start, end) in enumerate(marks):
        parts += (text[place:start], f"{_MARK}{number}".encode())
        place = end
    gaps: list[Gap] = []
    for what, number in _marked_in(msgspec.json.decode(b"".join((*parts, text[place:])))):
        start, end = marks[number]
        found = text[start:end].decode()
        if _is_own(what, found, pod):
            gaps.append(Gap(what, found, start, end))
    owned = sum(text.endswith(_OWNED, 0, gap.start) for gap in gaps)
    volumes = sum(gap.what == "volume" for gap in gaps)
    if written.count(_OWNED) != owned or written.count(f'"{ACCESS}'.encode()) != volumes:
        return []
    return sorted(gaps, key=lambda gap: gap.start)


def _own_in(value: Any, places: Any) -> Iterator[tuple[str, str]]:
    """What the pod has for itself in such places of a value, and what each is."""
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


def _marked_in(value: Any) -> Iterator[tuple[str, int]]:
    """The marks that stand for something of a pod's own, and what each stands for."""
    for what, found in _own_in(value, _OWN):
        mark = _MARKED.fullmatch(found)
        if mark is not None:
            yield what, int(mark[1])
    for manager in value["metadata"].get("managedFields") or ():
        for owned in _MARKED_OWNED.finditer(msgspec.json.encode(manager.get("fieldsV1"))):
            yield "address", int(owned[1])


def _is_own(what: str, value: str, pod: Pod) -> bool:
    """Whether such a value is the pod's own, and of the form that nearly all have."""
    meant = {"node": pod.spec.node_name, "volume": _access_of(pod.spec)}.get(what, value)
    return value == meant and bool(JUDGES[what](value))


def _quoted(text: bytes, value: str) -> Iterator[tuple[int, int]]:
    """Where the value stands as a whole text, or as one in a key."""
    wanted = f'"{value}'.encode()
    place = text.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        if text.startswith((b'"', b'\\"'), end):
            yield place + 1, end
        place = text.find(wanted, end)


def _access_of(spec: PodSpec) -> str:
    """The name of the volume through which the pod reaches the API server, "" without one."""
    return next((volume.name for volume in spec.volumes if volume.name.startswith(ACCESS)), "")


@lru_cache(maxsize=_CACHE)
def _is_time(text: str) -> bool:
    return _TIME.match(text) is not None


def _is_name(text: str) -> bool:
    return _PLAIN_NAME.fullmatch(text) is not None or subdomain_problem(text) is None


@lru_cache(maxsize=_CACHE)
def _is_node_name(text: str) -> bool:
    return subdomain_problem(text) is None


def _is_access(text: str) -> bool:
    return text.startswith(ACCESS) and label_name_problem(text) is None


JUDGES: Mapping[str, Callable[[str], object]] = {
    "name": _is_name,
    "uid": _PLAIN_TEXT.fullmatch,
    "version": _PLAIN_TEXT.fullmatch,
    "creation": _is_time,
    "time": _is_time,
    "start": _is_time,
    "node": _is_node_name,
    "volume": _is_access,
    "address": ADDRESS.fullmatch,
    "container": CONTAINER_ID.fullmatch,
}
"""Whether such a value has the form that nearly all have, in which there is nothing to say about it."""
