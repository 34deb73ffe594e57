"""The cluster as it is when a simulation starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.api.codec import Document, refuse_empty_pods
from podium.api.errors import InputError
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.times import format_time, parse_time
from podium.sim.annotations import check_end
from podium.sim.scenario import Scenario
from podium.sim.steps import Apply, check_played
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import reread

DEFAULT_START_NS = parse_time("2026-01-01T00:00:00Z")
"""When a simulation starts whose input has no timestamp."""

_SECOND = 10**9
_RANK = {kind: rank for rank, kind in enumerate(KIND_OF)}


def start_time(documents: Iterable[Document]) -> int:
    """The newest time at which something is said to have happened, in nanoseconds.

    The end of a grace period has yet to come; its beginning counts.
    """
    times = (time for document in documents for time in _times(document))
    return max(times, default=DEFAULT_START_NS)


def newest_time(objects: Iterable[Kubernetes]) -> int:
    """As `start_time`, of objects that are typed already."""
    return start_time(Document("", 0, {}, one) for one in objects)


def check_objects(documents: Iterable[Document], scenario: Scenario, has_end: bool) -> None:
    """Raise InputError for what no simulation can play: empty pods, annotations that cannot be read, endless ones."""
    documents = list(documents)
    refuse_empty_pods(documents)
    for document in documents:
        if document.object is not None:
            try:
                check_played(document.raw, document.object)
                if not has_end:
                    check_end(document.object)
            except InputError as error:
                raise _located(error, document) from None
    for step in scenario.steps:
        if isinstance(step.change, Apply) and not has_end:
            try:
                check_end(step.change.object)
            except InputError as error:
                raise step.error(f"{error.path}: {error.problem}") from None


def create_objects(store: Store, documents: Iterable[Document], now: int) -> None:
    """Create the objects, in an order that does not depend on theirs. Raises InputError for what the store refuses."""
    for document in sorted(documents, key=_place):
        if document.object is None:
            raise TypeError(f"{document.raw.get('kind')} is not of a kind that Podium reads")
        raw = as_running(document.raw, document.object, now)
        try:
            store.create(raw, now=now, reading=reread(document.object, document.raw, raw), was_there=True)
        except StoreError as error:
            raise _located(InputError(error.message), document) from None


def _place(document: Document) -> tuple[int, str, str]:
    object_ = document.object or Kubernetes()
    # Of a kind the older come first, as they came to the cluster; those without a time come last.
    return _RANK[type(object_)], object_.metadata.creation_timestamp or "~", object_.key


def as_running(raw: Raw, object_: Kubernetes, now: int) -> Raw:
    """A pod with a node runs there, ready, since `now`, unless its status says otherwise."""
    if not isinstance(object_, Pod) or not object_.spec.node_name:
        return raw
    status: Raw = {"phase": "Running", **raw.get("status", {})}
    if status["phase"] != "Running":
        return raw
    status.setdefault("startTime", format_time(now))
    if object_.status.condition("Ready") is None:
        status["conditions"] = [*status.get("conditions", ()), {"type": "Ready", "status": "True"}]
    return {**raw, "status": status}


def _times(document: Document) -> Iterator[int]:
    object_ = document.object
    if object_ is None:
        return
    meta = object_.metadata
    if meta.creation_timestamp:
        yield parse_time(meta.creation_timestamp)
    if meta.deletion_timestamp:
        began = parse_time(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) * _SECOND
        if began >= 0:
            yield began
    if isinstance(object_, Pod) and object_.status.start_time:
        yield parse_time(object_.status.start_time)
    if isinstance(object_, Pod | Node):
        for condition in document.raw.get("status", {}).get("conditions", ()):
            times = (condition.get(name) for name in ("lastTransitionTime", "lastHeartbeatTime"))
            yield from (parse_time(time) for time in times if time)


def _located(error: InputError, document: Document) -> InputError:
    name = f"{document.raw.get('kind')} {document.object.key}" if document.object else ""
    return error.located(source=document.source, document=document.index, object=name)
