"""Room that is wanted for pods: of a given shape, or for those that wait; and how many of them each node could take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.api.resource_claims import DeviceClaim
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import CarriesAntiAffinity, Predicate, Selected
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import Scope
from podium.framework.rescheduling.picture import Picture
from podium.plugins.rescheduling.consolidation.device_counts import DeviceCounts, claims_of

# How many waiting pods are looked at, and of how many classes.
_MOST_WAITING = 32
_MOST_CLASSES = 8
# More pods than there will ever be on a node.
_ANY_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """An amount of one thing that a pod needs: a resource of nodes, devices of a class, or whichever a node offers."""

    name: str
    amount: int
    resource: int | None = None
    devices: DeviceCounts | None = None

    def offered(self, cluster: Cluster, rows: Int64s) -> Int64s:
        """``[rows]``: what there is altogether."""
        of_node, of_devices = self._of_node(cluster, rows), self._of_devices(rows)
        return of_devices if of_node is None else np.where(of_node > 0, of_node, of_devices)

    def free(self, cluster: Cluster, rows: Int64s) -> Int64s:
        """``[rows]``: what is left."""
        of_node = self._of_node(cluster, rows)
        free_devices = np.zeros(len(rows), dtype=np.int64) if self.devices is None else self.devices.free(rows)
        if of_node is None or self.resource is None:
            return free_devices
        left = of_node - cluster.nodes.requested[self.resource, rows]
        return left if self.devices is None else np.where(of_node > 0, left, free_devices)

    def free_on(self, cluster: Cluster, row: int) -> int:
        """The same for one row, in a fraction of the time."""
        resource, entries = self.resource, cluster.nodes.entries
        if resource is None or self.devices is not None or resource >= len(entries.allocatable):
            return int(self.free(cluster, np.array([row], dtype=np.int64))[0])
        return int(entries.allocatable[resource][row] - entries.requested[resource][row])

    def held_by(self, pod: PodRecord) -> int:
        """How much of it a pod would leave."""
        of_node = 0 if self.resource is None else pod.pod_class.requests.get(self.resource, 0)
        return max(of_node, 0 if self.devices is None else self.devices.held_by(pod))

    def _of_node(self, cluster: Cluster, rows: Int64s) -> Int64s | None:
        if self.resource is None or self.resource >= len(cluster.nodes.allocatable):
            return None
        offered: Int64s = cluster.nodes.allocatable[self.resource, rows]
        return offered

    def _of_devices(self, rows: Int64s) -> Int64s:
        return np.zeros(len(rows), dtype=np.int64) if self.devices is None else self.devices.offered[rows]


@dataclass(frozen=True, slots=True, eq=False)
class WantedRoom:
    """Room for ``wanted`` pods that are alike; ``what`` says for whom.

    ``eligible`` are the rows whose nodes such a pod may be on at all. ``conflicts`` are the pods that it cannot be
    with, each with the topology key of the domain. With ``is_apart``, no two of the pods go on one node.
    """

    what: str
    wanted: int
    needs: tuple[Need, ...]
    eligible: Bools
    conflicts: tuple[tuple[Predicate, str], ...] = ()
    is_apart: bool = False

    def places(self, cluster: Cluster, rows: Int64s) -> Int64s:
        """``[rows]``: for how many of the pods there is room, conflicts apart."""
        nodes = cluster.nodes
        places = nodes.allowed_pods[rows] - nodes.pod_count[rows]
        for need in self.needs:
            places = np.minimum(places, need.free(cluster, rows) // need.amount)
        places = np.minimum(places, 1 if self.is_apart else _ANY_NUMBER)
        return np.where(self.eligible[rows], np.maximum(places, 0), 0)

    def held_off(self, cluster: Cluster) -> Bools | None:
        """``[count]``: where pods are that it cannot be with; None where there are none such."""
        if not self.conflicts:
            return None
        view = View(cluster)
        held_off = np.zeros(len(view), dtype=np.bool_)
        for predicate, key in self.conflicts:
            held_off |= view.domain_count(predicate, key) > 0
        return held_off

    def conflicting(self, cluster: Cluster, pod: PodRecord) -> bool:
        """Whether it cannot be with a pod."""
        return any(predicate.matches(pod.pod_class, cluster.namespaces) for predicate, _ in self.conflicts)

    def is_of_row_alone(self, cluster: Cluster, row: int) -> bool:
        """Whether all pods that hold it off a node are on that node."""
        view = View(cluster, np.array([row], dtype=np.int64))
        return all(
            int(view.domain_count(predicate, key)[0]) <= int(view.count(predicate)[0])
            for predicate, key in self.conflicts
        )


class RoomReader:
    """Makes wanted rooms of shapes and of waiting pods, as they stand in one picture.

    ``devices`` finds the devices of a class, None where there is no such class.
    """

    def __init__(self, picture: Picture, devices: Mapping[str, DeviceCounts]) -> None:
        self._picture = picture
        self._devices = devices

    def of_shape(self, what: str, wanted: int, requests: Mapping[str, int], devices: Mapping[str, int]) -> WantedRoom:
        """Room for pods that request something; where there is none of it, no node can take any."""
        needs = self._needs(requests, devices)
        nodes = self._picture.cluster.nodes
        eligible = nodes.present[: nodes.count] & (needs is not None)
        return WantedRoom(what, wanted, needs or (), eligible)

    def of_waiting(self) -> list[WantedRoom]:
        """Room for the pods that wait and are not nominated, those of a class together, the most important first."""
        found: dict[tuple[PodClass, str], list[PodRecord]] = {}
        for pod in self._picture.waiting[:_MOST_WAITING]:
            if not pod.nominated_node_name and not pod.gates:
                found.setdefault((pod.pod_class, pod.scheduler_name), []).append(pod)
        rooms = (self._of_pods(pods) for pods in list(found.values())[:_MOST_CLASSES])
        return [room for room in rooms if room is not None]

    def _of_pods(self, pods: Sequence[PodRecord]) -> WantedRoom | None:
        """None for pods that no room helps."""
        first, cluster = pods[0], self._picture.cluster
        eligible = self._eligible(first)
        if eligible is None:
            return None
        names = cluster.nodes.resources
        requests = {names[resource]: amount for resource, amount in first.pod_class.requests.items()}
        needs = self._needs(requests, _devices_wanted(first, cluster))
        if needs is None:
            return None
        own = [(Selected((term,)), term.topology_key) for term in first.pod_class.required_anti_affinity]
        theirs = [
            (CarriesAntiAffinity(term), term.topology_key) for term in cluster.carried.anti_affinity(first.pod_class)
        ]
        conflicts: tuple[tuple[Predicate, str], ...] = (*own, *theirs)
        is_apart = any(predicate.matches(first.pod_class, cluster.namespaces) for predicate, _ in conflicts)
        others = "" if len(pods) == 1 else f" and {len(pods) - 1} like it"
        return WantedRoom(f"pod {first.key}{others}", len(pods), needs, eligible, conflicts, is_apart)

    def _eligible(self, pod: PodRecord) -> Bools | None:
        """The rows whose nodes, whatever is on them, the filters of the pod's scheduler let it on; None where it fails.

        A pod that cannot be tried waits for something else.
        """
        runner, nodes, state = self._picture.runner_of(pod), self._picture.cluster.nodes, CycleState()
        try:
            pre_filtered = runner.pre_filter(state, pod)
            if not pre_filtered.status.is_success:
                return None
            outcome = runner.filter_rows_of(state, pod, nodes.all_rows(), Scope.NODE)
        except PluginError:
            return None
        eligible = np.zeros(nodes.count, dtype=np.bool_)
        eligible[outcome.feasible] = True
        if pre_filtered.rows is not None:
            named = np.zeros(nodes.count, dtype=np.bool_)
            named[pre_filtered.rows] = True
            eligible &= named
        return eligible & nodes.present[: nodes.count]

    def _needs(self, requests: Mapping[str, int], devices: Mapping[str, int]) -> tuple[Need, ...] | None:
        """What a pod needs; None for what nobody has."""
        cluster, found = self._picture.cluster, list[Need]()
        for name, amount in sorted(requests.items()):
            resource, backing = cluster.nodes.resource_index.get(name), cluster.devices.backed.get(name)
            counts = None if backing is None else self._devices.get(backing.metadata.name)
            if resource is None and counts is None:
                return None
            found.append(Need(name, amount, resource, counts))
        for name, amount in sorted(devices.items()):
            if name not in self._devices:
                return None
            found.append(Need(f"devices of class {name}", amount, devices=self._devices[name]))
        return tuple(need for need in found if need.amount > 0)


def _devices_wanted(pod: PodRecord, cluster: Cluster) -> dict[str, int]:
    """How many devices of each class the claims of a pod ask for that have none yet; of alternatives the first."""
    wanted: dict[str, int] = {}
    for claim in claims_of(pod, cluster):
        if not claim.is_allocated and not claim.for_extended_resources:
            for name, count in devices_asked_for(claim.spec.devices):
                wanted[name] = wanted.get(name, 0) + count
    return wanted


def devices_asked_for(claim: DeviceClaim) -> list[tuple[str, int]]:
    """The classes that a claim names, each with a number of devices; one device where it wants all of a node's."""
    found = []
    for request in claim.requests:
        exact = request.exact or (request.first_available[0] if request.first_available else None)
        if exact is not None and not exact.admin_access:
            found.append((exact.device_class_name, max(exact.count, 1)))
    return found
