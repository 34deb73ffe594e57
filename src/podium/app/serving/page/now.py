"""The problems of a cluster now: read from its objects at once, and evaluated in a process of its own now and then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.meta import Raw, key_of
from podium.api.node import Node
from podium.api.pod import Pod
from podium.app.console.cells import by_key
from podium.app.explaining.obstacles import taint_text
from podium.app.serving.page.answering import Answering
from podium.cluster.pods import PREEMPTED
from podium.store.errors import StoreError
from podium.store.stored import Stored, encoded

if TYPE_CHECKING:
    from podium.app.serving.page.watching import ShownCluster

NOW = "now"
"""The question of which the answer is the evaluation."""

MAX_ROWS = 30
"""The most rows of each list."""

MAX_NAMES = 5
"""The most names in a row."""

_MAX_REASONS = 500
_MAX_VICTIMS = 100
_LEAST_INTERVAL_S = 15.0
# So many times as long as an evaluation takes is left to everything else.
_SHARE = 3
_UNTRIED = "no scheduler has reported a decision about it"
_OWN_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class NowView:
    """The answer of the view; evaluations are repeated while a page asks for it and the cluster changes."""

    def __init__(self) -> None:
        self._answering = Answering(seconds=300.0, at_once=1)
        self._running: asyncio.Task[None] | None = None
        self._evaluation: dict[str, Any] | None = None
        self._evaluated: list[int] = []
        self._next_s = 0.0
        self._state: dict[str, Any] = {"progress": None, "problem": ""}

    async def answer(self, shown: ShownCluster) -> dict[str, Any]:
        """Return the state of the cluster and the last evaluation, and begin the next one if it is due."""
        await shown.idle()
        objects = shown.objects()
        versions = [each.version for each in objects]
        is_idle = self._running is None or self._running.done()
        if is_idle and versions != self._evaluated and time.monotonic() >= self._next_s:
            self._evaluated, self._state = versions, {"progress": 0.0, "problem": ""}
            self._running = asyncio.ensure_future(self._evaluate(shown, objects))
        state = {**self._state, "now": shown.now() // 10**6, "evaluation": self._evaluation}
        return {**state_of(objects, shown.events()), **state}

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._answering.close()

    async def _evaluate(self, shown: ShownCluster, objects: Sequence[Stored]) -> None:
        began_s, at_ns = time.monotonic(), shown.now()
        question = encoded({"question": NOW, "values": {}})
        try:
            async with self._answering.ask(question, objects, replace(shown.options, start_ns=at_ns)) as lines:
                async for line in lines:
                    found = msgspec.json.decode(line)
                    self._state = {"progress": found.get("progress", 1.0), "problem": found.get("error", "")}
                    if "answer" in found:
                        answer = found["answer"]
                        stamp = {"at": at_ns // 10**6, "seconds": round(time.monotonic() - began_s, 1)}
                        # The time is that of the oldest part.
                        known = {**(self._evaluation or stamp), **(stamp if "losses" in answer else {})}
                        self._evaluation = {**known, **answer}
        except (OSError, StoreError) as error:
            self._state["problem"] = str(error)
        finally:
            self._state["progress"] = None
            ended_s = time.monotonic()
            self._next_s = ended_s + max(_LEAST_INTERVAL_S, _SHARE * (ended_s - began_s))


def state_of(objects: Iterable[Stored], events: Iterable[Stored]) -> dict[str, Any]:
    """Return the pending pods by reason, the nodes by what is unusual about them, and the last preemptions.

    ``reasons`` are those that only events say, by pod.
    """
    kinds, recorded = by_key((each.kind, each) for each in objects), [event.raw for event in events]
    pods = {each.key: each.object for each in kinds.get("Pod", []) if isinstance(each.object, Pod)}
    nodes = {each.key: each.object for each in kinds.get("Node", []) if isinstance(each.object, Node)}
    failed = (event for event in recorded if event.get("reason") == "FailedScheduling")
    reported = {key_of(event.get("involvedObject") or {}): event.get("message", "") for event in failed}
    waiting = {key: pod for key, pod in pods.items() if not pod.spec.node_name and pod.status.phase == "Pending"}
    scheduled_conditions = ((key, pod.status.condition("PodScheduled")) for key, pod in waiting.items())
    conditions = {
        key: condition.message or condition.reason for key, condition in scheduled_conditions if condition is not None
    }
    reasons = {key: conditions.get(key) or reported.get(key, "") for key in waiting}
    groups = by_key((reason or _UNTRIED, key) for key, reason in reasons.items())
    pending = [{"reason": reason, **first_names(keys)} for reason, keys in groups.items()]
    marks = by_key((mark, key) for key, node in nodes.items() for mark in _marks(node))
    unusual = [{"kind": kind, "mark": mark, **first_names(names)} for (_, kind, mark), names in sorted(marks.items())]
    return {
        "counts": {"nodes": len(nodes), "pods": len(pods), "pending": len(reasons)},
        "pending": sorted(pending, key=lambda row: (-row["number"], row["names"]))[:MAX_ROWS],
        "reasons": dict(islice(((key, reported[key]) for key in reasons.keys() & reported.keys()), _MAX_REASONS)),
        "nodes": unusual[:MAX_ROWS],
        "preemptions": _preemptions(recorded, pods),
    }


def _marks(node: Node) -> Iterator[tuple[int, str, str]]:
    """Yield what is unusual about a node: rank, kind and text."""
    for condition in node.status.conditions:
        text = condition.message or condition.reason or condition.status
        if condition.type == "Ready" and condition.status != "True":
            yield 0, "bad", f"not ready: {text}"
        elif condition.type != "Ready" and condition.status == "True":
            yield 1, "bad", f"{condition.type}: {text}"
    if node.spec.unschedulable:
        yield 2, "warn", "cordoned"
    for taint in node.spec.taints:
        if not taint.key.startswith(_OWN_TAINTS):
            yield 3, "note", f"taint {taint_text(taint)}"


def _preemptions(events: Iterable[Raw], pods: Mapping[str, Pod]) -> list[dict[str, str]]:
    """Return the victims with their preemptors, the last first: from events, and while they end from conditions."""
    keys = {pod.metadata.uid: key for key, pod in pods.items()}
    nominated = {pod.status.nominated_node_name: key for key, pod in pods.items()}
    found = {}
    for key, pod in pods.items():
        target = pod.metadata.deletion_timestamp and pod.status.condition("DisruptionTarget")
        if target and target.reason == PREEMPTED:
            node = pod.spec.node_name
            found[key] = {"preemptor": nominated.get(node, ""), "node": node, "at": ""}
    for event in events:
        if event.get("reason") == "Preempted":
            uid, _, node = event.get("message", "").removeprefix("Preempted by pod ").partition(" on node ")
            preemptor = key_of(event.get("related") or {}) or keys.get(uid, uid)
            victim = key_of(event.get("involvedObject") or {})
            found[victim] = {"preemptor": preemptor, "node": node, "at": _time_of(event)}
    rows = [{"victim": key, **row} for key, row in found.items()]
    return sorted(rows, key=lambda row: (row["at"], row["victim"]), reverse=True)[:_MAX_VICTIMS]


def described(shown: ShownCluster, kind: str, key: str) -> dict[str, Any]:
    """Return the status of an object and its events, the last first. Raises StoreError if there is no such object."""
    found = next((each for each in shown.objects() if (each.kind, each.key) == (kind, key)), None)
    if found is None:
        raise StoreError(404, "NotFound", f"{kind} {key} is not found")
    about = (event.raw for event in shown.events() if event.raw.get("involvedObject", {}).get("kind") == kind)
    events = [{**event, "at": _time_of(event)} for event in about if key_of(event.get("involvedObject") or {}) == key]
    events.sort(key=lambda event: (event["at"], event["metadata"]["name"]), reverse=True)
    return {"status": found.raw.get("status", {}), "events": events[:30]}


def _time_of(event: Raw) -> str:
    series, created = event.get("series") or {}, event["metadata"].get("creationTimestamp")
    return series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or created or ""


def first_names(names: Sequence[str]) -> dict[str, Any]:
    """Return the number of names, and the first of them."""
    return {"number": len(names), "names": names[:MAX_NAMES]}
