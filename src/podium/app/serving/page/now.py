"""What is wrong in a cluster now: read from its objects at once, and evaluated in a process of its own now and then."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.api.nested import objects_at
from podium.api.node import Node
from podium.api.pod import Pod
from podium.app.console.cells import by_key
from podium.app.serving.page.answering import Answering, AskingLimits
from podium.app.serving.page.watching import Shown
from podium.store.errors import StoreError
from podium.store.stored import Stored, encoded

NOW = "now"
"""The question of which the answer is the evaluation."""

MAX_ROWS = 30
"""The most rows of each list."""

MAX_NAMES = 5
"""The most names in a row."""

_MAX_REASONS = 500
_MAX_EVENTS = 30
_LEAST_INTERVAL_S = 15.0
# So many times as long as an evaluation takes is left to everything else.
_SHARE = 3
_UNTRIED = "no scheduler has reported a decision about it"
_OWN_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class NowView:
    """The answer of the view; evaluations are repeated while a page asks for it and the cluster changes."""

    def __init__(self) -> None:
        self._answering = Answering(AskingLimits(seconds=300.0, at_once=1))
        self._running: asyncio.Task[None] | None = None
        self._evaluation: dict[str, Any] | None = None
        self._evaluated: list[int] = []
        self._next_s = 0.0
        self._state: dict[str, Any] = {"progress": None, "problem": ""}

    async def answer(self, shown: Shown) -> dict[str, Any]:
        """Return the state of the cluster and the last evaluation, and begin the next one if it is due."""
        await shown.idle()
        objects = shown.objects()
        versions = [each.version for each in objects]
        is_running = self._running is not None and not self._running.done()
        if not is_running and versions != self._evaluated and time.monotonic() >= self._next_s:
            self._evaluated = versions
            self._running = asyncio.ensure_future(self._evaluate(shown, objects))
        return {
            **state_of(objects, shown.events()),
            **self._state,
            "now": shown.now() // 10**6,
            "evaluation": self._evaluation,
        }

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._answering.close()

    async def _evaluate(self, shown: Shown, objects: Sequence[Stored]) -> None:
        began_s, at_ns = time.monotonic(), shown.now()
        question = encoded({"question": NOW, "values": {}})
        self._state = {"progress": 0.0, "problem": ""}
        try:
            async with self._answering.asked(question, objects, replace(shown.options, start_ns=at_ns)) as lines:
                async for line in lines:
                    found = msgspec.json.decode(line)
                    self._state["progress"] = found.get("progress")
                    self._state["problem"] = found.get("error", "")
                    if "answer" in found:
                        seconds = round(time.monotonic() - began_s, 1)
                        self._evaluation = {**found["answer"], "at": at_ns // 10**6, "seconds": seconds}
        except (OSError, StoreError) as error:
            self._state["problem"] = str(error)
        finally:
            self._state["progress"] = None
            ended_s = time.monotonic()
            self._next_s = ended_s + max(_LEAST_INTERVAL_S, _SHARE * (ended_s - began_s))


def state_of(objects: Iterable[Stored], events: Iterable[Stored]) -> dict[str, Any]:
    """Return the pending pods by reason, the nodes by what is unusual about them, and the last preemptions."""
    kinds, recorded = by_key((each.kind, each) for each in objects), list(events)
    nodes = kinds.get("Node", [])
    reported: dict[str, str] = {}
    for event in recorded:
        if event.raw.get("reason") == "FailedScheduling":
            reported[_subject(event.raw, "involvedObject")] = str(event.raw.get("message", ""))
    pods: dict[str, Pod] = {each.key: each.object for each in kinds.get("Pod", []) if isinstance(each.object, Pod)}
    pending = [(key, pod) for key, pod in pods.items() if not pod.spec.node_name and pod.status.phase == "Pending"]
    reasons = {key: _waits_for(pod) or reported.get(key, "") for key, pod in pending}
    groups = by_key((reason or _UNTRIED, key) for key, reason in reasons.items())
    marks = by_key((mark, each.key) for each in nodes if isinstance(each.object, Node) for mark in _marks(each.object))
    grouped = [{"mark": mark, "kind": kind, **few(names)} for (_, kind, mark), names in sorted(marks.items())]
    return {
        "counts": {"nodes": len(nodes), "pods": len(pods), "pending": len(pending)},
        "pending": _longest([{"reason": reason, **few(keys)} for reason, keys in groups.items()]),
        "reasons": dict(list({key: text for key, text in reasons.items() if text}.items())[:_MAX_REASONS]),
        "nodes": grouped[:MAX_ROWS],
        "preemptions": _preemptions(recorded, pods),
    }


def _waits_for(pod: Pod) -> str:
    """Return why a pod waits by its condition, "" if it has none."""
    condition = pod.status.condition("PodScheduled")
    return "" if condition is None or condition.status == "True" else condition.message or condition.reason


def _marks(node: Node) -> Iterator[tuple[int, str, str]]:
    """Yield what is unusual about a node: rank, kind and text."""
    for condition in node.status.conditions:
        if condition.type == "Ready" and condition.status != "True":
            yield 0, "bad", f"not ready: {condition.message or condition.reason or condition.status}"
        elif condition.type != "Ready" and condition.status == "True":
            yield 1, "bad", f"{condition.type}: {condition.message or condition.reason}".rstrip(": ")
    if node.spec.unschedulable:
        yield 2, "warn", "cordoned"
    for taint in node.spec.taints:
        if not taint.key.startswith(_OWN_TAINTS):
            yield 3, "note", f"taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _preemptions(events: Iterable[Stored], pods: Mapping[str, Pod]) -> list[dict[str, Any]]:
    """Return the preemptions, the last first, each with its preemptor and its victims.

    They follow from events, and for victims without one from their condition.
    """
    key_of = {pod.metadata.uid: key for key, pod in pods.items()}
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def note(preemptor: str, node: str, victim: str, at: str) -> None:
        entry = found.setdefault((preemptor, node), {"preemptor": preemptor, "node": node, "victims": [], "at": ""})
        entry["victims"] += [victim] if victim not in entry["victims"] else []
        entry["at"] = max(entry["at"], at)

    for event in events:
        if event.raw.get("reason") == "Preempted":
            message = str(event.raw.get("message", ""))
            uid, _, node = message.removeprefix("Preempted by pod ").partition(" on node ")
            preemptor = _subject(event.raw, "related") or key_of.get(uid, uid)
            note(preemptor, node, _subject(event.raw, "involvedObject"), _time_of(event.raw))
    known = {victim for entry in found.values() for victim in entry["victims"]}
    nominated = {pod.status.nominated_node_name: key for key, pod in pods.items() if pod.status.nominated_node_name}
    for key, pod in pods.items():
        target = pod.status.condition("DisruptionTarget")
        if target is not None and target.reason == "PreemptionByScheduler" and key not in known:
            note(nominated.get(pod.spec.node_name, ""), pod.spec.node_name, key, "")
    rows = sorted(found.values(), key=lambda entry: (entry["at"], entry["preemptor"], entry["node"]), reverse=True)
    return [{**entry, "victims": few(sorted(entry["victims"]))} for entry in rows[:MAX_ROWS]]


def described(shown: Shown, kind: str, key: str) -> dict[str, Any]:
    """Return the conditions of an object, the states of its containers, and its events, the last first.

    Raises StoreError if there is no such object.
    """
    found = next((each for each in shown.objects() if (each.kind, each.key) == (kind, key)), None)
    if found is None:
        raise StoreError(404, "NotFound", f"{kind} {key} is not found")
    status = found.raw.get("status", {})
    events = [
        {name: event.raw.get(name, "") for name in ("type", "reason", "message", "count")} | {"at": _time_of(event.raw)}
        for event in shown.events()
        if event.raw.get("involvedObject", {}).get("kind") == kind and _subject(event.raw, "involvedObject") == key
    ]
    last = deque(sorted(events, key=lambda event: (event["at"], event["reason"], event["message"])), _MAX_EVENTS)
    containers = [
        {"name": each.get("name", ""), "state": state, **{name: value.get(name, "") for name in ("reason", "message")}}
        for field in ("initContainerStatuses", "containerStatuses")
        for each in objects_at(status, field)
        for state, value in each.get("state", {}).items()
    ]
    return {"conditions": objects_at(status, "conditions"), "containers": containers, "events": list(last)[::-1]}


def _subject(event: Raw, field: str) -> str:
    """Return the key of the object in a field of an event."""
    subject = event.get(field) or {}
    return "/".join(filter(None, (subject.get("namespace", ""), subject.get("name", ""))))


def _time_of(event: Raw) -> str:
    series = event.get("series") or {}
    created = event.get("metadata", {}).get("creationTimestamp")
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"), created)
    return next((str(each) for each in times if each), "")


def few(names: Sequence[str]) -> dict[str, Any]:
    """Return the number of names, and the first of them."""
    return {"number": len(names), "names": names[:MAX_NAMES]}


def _longest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (-row["number"], row["names"]))[:MAX_ROWS]
