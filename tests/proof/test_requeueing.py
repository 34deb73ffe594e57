"""The pods that an event requeues, in a whole scheduler: for pods that in-tree plugins rejected.

The stories are those of Kubernetes' TestCoreResourceEnqueue, in objects of our own.
"""

from __future__ import annotations

import pytest

from podium.api.pod import Pod
from tests.builders import node, node_term, pod, spread_over, term, tolerate
from tests.proof.requeueing import Requeueing

pytestmark = pytest.mark.upstream(32)

NOT_READY, SPOT = "node.kubernetes.io/not-ready:NoSchedule", "spot:NoSchedule"
IN_B, IN_C = {"group": "b"}, {"group": "c"}


def labelled(name: str, **labels: str) -> Pod:
    return pod(name, on="n1", labels=labels)


def apart(name: str, match: str, key: str = "node") -> Pod:
    return pod(name, labels={match: "yes"}, apart=[term(match, key)])


def near(name: str, match: str, key: str = "node", **more: str) -> Pod:
    return pod(name, near=[term(match, key)], node_selector=more)


def spread(name: str, match: str, key: str = "node", *, domains: int = 3, tolerated: str = "") -> Pod:
    """Return a pod that the domains are too few for, unless one of them has no match."""
    tolerations = [tolerate(tolerated)] if tolerated else []
    wish = spread_over(key, match, min_domains=domains, honors_taints=bool(tolerated))
    return pod(name, labels={match: "yes"}, spread=[wish], tolerations=tolerations)


OF_NODES = {
    "a node has more cpu and its taint still keeps one of the pods off": Requeueing(
        "TaintToleration NodeResourcesFit",
        given=[node("n1", cpu=2, taints=[NOT_READY])],
        waiting=[pod("p1", cpu=4), pod("p2", cpu=4, tolerations=[tolerate("node.kubernetes.io/not-ready")])],
        seen=[node("n1", cpu=4, taints=[NOT_READY])],
        woken="p2",
    ),
    "a node that is cordoned no more": Requeueing(
        "NodeUnschedulable",
        given=[node("n1", unschedulable=True)],
        waiting=[pod("p1")],
        seen=[node("n1")],
        woken="p1",
    ),
    "a node comes where all were cordoned": Requeueing(
        "NodeUnschedulable",
        given=[node("n1", unschedulable=True)],
        waiting=[pod("p1")],
        seen=[node("n2")],
        woken="p1",
    ),
    "another cordoned node comes": Requeueing(
        "NodeUnschedulable",
        given=[node("n1", unschedulable=True)],
        waiting=[pod("p1")],
        seen=[node("n2", unschedulable=True)],
        woken="",
    ),
    "a node's taint becomes one that is tolerated": Requeueing(
        "TaintToleration",
        given=[node("n1", taints=[NOT_READY])],
        waiting=[
            pod("p1", tolerations=[tolerate("spot")]),
            pod("p2", tolerations=[tolerate("gpu")]),
            pod("p3"),
        ],
        seen=[node("n1", taints=[SPOT])],
        woken="p1",
    ),
    "a node comes whose taint is tolerated": Requeueing(
        "TaintToleration",
        given=[node("n1", taints=[NOT_READY])],
        waiting=[pod("p1", tolerations=[tolerate("spot")]), pod("p2")],
        seen=[node("n2", taints=[SPOT])],
        woken="p1",
    ),
    "a pod learns to tolerate": Requeueing(
        "TaintToleration",
        given=[node("n1", taints=[SPOT])],
        waiting=[pod("p1"), pod("p2")],
        seen=[pod("p1", tolerations=[tolerate("spot")])],
        woken="p1",
    ),
    "a pod gets a label, which its tolerations do not depend on": Requeueing(
        "TaintToleration",
        given=[node("n1", taints=[SPOT])],
        waiting=[pod("p1")],
        seen=[pod("p1", labels={"new": "label"})],
        woken="",
    ),
    "a node gets the label that is asked for": Requeueing(
        "NodeAffinity",
        given=[node("n1", labels={"group": "a"})],
        waiting=[pod("p1", node_selector=IN_B), pod("p2", node_selector=IN_C)],
        seen=[node("n1", labels=IN_B)],
        woken="p1",
    ),
    "a node comes with the label that is asked for": Requeueing(
        "NodeAffinity",
        given=[node("n1", labels={"group": "a"})],
        waiting=[pod("p1", node_selector=IN_B), pod("p2", node_selector=IN_C)],
        seen=[node("n2", labels=IN_B)],
        woken="p1",
    ),
    "a node that matched before gets another label": Requeueing(
        "NodeAffinity NodeResourcesFit",
        given=[node("n1", cpu=2, labels=IN_B), node("n2", labels=IN_C)],
        waiting=[pod("p1", cpu=4, node_selector=IN_B)],
        seen=[node("n1", cpu=2, labels={**IN_B, "new": "label"})],
        woken="",
    ),
    "the only node that is selected by name gets more cpu": Requeueing(
        "NodeAffinity NodeResourcesFit",
        given=[node("n1", cpu=2), node("n2", cpu=2)],
        waiting=[pod("p1", cpu=4, needs_nodes=[node_term(name="n1")])],
        seen=[node("n1", cpu=4)],
        woken="p1",
    ),
}

