"""Fair shares of owners at one priority, and preemption between pods of equal priority.

A pod that fits nowhere, and for which no less important pod can make room, may take room from pods of its own priority
if that makes their owners' shares fairer. An owner's share at a priority is its dominant one: the largest part that its
pods request of any one resource of all nodes together; of equal ones the larger sum over all resources. Pods count that
are on a node and stay there, and pods that are nominated to one.

The rule: a pod of owner A may take pods of the owners B, C, ... if that raises A's share, and if A's share is then not
larger than that of any of B, C, ... without the pods taken.

Proof that exchanges end: sort the shares of all owners in ascending order. If A's share rises from x to x', and B's
falls from y to y' >= x', then x < x' <= y' <= y, and likewise for C and the others. Below x nothing changes, x occurs
once less, and every changed share is now larger than x. So the list grows lexicographically. A pod that is placed in
free room lets it grow too, or leaves it as it is. There are finitely many such lists, so that between two changes from
outside there are finitely many exchanges. Rounding of floating-point shares never reverses an order, which suffices.

Source: controlled-rescheduling.md, "Specifying priorities" (equal-priority preemptions try to be fair to the victims'
controllers).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from podium.cluster.arrays import Bools, Int32s, Int64s, Lists, offsets, runs
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import RefCountedNumbers
from podium.cluster.pods import NO_ROW, PodRecord
from podium.cluster.what_if_view import WhatIfView
from podium.decide.preempting.criteria import VictimCost
from podium.decide.preempting.eligibility import VictimFilter, beyond_budgets
from podium.decide.preempting.reprieve import PotentialVictims, Preemptor, TrialTable, choose_victims
from podium.decide.preempting.trials import Trials

Floats = npt.NDArray[np.float64]
OwnersBy = Literal["Controller", "Workload", "Service", "Label"]
_NO_ACCOUNT = -1


class FairShares:
    """The requests of the pods of each owner and priority, one account for each, updated row by row."""

    def __init__(self, cluster: Cluster, owners: Owners | None = None) -> None:
        """``owners`` None takes the pods' controllers."""
        self._cluster = cluster
        self._owners = owners or Owners(cluster)
        self._position = -1
        self._owners_as_of = self._owners.generation
        # A number for each priority and owner that has some pods.
        self._accounts: RefCountedNumbers[tuple[int, str]] = RefCountedNumbers((0, ""), ())
        # By resource, then by account.
        self._requested: Int64s = np.zeros((0, 64), dtype=np.int64)
        # The account of the pod in each slot; none for pods that terminate.
        self._account_in: Int32s = np.empty(0, dtype=np.int32)
        # The summed pods of each row: the account and requests of each.
        self._on_row: dict[int, list[tuple[int, Mapping[int, int]]]] = {}

    def takeable(self, pod: PodRecord, positions: Int64s, slots: Int64s, leaving: Iterable[PodRecord]) -> Bools:
        """Return ``[slots]``: the pods of its own priority that ``pod`` may take on any one of some nodes.

        ``positions`` is ``[slots]``, ascending: the node of each; nodes are judged separately. On a node the first of
        an owner's pods are taken, as many as the rule allows together. ``leaving`` are placed pods that will be
        deleted; they no longer count.
        """
        self._refresh()
        requested = self._requested.copy()
        for record in leaving:
            if not record.terminating and record.row != NO_ROW:
                requested[:, self._account(record)] -= self._requests(record)
        own, wanted = self._account(pod), self._requests(pod)
        has = requested[:, own] if own != _NO_ACCOUNT else np.zeros(len(requested), dtype=np.int64)
        if pod.nominated_node_name in self._cluster.nodes.row_of:
            has = has - wanted
        before, after = self._shares(np.stack([has, has + wanted], axis=1)).T
        if _at_least(before[:, None], after)[0]:
            return np.zeros(len(slots), dtype=np.bool_)
        accounts = self._account_in[slots].astype(np.int64)
        order = np.argsort(positions * requested.shape[1] + accounts, kind="stable")
        left = requested[:, accounts[order]] - self._cumulative_losses(positions[order], accounts[order], slots[order])
        takeable: Bools = np.zeros(len(slots), dtype=np.bool_)
        takeable[order] = _at_least(self._shares(left), after)
        takeable &= (accounts != _NO_ACCOUNT) & (accounts != own)
        return takeable

    def _cumulative_losses(self, positions: Int64s, accounts: Int64s, slots: Int64s) -> Int64s:
        """Return ``[resources, slots]``: the requests that an owner loses on a node up to each pod, including it."""
        requests = self._cluster.classes.requests[:, self._cluster.pods.pod_class[slots]]
        sums = np.zeros((len(self._requested), len(slots) + 1), dtype=np.int64)
        np.cumsum(requests, axis=1, out=sums[: len(requests), 1:])
        starts = runs(positions, accounts)
        taken: Int64s = sums[:, 1:] - sums[:, np.repeat(starts[:-1], np.diff(starts))]
        return taken

    def _shares(self, requested: Int64s) -> Floats:
        """Return ``[2, n]``: the largest part and the sum of all parts, of ``[resources, n]`` amounts.

        Resources that no node has do not count.
        """
        nodes = self._cluster.nodes
        allocatable_of_nodes = nodes.allocatable[:, : nodes.count] * nodes.present[: nodes.count]
        total = allocatable_of_nodes.sum(axis=1)[: len(requested), None].astype(np.float64)
        parts = np.divide(requested, total, out=np.zeros(requested.shape), where=total > 0)
        return np.stack([parts.max(axis=0), parts.sum(axis=0)])

    def _key(self, pod: PodRecord) -> tuple[int, str]:
        return pod.priority, self._owners.owner_of(pod)

    def _account(self, pod: PodRecord) -> int:
        """Return the account of a pod's owner, `_NO_ACCOUNT` for none."""
        return self._accounts.number_of.get(self._key(pod), _NO_ACCOUNT)

    def _requests(self, pod: PodRecord) -> Int64s:
        """Return ``[resources]``: the requests of a pod."""
        requests = np.zeros(len(self._requested), dtype=np.int64)
        for resource, amount in pod.pod_class.requests.items():
            requests[resource] = amount
        return requests

    def _refresh(self) -> None:
        """Count the pods on the rows that changed since the last call again."""
        nodes, pods = self._cluster.nodes, self._cluster.pods
        more = np.full(len(pods.row) - len(self._account_in), _NO_ACCOUNT, dtype=np.int32)
        if len(more):
            self._account_in = np.concatenate([self._account_in, more])
        is_known = self._position >= 0 and self._owners_as_of == self._owners.generation
        changed = nodes.changes.since(self._position) if is_known else None
        self._owners_as_of = self._owners.generation
        self._position = nodes.changes.position
        for row in range(nodes.count) if changed is None else changed.tolist():
            self._count(row)
        self._resize(len(nodes.resources), self._requested.shape[1])

    def _count(self, row: int) -> None:
        for account, requests in self._on_row.pop(row, ()):
            self._add(account, requests, -1)
            self._accounts.give_back(account)
        counted: list[tuple[int, Mapping[int, int]]] = []
        for pod in self._cluster.pods_on(row):
            self._account_in[pod.slot] = _NO_ACCOUNT
            if not pod.terminating:
                self._account_in[pod.slot] = account = self._accounts.take(self._key(pod))
                counted.append((account, pod.pod_class.requests))
        nominated = self._cluster.nominations.on_row(row)
        counted += [(self._accounts.take(self._key(pod)), pod.pod_class.requests) for pod in nominated]
        for account, requests in counted:
            self._add(account, requests, 1)
        if counted:
            self._on_row[row] = counted

    def _add(self, account: int, requests: Mapping[int, int], sign: int) -> None:
        self._resize(len(self._cluster.nodes.resources), account + 1)
        for resource, amount in requests.items():
            self._requested[resource, account] += sign * amount

    def _resize(self, resources: int, accounts: int) -> None:
        """Grow the array to at least these sizes."""
        rows, columns = self._requested.shape
        if resources > rows or accounts > columns:
            larger = np.zeros((max(resources, rows), columns if accounts <= columns else 2 * accounts), dtype=np.int64)
            larger[:rows, :columns] = self._requested
            self._requested = larger


