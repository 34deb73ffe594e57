"""The clusters and pods of `podium bench`: those of kube-scheduler's benchmark, and others of its kind.

Source: test/integration/scheduler_perf of kubernetes/kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import convert
from msgspec.structs import replace

from podium.api.meta import ObjectMeta, Raw
from podium.api.node import HOSTNAME_LABEL, ZONE_LABEL, Node, NodeStatus
from podium.api.pod import Affinity, Pod, PodSchedulingGroup, TopologySpreadConstraint
from podium.api.pod_group import PodGroup
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RACK = "rack"
NODE_CPU = "4"
_RACK_SIZE = 20
_IN_THE_WAY = 4
_PRIORITIES = 5
GANG_SIZE = 16
"""So many pods are in a gang, but for the last one, which has the rest."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The objects that exist before the measurement, and the pods that are scheduled during it.

    ``pods`` arrive all at once; ``churn`` interleaves deletions and node changes. ``configuration`` None is the default
    one. ``groups`` exist besides the nodes.
    """

    nodes: list[Node]
    placed: list[Pod]
    pods: list[Pod]
    churn: bool = False
    configuration: Configuration | None = None
    groups: Sequence[PodGroup] = ()


def node(index: int, zones: int = 1, rack_size: int = 0) -> Node:
    """Return a node with 4 cores and 32 GiB in one of ``zones`` zones, and in a rack if ``rack_size`` is set."""
    name = f"node-{index:06d}"
    labels = {HOSTNAME_LABEL: name, ZONE_LABEL: f"zone-{index % zones}"}
    if rack_size:
        labels[RACK] = f"rack-{index // rack_size}"
    status = NodeStatus(allocatable={"cpu": NODE_CPU, "memory": "32Gi", "pods": "110"})
    return Node(api_version="v1", kind="Node", metadata=ObjectMeta(name=name, labels=labels), status=status)


def pod(
    name: str,
    cpu: str,
    *,
    priority: int = 0,
    on: str = "",
    labels: dict[str, str] | None = None,
    affinity: Affinity | None = None,
    spread: tuple[TopologySpreadConstraint, ...] = (),
) -> Pod:
    """Return a pod with one container, running on node ``on`` if that is given."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "500Mi"}}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
    spec = {"nodeName": on, "priority": priority, "containers": [container]}
    status = {"phase": "Running" if on else "Pending"}
    made = convert({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}, Pod)
    return replace(made, spec=replace(made.spec, affinity=affinity, topology_spread_constraints=spread))


def _spreading(labels: dict[str, str], skew: int, otherwise: str) -> tuple[TopologySpreadConstraint, ...]:
    constraint = {**_selecting(labels, ZONE_LABEL), "maxSkew": skew, "whenUnsatisfiable": otherwise}
    return (convert(constraint, TopologySpreadConstraint),)


def _selecting(labels: dict[str, str], key: str) -> Raw:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def _with_affinity(kind: str, strength: str, terms: Any) -> Affinity:
    return convert({kind: {strength: terms}}, Affinity)


def configuration_of(profile: Raw) -> Configuration:
    """Return the configuration with one profile."""
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "bench")


def _nodes(number: int, **fields: int) -> list[Node]:
    return [node(index, **fields) for index in range(number)]


def _pods(number: int, cpu: str, name: str = "pod", **fields: Any) -> list[Pod]:
    return [pod(f"{name}-{index}", cpu, **fields) for index in range(number)]


def _running(number: int, nodes: int, cpu: str, name: str = "init", **fields: Any) -> list[Pod]:
    return [pod(f"{name}-{index}", cpu, on=f"node-{index % nodes:06d}", **fields) for index in range(number)]


def _low(nodes: int, cpu: str, priority: Callable[[int, int], int] = lambda *_: 0) -> list[Pod]:
    """Return four pods on each node that others may preempt."""
    return [
        pod(f"low-{i}-{k}", cpu, on=f"node-{i:06d}", priority=priority(i, k)) for i in range(nodes) for k in range(4)
    ]


def _preemption_across(nodes: int, pods: int) -> Workload:
    batch, latency = {"app": "batch"}, {"app": "latency"}
    terms = [_selecting(batch, RACK), _selecting(latency, RACK)]
    apart = _with_affinity("podAntiAffinity", _REQUIRED, terms)
    in_the_way = [
        pod(f"batch-{i}", "100m", on=f"node-{i:06d}", labels=batch)
        for i in range(nodes)
        if i % _RACK_SIZE < _IN_THE_WAY
    ]
    high = _pods(pods, "3", "high", priority=10, labels=latency, affinity=apart)
    configured = configuration_of({"pluginConfig": [{"name": "DefaultPreemption", "args": {"acrossNodes": True}}]})
    made = _nodes(nodes, rack_size=_RACK_SIZE)
    return Workload(made, [*_low(nodes, "900m"), *in_the_way], high, configuration=configured)


