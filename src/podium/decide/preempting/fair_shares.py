"""How pods of one priority are shared out among their owners, and who may take room from whom.

A pod that fits nowhere, and for which no less important pod can make room, may take the room of pods of its own
priority if that makes their owners' shares fairer. An owner is a controller such as a ReplicaSet, or the pod itself
where it has none. Its share at a priority is its dominant one: the largest part that its pods request of what all nodes
together have of any one resource; of equal ones that is the larger of which the parts of all resources add up to more.
Pods count that are on a node and are not about to leave it, and so do pods that are nominated to one.

The rule: a pod of owner A may take pods of the owners B, C, ... if that raises A's share, and if A's share is then not
larger than that of any of B, C, ... without the pods taken.

Why nothing goes back and forth: write down the shares of all owners, the smallest first. Say A's share rises from x to
x', and B's falls from y to y', which is at least x'; so x < x' <= y' <= y, and likewise for C and the others. Below x
nothing changes in the list, and x itself stands there once less: everything that has changed is larger than x now, and
all of it but A's share was so before. So at the first place where the lists differ the new one is larger; the list
grows in the order of a dictionary. A pod that is placed in free room lets it grow too, or leaves it as it is. There are
only finitely many such lists, since only finitely many pods fit the cluster. So between two changes from outside (a pod
that ends or is deleted, a node that goes, a more important pod that takes room) there are only finitely many exchanges,
and no state comes twice.

Shares are compared as floating-point numbers. Dividing and adding round, but never reverse an order, and that is all
that the argument needs.

Source: controlled-rescheduling.md, "Specifying priorities" (equal-priority preemptions try to be fair to the victims'
controllers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Bools, Int32s, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import NO_ROW, PodRecord

Floats = npt.NDArray[np.float64]
_NO_ACCOUNT = -1


class FairShares:
    """What the pods of each owner and priority request, kept up to date row by row; one account for each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._position = -1
        self._accounts = _Accounts()
        # By resource, then by account.
        self._requested: Int64s = np.zeros((0, 64), dtype=np.int64)
        # The account of the pod in each slot; none for pods that terminate.
        self._account_in: Int32s = np.empty(0, dtype=np.int32)
        # What was added up on each row: account and requests of each pod.
        self._on_row: dict[int, list[tuple[int, Mapping[int, int]]]] = {}

    def takeable(self, pod: PodRecord, positions: Int64s, slots: Int64s, leaving: Iterable[PodRecord]) -> Bools:
        """``[slots]``: which pods of its own priority ``pod`` may take on any one of some nodes.

        ``positions`` is ``[slots]``, ascending: the node of each, which stands for itself. On a node the first of an
        owner's pods are taken, as many as the rule allows together. ``leaving`` are placed pods that will be deleted:
        they count for nobody any more.
        """
        self._refresh()
        requested = self._requested.copy()
        for record in leaving:
            if not record.terminating and record.row != NO_ROW:
                requested[:, self._accounts.find(record)] -= self._requests(record)
        own, wanted = self._accounts.find(pod), self._requests(pod)
        has = requested[:, own] if own != _NO_ACCOUNT else np.zeros(len(requested), dtype=np.int64)
        if pod.nominated_node_name in self._cluster.nodes.row_of:
            has = has - wanted
        before, after = self._shares(np.stack([has, has + wanted], axis=1)).T
        if _at_least(before[:, None], after)[0]:
            return np.zeros(len(slots), dtype=np.bool_)
        accounts = self._account_in[slots].astype(np.int64)
        order = np.argsort(positions * requested.shape[1] + accounts, kind="stable")
        left = requested[:, accounts[order]] - self._taken(positions[order], accounts[order], slots[order])
        takeable: Bools = np.zeros(len(slots), dtype=np.bool_)
        takeable[order] = _at_least(self._shares(left), after)
        takeable &= (accounts != _NO_ACCOUNT) & (accounts != own)
        return takeable

    def _taken(self, positions: Int64s, accounts: Int64s, slots: Int64s) -> Int64s:
        """``[resources, slots]``: what an owner loses on a node with each pod and those before it, in such an order."""
        requests = self._cluster.classes.requests[:, self._cluster.pods.pod_class[slots]]
        sums = np.zeros((len(self._requested), len(slots) + 1), dtype=np.int64)
        np.cumsum(requests, axis=1, out=sums[: len(requests), 1:])
        first = np.ones(len(slots), dtype=np.bool_)
        first[1:] = (positions[1:] != positions[:-1]) | (accounts[1:] != accounts[:-1])
        starts = np.maximum.accumulate(np.where(first, np.arange(len(slots)), 0))
        taken: Int64s = sums[:, 1:] - sums[:, starts]
        return taken

    def _shares(self, requested: Int64s) -> Floats:
        """``[2, n]``: the largest part and the sum of all of them, of ``[resources, n]`` amounts.

        What no node has is no part of anything.
        """
        nodes = self._cluster.nodes
        allocatable_of_nodes = nodes.allocatable[:, : nodes.count] * nodes.present[: nodes.count]
        total = allocatable_of_nodes.sum(axis=1)[: len(requested), None].astype(np.float64)
        parts = np.divide(requested, total, out=np.zeros(requested.shape), where=total > 0)
        return np.stack([parts.max(axis=0), parts.sum(axis=0)])

    def _requests(self, pod: PodRecord) -> Int64s:
        """``[resources]``: what a pod requests."""
        requests = np.zeros(len(self._requested), dtype=np.int64)
        for resource, amount in pod.pod_class.requests.items():
            requests[resource] = amount
        return requests

    def _refresh(self) -> None:
        """Count again what is on the rows that changed since the last time."""
        nodes, pods = self._cluster.nodes, self._cluster.pods
        more = np.full(len(pods.row) - len(self._account_in), _NO_ACCOUNT, dtype=np.int32)
        if len(more):
            self._account_in = np.concatenate([self._account_in, more])
        changed = nodes.changes.since(self._position) if self._position >= 0 else None
        self._position = nodes.changes.position
        for row in range(nodes.count) if changed is None else changed.tolist():
            self._count(row)
        self._resize(len(nodes.resources), self._requested.shape[1])

    def _count(self, row: int) -> None:
        for account, requests in self._on_row.pop(row, ()):
            self._add(account, requests, -1)
            self._accounts.close(account)
        counted: list[tuple[int, Mapping[int, int]]] = []
        for pod in self._cluster.pods_on(row):
            self._account_in[pod.slot] = _NO_ACCOUNT
            if not pod.terminating:
                self._account_in[pod.slot] = account = self._accounts.open(pod)
                counted.append((account, pod.pod_class.requests))
        nominated = self._cluster.nominations.on_row(row)
        counted += [(self._accounts.open(pod), pod.pod_class.requests) for pod in nominated]
        for account, requests in counted:
            self._add(account, requests, 1)
        if counted:
            self._on_row[row] = counted

    def _add(self, account: int, requests: Mapping[int, int], sign: int) -> None:
        self._resize(len(self._cluster.nodes.resources), account + 1)
        for resource, amount in requests.items():
            self._requested[resource, account] += sign * amount

    def _resize(self, resources: int, accounts: int) -> None:
        """Have room for at least so many of each."""
        rows, columns = self._requested.shape
        if resources > rows or accounts > columns:
            larger = np.zeros((max(resources, rows), columns if accounts <= columns else 2 * accounts), dtype=np.int64)
            larger[:rows, :columns] = self._requested
            self._requested = larger


