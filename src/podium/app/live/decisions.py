"""The decision log: JSON lines that a scheduler writes and `podium explain --decision` shows.

A line is the answer of `podium explain` at that time, shortened: rejected nodes are grouped by reason, and only the
best ranked nodes are kept.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from podium.api.errors import InputError, PodiumError, os_error_as
from podium.api.input.files import read_bytes
from podium.api.times import format_exact_time
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, counted, names_of
from podium.app.explaining.attempts import explain_decision
from podium.controllers.actions import Action, Bind, DeleteObject, Nominate, Record, ReportStatus, ReportUnschedulable
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.runner import Runner

VERSION = 1
MAX_NAMES = 20
MAX_RANKED = 10


class DecisionFile:
    """A file of lines. Once it has ``max_bytes`` bytes it is rotated: renamed to FILE.1, which it replaces.

    A line that cannot be written is lost; the scheduler keeps deciding. ``on_problem`` is called when the problem
    changes, with "" once lines are written again.
    """

    def __init__(
        self, path: str, max_bytes: int = 1 << 30, on_problem: Callable[[str], None] = lambda problem: None
    ) -> None:
        """Open the file. Raises InputError if it cannot be written."""
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._on_problem = on_problem
        self._problem = ""
        # Whether the last line is incomplete.
        self._is_torn = False
        with os_error_as("cannot be written", path):
            self._stream = self._open()

    def write(self, line: str) -> None:
        problem = ""
        try:
            self._write(f"{line}\n".encode("ascii"))
        except OSError as error:
            problem = error.strerror or str(error)
        if problem != self._problem:
            self._problem = problem
            self._on_problem(problem)

    def close(self) -> None:
        self._stream.close()

    def _write(self, line: bytes) -> None:
        if self._stream.closed or self._stream.tell() + len(line) > self._max_bytes:
            self._stream.close()
            # Another process may have removed the file.
            with suppress(FileNotFoundError):
                self._path.replace(f"{self._path}.1")
            self._stream = self._open()
        if self._is_torn:
            line = b"\n" + line
        count = self._stream.write(line)
        self._is_torn = count < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> FileIO:
        # The file shows what runs in the cluster: only its owner may read it.
        return FileIO(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a")


class DecisionRecorder:
    """The recorder of attempts; ``instance`` identifies the scheduler, ``write`` receives each line."""

    def __init__(self, instance: str, write: Callable[[str], None]) -> None:
        self._instance = instance
        self._write = write
        self._found: dict[str, Any] = {}

    def before(self, queued: QueuedPod, runner: Runner, now: int) -> None:
        """Explain the decision in full before the attempt, and keep the explanation for its line."""
        pod = queued.record
        explanation = explain_decision(runner, pod)
        found = explanation.to_dict()
        found.pop("caveats", None)
        found["nodes"] = grouped(found.get("nodes", {}))
        for field in ("scores", "totals"):
            if field in found:
                names = sorted(found[field], key=lambda name: (-explanation.totals.get(name, 0), name))[:MAX_RANKED]
                found[field] = {name: found[field][name] for name in names}
        if "preemption" in found:
            # The selected nodes, and some of the other candidates.
            preemption = found["preemption"]
            candidates = preemption.get("candidates", {})
            order = dict.fromkeys((*preemption.get("selected", [])[:MAX_RANKED], *sorted(candidates)))
            shown = {name: candidates[name] for name in [name for name in order if name in candidates][:MAX_RANKED]}
            found["preemption"] = {**preemption, "candidates": shown, "candidateCount": len(candidates)}
            if "rejected" in preemption:
                found["preemption"]["rejected"] = grouped(preemption["rejected"])
        self._found = {
            "version": VERSION,
            "time": format_exact_time(now),
            "instance": self._instance,
            "uid": pod.uid,
            "profile": pod.scheduler_name,
            "priority": pod.priority,
            "attempt": queued.attempts,
            "wokenBy": queued.woken_by,
            **found,
        }

    def after(self, uid: str, actions: list[Action]) -> None:
        """Write the line of the attempt to schedule the pod with this UID, with its actions."""
        done: list[dict[str, Any]] = []
        for action in actions:
            match action:
                case Bind() | Nominate():
                    what = "bind" if isinstance(action, Bind) else "nominate"
                    done.append({"action": what, "pod": action.pod, "uid": action.uid, "node": action.node_name})
                case ReportUnschedulable():
                    report = {"reason": action.reason, "message": action.message}
                    if action.nominated_node_name is not None:
                        report["nominatedNode"] = action.nominated_node_name
                    done.append({"action": "report", "pod": action.pod, "uid": action.uid, **report})
                case ReportStatus() | DeleteObject():
                    what = "mark" if isinstance(action, ReportStatus) else "delete"
                    done.append({"action": what, "pod": action.key, "uid": action.uid, "for": action.cause})
                case Record() if action.reason != "FailedScheduling" or action.uid != uid:
                    event = {"reason": action.reason, "message": action.message}
                    done.append({"action": "event", "pod": action.pod, **event})
        self._write(json.dumps({**self._found, "done": done}, separators=(",", ":")))


def grouped(nodes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Group the nodes by verdict: each with the number of its nodes, and the first of them by name."""
    groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for name in sorted(nodes):
        verdict = nodes[name]
        groups.setdefault(json.dumps(verdict, sort_keys=True), (verdict, []))[1].append(name)
    in_order = sorted(groups.values(), key=lambda group: (-len(group[1]), group[1]))
    return [{**verdict, "count": len(names), "names": names[:MAX_NAMES]} for verdict, names in in_order]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that ``count`` nodes share; ``names`` are the first of them."""

    status: str
    count: int
    names: tuple[str, ...]
    plugin: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The reasons with the plugin's name; `fits` for success."""
        why = "; ".join(self.reasons) or ("fits" if self.status == "Success" else self.status)
        return f"{why} ({self.plugin})" if self.plugin else why