def _preemption_gangs(nodes: int, pods: int) -> Workload:
    high, groups = [], []
    for first in range(0, pods, GANG_SIZE):
        name, size = f"gang-{first // GANG_SIZE}", min(GANG_SIZE, pods - first)
        group: Raw = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
        group |= {"metadata": {"name": name, "namespace": "default"}}
        group |= {"spec": {"schedulingPolicy": {"gang": {"minCount": size}}, "priority": 10}}
        groups.append(convert(group, PodGroup))
        of_group = PodSchedulingGroup(pod_group_name=name)
        members = _pods(size, "2", name, priority=10)
        high += [replace(member, spec=replace(member.spec, scheduling_group=of_group)) for member in members]
    low = _low(nodes, "1", lambda i, k: (i * 7 + k) % _PRIORITIES)
    configured = configuration_of({"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}})
    return Workload(_nodes(nodes), low, high, configuration=configured, groups=groups)


def _affinity(nodes: int, pods: int) -> Workload:
    labels = {"color": "blue"}
    affinity = _with_affinity("podAffinity", _REQUIRED, [_selecting(labels, ZONE_LABEL)])
    near: Raw = {"labels": labels, "affinity": affinity}
    return Workload(_nodes(nodes), _running(pods, nodes, "100m", **near), _pods(pods, "100m", **near))


def _antiaffinity(nodes: int, pods: int) -> Workload:
    labels, some = {"color": "green"}, nodes // 5
    affinity = _with_affinity("podAntiAffinity", _REQUIRED, [_selecting(labels, HOSTNAME_LABEL)])
    apart: Raw = {"labels": labels, "affinity": affinity}
    wanted = _pods(min(pods, nodes - some), "100m", **apart)
    return Workload(_nodes(nodes), _running(some, nodes, "100m", **apart), wanted)


def _spread(nodes: int, pods: int) -> Workload:
    labels = {"color": "blue"}
    wanted = _pods(pods, "100m", labels=labels, spread=_spreading(labels, 5, "DoNotSchedule"))
    return Workload(_nodes(nodes, zones=3), _running(pods // 5, nodes, "100m", labels=labels), wanted)


def _mixed_churn(nodes: int, pods: int) -> Workload:
    def wanted() -> Iterator[Pod]:
        labels = {"color": "blue"}
        soft = _spreading(labels, 1, "ScheduleAnyway")
        for i in range(pods):
            match i % 4:
                case 0 | 1:
                    yield pod(f"pod-{i}", "100m")
                case 2:
                    yield pod(f"pod-{i}", "200m", labels=labels, spread=soft)
                case _:
                    yield pod(f"pod-{i}", "300m", priority=5, labels={"app": f"a{i % 50}"})

    return Workload(_nodes(nodes, zones=3), _running(2 * nodes, nodes, "500m"), list(wanted()), churn=True)


def _scale(nodes: int, pods: int) -> Workload:
    labels = [{"app": f"a{i}"} for i in range(1000)]
    placed = [pod(f"init-{i}", "100m", on=f"node-{i % nodes:06d}", labels=labels[i % 1000]) for i in range(10 * nodes)]
    return Workload(_nodes(nodes, zones=3), placed, _pods(pods, "1"))


BUILDERS: dict[str, Callable[[int, int], Workload]] = {
    "basic": lambda nodes, pods: Workload(_nodes(nodes), [], _pods(pods, "100m")),
    "preemption": lambda nodes, pods: Workload(
        _nodes(nodes), _low(nodes, "900m"), _pods(pods, "3", "high", priority=10)
    ),
    "preemption-across": _preemption_across,
    "preemption-gangs": _preemption_gangs,
    "affinity": _affinity,
    "antiaffinity": _antiaffinity,
    "spread": _spread,
    "unschedulable": lambda nodes, pods: Workload(
        _nodes(nodes), [], [pod(f"pod-{i}", "9" if i % 5 == 0 else "100m") for i in range(pods)]
    ),
    "mixed-churn": _mixed_churn,
    "scale": _scale,
}
"""The factories of workloads' clusters, from the numbers of nodes and of pods to decide about."""
