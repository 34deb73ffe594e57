"""The cluster that a page shows, and watches of its nodes and pods, reduced to what the page draws."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, starmap
from typing import TYPE_CHECKING, Literal

from aiohttp.web import StreamResponse
from msgspec import Struct, to_builtins

from podium.api.kinds import KINDS
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import effective_spec, node_allocatable, pod_requests
from podium.api.versions.choice import ReleaseChoice
from podium.apirequests.observations import ObjectObservation
from podium.cluster.pods import TEMPLATE_HASH, top_owner
from podium.controllers.observations import Deleted
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import EmbeddedControlPlane
from podium.server.http.exchange import Exchange
from podium.server.http.metrics import WATCHING, InFlightLimits
from podium.store.errors import StoreError
from podium.store.listing import ListOptions, ReadableStore, Watch
from podium.store.stored import Stored, encoded

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions

WATCHED: Mapping[str, str] = {"nodes": "Node", "pods": "Pod"}
"""The kinds that can be watched, by their names in the path."""

_MOST_STREAMS = 20
# A client with more pending changes is disconnected, and lists again.
_MOST_WAITING = 100_000
_AT_A_TIME = 200
_STALL_SECONDS = 30.0


class Watching:
    """Streams of nodes and pods and their changes, in the form of an API server's watches.

    They contain what the page draws: the objects of a large cluster are too much for a browser. `known` returns the
    objects of a kind, by key; `saw` receives changes, on the event loop. Each stream keeps the last change of each
    object until its client has read it.
    """

    def __init__(self, known: Callable[[str], Mapping[str, Stored]]) -> None:
        self._known = known
        self._flights = InFlightLimits({WATCHING: _MOST_STREAMS})
        self._streams: set[_Stream] = set()

    def saw(self, kind: str, seen: ObjectObservation) -> None:
        """Record a change of an object of a kind."""
        for stream in self._streams:
            if stream.kind == kind:
                stream.note(seen)

    async def answer(self, exchange: Exchange, name: str) -> StreamResponse:
        """Stream the objects of a name in the path until the client disconnects. Raises StoreError."""
        version = dict(exchange.query).get("resourceVersion", "")
        with self._flights.flight(WATCHING):
            stream = self._opened(WATCHED[name], version)
            self._streams.add(stream)
            try:
                response = StreamResponse(headers={**exchange.reply_headers, "Content-Type": "application/json"})
                await response.prepare(exchange.request)
                with suppress(ConnectionError, TimeoutError):
                    await stream.run(response)
            finally:
                self._streams.discard(stream)
            return response

    def _opened(self, kind: str, version: str) -> _Stream:
        """Return the stream of a kind after a version; "" begins with all objects. Raises StoreError."""
        if version:
            # There is no history of changes; the client must list again.
            raise StoreError(410, "Expired", "the changes since that version are no longer available")
        return _Stream(kind, list(self._known(kind).values()))

    def end(self) -> None:
        for stream in self._streams:
            stream.is_ended = True
            stream.woken.set()


class _Stream:
    """The stream of one client, for one kind: the ``known`` objects, then their changes."""

    def __init__(self, kind: str, known: Sequence[Stored] = ()) -> None:
        self.kind = kind
        self.woken = asyncio.Event()
        self.is_ended = False
        self._known = known
        self._waiting: dict[str, ObjectObservation] = {}

    def note(self, seen: ObjectObservation) -> None:
        """Keep the last change of an object until it is sent."""
        uid = seen.object.metadata.uid
        self._waiting.pop(uid, None)
        self._waiting[uid] = seen
        self.is_ended = self.is_ended or len(self._waiting) > _MOST_WAITING
        self.woken.set()

    async def run(self, response: StreamResponse) -> None:
        """Send all known objects, then their changes."""
        await _write(response, (_event("ADDED", slim(stored.object)) for stored in self._known))
        metadata = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
        await _write(response, [_event("BOOKMARK", {"metadata": metadata})])
        while not self.is_ended:
            await self.woken.wait()
            self.woken.clear()
            while self._waiting and not self.is_ended:
                changed = [self._waiting.pop(uid) for uid in list(self._waiting)[:_AT_A_TIME]]
                news = (("DELETED" if isinstance(seen, Deleted) else "MODIFIED", seen.object) for seen in changed)
                await _write(response, (_event(type_, slim(item)) for type_, item in news))


class StoreWatching(Watching):
    """Streams of the objects in a store, which knows the changes since a version; it is read when it is ``idle``."""

    def __init__(self, store: ReadableStore, idle: Callable[[], Awaitable[None]]) -> None:
        super().__init__(lambda _: {})
        self._store = store
        self._idle = idle

    def _opened(self, kind: str, version: str) -> _Stream:
        of_all = ListOptions(send_initial_events=True, resource_version_match="NotOlderThan")
        options = ListOptions(resource_version=version) if version else of_all
        return _StoreStream(kind, self._store.watch(kind, options=options), self._idle)


class _StoreStream(_Stream):
    """The stream of one client, with the events of a watch."""

    def __init__(self, kind: str, watch: Watch, idle: Callable[[], Awaitable[None]]) -> None:
        super().__init__(kind)
        self._watch = watch
        self._idle = idle

    async def run(self, response: StreamResponse) -> None:
        """Send all events. After those that the store has forgotten, the stream ends, and the client lists again."""
        # Some requests are answered off the event loop.
        self._watch.wake_by(partial(asyncio.get_running_loop().call_soon_threadsafe, self.woken.set))
        try:
            while not (self.is_ended or self._watch.is_ended):
                await self.woken.wait()
                self.woken.clear()
                await self._idle()
                # Bookmarks alone have no stored object.
                new = (
                    (each.type, each.raw if each.stored is None else slim(each.stored.object))
                    for each in self._watch.pull()
                )
                await _write(response, starmap(_event, new))
        except StoreError as error:
            await _write(response, [_event("ERROR", error.to_dict())])
        finally:
            self._watch.close()


async def _write(response: StreamResponse, lines: Iterable[bytes]) -> None:
    following = iter(lines)
    while part := b"".join(islice(following, _AT_A_TIME)):
        async with asyncio.timeout(_STALL_SECONDS):
            await response.write(part)
        await asyncio.sleep(0)


class DrawnPod(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """The drawn parts of a pod: ``requests`` of cpu are in milli, and the reason and message of a disruption."""

    key: str
    version: str
    name: str
    workload: str
    requests: Mapping[str, int]
    created: str | None = None
    priority: int = 0
    node: str = ""
    phase: str = "Pending"
    nominated: str = ""
    is_deleted: bool = False
    waits: str = ""
    disruption: str = ""
    why: str = ""


def slim(item: Kubernetes) -> DrawnPod | Raw:
    """Return what is drawn of a node, in its wire form, or of a pod: no environment, commands or annotations.

    What a node offers is in whole numbers: of cpu in milli, of all else in units.
    """
    meta = item.metadata
    if isinstance(item, Node):
        conditions = [each for each in item.status.conditions if each.type == "Ready" or each.status == "True"]
        metadata = {"name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version, "labels": meta.labels}
        status = {"conditions": conditions, "allocatable": node_allocatable(item.status)}
        return {"metadata": metadata, "spec": item.spec, "status": status}
    if not isinstance(item, Pod):
        raise AssertionError(f"{item.kind} {item.key} is not drawn")
    owner = meta.controller
    scheduled, target = item.status.condition("PodScheduled"), item.status.condition("DisruptionTarget")
    kind, name = ("Pod", meta.name) if owner is None else top_owner(owner, meta.labels.get(TEMPLATE_HASH, ""))
    is_disrupted = target is not None and target.status == "True"
    return DrawnPod(
        meta.uid,
        meta.resource_version,
        item.key,
        f"{kind} {meta.namespace}/{name}",
        pod_requests(effective_spec(item)),
        meta.creation_timestamp,
        item.priority,
        item.spec.node_name,
        item.status.phase,
        item.status.nominated_node_name,
        item.is_terminating,
        scheduled.message or scheduled.reason if scheduled is not None and scheduled.status == "False" else "",
        target.reason if target is not None and is_disrupted else "",
        target.message if target is not None and is_disrupted else "",
    )


def _event(type_: str, item: DrawnPod | Raw) -> bytes:
    return encoded(to_builtins({"type": type_, "object": item})) + b"\n"


Mode = Literal["control-plane", "component"]
"""A control plane has an API, through which objects can be changed; a component only shows objects."""


async def always_idle() -> None:
    """Return: nothing changes objects off the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """A cluster that a page shows under a ``title``.

    ``objects`` are those that questions are about, to be read when they are ``idle``, and ``events`` those of the API,
    as far as they are known; ``options`` are those of a played question, which starts at ``now``. Its time passes
    ``speed`` times as fast as the clock.
    """

    mode: Mode
    title: str
    objects: Callable[[], list[Stored]]
    events: Callable[[], Iterable[Stored]] = tuple
    now: Callable[[], int]
    options: RunOptions
    idle: Callable[[], Awaitable[None]] = always_idle
    speed: float = 1.0


def of_plane(plane: EmbeddedControlPlane, settings: ControlPlaneSettings, speed: float = 1.0) -> ShownCluster:
    """Return the content of a control plane's page."""
    # Most pages ask no questions.
    from podium.sim.run_options import RunOptions

    options = RunOptions(
        start_delay_ns=settings.kubelets.start_delay_ns,
        termination_ns=settings.kubelets.termination_ns,
        configuration=settings.configuration,
        release=ReleaseChoice.exactly(settings.release),
        ignore_extenders=True,
    )

    def objects() -> list[Stored]:
        served = {(resource.group, resource.kind): resource.name for resource in plane.resources.all()}
        kinds = [served[kind] for kind in KINDS if kind in served]
        return [stored for kind in kinds for stored in plane.store.objects(kind)]

    return ShownCluster(
        mode="control-plane",
        title="podium up",
        objects=objects,
        events=lambda: plane.store.objects("Event"),
        now=plane.now,
        options=options,
        idle=plane.idle,
        speed=speed,
    )
