"""A cluster with changes that are taken back: what would fit where if nodes and pods came, moved and went.

The cluster that is changed is the live one. Nothing is copied, and between the changes and their end nobody else looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.resource_claims import ResourceClaim
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.ties import pick
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.pre_filters import PreFiltered
from podium.framework.runner import Runner
from podium.framework.status import unresolvable
from podium.framework.verdicts import Outcome


class Follower(Protocol):
    """Who changes something else with each pod that comes or leaves, in the same scratch."""

    def left(self, pod: PodRecord) -> None:
        """A pod has left its node."""
        ...

    def comes(self, pod: PodRecord, row: int) -> None:
        """A pod is about to be on the node in ``row``."""
        ...


class Scratch:
    """Changes to a cluster, undone from the last to the first when its `with` block ends.

    ``runners`` filter for the schedulers of their names; the first one stands in for schedulers that are not known.
    """

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner], seed: int = 0) -> None:
        self.cluster = cluster
        self._runners = runners
        self._default = next(iter(runners.values()))
        self._seed = seed
        self._undo: list[Callable[[], object]] = []
        self._follower: Follower | None = None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.roll_back(0)
        # Who follows knows the scratch; neither is to outlive the other.
        self._follower = None

    def follow(self, follower: Follower) -> None:
        """Let somebody follow pods as they come and leave from now on."""
        self._follower = follower

    def mark(self) -> int:
        """The state as it is now, for `roll_back`."""
        return len(self._undo)

    def roll_back(self, mark: int) -> None:
        """Undo what was changed since the mark."""
        while len(self._undo) > mark:
            self._undo.pop()()

    def taken_back_by(self, undo: Callable[[], object]) -> None:
        """Something else has been changed, which ``undo`` takes back in its turn."""
        self._undo.append(undo)

    def replace_pod(self, record: PodRecord) -> None:
        """Let a pod that is on a node be another one of its uid there."""
        before = self.cluster.placed[record.uid]
        self.cluster.replace_pod(replace(record, row=NO_ROW, slot=-1))
        self._undo.append(lambda: self.cluster.replace_pod(before))

    def add_node(self, node: Node) -> int:
        """Let a new node be there; returns its row."""
        name = node.metadata.name
        if name in self.cluster.nodes.row_of:
            raise ValueError(f"node {name} is there already")
        row = self.cluster.put_node(node)
        self._undo.append(lambda: self.cluster.remove_node(name))
        return row

    def drop_node(self, name: str) -> None:
        """Let a node be gone. Pods that were not taken off it are nowhere."""
        node = self.cluster.nodes.node(self.cluster.nodes.row_of[name])
        self.cluster.remove_node(name)
        self._undo.append(lambda: self.cluster.put_node(node))

    def change_node(self, node: Node) -> None:
        """Let a node that is there be another one of its name."""
        before = self.cluster.nodes.node(self.cluster.nodes.row_of[node.metadata.name])
        self.cluster.put_node(node)
        self._undo.append(lambda: self.cluster.put_node(before))

    def place(self, pod: PodRecord, row: int) -> None:
        """Let a pod that is on no node be on the one in ``row``."""
        if self._follower is not None:
            self._follower.comes(pod, row)
        name = self.cluster.nodes.name(row)
        self.cluster.add_pod(pod.on_node(name))
        self._undo.append(lambda: self.cluster.remove_pod(pod.uid))

    def take_off(self, uid: str) -> PodRecord:
        """Let a pod leave its node; returns it as it would be before it had one."""
        record = self.cluster.remove_pod(uid)
        self._undo.append(lambda: self.cluster.add_pod(record))
        if self._follower is not None:
            self._follower.left(record)
        return record.without_node()

    def join_group(self, pod: PodRecord) -> None:
        """Let a pod that is on no node be one of the group that it names, as it is written."""
        groups = self.cluster.pod_groups
        before = groups.members(pod.pod_class.pod_group).get(pod.uid)
        if pod.pod_class.pod_group and before is not pod:
            groups.put_pod(pod)
            self._undo.append(lambda: groups.drop_pod(pod.uid) if before is None else groups.put_pod(before))

    def leave_group(self, pod: PodRecord) -> None:
        """Let a pod be none of its group any more."""
        groups = self.cluster.pod_groups
        before = groups.members(pod.pod_class.pod_group).get(pod.uid)
        if before is not None:
            groups.drop_pod(pod.uid)
            self._undo.append(lambda: groups.put_pod(before))

    def put_claim(self, claim: ResourceClaim) -> None:
        """Let a claim for devices be there, in place of the one of its name."""
        before = self.cluster.devices.claims.get(claim.key)
        self.cluster.put(claim)
        self._undo.append(lambda: self.cluster.remove(claim) if before is None else self.cluster.put(before))

    def drop_claim(self, claim: ResourceClaim) -> None:
        """Let a claim for devices be gone."""
        self.cluster.remove(claim)
        self._undo.append(lambda: self.cluster.put(claim))

    def fitting(self, pod: PodRecord, rows: Int64s | None = None) -> Int64s:
        """The rows, of ``rows`` (ascending) or of all, where the scheduler's filters let the pod in; ascending."""
        return self._filtered(pod, rows)[0]

    def refusal(self, pod: PodRecord, row: int) -> str:
        """Why the filters keep the pod off a row; "" if they let it in."""
        found, pre_filter, outcome = self._filtered(pod, np.array([row], dtype=np.int64))
        if len(found):
            return ""
        if not pre_filter.status.is_success:
            return pre_filter.status.message
        if not len(outcome.refused):
            return f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.plugins)}]"
        return outcome.status(0).message

    def settle(self, pod: PodRecord, allowed: Bools | None = None) -> int | None:
        """Place a pod on the fullest node that takes it, of the rows ``allowed``; returns its row, None where none is.

        The fullest, so that others can be emptied. The scheduler will choose by its own scores; it can only fit.
        """
        rows = self.fitting(pod)
        if allowed is not None:
            rows = rows[allowed[rows]]
        if not len(rows):
            return None
        fullness = self._fullness(rows)
        row = pick(self.cluster.nodes, rows, pod.uid, self._seed, fullness == fullness.max())
        self.place(pod, row)
        return row

    def _fullness(self, rows: Int64s) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The requested shares of cpu and memory, added up."""
        nodes = self.cluster.nodes
        total = np.zeros(len(rows))
        for resource in (CPU, MEMORY):
            total += nodes.requested[resource, rows] / np.maximum(nodes.allocatable[resource, rows], 1)
        return total

    def _filtered(self, pod: PodRecord, rows: Int64s | None) -> tuple[Int64s, PreFiltered, Outcome]:
        """The rows that take the pod, and what the filters said; a pod over which one fails fits nowhere."""
        runner, state = self._runners.get(pod.scheduler_name, self._default), CycleState()
        nothing = np.empty(0, dtype=np.int64)
        try:
            pre_filter = runner.pre_filter(state, pod)
            if not pre_filter.status.is_success:
                return nothing, pre_filter, Outcome(0)
            wanted = rows if pre_filter.rows is None else pre_filter.rows
            if rows is not None and pre_filter.rows is not None:
                wanted = np.intersect1d(rows, pre_filter.rows)
            outcome = runner.filter(state, pod, wanted)
        except PluginError as error:
            return nothing, PreFiltered(unresolvable(str(error))), Outcome(0)
        feasible = outcome.feasible
        return feasible if wanted is None else wanted[feasible], pre_filter, outcome