class LoggedCandidate(msgspec.Struct, frozen=True, kw_only=True, rename={"violations": "pdbViolations"}):
    """A node where preemption would have made room, and its victims."""

    victims: tuple[str, ...]
    violations: int = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of preemption."""

    eligible: bool = False
    reason: str = ""
    candidates: dict[str, LoggedCandidate] = {}
    candidate_count: int = 0
    selected: tuple[str, ...] = ()
    rejected: tuple[Verdict, ...] = ()


class WrittenDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
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


def find_decision(path: str, pod: str) -> tuple[WrittenDecision, dict[str, Any]]:
    """Return the last decision about a pod in a file, decoded and as raw JSON.

    Raises InputError if the file is not a decision log, PodiumError if no decision is about the pod.
    """
    found, number, place = b"", 0, 0
    try:
        # The text after the last line end is empty, or the scheduler is still writing it.
        for number, line in enumerate(read_bytes(path).split(b"\n")[:-1], 1):
            if line.strip() and msgspec.json.decode(line, type=_About).pod == pod:
                found, place = line, number
        if found:
            number = place
            return msgspec.json.decode(found, type=WrittenDecision), msgspec.json.decode(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = f"line {number} is not a decision of podium scheduler --decisions"
        raise InputError(problem, source=path) from None
    raise PodiumError(f"{path}: no decision is about pod {pod}")


class _About(msgspec.Struct, frozen=True):
    version: int
    pod: str


_OUTCOMES = {
    "schedulable": ("fits", "good"),
    "preempts": ("fits after preemption", "warn"),
    "unschedulable": ("fits nowhere", "bad"),
    "not-eligible": ("fits nowhere, and may not preempt", "bad"),
    "gated": ("is not to be scheduled yet", "warn"),
    "error": ("could not be decided", "bad"),
}
_SHOWN = 5


def facts_of_written(decision: WrittenDecision) -> str:
    """Return when, by which instance and for which attempt the decision was made."""
    woken = f", woken by {decision.woken_by}" if decision.woken_by else ""
    by = f"decided at {decision.time} by {decision.instance or 'an unknown scheduler'} for profile {decision.profile}"
    return f"{by}: attempt {decision.attempt}{woken}, priority {decision.priority}"


def write_decision(page: Page, decision: WrittenDecision) -> None:
    """Write the decision, its reasons, and the actions that followed."""
    outcome, style = _OUTCOMES.get(decision.outcome, (decision.outcome, ""))
    where = f": {decision.node}" if decision.node else ""
    page.line(f"Pod {decision.pod} ", Cell(f"{outcome}{where}", style))
    facts = facts_of_written(decision)
    page.paragraph(f"{facts[0].upper()}{facts[1:]}.", indent=2)
    if decision.error:
        page.paragraph(Cell(decision.error, "bad"), indent=2)
    if decision.nodes:
        page.title("Nodes", counted(sum(verdict.count for verdict in decision.nodes), "node"))
        page.table(list(map(_verdict_row, decision.nodes)))
    if decision.totals:
        page.title("Scores", "the best")
        totals = sorted(decision.totals.items(), key=lambda total: (-total[1], total[0]))[:_SHOWN]
        page.table([(Name(name, NODES), total, _scores_text(decision.scores.get(name, {}))) for name, total in totals])
    preemption = decision.preemption
    if preemption is not None:
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
        page.table(rows)
    if decision.done:
        page.title("Asked for")
    for done in decision.done:
        rest = " ".join(f"{name}={value}" for name, value in done.items() if name not in ("action", "pod", "uid"))
        page.paragraph(f"{done.get('action')} {done.get('pod')} {rest}".rstrip(), indent=2, hanging=2)


def _verdict_row(verdict: Verdict) -> tuple[int, str, str]:
    more = f" and {verdict.count - len(verdict.names[:_SHOWN]):,} more" if verdict.count > _SHOWN else ""
    return verdict.count, verdict.text, f"{', '.join(verdict.names[:_SHOWN])}{more}"


def _scores_text(scores: dict[str, int]) -> str:
    return ", ".join(f"{plugin} {scores[plugin]}" for plugin in sorted(scores, key=lambda name: (-scores[name], name)))
