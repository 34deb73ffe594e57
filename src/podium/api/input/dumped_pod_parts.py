"""The parts of a dumped pod that `podium.api.input.dumped_pods` looks at, and what in them each pod has for itself."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec.structs import replace

from podium.api.pod import PodSpec
from podium.api.times import PLAIN_TIME

ACCESS = "kube-api-access-"
"""What the name of the volume begins with through which a pod reaches the API server; the rest is the pod's own."""

ADDRESS = r"[0-9a-f]+(?:[.:]+[0-9a-f]+){2,}"
CONTAINER_ID = r"[a-z-]+://[-_.0-9A-Za-z]+"
_ADDRESS = re.compile(ADDRESS, re.ASCII)
_CONTAINER_ID = re.compile(CONTAINER_ID, re.ASCII)
_TIME = re.compile(PLAIN_TIME)
_NONE = msgspec.Raw()


class Parts(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A pod in parts that have not been looked into."""

    api_version: str | None = None
    kind: str | None = None
    metadata: msgspec.Raw = _NONE
    spec: msgspec.Raw = _NONE
    status: msgspec.Raw = _NONE


class Manager(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """Who set fields, and which (ManagedFieldsEntry)."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Annotated[str, msgspec.Meta(pattern=PLAIN_TIME)] = ""
    fields_type: str = ""
    fields: msgspec.Raw = msgspec.field(name="fieldsV1", default=_NONE)
    subresource: str = ""


class Managed(msgspec.Struct, rename="camel"):
    """Of the metadata, who set what."""

    managed_fields: list[Manager] = []


class Named(msgspec.Struct, rename="camel"):
    """Something by its name."""

    name: str = ""


class OwnNames(msgspec.Struct, rename="camel"):
    """Of a specification, what each pod has for itself."""

    node_name: str = ""
    hostname: str = ""
    volumes: list[Named] = []


class Running(msgspec.Struct, rename="camel"):
    """Since when a container runs."""

    started_at: str | None = None


class State(msgspec.Struct, rename="camel"):
    """Of a container's state, that it runs."""

    running: Running | None = None


class ObservedContainer(msgspec.Struct, rename="camel"):
    """Of what was observed of a container, what no other has."""

    container_id: str | None = msgspec.field(name="containerID", default=None)
    state: State | None = None


class ObservedCondition(msgspec.Struct, rename="camel"):
    """Since when a condition holds."""

    last_transition_time: str | None = None


class Address(msgspec.Struct, rename="camel"):
    """An address of a pod, or of its node."""

    ip: str | None = None


class Observed(msgspec.Struct, rename="camel"):
    """Of a status, what each pod has for itself: times, addresses and the ids of containers."""

    start_time: str | None = None
    pod_ips: list[Address] = msgspec.field(name="podIPs", default_factory=list)
    host_ips: list[Address] = msgspec.field(name="hostIPs", default_factory=list)
    conditions: list[ObservedCondition] = []
    container_statuses: list[ObservedContainer] = []
    init_container_statuses: list[ObservedContainer] = []

    @property
    def times(self) -> set[str]:
        """Those of the times that certainly are some."""
        found = {condition.last_transition_time for condition in self.conditions}
        found.add(self.start_time)
        for container in self.container_statuses:
            if container.state is not None and container.state.running is not None:
                found.add(container.state.running.started_at)
        return {text for text in found if text is not None and _TIME.match(text)}

    @property
    def addresses(self) -> list[str]:
        """The addresses of pod and node that certainly are some."""
        return [
            address.ip
            for address in (*self.pod_ips, *self.host_ips)
            if address.ip is not None and _ADDRESS.fullmatch(address.ip)
        ]

    @property
    def container_ids(self) -> list[str]:
        """The ids of containers, which say what runs them."""
        ids = [
            observed_container.container_id
            for observed_container in (*self.container_statuses, *self.init_container_statuses)
        ]
        return [
            container_id for container_id in ids if container_id is not None and _CONTAINER_ID.fullmatch(container_id)
        ]


def own_volumes_of(spec: PodSpec, name: str) -> tuple[int, ...]:
    """The places of the volumes of that name."""
    return tuple(place for place, volume in enumerate(spec.volumes) if volume.name == name)


def named(spec: PodSpec, node_name: str, own_volumes: tuple[int, ...], volume: str) -> PodSpec:
    """The specification of another pod, with its node, and its name of the volumes in those places."""
    if not own_volumes:
        return replace(spec, node_name=node_name)
    volumes = list(spec.volumes)
    for place in own_volumes:
        volumes[place] = replace(volumes[place], name=volume)
    return replace(spec, node_name=node_name, volumes=tuple(volumes))
