"""A cluster that has drifted from a good placement, for a rescheduler to look at.

A tenth of the nodes is empty, as after a scale-up; the others hold more the lower their number. Applications differ in
what they prefer and require, and some of their pods are where they no longer should be.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference
from podium.api.node import Node, NodeSpec, NodeStatus, Taint
from podium.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceList,
    ResourceRequirements,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from podium.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from podium.api.selection import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.app.bench.clusters import HOSTNAME, ZONE

PODS_OF_AN_APP = 100
ZONES = 3
DISK = "disk"

_STARTED = "2026-01-01T00:00:00Z"
_FLAVOURS = ("plain", "plain", "plain", "apart", "near-disk", "spread", "needs-disk", "alone", "daemon", "batch")
"""What applications ask for, in turns."""


def drifted(nodes: int, pods: int) -> Iterator[Kubernetes]:
    """So many nodes and running pods, and the budgets of every other application."""
    full = max(1, nodes - nodes // 10)
    for number in range(nodes):
        yield _node(number)
    apps = -(-pods // PODS_OF_AN_APP)
    for app in range(0, apps, 2):
        yield _budget(app)
    for number in range(pods):
        # The lower a node's number, the more of the pods that are drawn in squares.
        app, place = number // PODS_OF_AN_APP, (number * 7_919) % pods
        yield _pod(number, app, int(full * (place / pods) ** 1.1))


def _node(number: int) -> Node:
    name = f"node-{number:05d}"
    disk = "ssd" if number % 3 else "hdd"
    taints = [Taint(key="old", effect="PreferNoSchedule")] if number % 50 == 7 else []
    if number % 500 == 9:
        taints.append(Taint(key="reserved", effect="NoSchedule"))
    return Node(
        metadata=ObjectMeta(name=name, uid=name, labels={HOSTNAME: name, ZONE: f"zone-{number % ZONES}", DISK: disk}),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(
            allocatable={"cpu": "16", "memory": "64Gi", "pods": "110"},
            conditions=(PodCondition(type="Ready", status="True"),),
        ),
    )


def _pod(number: int, app: int, on: int) -> Pod:
    flavour = _FLAVOURS[app % len(_FLAVOURS)]
    name, labels = f"app-{app}-{number}", {"app": f"app-{app}"}
    kind = {"daemon": "DaemonSet", "batch": "Job"}.get(flavour, "ReplicaSet")
    owner = OwnerReference(api_version="apps/v1", kind=kind, name=f"app-{app}", uid=f"uid-{app}", controller=True)
    requests: ResourceList = {"cpu": f"{200 + app % 7 * 150}m", "memory": f"{256 + app % 5 * 256}Mi"}
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=f"team-{app % 20}",
            uid=name,
            labels=labels,
            creation_timestamp=_STARTED,
            owner_references=(owner,),
        ),
        spec=PodSpec(
            node_name=f"node-{on:05d}",
            containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),),
            affinity=_affinity(flavour, labels),
            topology_spread_constraints=_spread(labels) if flavour == "spread" else (),
        ),
        status=PodStatus(phase="Running", start_time=_STARTED, conditions=(PodCondition(type="Ready", status="True"),)),
    )


def _affinity(flavour: str, labels: dict[str, str]) -> Affinity | None:
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(match_labels=labels))
    ssd = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=DISK, operator="In", values=("ssd",)),))
    match flavour:
        case "apart":
            weighted = WeightedPodAffinityTerm(weight=100, pod_affinity_term=term)
            return Affinity(pod_anti_affinity=PodAffinity(preferred=(weighted,)))
        case "alone":
            return Affinity(pod_anti_affinity=PodAffinity(required=(term,)))
        case "near-disk":
            preferred = PreferredSchedulingTerm(weight=100, preference=ssd)
            return Affinity(node_affinity=NodeAffinity(preferred=(preferred,)))
        case "needs-disk":
            return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=(ssd,))))
        case _:
            return None


def _spread(labels: dict[str, str]) -> tuple[TopologySpreadConstraint, ...]:
    soft = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="ScheduleAnyway",
        label_selector=LabelSelector(match_labels=labels),
    )
    return (soft,)


def _budget(app: int) -> PodDisruptionBudget:
    name = f"app-{app}"
    most = PODS_OF_AN_APP // 10
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=f"team-{app % 20}", uid=f"budget-{app}"),
        spec=PodDisruptionBudgetSpec(max_unavailable="10%", selector=LabelSelector(match_labels={"app": f"app-{app}"})),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=most,
            current_healthy=PODS_OF_AN_APP,
            desired_healthy=PODS_OF_AN_APP - most,
            expected_pods=PODS_OF_AN_APP,
        ),
    )
