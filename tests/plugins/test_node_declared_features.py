"""The kubelet features that a node must declare for a pod (upstream's nodedeclaredfeatures)."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Container, ContainerRestartRule
from tests.builders import explain, node, pod

REFUSED = "node(s) didn't match Pod's required features"
RESTARTS_ALL = (Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)),)
RESTARTS_ONE = (Container(restart_policy_rules=(ContainerRestartRule(action="Restart"),)),)
ALL_CONTAINERS, USER_NAMESPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def declaring(*features: str) -> Node:
    plain = node("n")
    return replace(plain, status=replace(plain.status, declared_features=features))


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"containers": RESTARTS_ALL}, ALL_CONTAINERS),
        ({"init_containers": RESTARTS_ALL}, ALL_CONTAINERS),
        ({"containers": RESTARTS_ONE}, None),
        ({"host_network": True, "host_users": False}, USER_NAMESPACES),
        ({"host_network": True, "host_users": True}, None),
        ({"host_network": True}, None),
        ({"host_users": False}, None),
        ({}, None),
    ],
)
def test_a_node_declares_what_the_pod_needs_of_its_kubelet(spec: dict[str, Any], needed: str | None) -> None:
    target = pod("p", spec=spec)

    def refusal(*features: str) -> str:
        return explain([declaring(*features), target]).nodes["n"].message

    assert refusal() == ("" if needed is None else REFUSED)
    assert refusal(ALL_CONTAINERS, USER_NAMESPACES) == ""
    assert refusal("AnotherFeature", *{ALL_CONTAINERS, USER_NAMESPACES} - {needed}) == refusal()
