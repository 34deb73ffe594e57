"""The events for which each plugin requeues a pod that it rejected.

Row 32 of Kubernetes' tests: TestCoreResourceEnqueue. Volume plugins have their own tests.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.api.node import Node, NodeStatus
from podium.api.pod import Container, ContainerRestartRule, Pod
from podium.cluster.cluster import Cluster
from podium.cluster.view import UNSCHEDULABLE_TAINT
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.plugin import EnqueuePlugin, PluginContext
from podium.plugins.registry import IN_TREE
from tests.builders import ZONE, cluster_of, namespace, node, node_term, pod, spread_over, term, tolerate

CLUSTER = Cluster()
WEB, DB = {"app": "web"}, {"app": "db"}


def wakes(plugin: str, target: Pod, event: ClusterEvent) -> bool:
    made = IN_TREE[plugin](PluginContext({}, CLUSTER))
    assert isinstance(made, EnqueuePlugin)
    return any(one.wakes(CLUSTER.read(target), event) for one in made.events_to_register())


def node_comes(one: Node) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, ActionType.ADD, None, one)


def node_changes(action: ActionType, old: Node, new: Node) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, action, old, new)


def pod_goes(one: Pod) -> ClusterEvent:
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE, CLUSTER.read(one), None)


def pod_comes(one: Pod) -> ClusterEvent:
    return ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD, None, CLUSTER.read(one))


def pod_changes(
    action: ActionType, old: Pod, new: Pod, resource: EventResource = EventResource.ASSIGNED_POD
) -> ClusterEvent:
    return ClusterEvent(resource, action, CLUSTER.read(old), CLUSTER.read(new))


def itself_changes(action: ActionType, **changed: Any) -> ClusterEvent:
    return pod_changes(action, pod("p"), pod("p", **changed), EventResource.POD)


TAINTED, FREE = node("n", taints=["gpu:NoSchedule"]), node("n")
CORDONED = node("n", unschedulable=True)
GPU_USER = pod("p", tolerations=[tolerate("gpu")])
CPU2 = pod("p", cpu=2)
ON_SSD = pod("p", node_selector={"disk": "ssd"})
SSD = node("n", labels={"disk": "ssd"})
NEAR_DB = pod("p", labels=WEB, near=[term("app=db", ZONE)])
APART_DB = pod("p", labels=WEB, apart=[term("app=db", ZONE)])
NEAR_CACHE = pod("p", labels=WEB, near=[term("app=cache", "region")])
FIRST = pod("p", labels=WEB, near=[term("app=web", ZONE)])
DB_OLD = {"app": "db", "old": "yes"}
NEAR_AND_APART = pod("p", near=[term("app=db", ZONE)], apart=[term("old=yes", ZONE)])
RESTARTS_ALL = pod(
    "p", spec={"containers": (Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)),)}
)
DECLARING = msgspec.structs.replace(
    node("n"), status=NodeStatus(declared_features=("RestartAllContainersOnContainerExits",))
)
DECLARED = ActionType.UPDATE_NODE_DECLARED_FEATURE
SPREAD = pod("p", labels=WEB, spread=[spread_over(ZONE, "app=web")])
SPREAD_UNTAINTED = pod("p", labels=WEB, spread=[spread_over(ZONE, "app=web", honors_taints=True)])
OLD_WEB = {"app": "web", "old": "yes"}
LABEL, TAINT, ALLOCATABLE = (
    ActionType.UPDATE_NODE_LABEL,
    ActionType.UPDATE_NODE_TAINT,
    ActionType.UPDATE_NODE_ALLOCATABLE,
)
SCALE_DOWN, POD_LABEL, TOLERATION = (
    ActionType.UPDATE_POD_SCALE_DOWN,
    ActionType.UPDATE_POD_LABEL,
    ActionType.UPDATE_POD_TOLERATION,
)

CASES: list[tuple[str, Pod, ClusterEvent, bool]] = [
    ("NodeUnschedulable", pod("p"), node_comes(FREE), True),
    ("NodeUnschedulable", pod("p"), node_comes(CORDONED), False),
    ("NodeUnschedulable", pod("p"), node_changes(TAINT, CORDONED, FREE), True),
    ("NodeUnschedulable", pod("p"), node_changes(LABEL, CORDONED, FREE), False),
    ("NodeUnschedulable", pod("p"), node_changes(TAINT, TAINTED, FREE), False),
    ("NodeUnschedulable", pod("p"), itself_changes(TOLERATION, tolerations=[tolerate(UNSCHEDULABLE_TAINT.key)]), True),
    ("NodeUnschedulable", pod("p"), itself_changes(TOLERATION, tolerations=[tolerate("gpu")]), False),
    ("NodeName", pod("p", on="n"), node_comes(FREE), True),
    ("NodeName", pod("p", on="n"), node_changes(LABEL, FREE, SSD), False),
    ("TaintToleration", pod("p"), node_comes(FREE), True),
    ("TaintToleration", pod("p"), node_comes(TAINTED), False),
    ("TaintToleration", GPU_USER, node_comes(TAINTED), True),
    ("TaintToleration", pod("p"), node_changes(TAINT, TAINTED, FREE), True),
    ("TaintToleration", pod("p"), node_comes(node("n", taints=["gpu:PreferNoSchedule"])), True),
    ("TaintToleration", pod("p"), node_changes(TAINT, CORDONED, FREE), False),
    ("TaintToleration", pod("p"), node_changes(TAINT, FREE, TAINTED), False),
    ("TaintToleration", GPU_USER, node_changes(TAINT, FREE, TAINTED), False),
    ("TaintToleration", GPU_USER, node_changes(TAINT, node("n", taints=["old:NoExecute"]), TAINTED), True),
    ("TaintToleration", pod("p"), itself_changes(TOLERATION), True),
    ("TaintToleration", pod("p"), itself_changes(POD_LABEL), False),
    ("NodeAffinity", ON_SSD, node_comes(SSD), True),
    ("NodeAffinity", ON_SSD, node_comes(FREE), False),
    ("NodeAffinity", ON_SSD, node_changes(LABEL, FREE, SSD), True),
    ("NodeAffinity", ON_SSD, node_changes(LABEL, SSD, SSD), False),
    ("NodeAffinity", ON_SSD, node_changes(TAINT, FREE, SSD), False),
    ("NodeAffinity", pod("p", needs_nodes=[node_term(name="n")]), node_comes(FREE), True),
    ("NodePorts", pod("p", ports=[80]), pod_goes(pod("q", on="n", ports=[80])), True),
    ("NodePorts", pod("p", ports=[80]), pod_goes(pod("q", on="n", ports=[81])), False),
    ("NodePorts", pod("p", ports=[80]), pod_goes(pod("q", on="n")), False),
    ("NodePorts", pod("p", ports=[80]), node_comes(FREE), True),
    ("NodeResourcesFit", CPU2, node_comes(node("n", cpu=2)), True),
    ("NodeResourcesFit", CPU2, node_comes(node("n", cpu=1)), False),
    ("NodeResourcesFit", CPU2, node_comes(node("n", cpu=2, pods=0)), False),
    ("NodeResourcesFit", CPU2, node_changes(ALLOCATABLE, node("n", cpu=2), node("n", cpu=3)), True),
    ("NodeResourcesFit", CPU2, node_changes(ALLOCATABLE, node("n", cpu=3), node("n", cpu=2)), False),
    ("NodeResourcesFit", CPU2, node_changes(ALLOCATABLE, node("n", pods=1), node("n", pods=2)), True),
    (
        "NodeResourcesFit",
        pod("p", example_com__gpu=1),
        node_changes(ALLOCATABLE, FREE, node("n", example_com__gpu=1)),
        True,
    ),
    ("NodeResourcesFit", CPU2, node_changes(ALLOCATABLE, node("n"), node("n", memory="64Gi")), False),
    ("NodeResourcesFit", CPU2, pod_goes(pod("q", on="n")), True),
    ("NodeResourcesFit", CPU2, pod_changes(SCALE_DOWN, pod("q", on="n", cpu=2), pod("q", on="n", cpu=1)), True),
    ("NodeResourcesFit", CPU2, pod_changes(SCALE_DOWN, pod("q", memory="2Gi"), pod("q", memory="1Gi")), False),
    ("NodeResourcesFit", CPU2, itself_changes(SCALE_DOWN), True),
    ("NodeResourcesFit", CPU2, pod_comes(pod("q", on="n")), False),
    ("InterPodAffinity", NEAR_DB, pod_comes(pod("q", on="n", labels=DB)), True),
    ("InterPodAffinity", NEAR_DB, pod_comes(pod("q", on="n", labels=WEB)), False),
    ("InterPodAffinity", NEAR_DB, pod_goes(pod("q", on="n", labels=DB)), False),
    ("InterPodAffinity", NEAR_DB, pod_changes(POD_LABEL, pod("q", labels=WEB), pod("q", labels=DB)), True),
    ("InterPodAffinity", NEAR_DB, pod_changes(POD_LABEL, pod("q", labels=DB), pod("q", labels=DB)), False),
    ("InterPodAffinity", APART_DB, pod_goes(pod("q", on="n", labels=DB)), True),
    ("InterPodAffinity", APART_DB, pod_goes(pod("q", on="n", labels=WEB)), False),
    ("InterPodAffinity", APART_DB, pod_comes(pod("q", on="n", labels=DB)), False),
    ("InterPodAffinity", pod("p", labels=WEB), pod_goes(pod("q", on="n", apart=[term("app=web")])), True),
    ("InterPodAffinity", pod("p", labels=WEB), pod_goes(pod("q", on="n", apart=[term("app=db")])), False),
    (
        "InterPodAffinity",
        pod("p", labels=WEB),
        pod_changes(POD_LABEL, pod("q", apart=[term("app=web")]), pod("q", labels=DB, apart=[term("app=web")])),
        False,
    ),
    ("InterPodAffinity", NEAR_DB, node_comes(node("n", zone="a")), True),
    ("InterPodAffinity", NEAR_DB, node_comes(FREE), False),
    ("InterPodAffinity", pod("p", labels=WEB), node_comes(FREE), True),
    ("InterPodAffinity", FIRST, pod_goes(pod("q", on="n", labels=WEB)), True),
    ("InterPodAffinity", FIRST, pod_changes(POD_LABEL, pod("q", labels=WEB), pod("q", labels=DB)), True),
    ("InterPodAffinity", FIRST, pod_goes(pod("q", on="n", labels=DB)), False),
    ("InterPodAffinity", NEAR_DB, ClusterEvent(EventResource.NODE, ActionType.DELETE, node("n", zone="a"), None), True),
    ("InterPodAffinity", NEAR_DB, node_changes(LABEL, node("n", zone="a"), FREE), True),
    ("InterPodAffinity", NEAR_DB, node_changes(LABEL, FREE, SSD), False),
    ("InterPodAffinity", NEAR_AND_APART, pod_changes(POD_LABEL, pod("q", labels=DB_OLD), pod("q", labels=DB)), True),
    ("InterPodAffinity", NEAR_AND_APART, pod_changes(POD_LABEL, pod("q", labels=DB), pod("q", labels=DB_OLD)), False),
    ("InterPodAffinity", NEAR_DB, itself_changes(POD_LABEL), True),
    (
        "InterPodAffinity",
        NEAR_DB,
        ClusterEvent(EventResource.NAMESPACE, ActionType.UPDATE_OTHER, None, namespace("shop")),
        True,
    ),
    ("PodTopologySpread", SPREAD, pod_comes(pod("q", on="n", labels=WEB)), True),
    ("PodTopologySpread", SPREAD, pod_goes(pod("q", on="n", labels=WEB)), True),
    ("PodTopologySpread", SPREAD, pod_goes(pod("q", on="n", labels=DB)), False),
    ("PodTopologySpread", SPREAD, pod_goes(pod("q", on="n", labels=WEB, namespace="shop")), False),
    ("PodTopologySpread", SPREAD, pod_changes(POD_LABEL, pod("q", labels=WEB), pod("q", labels=DB)), True),
    ("PodTopologySpread", SPREAD, node_comes(node("n", zone="a")), True),
    ("PodTopologySpread", SPREAD, node_comes(FREE), False),
    ("PodTopologySpread", SPREAD, node_changes(LABEL, node("n", zone="a"), FREE), True),
    ("PodTopologySpread", SPREAD, ClusterEvent(EventResource.NODE, ActionType.DELETE, node("n", zone="a"), None), True),
    ("PodTopologySpread", SPREAD, pod_changes(POD_LABEL, pod("q", labels=DB), pod("q", labels=WEB)), True),
    ("PodTopologySpread", SPREAD, pod_changes(POD_LABEL, pod("q", labels=WEB), pod("q", labels=OLD_WEB)), False),
    ("PodTopologySpread", SPREAD, itself_changes(POD_LABEL, labels=WEB), True),
    ("PodTopologySpread", SPREAD, itself_changes(POD_LABEL, labels=DB), False),
    ("PodTopologySpread", SPREAD, itself_changes(TOLERATION), False),
    ("PodTopologySpread", SPREAD_UNTAINTED, itself_changes(TOLERATION), True),
    ("NodeDeclaredFeatures", RESTARTS_ALL, node_comes(FREE), True),
    ("NodeDeclaredFeatures", RESTARTS_ALL, node_changes(DECLARED, FREE, DECLARING), True),
    ("NodeDeclaredFeatures", RESTARTS_ALL, node_changes(DECLARED, DECLARING, DECLARING), False),
    ("NodeDeclaredFeatures", RESTARTS_ALL, pod_changes(POD_LABEL, pod("p"), RESTARTS_ALL, EventResource.POD), True),
    ("NodeDeclaredFeatures", RESTARTS_ALL, itself_changes(POD_LABEL), False),
    ("SchedulingGates", pod("p", gates=["a"]), itself_changes(ActionType.UPDATE_POD_SCHEDULING_GATES), True),
    ("SchedulingGates", pod("p", gates=["a"]), node_comes(FREE), False),
]


@pytest.mark.upstream(32)
@pytest.mark.parametrize(("plugin", "target", "event", "worth_it"), CASES)
def test_an_event_is_worth_an_attempt_where_it_may_have_helped(
    plugin: str, target: Pod, event: ClusterEvent, worth_it: bool
) -> None:
    assert wakes(plugin, target, event) is worth_it


@pytest.mark.parametrize(
    ("other", "worth_it"),
    [
        (pod("q", on="n", apart=[term("app=web", ZONE)]), True),
        (pod("q", nominated="n", apart=[term("app=web", ZONE)]), True),
        # A pending pod repels no other pod.
        (pod("q", apart=[term("app=web", ZONE)]), False),
        (pod("q", on="n", apart=[term("app=web", "other")]), False),
    ],
)
@pytest.mark.parametrize("after", [FREE, node("n", zone="b")])
def test_a_node_that_leaves_the_domain_of_a_term_in_force_is_worth_an_attempt(
    other: Pod, worth_it: bool, after: Node
) -> None:
    before = node("n", zone="a")
    cluster = cluster_of(before, other)
    target = cluster.read(NEAR_CACHE)
    made = IN_TREE["InterPodAffinity"](PluginContext({}, cluster))
    assert isinstance(made, EnqueuePlugin)

    def wakes_now(event: ClusterEvent) -> bool:
        return any(one.wakes(target, event) for one in made.events_to_register())

    assert wakes_now(node_changes(LABEL, before, after)) is worth_it
    assert not wakes_now(node_changes(LABEL, FREE, before))


@pytest.mark.upstream(32)
@pytest.mark.parametrize(
    "event", [node_comes(FREE), pod_goes(pod("q", on="n")), ClusterEvent(EventResource.WILDCARD, ActionType.ALL)]
)
def test_preemption_brings_its_pods_back_by_itself(event: ClusterEvent) -> None:
    assert not wakes("DefaultPreemption", pod("p"), event)
