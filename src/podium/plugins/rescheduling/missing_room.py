"""Wanted room: for pods of a given shape or for pending pods, and for how many of them each node has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from msgspec import Struct

from podium.api.devices import DeviceClass, ResourceClaim
from podium.api.quantity import format_quantity
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.devices import DeviceID
from podium.cluster.matchers import Predicate
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework import handle, plugin, verdicts
from podium.framework.rescheduling.policy import Float64s, Picture, Proposal, Relocation
from podium.plugins.dynamic_resources.requests import gather_pools
from podium.plugins.dynamic_resources.selectors import AllocationError, selects
from podium.plugins.inter_pod_affinity import repelled_pods, repelling_pods
from podium.plugins.rescheduling.freed_nodes import by_size
from podium.plugins.rescheduling.node_use import RowChanges


class DeviceCounts:
    """The devices of one class; ``offered`` are those that each row's node can use."""

    def __init__(self, cluster: Cluster, device_class: DeviceClass) -> None:
        self._cluster = cluster
        self._members: set[DeviceID] = set()
        self.offered: Int64s = np.zeros(cluster.nodes.count, dtype=np.int64)
        devices = cluster.devices
        for name, row in sorted(cluster.nodes.row_of.items()):
            if not any(devices.shared) and not any(devices.on_node(name)):
                continue
            found = set()
            for pool in gather_pools(devices, cluster.nodes.node(row)):
                for candidate in pool.candidates:
                    with suppress(AllocationError):
                        if selects(device_class.spec.selectors, candidate.id[0], candidate.device, device_class.key):
                            found.add(candidate.id)
            self._members |= found
            self.offered[row] = len(found)

    def free(self, rows: Int64s) -> Int64s:
        """Return ``[rows]`` the devices that no pod on the node holds."""
        held = np.array([self.held_by(self._cluster.pods_on(row)) for row in rows.tolist()], dtype=np.int64)
        return np.asarray(np.maximum(self.offered[rows] - held, 0))

    def held_by(self, pods: Iterable[PodRecord]) -> int:
        """Return how many of them some pods hold."""
        claims = (claim for pod in pods for claim in claims_of(pod, self._cluster))
        return len({device for claim in claims for device in claim.devices if device in self._members})


def claims_of(pod: PodRecord, cluster: Cluster) -> list[ResourceClaim]:
    """Return the existing claims of a pod: those it names, those made for it, and that for its extended resources."""
    devices, made = cluster.devices, dict(pod.made_claims)
    names = [
        each.resource_claim_name if each.resource_claim_name is not None else made.get(each.name)
        for each in pod.spec.resource_claims
    ]
    found = [devices.claims.get(f"{pod.namespace}/{name}") for name in names if name is not None]
    return [claim for claim in (*found, devices.claim_cache.made_for(pod.uid)) if claim is not None]


# The most pending pods that are considered, and the most classes of them.
_MOST_WAITING = 32
# More pods than fit on any node.
_ANY_NUMBER = 1_000_000


class Need(Struct, frozen=True, eq=False):
    """An amount of one thing that a pod needs: a resource, devices of a class, or either, as the node offers it."""

    name: str
    amount: int
    resource: int | None = None
    devices: DeviceCounts | None = None

    def offered(self, cluster: Cluster, rows: Int64s) -> Int64s:
        of_node = self._of_nodes(cluster.nodes.allocatable, rows)
        return of_node if self.devices is None else np.where(of_node > 0, of_node, self.devices.offered[rows])

    def free(self, cluster: Cluster, rows: Int64s) -> Int64s:
        of_node = self._of_nodes(cluster.nodes.allocatable, rows)
        left = of_node - self._of_nodes(cluster.nodes.requested, rows)
        return left if self.devices is None else np.where(of_node > 0, left, self.devices.free(rows))

    def free_on(self, cluster: Cluster, row: int) -> int:
        """Return the free amount of one row, faster than `free`."""
        resource, entries = self.resource, cluster.nodes.entries
        if resource is None or self.devices is not None or resource >= len(entries.allocatable):
            return int(self.free(cluster, np.array([row], dtype=np.int64))[0])
        return int(entries.allocatable[resource][row] - entries.requested[resource][row])

    def held_by(self, pod: PodRecord) -> int:
        """Return how much of it a pod would free."""
        of_node = 0 if self.resource is None else pod.pod_class.requests.get(self.resource, 0)
        return max(of_node, 0 if self.devices is None else self.devices.held_by([pod]))

    def _of_nodes(self, amounts: Int64s, rows: Int64s) -> Int64s:
        """Return ``[rows]`` the resource's entries in a table of node columns; 0 without a resource."""
        if self.resource is None or self.resource >= len(amounts):
            return np.zeros(len(rows), dtype=np.int64)
        return np.asarray(amounts[self.resource, rows])


