"""Whether a kubelet lets a pod onto its node.

Source: pkg/kubelet/lifecycle/predicate.go; AdmissionCheck in pkg/scheduler/eventhandlers.go; for nodes under pressure,
Admit in pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from podium.api.node import Node, Taint
from podium.api.pod import Pod, PodSpec
from podium.api.qos import qos_class
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests, requests_alike
from podium.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from podium.api.selectors import compile_node_selector, node_selector_matches
from podium.cluster.pod_class import HostPort, host_ports
from podium.cluster.taints import tolerated
from podium.decide.critical_pods import is_critical, is_static

MEMORY_PRESSURE_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")

_OS_LABEL = "kubernetes.io/os"
# What upstream looks at first; other resources follow by name.
_ORDER = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
# So many sorts of pods are kept, found by the identity of their containers, which they share.
_KEPT = 1_024
_KNOWN: dict[int, tuple[PodSpec, Holding]] = {}


class Holding(msgspec.Struct, frozen=True):
    """What a pod holds on its node: amounts by resource (cpu in milli, one of `pods`) but for 0, and host ports."""

    amounts: Mapping[str, int]
    ports: tuple[HostPort, ...]

    @classmethod
    def of(cls, pod: Pod) -> Holding:
        """What a pod holds; of one that is resized in place, the greatest of what it wants, was given and uses."""
        spec = effective_spec(pod)
        found = _KNOWN.get(id(spec.containers))
        if found is not None and requests_alike(spec, found[0]) and spec.host_network is found[0].host_network:
            return found[1]
        amounts = {name: amount for name, amount in pod_requests(spec).items() if amount}
        holding = cls({**amounts, PODS: 1}, host_ports(pod.spec))
        if len(_KNOWN) >= _KEPT:
            _KNOWN.clear()
        _KNOWN[id(spec.containers)] = spec, holding
        return holding


class Held:
    """What some pods hold together, as they come and go. What nobody holds is not there."""

    def __init__(self, holdings: Iterable[Holding] = ()) -> None:
        self.amounts: dict[str, int] = {}
        """By resource."""
        self.ports: dict[HostPort, int] = {}
        """How many of the pods hold each port."""
        for holding in holdings:
            self.add(holding)

    def add(self, holding: Holding) -> None:
        """One more pod holds that."""
        amounts = self.amounts
        for name, amount in holding.amounts.items():
            amounts[name] = amounts.get(name, 0) + amount
        for port in holding.ports:
            self.ports[port] = self.ports.get(port, 0) + 1

    def remove(self, holding: Holding) -> None:
        """A pod that held that is gone."""
        amounts = self.amounts
        for name, amount in holding.amounts.items():
            left = amounts[name] - amount
            if left:
                amounts[name] = left
            else:
                del amounts[name]
        for port in holding.ports:
            self.ports[port] -= 1
            if not self.ports[port]:
                del self.ports[port]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod is turned away, as its status will say. ``lacking`` is how much of which resource is missing."""

    reason: str
    message: str
    lacking: tuple[str, int] | None = None


UNEXPECTED = Refusal("UnexpectedAdmissionError", "Allocate failed due to rpc error, which is unexpected")
"""How a pod is turned away of which the kubelet had thought that it could run."""


def refusals(pod: Pod, holding: Holding, node: Node, allocatable: Mapping[str, int], others: Held) -> list[Refusal]:
    """Why ``pod`` may not run on ``node`` beside ``others``, the reason that counts first; empty when it may.

    An extended resource that the node does not have at all is not the kubelet's to count. Of taints, only NoExecute
    ones keep a pod off that has its node already, and none does a static pod. Whether the node is unschedulable is
    nothing to a kubelet.
    """
    spec, found = pod.spec, _shortages(holding, allocatable, others.amounts)
    if _OS_LABEL in pod.metadata.labels:
        found = _wrong_os(pod, node) + found
    if (spec.node_selector or spec.affinity is not None) and not _selects(spec, node):
        found.append(_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if spec.node_name and spec.node_name != node.metadata.name:
        found.append(_failed("NodeName", "node(s) didn't match the requested node name"))
    if holding.ports and any(held.conflicts(wanted) for held in others.ports for wanted in holding.ports):
        found.append(_failed("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    if node.spec.taints and not _bears(pod, node):
        found.append(_failed("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return found


def pressure_refusal(pod: Pod, conditions: Sequence[str]) -> Refusal | None:
    """Why a node under pressure turns the pod away; None if it may come.

    ``conditions`` are those of MemoryPressure, DiskPressure and PIDPressure that hold. A node that is short of memory
    alone takes all pods but those that promise to use none. Critical pods may always come.
    """
    if not conditions or is_critical(pod):
        return None
    if list(conditions) == ["MemoryPressure"] and (
        qos_class(pod.spec) != "BestEffort" or tolerated(pod.spec.tolerations, MEMORY_PRESSURE_TAINT)
    ):
        return None
    return Refusal("Evicted", f"The node had condition: [{' '.join(conditions)}].")


def _wrong_os(pod: Pod, node: Node) -> list[Refusal]:
    """A pod that is labelled for another operating system than the node's, which is linux where nothing is said."""
    if pod.metadata.labels[_OS_LABEL] == node.metadata.labels.get(_OS_LABEL, "linux"):
        return []
    message = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
    return [Refusal("PodOSSelectorNodeLabelDoesNotMatch", message)]


def _bears(pod: Pod, node: Node) -> bool:
    taints = (taint for taint in node.spec.taints if taint.effect == "NoExecute")
    return is_static(pod) or all(tolerated(pod.spec.tolerations, taint) for taint in taints)


def _shortages(holding: Holding, allocatable: Mapping[str, int], used: Mapping[str, int]) -> list[Refusal]:
    lacking: list[str] = []
    for name, requested in holding.amounts.items():
        if used.get(name, 0) + requested > allocatable.get(name, 0) and (name in allocatable or not is_extended(name)):
            lacking.append(name)
    if not lacking:
        return []
    return [_shortage(name, holding, allocatable, used) for name in sorted(lacking, key=_rank)]


def _rank(name: str) -> tuple[int, str]:
    return (_ORDER.index(name), "") if name in _ORDER else (len(_ORDER), name)


def _shortage(name: str, holding: Holding, allocatable: Mapping[str, int], used: Mapping[str, int]) -> Refusal:
    requested, held, capacity = holding.amounts[name], used.get(name, 0), allocatable.get(name, 0)
    message = f"Node didn't have enough resource: {name}, requested: {requested}, used: {held}, capacity: {capacity}"
    return Refusal(f"OutOf{name}", message, (name, held + requested - capacity))


def _selects(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if spec.node_selector and any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return node_selector_matches(compile_node_selector(affinity.required), labels, node.metadata.name)


def _failed(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")
