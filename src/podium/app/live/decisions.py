"""Decisions, one JSON line each: what was decided about a pod, from what, and what else could have been.

A line holds what `podium explain` would have said then, shortened: nodes that were refused are grouped by the reason,
and of what is ranked the best are kept. `podium explain --decision` shows it.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from podium.api.errors import InputError
from podium.api.times import format_exact_time
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.app.live.observed import Attempt
from podium.controllers.actions import Action, Bind, DeleteObject, Nominate, Record, ReportStatus, ReportUnschedulable
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.framework.runner import Runner

VERSION = 1
MOST_NAMES = 20
MOST_RANKED = 10
_USUAL_BYTES = 1 << 30


class DecisionFile:
    """A file of lines. Once it has so many bytes it is kept as FILE.1, in place of the one before, and begun anew.

    A line that cannot be written is lost, and nothing else is: decisions are made all the same. ``on_problem`` is told
    what is wrong when that is another thing than before, "" once lines are written again.
    """

    def __init__(
        self, path: str, most_bytes: int = _USUAL_BYTES, on_problem: Callable[[str], None] = lambda problem: None
    ) -> None:
        """Raises InputError for a file that cannot be written."""
        self._path = Path(path)
        self._most_bytes = most_bytes
        self._on_problem = on_problem
        self._problem = ""
        # Whether the last line is there in part.
        self._is_torn = False
        try:
            self._stream = self._open()
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", source=path) from None

    def write(self, line: str) -> None:
        try:
            self._write(f"{line}\n".encode("ascii"))
        except OSError as error:
            problem = error.strerror or str(error)
        else:
            problem = ""
        if problem != self._problem:
            self._problem = problem
            self._on_problem(problem)

    def close(self) -> None:
        self._stream.close()

    def _write(self, line: bytes) -> None:
        if self._stream.closed or self._stream.tell() + len(line) > self._most_bytes:
            self._stream.close()
            # Somebody may have taken it away.
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
        # It tells what runs in the cluster: nobody else's business.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return FileIO(descriptor, "a")


class DecisionRecorder:
    """Puts together what is written of each attempt; ``instance`` is who decides, ``write`` takes a line."""

    def __init__(self, instance: str, write: Callable[[str], None]) -> None:
        self._instance = instance
        self._write = write
        self._found: dict[str, Any] = {}

    def before(self, queued: QueuedPod, runner: Runner, now: int) -> None:
        """An attempt begins: take down what it is made from, by asking the same once more in full."""
        pod = queued.record
        explanation = Explanation.of(explain_decision(runner, pod))
        found = explanation.to_dict()
        found.pop("caveats", None)
        found["nodes"] = grouped(found.get("nodes", {}))
        for field in ("scores", "totals"):
            if field in found:
                found[field] = _best(found[field], explanation.totals)
        if "preemption" in found:
            found["preemption"] = _shortened(found["preemption"])
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

    def after(self, attempt: Attempt, actions: list[Action]) -> None:
        """The attempt has ended with what is to be done."""
        line = {**self._found, "done": list(_done(attempt.uid, actions))}
        self._write(json.dumps(line, separators=(",", ":")))


def _done(uid: str, actions: Iterable[Action]) -> Iterable[dict[str, Any]]:
    """What the scheduler asks for, in its order."""
    for action in actions:
        match action:
            case Bind():
                yield {"action": "bind", "pod": action.pod, "uid": action.uid, "node": action.node_name}
            case Nominate():
                yield {"action": "nominate", "pod": action.pod, "uid": action.uid, "node": action.node_name}
            case ReportUnschedulable():
                told = {"reason": action.reason, "message": action.message}
                if action.nominated_node_name is not None:
                    told["nominatedNode"] = action.nominated_node_name
                yield {"action": "report", "pod": action.pod, "uid": action.uid, **told}
            case ReportStatus():
                yield {"action": "mark", "pod": action.key, "uid": action.uid, "for": action.cause}
            case DeleteObject():
                yield {"action": "delete", "pod": action.key, "uid": action.uid, "for": action.cause}
            case Record() if action.reason != "FailedScheduling" or action.uid != uid:
                yield {"action": "event", "pod": action.pod, "reason": action.reason, "message": action.message}


def grouped(nodes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The verdicts about nodes: each with how many got it, and the first of them by name."""
    groups: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for name in sorted(nodes):
        verdict = nodes[name]
        groups.setdefault(json.dumps(verdict, sort_keys=True), (verdict, []))[1].append(name)
    in_order = sorted(groups.values(), key=lambda group: (-len(group[1]), group[1]))
    return [{**verdict, "count": len(names), "names": names[:MOST_NAMES]} for verdict, names in in_order]


def _best(values: Mapping[str, Any], totals: Mapping[str, int]) -> dict[str, Any]:
    names = sorted(values, key=lambda name: (-totals.get(name, 0), name))[:MOST_RANKED]
    return {name: values[name] for name in names}


def _shortened(preemption: dict[str, Any]) -> dict[str, Any]:
    """A plan with the nodes that were selected, and some of the other candidates."""
    candidates = preemption.get("candidates", {})
    selected = preemption.get("selected", [])
    names = dict.fromkeys((*selected[:MOST_RANKED], *sorted(candidates)))
    kept = [name for name in names if name in candidates][:MOST_RANKED]
    found = {**preemption, "candidates": {name: candidates[name] for name in kept}, "candidateCount": len(candidates)}
    if "rejected" in found:
        found["rejected"] = grouped(found["rejected"])
    return found
