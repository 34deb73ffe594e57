"""The current time that the objects of an input imply, since they were written before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from podium.api.input.codec import Document
from podium.api.input.documents import snapshots_of
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, deletion_ns
from podium.api.times import parse_time

DEFAULT_START_NS = parse_time("2026-01-01T00:00:00Z")
"""The start time of a simulation whose input has no timestamp."""


def start_time(documents: Iterable[Document]) -> int:
    """Return the newest time of a past event in the objects, in nanoseconds.

    The end of a grace period is in the future; its beginning counts.
    """
    typed = [(document.object, document) for document in documents if document.object is not None]
    # The times of conditions are read from the documents. Many objects have equal ones.
    conditioned = (document for object_, document in typed if isinstance(object_, Pod | Node))
    of_conditions = {time for document in conditioned for time in document.condition_times()}
    times = chain.from_iterable(_times(object_) for object_, _ in typed)
    return max(chain(times, map(parse_time, of_conditions)), default=DEFAULT_START_NS)


def last_time(objects: Iterable[Kubernetes], enough_ns: int | None = None) -> int | None:
    """Return the newest time in typed objects, at most `enough_ns`; None if they have none."""
    last_ns: int | None = None
    for object_ in objects:
        for time in _times(object_):
            if last_ns is None or time > last_ns:
                last_ns = time
        if last_ns is not None and last_ns == enough_ns:
            break
    return last_ns


def current_time(documents: Iterable[Document], objects: Iterable[Document]) -> int:
    """Return the `start_time` of the documents' objects, or the time of their newest snapshot if that is later."""
    taken = (snapshot.taken_ns for snapshot, _ in snapshots_of(documents))
    return max(start_time(objects), *(taken_ns for taken_ns in taken if taken_ns is not None), 0)


def newest_time(objects: Iterable[Kubernetes]) -> int:
    """Return the newest time as `start_time` does, for typed objects."""
    return max(chain.from_iterable(map(_times, objects)), default=DEFAULT_START_NS)


def _times(object_: Kubernetes) -> Iterator[int]:
    """Yield the times of a typed object, except for those of its conditions."""
    meta = object_.metadata
    if meta.creation_timestamp:
        yield parse_time(meta.creation_timestamp)
    began = deletion_ns(object_)
    if began is not None and began >= 0:
        yield began
    if isinstance(object_, Pod) and object_.status.start_time:
        yield parse_time(object_.status.start_time)
