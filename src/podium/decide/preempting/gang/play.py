"""Members on their nodes with the victims gone: the live cluster with changes that are taken back.

So filters answer about what there would be, members included, whatever they look at.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go (selectVictimsOnDomain), which changes its snapshot in
the same way, and has plugins reserve what a member takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang import Gang
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling
from podium.framework.group_plugin import GroupHandle
from podium.framework.plugin import ReservePlugin
from podium.framework.verdicts import Outcome

LEAST_STEPS = 50
"""A question to the filters is one step for each node it is about, and so many at least: asking costs that much."""

_NO_ROWS: Int64s = np.empty(0, dtype=np.int64)


class Play:
    """Tries where members fit, until its `with` block ends. The nominations of members do not count while it lasts."""

    def __init__(self, handle: GroupHandle, gang: Gang) -> None:
        self.handle = handle
        self.cluster = handle.cluster
        self.steps = 0
        self._gang = gang
        self._undo: list[Callable[[], object]] = []
        self.base = 0

    def __enter__(self) -> Play:
        for member in self._gang.members:
            self._set_aside(member)
        self.base = self.mark()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.roll_back(0)

    def mark(self) -> int:
        """The state as it is now, for `roll_back`."""
        return len(self._undo)

    def roll_back(self, mark: int) -> None:
        """Undo what was changed since the mark, the last first."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def take(self, victims: Iterable[PodRecord]) -> None:
        """Let victims be gone; those that are gone already are passed over."""
        for victim in victims:
            if victim.uid in self.cluster.placed:
                self._undo.append(partial(self.cluster.add_pod, self.cluster.remove_pod(victim.uid)))

    def asked(self, pod: PodRecord) -> tuple[CycleState, Int64s | None]:
        """What the PreFilters prepare for a pod, and the rows that they leave in; None for all."""
        state = CycleState()
        found = self.handle.pre_filter(state, pod)
        return state, found.rows if found.status.is_success else _NO_ROWS

    def fitting(self, pod: PodRecord, rows: Int64s | None = None) -> tuple[CycleState, Int64s]:
        """The rows, of ``rows`` (ascending) or of all, that take the pod as things are; ascending."""
        state, left = self.asked(pod)
        if left is not None:
            rows = left if rows is None else np.intersect1d(rows, left)
            if not len(rows):
                return state, _NO_ROWS
        outcome: Outcome = self.handle.filter(state, pod, rows)
        self.count(len(outcome.refused))
        feasible = outcome.feasible
        return state, feasible if rows is None else rows[feasible]

    def put(self, member: PodRecord, row: int) -> bool:
        """Let a member be on a node, where it fits there."""
        state, rows = self.fitting(member, np.array([row], dtype=np.int64))
        return bool(len(rows)) and self.put_asked(state, member, row)

    def put_asked(self, state: CycleState, member: PodRecord, row: int) -> bool:
        """The same for one that fits, by the answer for this state; False where a plugin reserves nothing for it."""
        mark = self.mark()
        name = self.cluster.nodes.name(row)
        self.cluster.add_pod(member.on_node(name))
        self._undo.append(partial(self.cluster.remove_pod, member.uid))
        for plugin in self.handle.reserving:
            if _has_nothing_for(plugin, state):
                continue
            self._undo.append(partial(plugin.unreserve, state, member, name))
            with Calling(plugin.name, "Reserve", member):
                status = plugin.reserve(state, member, name)
            if not status.is_success:
                self.roll_back(mark)
                return False
        return True

    def reserves(self, members: Iterable[PodRecord]) -> bool:
        """Whether plugins reserve something for some members beside their room."""
        for member in members:
            state, _ = self.asked(member)
            if not all(_has_nothing_for(plugin, state) for plugin in self.handle.reserving):
                return True
        return False

    def count(self, rows: int) -> None:
        """A question about so many rows was asked."""
        self.steps += max(rows, LEAST_STEPS)

    def _set_aside(self, member: PodRecord) -> None:
        nominations = self.cluster.nominations
        name = nominations.node_of(member.uid)
        if not name:
            return
        nominated = next(pod for pod in nominations.on(name) if pod.uid == member.uid)
        self._undo.append(partial(nominations.put, nominated, name, nominations.victims_of(member.uid)))
        nominations.remove(member.uid)


def _has_nothing_for(plugin: ReservePlugin, state: CycleState) -> bool:
    """Whether a plugin need not be asked about a pod, for which it has left nothing in the state."""
    return bool(vars(type(plugin)).get("needs_state")) and state.get(plugin.name) is None
