"""The clusters and pods that `podium bench` measures, after kube-scheduler's own benchmark.

Source: test/integration/scheduler_perf of kubernetes/kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from podium.api.meta import ObjectMeta
from podium.api.node import Node, NodeStatus
from podium.api.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from podium.api.pod_group import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from podium.api.selection import LabelSelector
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
RACK = "rack"
NODE_CPU = "4"
_RACK_SIZE = 20
_IN_THE_WAY = 4
_PRIORITIES = 5
GANG_SIZE = 16
"""So many pods are in a gang, but for the last one, which has the rest."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is there before the clock starts, and the pods that are then scheduled.

    ``pods`` are handed over all at once; ``churn`` interleaves deletions and node changes with them. Without a
    ``configuration`` it is the default one that decides. ``groups`` are there beside the nodes.
    """

    name: str
    nodes: list[Node]
    placed: list[Pod]
    pods: list[Pod]
    churn: bool = False
    configuration: Configuration | None = None
    groups: Sequence[PodGroup] = ()


def node(index: int, zones: int = 1, rack_size: int = 0) -> Node:
    """A node of 4 cores and 32 GiB in one of ``zones`` zones, and in a rack of so many nodes if that is said."""
    name = f"node-{index:06d}"
    labels = {HOSTNAME: name, ZONE: f"zone-{index % zones}"}
    if rack_size:
        labels[RACK] = f"rack-{index // rack_size}"
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(allocatable={"cpu": NODE_CPU, "memory": "32Gi", "pods": "110"}),
    )


def pod(
    name: str,
    cpu: str,
    *,
    memory: str = "500Mi",
    priority: int = 0,
    on: str = "",
    labels: dict[str, str] | None = None,
    affinity: Affinity | None = None,
    spread: tuple[TopologySpreadConstraint, ...] = (),
) -> Pod:
    """A pod with one container; running on node ``on`` if that is given."""
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=ObjectMeta(name=name, namespace="default", uid=name, labels=labels or {}),
        spec=PodSpec(
            node_name=on,
            priority=priority,
            containers=(Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu, "memory": memory})),),
            affinity=affinity,
            topology_spread_constraints=spread,
        ),
        status=PodStatus(phase="Running" if on else "Pending"),
    )


def _selecting(labels: dict[str, str], key: str) -> PodAffinity:
    return PodAffinity(required=(PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels=labels)),))


def _basic(nodes: int, pods: int) -> Workload:
    return Workload("basic", [node(i) for i in range(nodes)], [], [pod(f"pod-{i}", "100m") for i in range(pods)])


def _preemption(nodes: int, pods: int) -> Workload:
    low = [pod(f"low-{i}-{k}", "900m", on=f"node-{i:06d}", memory="500Mi") for i in range(nodes) for k in range(4)]
    high = [pod(f"high-{i}", "3", priority=10) for i in range(pods)]
    return Workload("preemption", [node(i) for i in range(nodes)], low, high)


def _preemption_across(nodes: int, pods: int) -> Workload:
    batch, latency = {"app": "batch"}, {"app": "latency"}
    terms = (*_selecting(batch, RACK).required, *_selecting(latency, RACK).required)
    apart = Affinity(pod_anti_affinity=PodAffinity(required=terms))
    low = [pod(f"low-{i}-{k}", "900m", on=f"node-{i:06d}", memory="500Mi") for i in range(nodes) for k in range(4)]
    low += [
        pod(f"batch-{i}", "100m", on=f"node-{i:06d}", labels=batch)
        for i in range(nodes)
        if i % _RACK_SIZE < _IN_THE_WAY
    ]
    high = [pod(f"high-{i}", "3", priority=10, labels=latency, affinity=apart) for i in range(pods)]
    made = [node(i, rack_size=_RACK_SIZE) for i in range(nodes)]
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": {"acrossNodes": True}}]}
    written = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    return Workload("preemption-across", made, low, high, configuration=read_configuration(written, "bench"))


def _preemption_gangs(nodes: int, pods: int) -> Workload:
    low = [
        pod(f"low-{i}-{k}", "1", on=f"node-{i:06d}", priority=(i * 7 + k) % _PRIORITIES)
        for i in range(nodes)
        for k in range(4)
    ]
    high, groups = [], []
    for first in range(0, pods, GANG_SIZE):
        name, size = f"gang-{first // GANG_SIZE}", min(GANG_SIZE, pods - first)
        policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=size))
        spec = PodGroupSpec(scheduling_policy=policy, priority=10)
        meta = ObjectMeta(name=name, namespace="default")
        groups.append(PodGroup(api_version="scheduling.k8s.io/v1alpha2", kind="PodGroup", metadata=meta, spec=spec))
        members = [pod(f"{name}-{i}", "2", priority=10) for i in range(size)]
        of_group = PodSchedulingGroup(pod_group_name=name)
        high += [replace(member, spec=replace(member.spec, scheduling_group=of_group)) for member in members]
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}
    written = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    made = [node(i) for i in range(nodes)]
    configured = read_configuration(written, "bench")
    return Workload("preemption-gangs", made, low, high, configuration=configured, groups=groups)


def _affinity(nodes: int, pods: int) -> Workload:
    labels = {"color": "blue"}
    near = Affinity(pod_affinity=_selecting(labels, ZONE))
    placed = [pod(f"init-{i}", "100m", on=f"node-{i % nodes:06d}", labels=labels, affinity=near) for i in range(pods)]
    wanted = [pod(f"pod-{i}", "100m", labels=labels, affinity=near) for i in range(pods)]
    return Workload("affinity", [node(i) for i in range(nodes)], placed, wanted)


def _antiaffinity(nodes: int, pods: int) -> Workload:
    labels = {"color": "green"}
    apart = Affinity(pod_anti_affinity=_selecting(labels, HOSTNAME))
    placed = [pod(f"init-{i}", "100m", on=f"node-{i:06d}", labels=labels, affinity=apart) for i in range(nodes // 5)]
    wanted = [pod(f"pod-{i}", "100m", labels=labels, affinity=apart) for i in range(min(pods, nodes - nodes // 5))]
    return Workload("antiaffinity", [node(i) for i in range(nodes)], placed, wanted)


def _spread(nodes: int, pods: int) -> Workload:
    labels = {"color": "blue"}
    constraint = TopologySpreadConstraint(
        max_skew=5,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels=labels),
    )
    placed = [pod(f"init-{i}", "100m", on=f"node-{i % nodes:06d}", labels=labels) for i in range(pods // 5)]
    wanted = [pod(f"pod-{i}", "100m", labels=labels, spread=(constraint,)) for i in range(pods)]
    return Workload("spread", [node(i, zones=3) for i in range(nodes)], placed, wanted)


def _unschedulable(nodes: int, pods: int) -> Workload:
    wanted = [pod(f"pod-{i}", "9" if i % 5 == 0 else "100m") for i in range(pods)]
    return Workload("unschedulable", [node(i) for i in range(nodes)], [], wanted)


def _mixed_churn(nodes: int, pods: int) -> Workload:
    def wanted() -> Iterator[Pod]:
        labels = {"color": "blue"}
        soft = TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable="ScheduleAnyway",
            label_selector=LabelSelector(match_labels=labels),
        )
        for i in range(pods):
            match i % 4:
                case 0 | 1:
                    yield pod(f"pod-{i}", "100m")
                case 2:
                    yield pod(f"pod-{i}", "200m", labels=labels, spread=(soft,))
                case _:
                    yield pod(f"pod-{i}", "300m", priority=5, labels={"app": f"a{i % 50}"})

    placed = [pod(f"init-{i}", "500m", on=f"node-{i % nodes:06d}") for i in range(2 * nodes)]
    return Workload("mixed-churn", [node(i, zones=3) for i in range(nodes)], placed, list(wanted()), churn=True)


def _explain(nodes: int, pods: int) -> Workload:
    placed = [
        pod(f"init-{i}", "300m", on=f"node-{i % nodes:06d}", priority=i % 7, labels={"app": f"a{i % 200}"})
        for i in range(10 * nodes)
    ]
    sizes = ("100m", "3500m", "9")
    wanted = [pod(f"pod-{i}", sizes[i % 3].replace("00m", f"{i % 100:02d}m"), priority=100) for i in range(pods)]
    return Workload("explain", [node(i, zones=3) for i in range(nodes)], placed, wanted)


def _scale(nodes: int, pods: int) -> Workload:
    labels = [{"app": f"a{i}"} for i in range(1000)]
    placed = [pod(f"init-{i}", "100m", on=f"node-{i % nodes:06d}", labels=labels[i % 1000]) for i in range(10 * nodes)]
    return Workload(
        "scale", [node(i, zones=3) for i in range(nodes)], placed, [pod(f"pod-{i}", "1") for i in range(pods)]
    )


BUILDERS: dict[str, Callable[[int, int], Workload]] = {
    "basic": _basic,
    "preemption": _preemption,
    "preemption-across": _preemption_across,
    "preemption-gangs": _preemption_gangs,
    "affinity": _affinity,
    "antiaffinity": _antiaffinity,
    "spread": _spread,
    "unschedulable": _unschedulable,
    "mixed-churn": _mixed_churn,
    "explain": _explain,
    "scale": _scale,
}
"""What makes the cluster of a workload: of so many nodes, with so many pods to decide about."""
