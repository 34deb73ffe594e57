"""Watches of the nodes and pods that a component knows: what its page draws of them, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp.web import StreamResponse

from podium.api.meta import Raw
from podium.apirequests.observations import Seen
from podium.controllers.observations import Gone
from podium.server.http.exchange import Exchange
from podium.server.http.metrics import WATCHING, InFlightLimits
from podium.store.errors import StoreError
from podium.store.stored import Stored, encoded

KINDS: Mapping[str, str] = {"nodes": "Node", "pods": "Pod"}
"""What can be watched, by its name in the path."""

_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "ownerReferences",
)
_SPEC = (
    "priority",
    "nodeName",
    "containers",
    "initContainers",
    "overhead",
    "resources",
    "unschedulable",
    "taints",
)
_STATUS = ("phase", "conditions", "nominatedNodeName", "allocatable")
_CONTAINERS = ("containers", "initContainers")
_CONTAINER = ("name", "resources", "restartPolicy")
_MOST_STREAMS = 20
# A client for whom more than this waits is let go, and lists anew.
_MOST_WAITING = 100_000
_AT_A_TIME = 200
_STALL_SECONDS = 30.0
_LINES = "application/json"


class Watching:
    """Streams of what is known and of what becomes of it, as an API server's watches are written.

    `known` gives the objects of a kind, by key. What happens to them is told to `saw`, on the event loop. Each stream
    keeps the last of each object until its client has read it.
    """

    def __init__(self, known: Callable[[str], Mapping[str, Stored]]) -> None:
        self._known = known
        self._flights = InFlightLimits({WATCHING: _MOST_STREAMS})
        self._streams: set[_Stream] = set()

    def saw(self, kind: str, seen: Seen) -> None:
        """Something has happened to an object of a kind."""
        for stream in self._streams:
            if stream.kind == kind:
                stream.note(seen)

    async def answer(self, exchange: Exchange, name: str) -> StreamResponse:
        """Tell of the objects that are called so in the path, until the client is gone. Raises StoreError."""
        kind = KINDS[name]
        if any(parameter == "resourceVersion" for parameter, _ in exchange.query):
            # Nothing is known here of what happened before; all objects are told anew.
            raise StoreError(410, "Expired", "what happened since that version is not known here")
        with self._flights.flight(WATCHING):
            response = StreamResponse(headers={**exchange.reply_headers, "Content-Type": _LINES})
            stream = _Stream(kind)
            self._streams.add(stream)
            try:
                known = list(self._known(kind).values())
                await response.prepare(exchange.request)
                await stream.run(response, known)
            finally:
                self._streams.discard(stream)
            return response

    def end(self) -> None:
        for stream in self._streams:
            stream.is_ended = True
            stream.woken.set()


class _Stream:
    """What one client is told of a kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.woken = asyncio.Event()
        self.is_ended = False
        self._waiting: dict[str, Seen] = {}

    def note(self, seen: Seen) -> None:
        """Keep what has happened until it is told; of each object the last counts."""
        uid = seen.object.metadata.uid
        self._waiting.pop(uid, None)
        self._waiting[uid] = seen
        self.is_ended = self.is_ended or len(self._waiting) > _MOST_WAITING
        self.woken.set()

    async def run(self, response: StreamResponse, known: list[Stored]) -> None:
        """Tell all that is known, then what happens."""
        with suppress(ConnectionError, TimeoutError):
            for place in range(0, len(known), _AT_A_TIME):
                await _write(
                    response, (_event("ADDED", slim(stored.raw)) for stored in known[place : place + _AT_A_TIME])
                )
            await _write(response, [_initial_end()])
            while not self.is_ended:
                await self.woken.wait()
                self.woken.clear()
                while self._waiting and not self.is_ended:
                    some = [self._waiting.pop(uid) for uid in list(self._waiting)[:_AT_A_TIME]]
                    await _write(response, map(_told, some))


async def _write(response: StreamResponse, lines: Iterable[bytes]) -> None:
    """Send lines. Raises TimeoutError where the client does not read them."""
    async with asyncio.timeout(_STALL_SECONDS):
        await response.write(b"".join(lines))
    await asyncio.sleep(0)


def _told(seen: Seen) -> bytes:
    if not isinstance(seen, Gone):
        return _event("MODIFIED", slim(seen.raw))
    metadata = seen.object.metadata
    gone: Raw = {
        "uid": metadata.uid,
        "name": metadata.name,
        "namespace": metadata.namespace,
        "resourceVersion": metadata.resource_version,
    }
    return _event("DELETED", {"metadata": gone, "spec": {}, "status": {}})


def slim(raw: Raw) -> Raw:
    """The part of a node or a pod that is drawn: neither environment, commands nor annotations are in it."""
    spec = _part(raw.get("spec"), _SPEC)
    for name in _CONTAINERS:
        if name in spec:
            spec[name] = [_part(container, _CONTAINER) for container in spec[name]]
    return {
        "metadata": _part(raw.get("metadata"), _METADATA),
        "spec": spec,
        "status": _part(raw.get("status"), _STATUS),
    }


def _part(raw: Any, names: tuple[str, ...]) -> Raw:
    return {name: raw[name] for name in names if name in raw} if isinstance(raw, dict) else {}


def _event(type_: str, raw: Raw) -> bytes:
    return encoded({"type": type_, "object": raw}) + b"\n"


def _initial_end() -> bytes:
    metadata = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
    return _event("BOOKMARK", {"metadata": metadata})
