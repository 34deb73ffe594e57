"""Consolidate: hardly used nodes are freed, and room is made that no node has by itself.

Source: controlled-rescheduling.md, Example use cases ("make room for large and/or exclusive pods to facilitate fast
scheduling in the future (often called "defragmentation")"); descheduler HighNodeUtilization.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import msgspec

from podium.api.pod import Container, PodSpec, Quantity, ResourceRequirements
from podium.api.quantity import parse_quantity
from podium.api.resource_requests import pod_requests
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.dynamic_resources.selectors import Selectors
from podium.plugins.rescheduling.consolidation.device_counts import DeviceCounts
from podium.plugins.rescheduling.consolidation.freed_nodes import FreedNodes
from podium.plugins.rescheduling.consolidation.missing_room import MissingRoom
from podium.plugins.rescheduling.consolidation.wanted_room import RoomReader, WantedRoom


class Shape(Arguments, frozen=True, kw_only=True):
    """A pod to come: what it requests, how many devices of which classes it claims, and for how many room is kept."""

    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)
    devices: dict[str, Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]] = msgspec.field(default_factory=dict)
    places: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1

    def __post_init__(self) -> None:
        """Raise ValueError for what no pod requests."""
        if not self.requests and not self.devices:
            raise ValueError("a pod to come needs requests or devices, as in {requests: {cpu: 8}}")
        for name, amount in self.requests.items():
            if parse_quantity(amount) <= 0:
                raise ValueError(f"requests[{name}] is {amount}; more than 0 is needed")

    @property
    def amounts(self) -> Mapping[str, int]:
        """What it requests, in the units in which nodes are counted."""
        container = Container(resources=ResourceRequirements(requests=self.requests))
        return pod_requests(PodSpec(containers=(container,)))

    def __str__(self) -> str:
        """The shape in words."""
        asked = [*self.requests.items(), *((f"devices of class {name}", count) for name, count in self.devices.items())]
        return "a pod to come with " + ", ".join(f"{amount} {name}" for name, amount in asked)


class ConsolidateArgs(Arguments, frozen=True, kw_only=True):
    """Arguments.

    Nodes of which less than ``utilizationThreshold`` is requested are to be freed (0: none). A node that is free is
    ``nodeWorth`` as much as so many pods that are no longer in quite the wrong place. Room is to be made
    ``forWaitingPods``, and kept ``for`` pods to come. Room for a pod is ``worth`` as much as so many pods that are in
    quite the wrong place. ``maxNodes`` are looked into each time, for each pod that wants room.
    """

    utilization_threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    node_worth: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 2
    for_waiting_pods: bool = True
    for_: Shape | None = msgspec.field(name="for", default=None)
    worth: Annotated[float, msgspec.Meta(gt=0, le=1_000)] = 4
    max_nodes: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 30


class Consolidate:
    """Counts the nodes that are in use, and the pods for which no node has room."""

    name = "Consolidate"

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, ConsolidateArgs, self.name)
        self._freed = FreedNodes(self._args.utilization_threshold, self._args.node_worth, self._args.max_nodes)
        self._selectors = Selectors()
        self._picture: Picture | None = None
        self._room = MissingRoom((), self._args.max_nodes)

    def objective(self, picture: Picture) -> float:
        """The nodes that are in use, and the room that is wanted."""
        return self._freed.badness(picture) + self._args.worth * self._missing_room(picture).missing(picture)

    def linear(self, movables: Movables) -> LinearForm:
        """A price for each node that is in use; without wanted room."""
        form = self._freed.linear(movables)
        if not self._wanted(movables.picture):
            return form
        return replace(form, left_out=("the room that is wanted for pods to come or that wait",))

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """What makes room for pods, then what frees nodes."""
        yield from self._missing_room(picture).proposals(picture)
        yield from self._freed.proposals(picture)

    def _missing_room(self, picture: Picture) -> MissingRoom:
        """The rooms that are wanted in a picture."""
        if picture is not self._picture:
            self._room = MissingRoom(self._wanted(picture), self._args.max_nodes)
            self._picture = picture
        return self._room

    def _wanted(self, picture: Picture) -> list[WantedRoom]:
        args, shape = self._args, self._args.for_
        if shape is None and not (args.for_waiting_pods and picture.waiting):
            return []
        reader = RoomReader(picture, _DevicesOfClasses(picture, self._selectors))
        wanted = reader.of_waiting() if args.for_waiting_pods else []
        if shape is not None:
            wanted.append(reader.of_shape(str(shape), shape.places, shape.amounts, shape.devices))
        return wanted


class _DevicesOfClasses(Mapping[str, DeviceCounts]):
    """The devices of each class there is, counted when they are asked for."""

    def __init__(self, picture: Picture, selectors: Selectors) -> None:
        self._cluster = picture.cluster
        self._selectors = selectors
        self._found: dict[str, DeviceCounts] = {}

    def __getitem__(self, name: str) -> DeviceCounts:
        if name not in self._found:
            device_class = self._cluster.devices.classes[name]
            self._found[name] = DeviceCounts(self._cluster, device_class, self._selectors)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cluster.devices.classes)

    def __len__(self) -> int:
        return len(self._cluster.devices.classes)