ON_N2 = pod("p1", cpu=4, node_selector=IN_B)

OF_ROOM = {
    "a pod asks for less": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=2)],
        waiting=[pod("p1", cpu=4)],
        seen=[pod("p1", cpu=2)],
        woken="p1",
    ),
    "a pod goes": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=2), pod("q", on="n1", cpu=2)],
        waiting=[pod("p1", cpu=2)],
        gone=[pod("q", on="n1", cpu=2)],
        woken="p1",
    ),
    "a node comes that is large enough for one": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=2)],
        waiting=[pod("p1", cpu=4), pod("p2", cpu=5)],
        seen=[node("n2", cpu=4)],
        woken="p1",
    ),
    "a node becomes large enough for one": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=2)],
        waiting=[pod("p1", cpu=4), pod("p2", cpu=5)],
        seen=[node("n1", cpu=4)],
        woken="p1",
    ),
    "a node gets more of what nobody lacks": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=4, memory="1Gi", example_com__gpu=1)],
        waiting=[pod("p1", cpu=5, example_com__gpu=1)],
        seen=[node("n1", cpu=4, memory="2Gi", example_com__gpu=1)],
        woken="",
    ),
    "a node without the device that is asked for gets more memory": Requeueing(
        "NodeResourcesFit",
        given=[node("n1", cpu=4, memory="1Gi")],
        waiting=[pod("p1", example_com__gpu=1)],
        seen=[node("n1", cpu=4, memory="2Gi")],
        woken="",
    ),
    "a node gets more memory and the pod asks for cpu": Requeueing(
        "NodeResourcesFit NodeAffinity",
        given=[node("n1", cpu=4, memory="1Gi"), node("n2", cpu=2, labels=IN_B)],
        waiting=[ON_N2],
        seen=[node("n1", cpu=4, memory="2Gi")],
        woken="",
    ),
    "a node gets more cpu and another plugin refuses it": Requeueing(
        "NodeResourcesFit NodeAffinity",
        given=[node("n1", cpu=4), node("n2", cpu=2, labels=IN_B)],
        waiting=[ON_N2],
        seen=[node("n1", cpu=5)],
        woken="p1",
    ),
    "a node may have more pods": Requeueing(
        "NodeResourcesFit NodeAffinity",
        given=[node("n1", pods=2), node("n2", pods=1, labels=IN_B), pod("q", on="n2")],
        waiting=[pod("p1", node_selector=IN_B)],
        seen=[node("n1", pods=3)],
        woken="p1",
    ),
    "the pod that holds a port goes": Requeueing(
        "NodePorts",
        given=[node("n1"), pod("q1", on="n1", ports=[8080]), pod("q2", on="n1", ports=[8081])],
        waiting=[pod("p1", ports=[8080]), pod("p2", ports=[8081])],
        gone=[pod("q1", on="n1", ports=[8080])],
        woken="p1",
    ),
    "a node comes where a port is free": Requeueing(
        "NodePorts",
        given=[node("n1"), pod("q1", on="n1", ports=[8080])],
        waiting=[pod("p1", ports=[8080])],
        seen=[node("n2")],
        woken="p1",
    ),
}

ON_NODE = node("n1", labels={"node": "n1"})
TWO = {"red": "yes", "blue": "yes"}