class Owners:
    """The owners to whose shares the requests of pods count.

    By `Controller` that is a pod's controller, by `Workload` the topmost one (a Deployment instead of its ReplicaSets),
    by `Service` the first Service by name that selects it, and by `Label` the value of its ``label``. A pod without a
    controller is its own owner; one that no Service selects, or without the label, belongs to its workload.
    """

    def __init__(self, cluster: Cluster, by: OwnersBy = "Controller", label: str = "") -> None:
        self._groups = cluster.groups
        self._by = by
        self._label = label

    @property
    def generation(self) -> int:
        """A number that changes when unchanged pods may belong to other owners."""
        return self._groups.generation if self._by == "Service" else 0

    def owner_of(self, pod: PodRecord) -> str:
        """Return a text that is the same for all pods of one owner, and for no others."""
        if self._by == "Controller":
            return pod.owner_uid
        if self._by == "Service":
            services = self._groups.services(pod.pod_class)
            return f"{pod.namespace}/Service/{services[0]}" if services else pod.workload
        value = pod.labels.get(self._label) if self._by == "Label" else None
        return pod.workload if value is None else f"={value}"


def _at_least(shares: Floats, share: Floats) -> Bools:
    """Return ``[n]``: which of ``[2, n]`` shares are at least as large as a share."""
    at_least: Bools = (shares[0] > share[0]) | ((shares[0] == share[0]) & (shares[1] >= share[1]))
    return at_least


