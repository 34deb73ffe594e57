"""A decision that was written down, and how it is found among others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError
from podium.api.input.files import read_bytes


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What so many nodes were told, the first of them by name."""

    status: str
    count: int
    names: tuple[str, ...]
    plugin: str = ""
    reasons: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True, kw_only=True, rename={"violations": "pdbViolations"}):
    """A node where preemption would have made room: whom it would have cost."""

    victims: tuple[str, ...]
    violations: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What preemption found."""

    eligible: bool = False
    reason: str = ""
    candidates: dict[str, Candidate] = {}
    candidate_count: int = 0
    selected: tuple[str, ...] = ()
    rejected: tuple[Verdict, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One line of the file (`podium.app.live.decisions`)."""

    version: int
    time: str
    pod: str
    uid: str
    profile: str
    outcome: str
    instance: str = ""
    node: str = ""
    priority: int = 0
    attempt: int = 0
    woken_by: str = ""
    error: str = ""
    nodes: tuple[Verdict, ...] = ()
    totals: dict[str, int] = {}
    scores: dict[str, dict[str, int]] = {}
    best: tuple[str, ...] = ()
    preemption: Preemption | None = None
    done: tuple[dict[str, Any], ...] = ()


def find_decision(path: str, pod: str) -> tuple[Decision, dict[str, Any]]:
    """The last decision about a pod in a file, as a value and as it stands there.

    Raises InputError for a file that holds something else, PodiumError where none is about the pod.
    """
    found: bytes | None = None
    number = 0
    for place, line in _lines(path):
        try:
            if msgspec.json.decode(line, type=_About).pod == pod:
                found, number = line, place
        except msgspec.DecodeError:
            raise _unreadable(path, place) from None
    if found is None:
        raise PodiumError(f"{path}: no decision is about pod {pod}")
    try:
        return msgspec.json.decode(found, type=Decision), msgspec.json.decode(found)
    except msgspec.DecodeError:
        raise _unreadable(path, number) from None


class _About(msgspec.Struct, frozen=True):
    version: int
    pod: str


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    content = read_bytes(path)
    lines = content.split(b"\n")
    # Somebody may be writing the last one.
    if lines and not content.endswith(b"\n"):
        lines.pop()
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _unreadable(path: str, number: int) -> InputError:
    return InputError(f"line {number} is no decision, as podium scheduler --decisions writes them", source=path)
