"""Nodes that are marked while pods are moved off them, where schedulers do not heed avoid lists.

The mark is a taint that no pod has to tolerate and that schedulers rate: it keeps replacements off the node where they
have another choice. It stands on the node from before the eviction until the move is over. Whoever begins anew finds
it there, and takes it off where no move is under way.
"""

from __future__ import annotations

from collections.abc import Collection

from podium.api.meta import Raw
from podium.api.node import Node
from podium.decide.rescheduling.landing import SOFT_TAINT
from podium.machines.actions import Action, PatchObject
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue
from podium.machines.rescheduling.names import RESCHEDULER

_SECOND = 10**9
_TAINT: Raw = {"key": SOFT_TAINT.key, "effect": SOFT_TAINT.effect}


class SoftTaints:
    """Marks nodes, and unmarks those that are marked and need not be."""

    def __init__(self) -> None:
        # By name, the nodes that there are: their uid, their version, and their taints.
        self._nodes: dict[str, tuple[str, str, list[Raw]]] = {}
        self._marked: dict[str, None] = {}
        # By name, the version from which a change was asked for that has not failed.
        self._asked: dict[str, str] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def changed(self, node: Node, raw: Raw) -> None:
        """The API shows a node as it is now."""
        meta = node.metadata
        taints: list[Raw] = raw.get("spec", {}).get("taints") or []
        self._nodes[meta.name] = meta.uid, meta.resource_version, taints
        if any(taint.key == SOFT_TAINT.key for taint in node.spec.taints):
            self._marked[meta.name] = None
        else:
            self._marked.pop(meta.name, None)
        if self._asked.get(meta.name, meta.resource_version) != meta.resource_version:
            del self._asked[meta.name]

    def gone(self, name: str) -> None:
        """A node is no more."""
        self._nodes.pop(name, None)
        self._marked.pop(name, None)
        self._asked.pop(name, None)
        self._queue.forget(name)

    def has(self, name: str) -> bool:
        """Whether a node is marked."""
        return name in self._marked

    def is_asked(self, name: str) -> bool:
        """Whether a change was asked for whose effect is still to be seen."""
        return name in self._asked

    def mark(self, name: str, now: int) -> list[Action]:
        """Mark a node, if that is not under way."""
        if name in self._marked or name in self._asked or name not in self._nodes:
            return []
        return [self._write(name, [*self._nodes[name][2], {**_TAINT, "value": str(now // _SECOND)}], "marked")]

    def unmark(self, but_for: Collection[str]) -> None:
        """Marks are to be taken off, but for some nodes."""
        for name in self._marked:
            if name not in but_for:
                self._queue.add(name)

    def answered(self, answered: Answered, now: int) -> None:
        """Take in how a change of a node ended."""
        action = answered.action
        if not isinstance(action, PatchObject) or answered.problem is None:
            return
        self._asked.pop(action.key, None)
        self._queue.answer(action.key, answered, now)

    def work(self, now: int, but_for: Collection[str]) -> list[Action]:
        """Take off what is due."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            if name in self._marked and name not in self._asked and name not in but_for:
                taints = [taint for taint in self._nodes[name][2] if taint.get("key") != SOFT_TAINT.key]
                actions.append(self._write(name, taints, "unmarked"))
        return actions

    def deadline(self) -> Deadline:
        """When something is due."""
        return self._queue.deadline()

    def _write(self, name: str, taints: list[Raw], what: str) -> PatchObject:
        uid, version, _ = self._nodes[name]
        self._asked[name] = version
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
        return PatchObject("Node", name, uid, patch, RESCHEDULER, message=f"{what}: pods are moved off it")
