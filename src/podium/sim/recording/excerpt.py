"""Excerpts of recordings, and recordings at higher speed.

A recording can be played from a later time: the cluster is then in its state at that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from podium.api.errors import InputError
from podium.api.input.codec import Document, Input, Reader
from podium.api.input.documents import API_VERSION, snapshots_of
from podium.api.meta import Raw, key_of
from podium.api.objects import metadata_of
from podium.api.times import format_duration, format_exact_time, parse_duration
from podium.sim.recording.tape import RecordedEvent, recordings_of
from podium.sim.scenario.scenario import split_documents

_SCENARIO = ("Scenario", API_VERSION)
_NOT_READY = {"type": "Ready", "status": "Unknown"}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a recording to play, from its start, and how much faster."""

    from_ns: int = 0
    to_ns: int | None = None
    speed: float = 1.0


def excerpt(found: Input, wanted: Excerpt) -> Input:
    """Return the wanted part of a scenario. Raises InputError if there is none or its initial state is unknown."""
    if wanted == Excerpt():
        return found
    others = (document for document in found.documents if document.object is None)
    scenarios = [each for each in others if (each.raw.get("kind"), each.raw.get("apiVersion")) == _SCENARIO]
    recordings = list(recordings_of(found.documents))
    if not scenarios:
        raise InputError("--from, --to and --speed are for a scenario, and there is none in the input")
    if wanted.from_ns and not recordings:
        raise InputError("--from needs a recording by `podium record`; the past state of other scenarios is unknown")
    if wanted.to_ns is not None and wanted.to_ns <= wanted.from_ns:
        raise InputError("--to is not after --from")
    if wanted.from_ns and wanted.from_ns >= (end_ns := max(recording.length_ns for recording, _ in recordings)):
        raise InputError(f"--from is not before the end of the recording, after {format_duration(end_ns)}")
    # Errors refer to the original times.
    split_documents(found.documents)
    scenario = scenarios[0]
    steps = [(parse_duration(step["at"]), step) for step in scenario.raw["spec"].get("steps", ())]
    events = [event for recording, _ in recordings for event in recording.events]
    kept = [document for document in found.documents if document is not scenario]
    with Reader(scenario.validation) as reader:
        _put_objects(reader, kept, steps, events, wanted)
        _put(reader, _scenario(scenario.raw, steps, wanted), scenario)
        return Input(reader.input().documents, found.left_out)


def _put_objects(
    reader: Reader,
    documents: Sequence[Document],
    steps: Sequence[tuple[int, Raw]],
    events: Sequence[RecordedEvent],
    wanted: Excerpt,
) -> None:
    """Add the objects in their state at the beginning of the excerpt, and the other documents."""
    if wanted.from_ns:
        source = f"{documents[0].source if documents else 'objects'} at {format_duration(wanted.from_ns)}"
        for raw in _objects_at(documents, steps, events, wanted.from_ns):
            reader.read_text(msgspec.json.encode(raw), source)
    snapshots = {id(document): snapshot for snapshot, document in snapshots_of(documents)}
    recordings = {id(document): recording for recording, document in recordings_of(documents)}
    for document in documents:
        if id(document) in snapshots:
            snapshot = snapshots[id(document)]
            taken_ns = snapshot.taken_ns
            at = {} if taken_ns is None else {"takenAt": format_exact_time(taken_ns + wanted.from_ns)}
            _put(reader, {**document.raw, **at}, document)
        elif id(document) in recordings:
            recording = recordings[id(document)]
            end_ns = recording.length_ns if wanted.to_ns is None else min(wanted.to_ns, recording.length_ns)
            kept = [
                {**written, "at": _scaled(event.at_ns - wanted.from_ns, wanted.speed)}
                for event, written in zip(recording.events, document.raw.get("events", ()), strict=True)
                if wanted.from_ns <= event.at_ns <= end_ns
            ]
            length = _scaled(max(end_ns - wanted.from_ns, 0), wanted.speed)
            _put(reader, {**document.raw, "length": length, "events": kept}, document)
        elif not wanted.from_ns or document.object is None:
            reader.add(document)


def _put(reader: Reader, raw: Raw, like: Document) -> None:
    reader.read_text(msgspec.json.encode(raw), like.source)


