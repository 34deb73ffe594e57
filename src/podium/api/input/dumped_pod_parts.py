"""The parts of a dumped pod for `podium.api.input.dumped_pods`, and the values in them that are specific to a pod."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from podium.api.checks import check
from podium.api.input.exact_json import UncertainError
from podium.api.names import subdomain_problem
from podium.api.pod import Affinity, PodSpec
from podium.api.selectors import NodeSelectorTerm
from podium.api.times import PLAIN_TIME

ACCESS = "kube-api-access-"
"""The prefix of the volume for API access; the rest of its name is specific to the pod."""

ADDRESS = r"[0-9a-f]+(?:[.:]+[0-9a-f]+){2,}"
CONTAINER_ID = r"[a-z-]+://[-_.0-9A-Za-z]+"
_ADDRESS = re.compile(ADDRESS, re.ASCII)
# Text that starts with a letter or digit and contains neither quotes nor spaces can only be a whole quoted string.
IDENTIFIER = r"[A-Za-z0-9][-_.:/A-Za-z0-9]*"
_IDENTIFIER = re.compile(IDENTIFIER, re.ASCII)
_CACHE = 16_384
_CONTAINER_ID = re.compile(CONTAINER_ID, re.ASCII)
_TIME = re.compile(PLAIN_TIME)
_NONE = msgspec.Raw()


class Parts(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A pod as unparsed parts."""

    api_version: str | None = None
    kind: str | None = None
    metadata: msgspec.Raw = _NONE
    spec: msgspec.Raw = _NONE
    status: msgspec.Raw = _NONE


class Managed(msgspec.Struct, rename="camel"):
    """The time when a manager last set fields."""

    time: str | None = None


class OwnMetadata(msgspec.Struct, rename="camel"):
    """The pod-specific metadata. Raises UncertainError for unusual values."""

    name: str
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    managed_fields: list[Managed] = []

    def __post_init__(self) -> None:
        check(subdomain_problem(self.name), "")
        for value in (self.uid, self.resource_version):
            if value and not _IDENTIFIER.fullmatch(value):
                raise UncertainError

    @property
    def times(self) -> set[bytes]:
        """The times in the usual format."""
        return _plain({self.creation_timestamp, *(managed.time for managed in self.managed_fields)})


class Named(msgspec.Struct, rename="camel"):
    """A named object."""

    name: str = ""


class OwnNames(msgspec.Struct, rename="camel"):
    """The pod-specific names of a spec."""

    node_name: str = ""
    hostname: str = ""
    volumes: list[Named] = []


class Ended(msgspec.Struct, rename="camel"):
    """The start, the end and the id of a container that runs or has ended."""

    started_at: str | None = None
    finished_at: str | None = None
    container_id: str | None = msgspec.field(name="containerID", default=None)


class State(msgspec.Struct, rename="camel"):
    """The state of a container."""

    running: Ended | None = None
    terminated: Ended | None = None


class ObservedContainer(msgspec.Struct, rename="camel"):
    """The pod-specific status of a container."""

    container_id: str | None = msgspec.field(name="containerID", default=None)
    state: State | None = None
    last_state: State | None = None

    @property
    def spans(self) -> list[Ended]:
        """The periods in which it has run."""
        states = [state for state in (self.state, self.last_state) if state is not None]
        return [span for state in states for span in (state.running, state.terminated) if span is not None]


class ObservedCondition(msgspec.Struct, rename="camel"):
    """The transition time of a condition."""

    last_transition_time: str | None = None


class Address(msgspec.Struct, rename="camel"):
    """An address of a pod, or of its node."""

    ip: str | None = None


class Observed(msgspec.Struct, rename="camel"):
    """The pod-specific parts of a status: times, addresses and container ids."""

    start_time: str | None = None
    pod_ips: list[Address] = msgspec.field(name="podIPs", default_factory=list)
    host_ips: list[Address] = msgspec.field(name="hostIPs", default_factory=list)
    pod_ip: str | None = msgspec.field(name="podIP", default=None)
    host_ip: str | None = msgspec.field(name="hostIP", default=None)
    conditions: list[ObservedCondition] = []
    container_statuses: list[ObservedContainer] = []
    init_container_statuses: list[ObservedContainer] = []

    @property
    def containers(self) -> list[ObservedContainer]:
        """The statuses of all containers."""
        return self.container_statuses + self.init_container_statuses

    @property
    def times(self) -> set[bytes]:
        """The times in the usual format."""
        found = {condition.last_transition_time for condition in self.conditions}
        found.add(self.start_time)
        for container in self.containers:
            for span in container.spans:
                found.update((span.started_at, span.finished_at))
        return _plain(found)

    @property
    def addresses(self) -> list[bytes]:
        """The well-formed addresses of pod and node, each once."""
        found = dict.fromkeys(address.ip for address in (*self.pod_ips, *self.host_ips))
        found |= dict.fromkeys((self.pod_ip, self.host_ip))
        return [ip.encode() for ip in found if ip and _ADDRESS.fullmatch(ip)]

    @property
    def container_ids(self) -> list[bytes]:
        """The container ids with a runtime prefix, each once."""
        found: dict[str | None, None] = {}
        for container in self.containers:
            found[container.container_id] = None
            for span in container.spans:
                found[span.container_id] = None
        return [name.encode() for name in found if name and _CONTAINER_ID.fullmatch(name)]


@lru_cache(maxsize=_CACHE)
def _is_plain(time: str) -> bool:
    return _TIME.match(time) is not None


def _plain(times: set[str | None]) -> set[bytes]:
    return {time.encode() for time in times if time and _is_plain(time)}


def own_volumes_of(spec: PodSpec, name: str) -> tuple[int, ...]:
    """Return the indexes of the volumes of that name."""
    return tuple(place for place, volume in enumerate(spec.volumes) if volume.name == name)


def named(spec: PodSpec, node_name: str, own_volumes: tuple[int, ...], volume: str) -> PodSpec:
    """Return the spec for another pod, with its node name, and its volume name at those indexes."""
    if not own_volumes:
        return replace(spec, node_name=node_name)
    volumes = list(spec.volumes)
    for place in own_volumes:
        volumes[place] = replace(volumes[place], name=volume)
    return replace(spec, node_name=node_name, volumes=tuple(volumes))


def bound_to(affinity: Affinity, node: str, other: str) -> Affinity:
    """Return the affinity of a pod that is bound to the other node as this one is to its own."""

    def bound(term: NodeSelectorTerm) -> NodeSelectorTerm:
        fields = (
            replace(field, values=tuple(other if value == node else value for value in field.values))
            for field in term.match_fields
        )
        return replace(term, match_fields=tuple(fields))

    node_affinity = affinity.node_affinity
    if node_affinity is None or node_affinity.required is None:
        return affinity
    required = node_affinity.required
    if not any(node in field.values for term in required.node_selector_terms for field in term.match_fields):
        return affinity
    required = replace(required, node_selector_terms=tuple(map(bound, required.node_selector_terms)))
    return replace(affinity, node_affinity=replace(node_affinity, required=required))
