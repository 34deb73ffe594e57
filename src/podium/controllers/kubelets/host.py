"""The settings of kubelets, and what they report about machines and addresses.

Source: pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network

import msgspec

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod, PodCondition
from podium.api.quantity import is_extended
from podium.api.times import SECOND, format_time
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.controllers.kubelets.references import References
from podium.decide.kubelet import EvictionOrder

NODES = IPv4Network("172.16.0.0/12")
PODS = IPv4Network("10.0.0.0/8")


class Addresses:
    """A network's addresses by holder (uid); each is held once."""

    def __init__(self, network: IPv4Network) -> None:
        self._first = int(network.network_address)
        self._size = network.num_addresses
        self._last_given = 0
        self._of: dict[str, str] = {}
        self._holders: dict[str, str] = {}

    def of(self, uid: str) -> str:
        """Return the holder's address, by default the next free one; "" if all are held."""
        if (found := self._of.get(uid)) is not None:
            return found
        # The first and the last address of a network are reserved.
        for _ in range(self._size - 2):
            self._last_given = self._last_given % (self._size - 2) + 1
            address = str(IPv4Address(self._first + self._last_given))
            if address not in self._holders:
                self.note(uid, address)
                return address
        return ""

    def note(self, uid: str, address: str) -> None:
        """Record an observed address of a holder."""
        if address and self._of.get(uid) != address:
            self.free(uid)
            self._of[uid] = address
            self._holders[address] = uid

    def free(self, uid: str) -> None:
        """Release a holder's address."""
        address = self._of.pop(uid, None)
        if address is not None and self._holders.get(address) == uid:
            del self._holders[address]


CAPACITY: Mapping[str, str] = {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "16Gi", "pods": "110"}
"""The default capacity of a machine."""

_KUBELET_PORT = 10_250


class Hosts(msgspec.Struct):
    """The addresses of all nodes and pods, the version of their kubelets, and the objects that pods wait for."""

    release: Release
    references: References | None = None
    nodes: Addresses = msgspec.field(default_factory=lambda: Addresses(NODES))
    pods: Addresses = msgspec.field(default_factory=lambda: Addresses(PODS))

    def show_node(self, uid: str, raw: Raw) -> None:
        listed: list[Raw] = raw.get("status", {}).get("addresses", [])
        internal = (address for address in listed if address.get("type") == "InternalIP")
        self.nodes.note(uid, str(next(internal, {}).get("address", "")))

    def show_pod(self, uid: str, raw: Raw) -> None:
        if not raw.get("spec", {}).get("hostNetwork"):
            self.pods.note(uid, str(raw.get("status", {}).get("podIP") or ""))

    def addresses_of(self, pod: Pod, raw: Raw, node_uid: str) -> tuple[str, str]:
        """Return the addresses of a pod and of its node, "" if unknown; a pod in the host's network has the host's."""
        host_ip = self.nodes.of(node_uid)
        shares = raw.get("spec", {}).get("hostNetwork")
        return host_ip if shares else self.pods.of(pod.metadata.uid), host_ip

    def missing_of(self, node: Node, raw: Raw, conditions: Iterable[PodCondition], now: int, gone: Set[str]) -> Raw:
        """Return the fields that a node's status lacks, as the kubelet reports them.

        Extended resources can be allocated if a client adds them to the capacity, until they are ``gone`` from it.
        """
        status: Raw = raw.get("status", {})
        fields: Raw = {}
        if not any(condition.get("type") == "Ready" for condition in status.get("conditions", ())):
            time = {"lastHeartbeatTime": format_time(now), "lastTransitionTime": format_time(now)}
            reported: list[Raw] = [{**msgspec.structs.asdict(condition), **time} for condition in conditions]
            fields["conditions"] = [*status.get("conditions", ()), *reported]
        if not status.get("addresses"):
            addresses = {"InternalIP": self.nodes.of(node.metadata.uid), "Hostname": node.metadata.name}
            fields["addresses"] = [{"type": type_, "address": address} for type_, address in addresses.items()]
        # Clients read every field of it; files often have only some.
        info: Raw = status.get("nodeInfo") or {}
        if missing := {field: text for field, text in node_info(raw, self.release).items() if field not in info}:
            fields["nodeInfo"] = {**info, **missing}
        if not status.get("daemonEndpoints"):
            fields["daemonEndpoints"] = {"kubeletEndpoint": {"Port": _KUBELET_PORT}}
        capacity, allocatable = status.get("capacity"), status.get("allocatable")
        if not capacity:
            fields["capacity"] = allocatable or dict(CAPACITY)
        added = {name: amount for name, amount in (capacity or {}).items() if is_extended(name)}
        known = {name: amount for name, amount in (allocatable or {}).items() if name not in gone}
        if not allocatable or added.keys() - known.keys() or len(known) < len(allocatable):
            fields["allocatable"] = {**added, **known} if allocatable else capacity or dict(CAPACITY)
        return fields


def node_info(raw: Raw, release: Release) -> Raw:
    """Return the node's `status.nodeInfo`, derived from its name, its labels and the kubelet's version."""
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    identity = blake2b(metadata["name"].encode(), digest_size=16).hexdigest()
    return {
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
        "bootID": identity,
        "containerRuntimeVersion": "podium://simulated",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": str(release),
        "machineID": identity,
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "osImage": "Podium (simulated)",
        "systemUUID": identity,
    }


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """Settings of kubelets; times in nanoseconds.

    A pod starts ``start_delay_ns`` after its admission. A node has memory pressure when its pods leave less than
    ``memory_threshold_bytes``, and reports it until ``pressure_transition_ns`` later. With ``waits_for_victims``, a pod
    that fits after the end of terminating pods waits for them. ``eviction_order`` chooses the pod to evict among equal
    priorities. ``release`` is the kubelets' version. With ``reports_all``, status has everything that clients read,
    such as addresses and container states. A deleted pod takes ``termination_ns`` to end by default, at most its grace
    period; None: all of it. With ``awaits_references``, pods start when the objects that they name exist.
    """

    start_delay_ns: int = 0
    memory_threshold_bytes: int = 0
    pressure_transition_ns: int = 300 * SECOND
    waits_for_victims: bool = False
    eviction_order: EvictionOrder = "BytesOverRequest"
    release: Release = DEFAULT_RELEASE
    reports_all: bool = False
    termination_ns: int | None = None
    awaits_references: bool = False
