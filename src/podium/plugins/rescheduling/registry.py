"""Podium's own policies, by their names in a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import msgspec
import numpy as np

from podium.api import quantity, resource_requests, times
from podium.api.pod import Container, PodSpec, Quantity, ResourceRequirements
from podium.api.reading import Duration, Interval
from podium.cluster.arrays import Int64s
from podium.cluster.pods import PodRecord
from podium.decide.autoscaling import belongs_to_node
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.bounds import Departures, NodeState, ObjectiveBound
from podium.framework.rescheduling.policy import Float64s, MonthlyCost, Picture, PolicyFactory, Proposal, Relocation
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling import demand_policies, freed_nodes, move_to_underused_nodes, node_use, signal_policies
from podium.plugins.rescheduling.missing_room import MissingRoom, RoomReader, WantedRoom


class PolicyShape(Arguments, frozen=True, kw_only=True):
    """A future pod: its requests, the devices that it claims by class, and for how many such pods room is kept."""

    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    devices: dict[str, Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]] = msgspec.field(default_factory=dict)
    places: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1

    def __post_init__(self) -> None:
        """Raise ValueError for amounts that no pod can request."""
        if not self.requests and not self.devices:
            raise ValueError("a pod to come needs requests or devices, as in {requests: {cpu: 8}}")
        for name, amount in self.requests.items():
            if quantity.parse_quantity(amount) <= 0:
                raise ValueError(f"requests[{name}] is {amount}; more than 0 is needed")

    @property
    def amounts(self) -> Mapping[str, int]:
        """Its requests, in the units of node capacity."""
        container = Container(resources=ResourceRequirements(requests=self.requests))
        return resource_requests.pod_requests(PodSpec(containers=(container,)))

    def __str__(self) -> str:
        requests = [
            *self.requests.items(),
            *((f"devices of class {name}", count) for name, count in self.devices.items()),
        ]
        return "a pod to come with " + ", ".join(f"{amount} {name}" for name, amount in requests)


class ConsolidateArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    Nodes with less than ``utilizationThreshold`` requested are to be emptied (0: none). An empty node is worth
    ``nodeWorth`` badly placed pods. Room is made ``forWaitingPods``, and kept ``for`` future pods. Room for a pod is
    worth ``worth`` badly placed pods. At most ``maxNodes`` are examined each time for each pod that needs room.
    ``prices`` are those of nodes by the hour and instance type; the label ``podium.dev/price`` of a node comes first.
    """

    utilization_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    node_worth: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 2
    for_waiting_pods: bool = True
    for_: PolicyShape | None = msgspec.field(name="for", default=None)
    worth: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 4
    max_nodes: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 30
    prices: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = msgspec.field(default_factory=dict)


_ROOM = "the room that is wanted for pods to come or that wait"


class Consolidate:
    """Counts the nodes in use, and the pods for which no node has room."""

    name = "Consolidate"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, ConsolidateArgs, self.name)
        args = self._args
        self._freed = freed_nodes.FreedNodes(args.utilization_threshold, args.node_worth, args.max_nodes, args.prices)
        self._picture: Picture | None = None
        self._room = MissingRoom((), self._args.max_nodes)

    def objective(self, picture: Picture) -> float:
        """Return the cost of the nodes in use and of the missing room."""
        return self._freed.badness(picture) + self._args.worth * self._missing_room(picture).missing(picture)

    def monthly_cost(self, picture: Picture) -> MonthlyCost | None:
        """Return what the nodes in use cost; None if no node has a price."""
        return self._freed.monthly_cost(picture)

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the price of each node in use, and the missing room that no node has even without pods."""
        bound, rooms = self._freed.bound(departures, price), self._missing_room(departures.picture)
        lacking = rooms.lacking_for_good(departures.picture)
        is_relaxed = lacking < rooms.missing(departures.picture)
        return replace(bound, base=self._args.worth * lacking, relaxed=bound.relaxed + (_ROOM,) * is_relaxed)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield the moves that make room for pods, then those that empty nodes."""
        yield from self._missing_room(picture).proposals(picture)
        yield from self._freed.proposals(picture)

    def _missing_room(self, picture: Picture) -> MissingRoom:
        """Return the wanted rooms of a picture."""
        if picture is not self._picture:
            self._room = MissingRoom(self._wanted_room(picture), self._args.max_nodes)
            self._picture = picture
        return self._room

    def _wanted_room(self, picture: Picture) -> list[WantedRoom]:
        args, shape = self._args, self._args.for_
        if shape is None and not (args.for_waiting_pods and picture.waiting):
            return []
        reader = RoomReader(picture)
        wanted = reader.of_waiting() if args.for_waiting_pods else []
        if shape is not None:
            wanted.append(reader.of_shape(str(shape), shape.places, shape.amounts, shape.devices))
        return wanted


_HOUR_NS = 3_600 * times.SECOND


class ReplaceOldPodsArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: pods that were created more than ``maxAge`` ago are replaced; the default is 720h (30 days)."""

    max_age_ns: Interval = 30 * 24 * _HOUR_NS


class ReplaceOldPods:
    """Counts the pods that are too old. Their replacements go to other nodes, like those of all moves."""

    name = "ReplaceOldPods"

    def __init__(self, context: PluginContext) -> None:
        self._max_age_ns = read_arguments(context.args, ReplaceOldPodsArgs, self.name).max_age_ns
        self._changes = node_use.RowChanges()
        # By row, the number of pods that are too old.
        self._old: Int64s = np.zeros(0, dtype=np.int64)

    def objective(self, picture: Picture) -> float:
        """Return how many pods are too old."""
        cluster, latest_ns = picture.cluster, picture.now - self._max_age_ns
        rows = self._changes.since_last(cluster, picture)
        if rows is None:
            rows, self._old = cluster.nodes.all_rows(), np.zeros(cluster.nodes.count, dtype=np.int64)
        for row in rows.tolist():
            self._old[row] = sum(_is_old(pod, latest_ns) for pod in cluster.pods_on(row))
        return float(self._old.sum())

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the pods of each node that are too old; replacements are new."""
        latest_ns = departures.picture.now - self._max_age_ns
        self.objective(departures.picture)
        old = np.array([_is_old(pod, latest_ns) for pod in departures.pods], dtype=np.float64)
        return ObjectiveBound((NodeState(self._old[departures.rows] - departures.most(old)),))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield each of them, the oldest first, then by key."""
        latest_ns = picture.now - self._max_age_ns
        old = [pod for pod in picture.cluster.placed.values() if _is_old(pod, latest_ns)]
        for pod in sorted(old, key=lambda pod: (pod.created_ns, pod.key, pod.uid)):
            if picture.is_movable(pod):
                age, most = map(times.human_duration, (picture.now - pod.created_ns, self._max_age_ns))
                yield Proposal((Relocation(pod),), f"{pod.key} is {age} old; pods are to be no older than {most}")


def _is_old(pod: PodRecord, latest_ns: int) -> bool:
    return 0 < pod.created_ns < latest_ns and pod.row >= 0 and not pod.terminating and not belongs_to_node(pod)


class PrepareForMaintenanceArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    Nodes are emptied from ``leadTime`` before the announced time (default 1 hour) until ``overdueAfter`` it (default 1
    hour): an older announcement was dropped or is done.
    """

    lead_time_ns: Interval = _HOUR_NS
    overdue_after_ns: Duration = _HOUR_NS


class PrepareForMaintenance:
    """Counts the pods on nodes that will go down soon: 1 each at first, 2 when the time has come.

    A policy that moves a pod to such a node therefore makes the sum worse.
    """

    name = "PrepareForMaintenance"

    def __init__(self, context: PluginContext) -> None:
        args = read_arguments(context.args, PrepareForMaintenanceArgs, self.name)
        self._lead_ns = args.lead_time_ns
        self._overdue_ns = args.overdue_after_ns
        self._picture: Picture | None = None
        # The announced times by node name; few nodes have one.
        self._announced: dict[str, int] = {}
        self._use = node_use.NodeUse()

    def objective(self, picture: Picture) -> float:
        """Return the pods on nodes that will go down soon, weighted by urgency."""
        urgencies = self._urgencies(picture)
        return float((urgencies * self._use.guests).sum()) if urgencies.any() else 0.0

    def bound(self, departures: Departures, price: float) -> ObjectiveBound:
        """Return the urgency of each node times its pods that have not left."""
        urgencies = self._urgencies(departures.picture)
        guests = np.array([not belongs_to_node(pod) for pod in departures.pods], dtype=np.float64)
        left = self._use.guests[departures.rows] - departures.most(guests)
        return ObjectiveBound((NodeState(urgencies[departures.rows] * left),))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Yield each pod of such a node separately: by the time of the node, then by node, then by key."""
        urgencies = self._urgencies(picture)
        safe = urgencies == 0
        rows = np.flatnonzero(urgencies).tolist()
        rows.sort(key=lambda row: (self._announced[picture.node_name(row)], picture.node_name(row)))
        for row in rows:
            name = picture.node_name(row)
            avoid_for_ns = max(self._announced[name] - picture.now, 0) + self._overdue_ns
            reason = f"{name} is announced to go down at {times.format_time(self._announced[name])}"
            for pod in sorted(node_use.guests_on(picture.cluster, row), key=lambda pod: (pod.key, pod.uid)):
                if picture.is_movable(pod):
                    yield Proposal((Relocation(pod, safe),), reason, avoid_for_ns or None)

    def _urgencies(self, picture: Picture) -> Float64s:
        """Return ``[rows]`` 0 for nodes that stay, 1 at the beginning of the lead time, 2 when the time has come."""
        nodes = picture.cluster.nodes
        if picture is not self._picture:
            reported = sorted(picture.signals.nodes.items(), key=lambda each: each[0])
            self._announced = {name: node.maintenance_ns for name, node in reported if node.maintenance_ns is not None}
            self._picture = picture
        urgencies = np.zeros(nodes.count)
        self._use.update(picture.cluster)
        for name, time_ns in self._announced.items():
            left_ns = time_ns - picture.now
            row = nodes.row_of.get(name)
            if row is not None and -self._overdue_ns <= left_ns <= self._lead_ns:
                urgencies[row] = 2 - max(left_ns, 0) / self._lead_ns
        return urgencies


IN_TREE: Mapping[str, PolicyFactory] = {
    "Consolidate": Consolidate,
    "LeavePoorService": signal_policies.LeavePoorService,
    "MoveToUnderusedNodes": move_to_underused_nodes.MoveToUnderusedNodes,
    "PrepareForMaintenance": PrepareForMaintenance,
    "RepairViolations": demand_policies.RepairViolations,
    "ReplaceOldPods": ReplaceOldPods,
    "SatisfyPreferences": demand_policies.SatisfyPreferences,
    "SeparateInterfering": signal_policies.SeparateInterfering,
    "SpreadDuplicates": demand_policies.SpreadDuplicates,
}