class _Accounts:
    """A number for each owner and priority that has some pods; free numbers are used again."""

    def __init__(self) -> None:
        self._number_of: dict[tuple[int, str], int] = {}
        self._pods: dict[int, int] = {}
        self._key_of: dict[int, tuple[int, str]] = {}
        self._free: list[int] = []

    def find(self, pod: PodRecord) -> int:
        """The account of a pod's owner, if it has one."""
        return self._number_of.get((pod.priority, pod.owner_uid), _NO_ACCOUNT)

    def open(self, pod: PodRecord) -> int:
        """The account of a pod's owner, for one more pod."""
        key = (pod.priority, pod.owner_uid)
        number = self._number_of.get(key)
        if number is None:
            number = self._number_of[key] = self._free.pop() if self._free else len(self._number_of)
            self._key_of[number] = key
        self._pods[number] = self._pods.get(number, 0) + 1
        return number

    def close(self, number: int) -> None:
        """One pod of an account is no more."""
        self._pods[number] -= 1
        if not self._pods[number]:
            del self._pods[number], self._number_of[self._key_of.pop(number)]
            self._free.append(number)


def _at_least(shares: Floats, share: Floats) -> Bools:
    """``[n]``: which of ``[2, n]`` shares are as large as a share, or larger."""
    at_least: Bools = (shares[0] > share[0]) | ((shares[0] == share[0]) & (shares[1] >= share[1]))
    return at_least