def _objects_at(
    documents: Iterable[Document], steps: Sequence[tuple[int, Raw]], events: Sequence[RecordedEvent], at_ns: int
) -> Iterable[Raw]:
    """Return all objects at a time, after the earlier steps and events."""
    objects = _Objects(document.raw for document in documents if document.object is not None)
    # At one time, requests precede their effects.
    happenings: list[tuple[int, int, Raw | RecordedEvent]] = [(ns, 0, step) for ns, step in steps if ns < at_ns]
    happenings += [(event.at_ns, 1, event) for event in events if event.at_ns < at_ns]
    for _, _, happened in sorted(happenings, key=lambda entry: entry[:2]):
        if isinstance(happened, RecordedEvent):
            objects.happen(happened)
        else:
            objects.ask(happened)
    return objects.by_place.values()


class _Objects:
    """All objects of a cluster by kind and key, updated from a recording."""

    def __init__(self, raws: Iterable[Raw]) -> None:
        self.by_place = {_place(raw): raw for raw in raws}

    def ask(self, step: Raw) -> None:
        """Apply a step; deletions take effect with their events."""
        for raw in step.get("apply", ()):
            before = self.by_place.get(_place(raw), {})
            metadata = {**metadata_of(before), **metadata_of(raw)}
            self.by_place[_place(raw)] = {**before, **raw, "metadata": metadata}
        if "scale" in step:
            place = _place({"kind": step["scale"]["kind"], "metadata": step["scale"]})
            self._set(place, "spec", replicas=step["scale"]["replicas"])
        for name in ("cordon", "uncordon"):
            if name in step:
                self._set(("Node", step[name]["name"]), "spec", unschedulable=name == "cordon")
        for name, conditions in (("nodeDown", [_NOT_READY]), ("nodeUp", [{**_NOT_READY, "status": "True"}])):
            if name in step:
                self._set(("Node", step[name]["name"]), "status", conditions=conditions)

    def happen(self, event: RecordedEvent) -> None:
        place = (event.kind, event.key)
        if event.what == "gone":
            self.by_place.pop(place, None)
        elif event.object is not None:
            self.by_place[place] = event.object
        elif event.what == "created":
            self._set(place, "metadata", uid=event.uid)
        elif event.what == "bound":
            self._set(place, "spec", nodeName=event.node)
        elif event.what in ("finished", "failed"):
            self._set(place, "status", phase="Succeeded" if event.what == "finished" else "Failed")

    def _set(self, place: tuple[str, str], part: str, **values: object) -> None:
        raw = self.by_place.get(place)
        if raw is not None:
            self.by_place[place] = {**raw, part: {**raw.get(part, {}), **values}}


def _place(raw: Raw) -> tuple[str, str]:
    return str(raw.get("kind")), key_of(metadata_of(raw))


def _scenario(raw: Raw, steps: Sequence[tuple[int, Raw]], wanted: Excerpt) -> Raw:
    end_ns = wanted.to_ns
    if end_ns is None and "until" in raw["spec"]:
        end_ns = parse_duration(raw["spec"]["until"])
    played = [
        {**step, "at": _scaled(at_ns - wanted.from_ns, wanted.speed), **_changed(step, at_ns, wanted)}
        for at_ns, step in steps
        if wanted.from_ns <= at_ns and (wanted.to_ns is None or at_ns <= wanted.to_ns)
    ]
    spec = {**raw["spec"], "steps": played}
    if end_ns is not None:
        spec["until"] = _scaled(max(end_ns - wanted.from_ns, 0), wanted.speed)
    return {**raw, "spec": spec}


def _changed(step: Raw, at_ns: int, wanted: Excerpt) -> Raw:
    """Return what changes in a step: its repetitions within the excerpt, and how long a pod runs."""
    if "after" in step.get("finish", {}):
        return {"finish": {**step["finish"], "after": _scaled(parse_duration(step["finish"]["after"]), wanted.speed)}}
    given = step.get("repeat")
    if not isinstance(given, dict) or "every" not in given or (wanted.speed == 1 and wanted.to_ns is None):
        return {}
    every_ns = parse_duration(given["every"])
    repeat = {**given, "every": _scaled(every_ns, wanted.speed)}
    if wanted.to_ns is not None and every_ns > 0:
        most = (wanted.to_ns - at_ns) // every_ns + 1
        repeat["times"] = min(given.get("times", most), most)
    return {"repeat": repeat}


def _scaled(ns: int, speed: float) -> str:
    return format_duration(round(ns / speed))
