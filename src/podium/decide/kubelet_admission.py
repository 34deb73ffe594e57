"""Whether a kubelet lets a pod onto its node.

Source: pkg/kubelet/lifecycle/predicate.go; AdmissionCheck in pkg/scheduler/eventhandlers.go; for nodes under pressure,
Admit in pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.api.node import Node, Taint
from podium.api.pod import Pod, PodSpec
from podium.api.qos import qos_class
from podium.api.resize import effective_spec
from podium.api.resource_requests import pod_requests
from podium.api.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from podium.api.selectors import compile_node_selector, node_selector_matches
from podium.cluster.pod_class import HostPort, host_ports
from podium.cluster.taints import tolerated
from podium.decide.critical_pods import is_critical, is_static

MEMORY_PRESSURE_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")

_OS_LABEL = "kubernetes.io/os"
# What upstream looks at first; other resources follow by name.
_ORDER = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod holds on its node: amounts by resource (cpu in milli, one of `pods`), and host ports."""

    amounts: Mapping[str, int]
    ports: tuple[HostPort, ...]

    @classmethod
    def of(cls, pod: Pod) -> Holding:
        """What a pod holds; of one that is resized in place, the greatest of what it wants, was given and uses."""
        return cls({**pod_requests(effective_spec(pod)), PODS: 1}, host_ports(pod.spec))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod is turned away, as its status will say. ``lacking`` is how much of which resource is missing."""

    reason: str
    message: str
    lacking: tuple[str, int] | None = None


UNEXPECTED = Refusal("UnexpectedAdmissionError", "Allocate failed due to rpc error, which is unexpected")
"""How a pod is turned away of which the kubelet had thought that it could run."""


def refusals(
    pod: Pod, holding: Holding, node: Node, allocatable: Mapping[str, int], others: Iterable[Holding]
) -> list[Refusal]:
    """Why ``pod`` may not run on ``node`` beside ``others``, the reason that counts first; empty when it may.

    An extended resource that the node does not have at all is not the kubelet's to count. Of taints, only NoExecute
    ones keep a pod off that has its node already, and none does a static pod. Whether the node is unschedulable is
    nothing to a kubelet.
    """
    others = list(others)
    found = _wrong_os(pod, node) + _shortages(holding, allocatable, others)
    if not _selects(pod.spec, node):
        found.append(_failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        found.append(_failed("NodeName", "node(s) didn't match the requested node name"))
    if holding.ports and any(
        held.conflicts(wanted) for other in others for held in other.ports for wanted in holding.ports
    ):
        found.append(_failed("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    taints = (taint for taint in node.spec.taints if taint.effect == "NoExecute")
    if not is_static(pod) and not all(tolerated(pod.spec.tolerations, taint) for taint in taints):
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
    wanted = pod.metadata.labels.get(_OS_LABEL)
    if wanted is None or wanted == node.metadata.labels.get(_OS_LABEL, "linux"):
        return []
    message = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
    return [Refusal("PodOSSelectorNodeLabelDoesNotMatch", message)]


def _shortages(holding: Holding, allocatable: Mapping[str, int], others: list[Holding]) -> list[Refusal]:
    found = []
    for name in (*_ORDER, *sorted(set(holding.amounts) - set(_ORDER))):
        requested, capacity = holding.amounts.get(name, 0), allocatable.get(name, 0)
        if not requested or (name not in allocatable and is_extended(name)):
            continue
        used = sum([other.amounts.get(name, 0) for other in others])
        if used + requested > capacity:
            message = (
                f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
            )
            found.append(Refusal(f"OutOf{name}", message, (name, used + requested - capacity)))
    return found


def _selects(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return node_selector_matches(compile_node_selector(affinity.required), labels, node.metadata.name)


def _failed(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")
