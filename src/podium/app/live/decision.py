"""A decision that was written down, and how it is found among others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError
from podium.api.input.files import read_bytes
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, names_of


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


_SAID = {
    "schedulable": ("fits", "good"),
    "preempts": ("fits after preemption", "warn"),
    "unschedulable": ("fits nowhere", "bad"),
    "not-eligible": ("fits nowhere, and may not preempt", "bad"),
    "gated": ("is not to be scheduled yet", "warn"),
    "error": ("could not be decided", "bad"),
}
_SHOWN = 5


def write_decision(page: Page, decision: Decision) -> None:
    """Write what was decided, from what, and what was done about it."""
    said, style = _SAID.get(decision.outcome, (decision.outcome, ""))
    where = f": {decision.node}" if decision.node else ""
    page.line(f"Pod {decision.pod} ", Cell(f"{said}{where}", style))
    woken = f", woken by {decision.woken_by}" if decision.woken_by else ""
    page.paragraph(
        f"Decided at {decision.time} by {decision.instance or 'somebody'} for profile {decision.profile}: attempt "
        f"{decision.attempt}{woken}, priority {decision.priority}.",
        indent=2,
    )
    if decision.error:
        page.paragraph(Cell(decision.error, "bad"), indent=2)
    if decision.nodes:
        page.title("Nodes", counted(sum(verdict.count for verdict in decision.nodes), "node"))
        page.columns([_verdict(verdict) for verdict in decision.nodes], indent=2, right=[0])
    if decision.totals:
        page.title("Scores", "the best")
        rows = sorted(decision.totals.items(), key=lambda total: (-total[1], total[0]))[:_SHOWN]
        page.columns([_score(decision, name, total) for name, total in rows], indent=2, right=[1])
    if decision.preemption is not None:
        _write_preemption(page, decision.preemption)
    if decision.done:
        page.title("Asked for")
        for done in decision.done:
            page.paragraph(_done(done), indent=2, hanging=2)


def _verdict(verdict: Verdict) -> tuple[str, str, str]:
    names = ", ".join(verdict.names[:_SHOWN])
    more = f" and {verdict.count - len(verdict.names[:_SHOWN]):,} more" if verdict.count > _SHOWN else ""
    why = "; ".join(verdict.reasons) or ("fits" if verdict.status == "Success" else verdict.status)
    plugin = f" ({verdict.plugin})" if verdict.plugin else ""
    return str(verdict.count), f"{why}{plugin}", f"{names}{more}"


def _score(decision: Decision, name: str, total: int) -> tuple[Part, str, str]:
    parts = decision.scores.get(name, {})
    in_order = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    listed = ", ".join(f"{plugin} {score}" for plugin, score in in_order)
    return Name(name, NODES), str(total), listed


def _write_preemption(page: Page, preemption: Preemption) -> None:
    page.title("Preemption", counted(preemption.candidate_count, "candidate"))
    if preemption.reason:
        page.paragraph(preemption.reason, indent=2)
    rows = [
        (
            Name(name, NODES, "good" if name in preemption.selected else ""),
            counted(len(candidate.victims), "victim"),
            f"{candidate.violations} against budgets" if candidate.violations else "",
            names_of(candidate.victims, PODS),
        )
        for name, candidate in preemption.candidates.items()
    ]
    if rows:
        page.columns(rows, indent=2)


def _done(done: dict[str, object]) -> str:
    rest = " ".join(f"{name}={value}" for name, value in done.items() if name not in ("action", "pod", "uid"))
    return f"{done.get('action')} {done.get('pod')} {rest}".rstrip()