OF_AFFINITY = {
    "a node comes that is free of whom the pod wants to be apart from": Requeueing(
        "InterPodAffinity",
        given=[ON_NODE, pod("q", on="n1", labels={"red": "yes"}, apart=[term("red", "node")])],
        waiting=[apart("p1", "red")],
        seen=[node("n2", labels={"node": "n2"})],
        woken="p1",
    ),
    "a pod loses the label that one wants to be apart from": Requeueing(
        "InterPodAffinity",
        given=[ON_NODE, labelled("q", **TWO)],
        waiting=[apart("p1", "red"), apart("p2", "blue")],
        seen=[labelled("q", blue="yes")],
        woken="p1",
    ),
    "the pod goes that one wants to be apart from": Requeueing(
        "InterPodAffinity",
        given=[ON_NODE, labelled("q1", red="yes"), labelled("q2", blue="yes")],
        waiting=[apart("p1", "red"), apart("p2", "blue")],
        gone=[labelled("q1", red="yes")],
        woken="p1",
    ),
    "the pod goes that wants to be apart from one": Requeueing(
        "InterPodAffinity",
        given=[ON_NODE, *(pod(f"q-{who}", on="n1", apart=[term(who, "node")]) for who in ("red", "blue"))],
        waiting=[pod("p1", labels={"red": "yes"}), pod("p2", labels={"blue": "yes"})],
        gone=[pod("q-red", on="n1", apart=[term("red", "node")])],
        woken="p1",
    ),
    "a pod gets the label that one wants to be near to": Requeueing(
        "InterPodAffinity",
        given=[ON_NODE, labelled("q")],
        waiting=[near("p1", "red"), near("p2", "blue")],
        seen=[labelled("q", red="yes")],
        woken="p1",
    ),
    "a node comes with the key of one affinity": Requeueing(
        "InterPodAffinity",
        given=[node("n1", labels={"other": "n1"})],
        waiting=[near("p1", "red", "zone"), near("p2", "red", "region")],
        seen=[node("n2", labels={"zone": "z1"})],
        woken="p1",
    ),
    "a node gets the key of one affinity and moves to where another looks": Requeueing(
        "InterPodAffinity NodeAffinity",
        given=[
            node("n1", labels={"region": "r1"}),
            node("n2", labels={"region": "r2", **IN_B}),
            labelled("q", red="yes"),
        ],
        waiting=[near("p1", "red", "node"), near("p2", "red", "other"), near("p3", "red", "region", **IN_B)],
        seen=[node("n1", labels={"node": "n1", "region": "r2"})],
        woken="p1 p3",
    ),
    "a node loses one key of anti-affinity and changes another": Requeueing(
        "InterPodAffinity",
        given=[node("n1", labels={"node": "n1", "service": "a", "other": "n1"}), labelled("q", red="yes")],
        waiting=[apart("p1", "red", "node"), apart("p2", "red", "service"), apart("p3", "red", "other")],
        seen=[node("n1", labels={"service": "b", "region": "n1", "other": "n1"})],
        woken="p1 p2",
    ),
    "a node comes with one key of anti-affinity and without another": Requeueing(
        "InterPodAffinity",
        given=[node("n1", labels={"zone": "z", "node": "n1"}), labelled("q", red="yes")],
        waiting=[apart("p1", "red", "zone"), apart("p2", "red", "node")],
        seen=[node("n2", labels={"zone": "z"})],
        woken="p1 p2",
    ),
}

RED_AND_BLUE = [ON_NODE, labelled("q1", red="yes"), labelled("q2", blue="yes")]
BY_COLOUR = [spread("p1", "red"), spread("p2", "blue")]
NODE_AND_ZONE = [node("n1", labels={"node": "n1"}), node("n2", labels={"zone": "z1"})]
ONE_ON_EACH = [labelled("q1", red="yes"), pod("q2", on="n2", labels={"red": "yes"})]
BY_NODE_AND_ZONE = [spread("p1", "red", "node"), spread("p2", "red", "zone")]
KEYS = ("node", "zone", "region", "other", "service")
EVERYWHERE = {"node": "n", "region": "r", "service": "a"}

OF_SPREAD = {
    "a pod that is counted comes": Requeueing(
        "PodTopologySpread",
        given=RED_AND_BLUE,
        waiting=BY_COLOUR,
        seen=[labelled("q3", red="yes")],
        woken="p1",
    ),
    "a pod that was counted gets another label": Requeueing(
        "PodTopologySpread",
        given=RED_AND_BLUE,
        waiting=BY_COLOUR,
        seen=[labelled("q1", green="yes")],
        woken="p1",
    ),
    "a pod that was counted goes": Requeueing(
        "PodTopologySpread",
        given=RED_AND_BLUE,
        waiting=BY_COLOUR,
        gone=[labelled("q1", red="yes")],
        woken="p1",
    ),
    "a node comes with the key of one constraint": Requeueing(
        "PodTopologySpread",
        given=[*NODE_AND_ZONE, *ONE_ON_EACH],
        waiting=BY_NODE_AND_ZONE,
        seen=[node("n3", labels={"node": "n3"})],
        woken="p1",
    ),
    "a node loses, gets and changes keys": Requeueing(
        "PodTopologySpread",
        given=[node("n1", labels=EVERYWHERE), node("n2", labels=EVERYWHERE), *ONE_ON_EACH],
        waiting=[spread(f"by-{key}", "red", key) for key in KEYS],
        seen=[node("n2", labels={"zone": "z", "region": "r", "service": "b"})],
        woken="by-node by-zone by-service",
    ),
    "a node with the key of one constraint goes": Requeueing(
        "PodTopologySpread",
        given=[*NODE_AND_ZONE, *ONE_ON_EACH],
        waiting=BY_NODE_AND_ZONE,
        gone=[NODE_AND_ZONE[1]],
        woken="p2",
    ),
    "the taint of a node with the key of one constraint becomes one that is tolerated": Requeueing(
        "PodTopologySpread",
        given=[*NODE_AND_ZONE, node("n3", labels={"zone": "z1"}, taints=[NOT_READY]), *ONE_ON_EACH],
        waiting=[spread("p1", "red", "node"), spread("p2", "red", "zone", tolerated="spot")],
        seen=[node("n3", labels={"zone": "z1"}, taints=[SPOT])],
        woken="p2",
    ),
}

STORIES = OF_NODES | OF_ROOM | OF_AFFINITY | OF_SPREAD


@pytest.mark.parametrize("what", STORIES)
def test_exactly_the_pods_are_tried_again_that_it_may_help(what: str) -> None:
    story = STORIES[what]

    assert story.awake() == set(story.woken.split())
