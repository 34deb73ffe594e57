"""Temporary changes to the live cluster, to test placements with added, moved and removed nodes and pods.

Nothing is copied. No other code runs between the changes and their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Protocol, Self

import numpy as np
from msgspec.structs import replace

from podium.api.devices import ResourceClaimStatus
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import NO_ROW, PodRecord
from podium.decide.placement import pick
from podium.framework.handle import CycleState
from podium.framework.pre_filters import PreFiltered
from podium.framework.runner import Runner
from podium.framework.verdicts import Outcome, PluginError, unresolvable


class RollbackLog:
    """Changes that are undone from the last to the first, at the latest when the `with` block ends."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.roll_back(0)

    def savepoint(self) -> int:
        """Return the present state, for `roll_back`."""
        return len(self._undo)

    def roll_back(self, savepoint: int) -> None:
        """Undo the changes since the savepoint."""
        while len(self._undo) > savepoint:
            self._undo.pop()()

    @contextmanager
    def temporarily(self) -> Iterator[None]:
        """Undo the changes made in the block at its end."""
        savepoint = self.savepoint()
        try:
            yield
        finally:
            self.roll_back(savepoint)

    def on_roll_back(self, undo: Callable[[], object]) -> None:
        """Call ``undo`` in its turn, to undo another change that was made just now."""
        self._undo.append(undo)


class Follower(Protocol):
    """An object that changes something else in the same transaction with each pod that comes or leaves."""

    def on_pod_left(self, pod: PodRecord) -> None:
        """React to a pod that has left its node."""

    def on_pod_coming(self, pod: PodRecord, row: int) -> None:
        """React to a pod that is about to be on the node in ``row``."""


