"""Pods that wait for a suitable node: TestUnschedulableNodes, TestNodeEvents and TestHostPorts (row 47)."""

from __future__ import annotations

import pytest

from podium.api.node import Node
from podium.controllers.actions import Bind
from tests.builders import node, pod
from tests.controllers.driving import Driver, all_of, the

pytestmark = pytest.mark.upstream(47)

A, B = pod("a", cpu=1), pod("b", cpu=1)


@pytest.mark.parametrize(
    ("unfit", "fit"),
    [
        (node("n1", unschedulable=True), node("n1")),
        (node("n1", taints=["gone:NoSchedule"]), node("n1")),
        (node("n1", taints=["gone:NoExecute"]), node("n1", taints=["gone:PreferNoSchedule"])),
        (node("n1", cpu="500m"), node("n1", cpu=1)),
        (node("n1", pods=0), node("n1", pods=1)),
    ],
)
def test_a_node_that_becomes_fit_gets_the_pod_that_waited_and_one_that_becomes_unfit_gets_no_more(
    unfit: Node, fit: Node
) -> None:
    driver = Driver(unfit, A)
    assert not all_of(Bind, driver.tick())

    driver.see(fit)
    driver.wait(2)
    assert the(Bind, driver.tick()).node_name == "n1"

    driver.see(unfit, B)
    assert not all_of(Bind, driver.tick())


def test_a_node_that_comes_with_a_taint_is_taken_once_the_taint_is_gone() -> None:
    driver = Driver(node("n1", cpu=1), pod("running", on="n1", cpu=1), A)
    driver.tick()

    driver.see(node("n2", taints=["node.kubernetes.io/not-ready:NoSchedule"]))
    driver.wait(2)
    assert not all_of(Bind, driver.tick())
    driver.see(node("n2", labels={"new": "label"}))
    driver.wait(5)

    assert the(Bind, driver.tick()).node_name == "n2"


@pytest.mark.parametrize(
    ("held", "wanted", "is_free"),
    [
        (80, 80, False),
        (80, 81, True),
        ("0.0.0.0/TCP/80", "10.0.0.1/TCP/80", False),
        ("10.0.0.1/TCP/80", "0.0.0.0/TCP/80", False),
        ("10.0.0.1/TCP/80", "10.0.0.2/TCP/80", True),
        ("0.0.0.0/TCP/80", "0.0.0.0/UDP/80", True),
    ],
)
def test_two_pods_do_not_share_a_port_of_a_node(held: int | str, wanted: int | str, is_free: bool) -> None:
    driver = Driver(node("n1"), pod("a", ports=[held]), pod("b", ports=[wanted]))
    assert the(Bind, driver.tick()).pod == "default/a"

    assert [one.pod for one in all_of(Bind, driver.tick())] == (["default/b"] if is_free else [])
