"""What a kubelet says of its machine, and of the addresses of the pods there, where people and programs look at it.

Source: pkg/kubelet/nodestatus/setters.go, pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from podium.api.meta import Raw
from podium.api.pod import Pod, PodCondition
from podium.api.times import format_time
from podium.machines.kubelets.addresses import NODES, PODS, Addresses

KUBERNETES_VERSION = "v1.36.2"
CAPACITY: Mapping[str, str] = {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "16Gi", "pods": "110"}
"""What a machine has of which nobody says anything."""

_KUBELET_PORT = 10_250


@dataclass(frozen=True, slots=True)
class PodAddresses:
    """The addresses of a pod, and of the machine on which it runs; "" for what is not known."""

    pod_ip: str
    host_ip: str


@dataclass(slots=True)
class Hosts:
    """The addresses of all nodes and pods."""

    nodes: Addresses = field(default_factory=lambda: Addresses(NODES))
    pods: Addresses = field(default_factory=lambda: Addresses(PODS))

    def show_node(self, uid: str, raw: Raw) -> None:
        """The API shows a node."""
        self.nodes.note(uid, _internal_address(raw.get("status", {})))

    def show_pod(self, uid: str, raw: Raw) -> None:
        """The API shows a pod."""
        if not raw.get("spec", {}).get("hostNetwork"):
            self.pods.note(uid, str(raw.get("status", {}).get("podIP") or ""))

    def addresses_of(self, pod: Pod, raw: Raw, node_uid: str) -> PodAddresses:
        """The addresses of a pod on a node; a pod in the host's network has the host's."""
        host_ip = self.nodes.of(node_uid)
        shares = raw.get("spec", {}).get("hostNetwork")
        return PodAddresses(host_ip if shares else self.pods.of(pod.metadata.uid), host_ip)

    def missing_of(self, name: str, uid: str, raw: Raw, conditions: Iterable[PodCondition], now: int) -> Raw:
        """What a node's status does not say, as the kubelet reports it; what it says stays."""
        status: Raw = raw.get("status", {})
        fields: Raw = {}
        if not any(condition.get("type") == "Ready" for condition in status.get("conditions", ())):
            fields["conditions"] = [*status.get("conditions", ()), *_told(conditions, now)]
        if not status.get("addresses"):
            addresses = {"InternalIP": self.nodes.of(uid), "Hostname": name}
            fields["addresses"] = [{"type": type_, "address": address} for type_, address in addresses.items()]
        if not status.get("nodeInfo"):
            fields["nodeInfo"] = node_info(raw)
        if not status.get("daemonEndpoints"):
            fields["daemonEndpoints"] = {"kubeletEndpoint": {"Port": _KUBELET_PORT}}
        capacity, allocatable = status.get("capacity"), status.get("allocatable")
        if not capacity:
            fields["capacity"] = allocatable or dict(CAPACITY)
        if not allocatable:
            fields["allocatable"] = capacity or dict(CAPACITY)
        return fields


def node_info(raw: Raw) -> Raw:
    """The node's `status.nodeInfo`: identities follow from its name, what it runs from its labels."""
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    identity = blake2b(metadata["name"].encode(), digest_size=16).hexdigest()
    return {
        "architecture": labels.get("kubernetes.io/arch", "amd64"),
        "bootID": identity,
        "containerRuntimeVersion": "podium://simulated",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBERNETES_VERSION,
        "machineID": identity,
        "operatingSystem": labels.get("kubernetes.io/os", "linux"),
        "osImage": "Podium (simulated)",
        "systemUUID": identity,
    }


def _internal_address(status: Raw) -> str:
    listed: list[Raw] = status.get("addresses", [])
    found = (address for address in listed if address.get("type") == "InternalIP")
    return str(next(found, {}).get("address", ""))


def _told(conditions: Iterable[PodCondition], now: int) -> list[Raw]:
    time = format_time(now)
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
        }
        for condition in conditions
    ]
