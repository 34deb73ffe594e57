"""What is written of a recorded cluster: what others asked of it, and what its schedulers and controllers made of it.

The first are steps of a Scenario, which is played again. The second are events of a Recording, which is held against
what a simulation makes of the same steps, and says how the cluster was at any time in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.input.documents import read_among
from podium.api.kinds import group_of
from podium.api.meta import Kubernetes, Narrow, Raw
from podium.api.reading import read
from podium.api.snapshot import API_VERSION
from podium.api.times import format_duration, parse_duration

RECORDING = "Recording"
"""The kind."""

FORMAT = 1
"""Which form of recordings is written."""

EVICTED = "EvictionByEvictionAPI"
"""The reason of a pod's condition DisruptionTarget where it was evicted."""

What = Literal["created", "changed", "gone", "bound", "preempted", "evicted", "disrupted", "finished", "failed"]


class RecordedEvent(Narrow, frozen=True, kw_only=True):
    """Something that happened ``at`` so long after the start.

    ``object`` is the whole object where a controller has made or changed it. ``node`` is where a pod was bound,
    ``reason`` the one of its condition DisruptionTarget, "" where they do not apply.
    """

    at: str
    what: What
    kind: str
    key: str
    uid: str = ""
    node: str = ""
    reason: str = ""
    object: Raw | None = None

    @property
    def at_ns(self) -> int:
        """The same in nanoseconds."""
        return parse_duration(self.at)


class Recording(Kubernetes, frozen=True, kw_only=True):
    """What the recorded cluster made of the steps beside it, for ``length`` from the start (podium.dev/v1alpha1).

    ``termination`` is how long pods usually took to end, None where they took all of their grace period.
    """

    format: int = FORMAT
    length: str = "0s"
    termination: str | None = None
    events: tuple[RecordedEvent, ...] = ()

    @property
    def length_ns(self) -> int:
        """How long was recorded."""
        return parse_duration(self.length)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of an observation: a step, events, or both."""

    steps: tuple[Raw, ...] = ()
    events: tuple[RecordedEvent, ...] = ()


def event(now_ns: int, what: What, kind: str, key: str, **others: str | Raw) -> RecordedEvent:
    """An event so many nanoseconds after the start."""
    return msgspec.convert(
        {"at": format_duration(now_ns), "what": what, "kind": kind, "key": key, **others}, RecordedEvent
    )


def is_recording(raw: Raw) -> bool:
    """Whether an object is a Recording."""
    return raw.get("kind") == RECORDING and group_of(str(raw.get("apiVersion"))) == group_of(API_VERSION)


def recordings_of(documents: Iterable[Document]) -> Iterator[tuple[Recording, Document]]:
    """The Recordings among the documents. Raises InputError for one that cannot be read."""
    return read_among(documents, is_recording, _read)


def termination_of(documents: Iterable[Document]) -> int | None:
    """How long pods took to end in the first Recording, in nanoseconds; None where that is not told.

    Nothing else of it is read. Raises InputError for what is no duration.
    """
    for document in documents:
        if document.object is None and is_recording(document.raw):
            given = document.raw.get("termination")
            return None if given is None else _duration(str(given), ".termination")
    return None


def _duration(text: str, path: str) -> int:
    try:
        duration_ns = parse_duration(text)
    except ValueError as error:
        raise InputError(str(error), path=path) from None
    if duration_ns < 0:
        raise InputError("is negative; write 0s or more", path=path)
    return duration_ns


def _read(raw: Raw) -> Recording:
    number = raw.get("format", FORMAT)
    if isinstance(number, int) and number > FORMAT:
        problem = f"{number} is written by a newer Podium; this one reads {FORMAT}"
        raise InputError(problem, path=".format")
    found = read(raw, Recording)
    for path, text in ((".length", found.length), *_times(found)):
        _duration(text, path)
    return found


def _times(recording: Recording) -> Iterator[tuple[str, str]]:
    return ((f".events[{index}].at", event.at) for index, event in enumerate(recording.events))