class ClusterTransaction(RollbackLog):
    """Changes to a cluster's nodes, pods and claims, and the filters' answers about it.

    ``runners`` filter for the schedulers of their names; the first one stands in for unknown schedulers.
    """

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner], seed: int = 0) -> None:
        super().__init__()
        self.cluster = cluster
        self._runners = runners
        self._default = next(iter(runners.values()))
        self._seed = seed
        self.follower: Follower | None = None
        """An object that follows pods as they come and leave."""

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        # The follower refers to the transaction; neither is to outlive the other.
        self.follower = None

    def replace_pod(self, record: PodRecord) -> None:
        """Replace a pod that is on a node by another version of it."""
        before = self.cluster.placed[record.uid]
        self.cluster.replace_pod(replace(record, row=NO_ROW, slot=-1))
        self._undo.append(lambda: self.cluster.replace_pod(before))

    def add_node(self, node: Node) -> int:
        """Add a new node; return its row."""
        name = node.metadata.name
        if name in self.cluster.nodes.row_of:
            raise ValueError(f"node {name} is there already")
        row = self.cluster.put_node(node)
        self._undo.append(lambda: self.cluster.remove_node(name))
        return row

    def drop_node(self, name: str) -> None:
        """Remove a node. Pods that were not taken off it are then on no node."""
        node = self.cluster.nodes.node(self.cluster.nodes.row_of[name])
        self.cluster.remove_node(name)
        self._undo.append(lambda: self.cluster.put_node(node))

    def close_node(self, row: int) -> None:
        """Let a node take no further pods, not by preemption either. Rankings survive that, unlike a taint."""
        nodes = self.cluster.nodes
        before = int(nodes.allowed_pods[row]), nodes.allocatable[:, row].copy()

        def offer(pods: int, amounts: Int64s) -> None:
            # Preemption does not help pods that request more than that.
            nodes.allowed_pods[row], nodes.allocatable[: len(amounts), row] = pods, amounts
            nodes.changes.touch(row)
            self.cluster.node_views.forget(row)

        offer(0, np.zeros_like(before[1]))
        self._undo.append(partial(offer, *before))

    def place(self, pod: PodRecord, row: int) -> None:
        """Place a pod that is on no node on the one in ``row``."""
        if self.follower is not None:
            self.follower.on_pod_coming(pod, row)
        self.cluster.add_pod(pod.on_node(self.cluster.nodes.name(row)))
        self._undo.append(lambda: self.cluster.remove_pod(pod.uid))

    def take_off(self, uid: str) -> PodRecord:
        """Remove a pod from its node; return it as its controller creates it again."""
        record = self.cluster.remove_pod(uid)
        self._undo.append(lambda: self.cluster.add_pod(record))
        if self.follower is not None:
            self.follower.on_pod_left(record)
        return record.without_node()

    def join_group(self, pod: PodRecord) -> None:
        """Make a pod that is on no node a member of the group that it names."""
        groups = self.cluster.pod_groups
        before = groups.members(pod.pod_class.pod_group).get(pod.uid)
        if pod.pod_class.pod_group and before is not pod:
            groups.put_pod(pod)
            self._undo.append(lambda: groups.drop_pod(pod.uid) if before is None else groups.put_pod(before))

    def leave_group(self, pod: PodRecord) -> None:
        groups = self.cluster.pod_groups
        if (before := groups.members(pod.pod_class.pod_group).get(pod.uid)) is not None:
            groups.drop_pod(pod.uid)
            self._undo.append(lambda: groups.put_pod(before))

    def put(self, item: Kubernetes) -> None:
        """Add a node, a budget, or a storage or device object, or replace the one of its name."""
        before = self.cluster.find(item)
        self.cluster.put(item)
        self._undo.append(lambda: self.cluster.remove(item) if before is None else self.cluster.put(before))

    def release_devices(self, pod: PodRecord, named: Iterable[str | None] = ()) -> None:
        """Release the devices of a pod that has left: of the claims made for it, and ``named`` ones without users."""
        devices, made = self.cluster.devices, [name for _, name in pod.made_claims]
        for name in (*made, *named):
            claim = devices.claims.get(f"{pod.namespace}/{name}")
            if claim is not None and claim.is_allocated:
                users = tuple(user for user in claim.status.reserved_for if user.uid != pod.uid and name not in made)
                status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
                self.put(replace(claim, status=status))
        if (extended := devices.claim_cache.made_for(pod.uid)) is not None:
            self.cluster.remove(extended)
            self._undo.append(lambda: self.cluster.put(extended))

    def fitting(self, pod: PodRecord, rows: Int64s | None = None) -> Int64s:
        """Return the rows, out of ``rows`` (ascending) or all, that the scheduler's filters accept; ascending."""
        return self._filtered(pod, rows)[0]

    def refusal(self, pod: PodRecord, row: int) -> str:
        """Return why the filters reject a row for the pod; "" if they accept it."""
        found, pre_filter, outcome = self._filtered(pod, np.array([row], dtype=np.int64))
        if len(found):
            return ""
        if not pre_filter.status.is_success:
            return pre_filter.status.message
        if not len(outcome.refused):
            return f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.plugins)}]"
        return outcome.status(0).message

    def settle(self, pod: PodRecord, allowed: Bools | None = None) -> int | None:
        """Place a pod on the fullest node that accepts it, out of the rows ``allowed``; return its row, None for none.

        Full nodes come first so that others can be emptied. The scheduler may choose otherwise, by its own scores.
        """
        rows = self.fitting(pod)
        if allowed is not None:
            rows = rows[allowed[rows]]
        if not len(rows):
            return None
        nodes = self.cluster.nodes
        # By the requested shares of cpu and memory.
        fullness = np.zeros(len(rows))
        for resource in (CPU, MEMORY):
            fullness += nodes.requested[resource, rows] / np.maximum(nodes.allocatable[resource, rows], 1)
        row = pick(nodes, rows, pod.uid, self._seed, fullness == fullness.max())
        self.place(pod, row)
        return row

    def _filtered(self, pod: PodRecord, rows: Int64s | None) -> tuple[Int64s, PreFiltered, Outcome]:
        """Return the rows that accept the pod, and the filters' answers; if a filter fails, the pod fits nowhere."""
        runner, state = self._runners.get(pod.scheduler_name, self._default), CycleState()
        nothing = np.empty(0, dtype=np.int64)
        try:
            pre_filter = runner.pre_filter(state, pod)
            if not pre_filter.status.is_success:
                return nothing, pre_filter, Outcome(0)
            wanted = pre_filter.within(rows).rows
            outcome = runner.filter(state, pod, wanted)
        except PluginError as error:
            return nothing, PreFiltered(unresolvable(str(error))), Outcome(0)
        feasible = outcome.feasible
        return feasible if wanted is None else wanted[feasible], pre_filter, outcome