class WantedRoom(Struct, frozen=True, eq=False):
    """Room for ``wanted`` equal pods; ``what`` describes them.

    ``eligible`` are the rows whose nodes such a pod may be on at all. ``conflicts`` are the pods that it must not share
    a domain with, each with the topology key of the domain. With ``is_apart`` no two of the pods share a node.
    """

    what: str
    wanted: int
    needs: tuple[Need, ...]
    eligible: Bools
    conflicts: tuple[tuple[Predicate, str], ...] = ()
    is_apart: bool = False

    def places(self, cluster: Cluster, rows: Int64s) -> Int64s:
        """Return ``[rows]`` for how many of the pods there is room, regardless of conflicts."""
        nodes = cluster.nodes
        places = nodes.allowed_pods[rows] - nodes.pod_count[rows]
        for need in self.needs:
            places = np.minimum(places, need.free(cluster, rows) // need.amount)
        places = np.minimum(places, 1 if self.is_apart else _ANY_NUMBER)
        return np.where(self.eligible[rows], np.maximum(places, 0), 0)

    def held_off(self, cluster: Cluster) -> Bools | None:
        """Return ``[count]`` where conflicting pods are; None if there are none."""
        if not self.conflicts:
            return None
        view = View(cluster)
        held_off = np.zeros(len(view), dtype=np.bool_)
        for predicate, key in self.conflicts:
            held_off |= view.domain_count(predicate, key) > 0
        return held_off

    def is_of_row_alone(self, cluster: Cluster, row: int) -> bool:
        """Return whether all pods that keep it off a node are on that node."""
        view = View(cluster, np.array([row], dtype=np.int64))
        return all(
            int(view.domain_count(predicate, key)[0]) <= int(view.count(predicate)[0])
            for predicate, key in self.conflicts
        )


class RoomReader:
    """Creates wanted rooms from shapes and from pending pods, in the state of one picture."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._counts: dict[str, DeviceCounts] = {}

    def of_shape(self, what: str, wanted: int, requests: Mapping[str, int], devices: Mapping[str, int]) -> WantedRoom:
        """Return room for pods with these requests; if a resource does not exist, no node can take any."""
        needs = self._needs(requests, devices)
        nodes = self._picture.cluster.nodes
        eligible = nodes.present[: nodes.count] & (needs is not None)
        return WantedRoom(what, wanted, needs or (), eligible)

    def of_waiting(self) -> list[WantedRoom]:
        """Return room for the pending pods without a nomination, one for each class, the most important first."""
        found: dict[tuple[PodClass, str], list[PodRecord]] = {}
        for pod in self._picture.waiting[:_MOST_WAITING]:
            if not pod.nominated_node_name and not pod.gates:
                found.setdefault((pod.pod_class, pod.scheduler_name), []).append(pod)
        rooms = (self._of_pods(pods) for pods in list(found.values())[:8])
        return [room for room in rooms if room is not None]

    def _of_pods(self, pods: Sequence[PodRecord]) -> WantedRoom | None:
        """Return None for pods that more room does not help."""
        first, cluster = pods[0], self._picture.cluster
        eligible = self._eligible(first)
        if eligible is None:
            return None
        names = cluster.nodes.resources
        requests = {names[resource]: amount for resource, amount in first.pod_class.requests.items()}
        # How many devices of each class; of alternatives the first. A request for all of a node's devices counts as 1.
        devices: Counter[str] = Counter()
        for claim in claims_of(first, cluster):
            for request in () if claim.is_allocated or claim.for_extended_resources else claim.spec.devices.requests:
                exact = request.exactly or (request.first_available[0] if request.first_available else None)
                if exact is not None and not exact.admin_access:
                    devices[exact.device_class_name] += max(exact.count, 1)
        needs = self._needs(requests, devices)
        if needs is None:
            return None
        conflicts = (*repelled_pods(first.pod_class), *repelling_pods(cluster, first.pod_class))
        is_apart = any(predicate.matches(first.pod_class, cluster.namespaces) for predicate, _ in conflicts)
        others = "" if len(pods) == 1 else f" and {len(pods) - 1} like it"
        return WantedRoom(f"pod {first.key}{others}", len(pods), needs, eligible, conflicts, is_apart)

    def _eligible(self, pod: PodRecord) -> Bools | None:
        """Return the rows that the pod's filters accept, whatever pods are there; None if a filter fails.

        A pod that cannot be tried waits for something else.
        """
        runner, nodes, state = self._picture.runner_of(pod), self._picture.cluster.nodes, handle.CycleState()
        try:
            pre_filtered = runner.pre_filter(state, pod)
            if not pre_filtered.status.is_success:
                return None
            outcome = runner.filter_view(state, pod, View(self._picture.cluster), plugin.Scope.NODE)
        except verdicts.PluginError:
            return None
        eligible = np.isin(nodes.all_rows(), outcome.feasible) & nodes.present[: nodes.count]
        return eligible if pre_filtered.rows is None else eligible & np.isin(nodes.all_rows(), pre_filtered.rows)

    def _needs(self, requests: Mapping[str, int], devices: Mapping[str, int]) -> tuple[Need, ...] | None:
        """Return what a pod needs; None if no node has it."""
        cluster, found = self._picture.cluster, list[Need]()
        for name, amount in sorted(requests.items()):
            resource, backing = cluster.nodes.resource_index.get(name), cluster.devices.backed.get(name)
            counts = None if backing is None else self._devices(backing.metadata.name)
            if resource is None and counts is None:
                return None
            found.append(Need(name, amount, resource, counts))
        for name, amount in sorted(devices.items()):
            counts = self._devices(name)
            if counts is None:
                return None
            found.append(Need(f"devices of class {name}", amount, devices=counts))
        return tuple(need for need in found if need.amount > 0)

    def _devices(self, name: str) -> DeviceCounts | None:
        """Return the devices of a class; None if there is no such class."""
        cluster = self._picture.cluster
        if name not in self._counts and name in cluster.devices.classes:
            self._counts[name] = DeviceCounts(cluster, cluster.devices.classes[name])
        return self._counts.get(name)


class _Departure(Struct, frozen=True):
    """Pods whose departure makes room on a node; ``lacking`` names what they hold."""

    row: int
    leaving: tuple[PodRecord, ...]
    lacking: str


class MissingRoom:
    """The wanted rooms, and the places for each of them by row, updated for rows that changed."""

    def __init__(self, wanted: Sequence[WantedRoom], max_nodes: int) -> None:
        self._wanted = tuple(wanted)
        self._max_nodes = max_nodes
        self._changes = RowChanges()
        self._places: list[Int64s] = []

    def missing(self, picture: Picture) -> int:
        """Return for how many pods there is no room; capacity that one room takes does not count for the next."""
        self._look(picture.cluster)
        return sum(self._missing_upto(len(self._wanted) - 1, picture))

    def lacking_for_good(self, picture: Picture) -> int:
        """Return for how many pods no node has room even without any pods, nor all nodes together have enough left."""
        cluster, rows = picture.cluster, picture.cluster.nodes.all_rows()
        lacking, pods, requests = 0, cluster.pods, cluster.classes.requests
        going = pods.pod_class[: pods.count][pods.terminating[: pods.count]]
        for room in self._wanted:
            most = room.wanted
            places = np.where(room.eligible & picture.targets[: len(rows)], cluster.nodes.allowed_pods[rows], 0)
            for need in room.needs:
                places = np.minimum(places, need.offered(cluster, rows) // need.amount)
                if need.resource is not None and need.resource < len(requests) and need.devices is None:
                    left = np.maximum(need.free(cluster, rows), 0).sum() + requests[need.resource, going].sum()
                    most = min(most, int(left) // need.amount)
            lacking += room.wanted - min(most, int(places.sum()))
        return lacking

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield moves that make room, by the importance of the room, then the fewest and least important pods."""
        for index, room in enumerate(self._wanted):
            for row in self._nearest(index, room, picture):
                self._look(picture.cluster)
                if not self._missing_upto(index, picture)[-1]:
                    break
                way_out = self._way_out(room, picture, row)
                if way_out is not None:
                    yield self._proposal(index, room, picture, way_out)

    def _look(self, cluster: Cluster) -> None:
        rows = self._changes.since_last(cluster)
        if rows is None:
            rows = cluster.nodes.all_rows()
            self._places = [np.zeros(len(rows), dtype=np.int64) for _ in self._wanted]
        if len(rows):
            for room, places in zip(self._wanted, self._places, strict=True):
                places[rows] = room.places(cluster, rows)

    def _open(self, index: int, picture: Picture) -> Int64s:
        """Return ``[rows]`` the places for a room on nodes that accept pods."""
        places, room = self._places[index], self._wanted[index]
        found: Int64s = np.where(picture.targets[: len(places)], places, 0)
        held_off = room.held_off(picture.cluster)
        if held_off is not None:
            found[held_off] = 0
        return found

    def _missing_upto(self, index: int, picture: Picture) -> list[int]:
        """Return how many places each room up to one lacks, in addition to the rooms before it."""
        taken: dict[int, list[tuple[WantedRoom, int]]] = {}
        return [self._missing_of(each, picture, taken) for each in range(index + 1)]

    def _missing_of(self, index: int, picture: Picture, taken: dict[int, list[tuple[WantedRoom, int]]]) -> int:
        """Return how many places a room lacks beside what others have ``taken``; record there what it takes itself.

        It takes the rows with the fewest places first, then the first rows.
        """
        room, places = self._wanted[index], self._open(index, picture)
        for row, others in taken.items():
            places[row] = min(int(places[row]), self._room_left(room, picture.cluster, row, others))
        missing = room.wanted
        is_last = index == len(self._wanted) - 1
        if is_last or not places.any():
            return max(missing - int(places.sum()), 0)
        # As many of the narrowest rows as may be needed.
        rows = np.flatnonzero(places)
        order = places[rows] * len(places) + rows
        if len(rows) > missing:
            nearest = np.argpartition(order, missing - 1)[:missing]
            rows, order = rows[nearest], order[nearest]
        for row in rows[np.argsort(order)].tolist():
            if not missing:
                break
            number = min(missing, int(places[row]))
            taken.setdefault(row, []).append((room, number))
            missing -= number
        return missing

    def _room_left(self, room: WantedRoom, cluster: Cluster, row: int, others: Sequence[tuple[WantedRoom, int]]) -> int:
        """Return for how many pods a row has room beside those of other rooms."""
        entries = cluster.nodes.entries
        pods = int(entries.allowed_pods[row] - entries.pod_count[row]) - sum(number for _, number in others)
        for need in room.needs:
            free = need.free_on(cluster, row)
            for other, number in others:
                free -= number * sum(each.amount for each in other.needs if each.name == need.name)
            pods = min(pods, free // need.amount)
        return max(pods, 0)

    # Pods in the way

    def _nearest(self, index: int, room: WantedRoom, picture: Picture) -> list[int]:
        """Return the rows that could take a pod if others left: those that lack least; ties by name."""
        cluster = picture.cluster
        self._look(cluster)
        if not self._missing_upto(index, picture)[-1]:
            return []
        count = cluster.nodes.count
        could: Bools = room.eligible & picture.targets[:count] & (self._open(index, picture) == 0)
        for need in room.needs:
            could &= need.offered(cluster, cluster.nodes.all_rows()) >= need.amount
        rows = np.flatnonzero(could).astype(np.int64)
        lacking: Float64s = np.zeros(len(rows))
        for need in room.needs:
            lacking = np.maximum(lacking, 1 - need.free(cluster, rows) / need.amount)
        ranked = sorted(zip(lacking.tolist(), rows.tolist(), strict=True), key=lambda pair: pair[0])
        # Include the rows that lack as little as the last one, so that names break the ties.
        if len(ranked) > self._max_nodes:
            ranked = [pair for pair in ranked if pair[0] <= ranked[self._max_nodes - 1][0]]
        ranked.sort(key=lambda pair: (pair[0], cluster.nodes.name(pair[1])))
        found = [self._way_out(room, picture, row) for _, row in ranked[: self._max_nodes]]
        ways = [
            (len(way.leaving), sum(pod.priority for pod in way.leaving), cluster.nodes.name(way.row), way.row)
            for way in found
            if way is not None
        ]
        return [row for *_, row in sorted(ways)]

    def _way_out(self, room: WantedRoom, picture: Picture, row: int) -> _Departure | None:
        """Return the fewest, least important pods of a node without which one more pod has room there."""
        cluster = picture.cluster
        here = cluster.pods_on(row)
        conflicts = [predicate for predicate, _ in room.conflicts]
        must = [pod for pod in here if any(each.matches(pod.pod_class, cluster.namespaces) for each in conflicts)]
        if must and not (room.is_of_row_alone(cluster, row) and all(map(picture.is_movable, must))):
            return None
        lacking = {need: need.amount - need.free_on(cluster, row) for need in room.needs}
        slots = 1 - int(cluster.nodes.allowed_pods[row] - cluster.nodes.pod_count[row])
        in_words = ", ".join(
            f"{format_quantity(lack, need.name)} {need.name}" for need, lack in lacking.items() if lack > 0
        )
        leaving = list(must)
        for need in lacking:
            lacking[need] -= sum(need.held_by(pod) for pod in must)
        others = [pod for pod in here if pod not in must and picture.is_movable(pod)]
        while any(lack > 0 for lack in lacking.values()) or slots > len(leaving):
            best = min(others, key=lambda pod: (-_help(pod, lacking), pod.priority, pod.key, pod.uid), default=None)
            if best is None or (not _help(best, lacking) and slots <= len(leaving)):
                return None
            others.remove(best)
            leaving.append(best)
            for need in lacking:
                lacking[need] -= need.held_by(best)
        leaving = _without_spared(leaving, must, lacking, slots)
        return _Departure(row, tuple(leaving), in_words or "room") if leaving else None

    def _proposal(self, index: int, room: WantedRoom, picture: Picture, way_out: _Departure) -> Proposal:
        name, number = picture.node_name(way_out.row), len(way_out.leaving)
        pods = "a pod that can go elsewhere" if number == 1 else f"{number} pods that can go elsewhere"
        targets: Bools = picture.targets[: picture.cluster.nodes.count] & (self._open(index, picture) == 0)
        targets[way_out.row] = False
        # Preferably nodes with the least left of what the room needs.
        rows = picture.cluster.nodes.all_rows()
        left: Float64s = np.zeros(len(rows))
        for need in room.needs:
            shares = need.free(picture.cluster, rows) / np.maximum(need.offered(picture.cluster, rows), 1)
            left = np.maximum(left, shares)
        preferred = -left
        relocations = tuple(Relocation(pod, targets, preferred) for pod in by_size(picture, list(way_out.leaving)))
        reason = f"{room.what} could run on {name}, where {pods} would leave what it lacks: {way_out.lacking}"
        return Proposal(relocations, reason, in_parts=True)


def _help(pod: PodRecord, lacking: dict[Need, int]) -> float:
    """Return how much of what is lacking a pod would free, as shares of what is needed."""
    return sum(min(need.held_by(pod), lack) / need.amount for need, lack in lacking.items() if lack > 0)


def _without_spared(
    leaving: Sequence[PodRecord], must: Sequence[PodRecord], lacking: dict[Need, int], slots: int
) -> list[PodRecord]:
    """Return the pods without those that need not leave; the most important are spared first."""
    kept = list(leaving)
    for pod in sorted(leaving, key=lambda pod: (-pod.priority, pod.key, pod.uid)):
        if pod in must or len(kept) <= slots:
            continue
        if all(lack + need.held_by(pod) <= 0 for need, lack in lacking.items()):
            kept.remove(pod)
            for need in lacking:
                lacking[need] += need.held_by(pod)
    return kept