class FairTrials:
    """Tries on each node to make room with less important pods and, if that is fair, with equals.

    Pods whose disruption would violate a budget are no potential victims here. Pods that leave their node anyway count
    as gone. Nothing is cached, since each trial depends on the pods of all nodes.
    """

    def __init__(self, cluster: Cluster, trials: Trials, owners: Owners | None = None) -> None:
        """``owners`` are those whose shares count; None for the pods' controllers."""
        self._cluster = cluster
        self._trials = trials
        self._shares = FairShares(cluster, owners)

    def on(
        self,
        preemptor: Preemptor,
        rows: Int64s,
        may_disrupt: VictimFilter | None,
        cost: VictimCost | None = None,
        *,
        ignores_budgets: bool = False,
    ) -> TrialTable | None:
        """Return the trials on ``rows``, ascending; None if some node will have room without any victims.

        With ``ignores_budgets`` budgets protect no pod.
        """
        pod = preemptor.pod
        leaving = self._leaving(pod)
        gone = self._at(rows, leaving)
        if len(gone[0]):
            positions, owners = np.unique(gone[0], return_inverse=True)
            worlds = WhatIfView(self._cluster, rows[positions])
            worlds.remove(owners, gone[1])
            if not preemptor.handle.filter_what_if(preemptor.state, pod, worlds, pod.uid).refused.all():
                return None
        potential = self._potential_victims(pod, rows, leaving, may_disrupt, ignores_budgets=ignores_budgets)
        return choose_victims(preemptor, rows, potential, pod.uid, self._at(potential.rows, leaving), cost=cost)

    def _leaving(self, pod: PodRecord) -> list[PodRecord]:
        """Return the pods that leave: those that terminate, and victims of preemptions that have just begun."""
        table, placed, nominations = self._cluster.pods, self._cluster.placed, self._cluster.nominations
        count = table.count
        terminating = np.flatnonzero(table.terminating[:count] & (table.row[:count] != NO_ROW))
        found = {record.uid: record for record in map(table.record, terminating.tolist())}
        for preemptor, uids in nominations.victims():
            if preemptor != pod.uid:
                found |= {uid: placed[uid] for uid in uids if uid in placed and placed[uid].row != NO_ROW}
        return sorted(found.values(), key=lambda record: (record.row, record.slot))

    def _at(self, rows: Int64s, pods: list[PodRecord]) -> tuple[Int64s, Int64s]:
        """Return the positions of pods among ``rows``, sorted by row, and their slots, without pods on other rows."""
        of, slots = (np.array([[pod.row, pod.slot] for pod in pods], dtype=np.int64).reshape(-1, 2)).T
        here = np.isin(of, rows)
        return np.searchsorted(rows, of[here]), slots[here]

    def _potential_victims(
        self,
        pod: PodRecord,
        rows: Int64s,
        leaving: list[PodRecord],
        may_disrupt: VictimFilter | None,
        *,
        ignores_budgets: bool,
    ) -> PotentialVictims:
        """Return the pods on ``rows`` that ``pod`` may take; rows without an equal among them are left out.

        Budgets allow the least important pods of each node first.
        """
        ranking = self._trials.ranking
        ranking.refresh()
        # [rows, places], the least important first.
        slots, priorities = ranking.slots[rows][:, ::-1], ranking.priorities[rows][:, ::-1]
        remaining = np.ones(self._cluster.pods.count + 1, dtype=np.bool_)
        remaining[[record.slot for record in leaving]] = False
        equal = (priorities == pod.priority) & remaining[slots]
        positions = np.nonzero(equal)[0]
        equal[equal] = self._shares.takeable(pod, positions, slots[equal].astype(np.int64), leaving)
        places = equal | ((priorities < pod.priority) & remaining[slots] & equal.any(axis=1)[:, None])
        wanted = slots[places].astype(np.int64)
        may_go = np.ones(len(wanted), dtype=np.bool_)
        if not ignores_budgets:
            deleted = [record for record in leaving if not record.terminating]
            may_go = ~beyond_budgets(self._cluster, Lists(offsets(places.sum(axis=1)), wanted), deleted)
        if may_disrupt is not None:
            may_go &= may_disrupt(pod, wanted)
        places[places] = may_go
        backwards = places[:, ::-1]
        found = slots[:, ::-1][backwards].astype(np.int64)
        return PotentialVictims.on(rows, np.nonzero(backwards)[0], found, np.zeros(len(found), dtype=np.bool_))
