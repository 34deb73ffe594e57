"""Rules of host ports."""

from __future__ import annotations

import pytest

from podium.api.pod import Container, ContainerPort
from podium.framework.handle import CycleState
from tests.builders import cluster_of, explain, node, plain_runner, pod

TAKEN = "node(s) didn't have free ports for the requested pod ports"


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        (80, 80, True),
        (80, 81, False),
        ("0.0.0.0/UDP/80", 80, False),
        ("10.0.0.1/TCP/80", 80, True),
        (80, "10.0.0.1/TCP/80", True),
        ("10.0.0.1/TCP/80", "10.0.0.1/TCP/80", True),
        ("10.0.0.1/TCP/80", "10.0.0.2/TCP/80", False),
        ("0.0.0.0/TCP/80", "10.0.0.2/TCP/80", True),
    ],
)
def test_a_port_is_taken_for_its_protocol_on_its_address(held: int | str, wanted: int | str, conflict: bool) -> None:
    """Row 47 of Kubernetes' tests: TestHostPorts. Without an address all are meant."""
    found = explain([node("n"), pod("q", on="n", ports=[held]), pod("p", ports=[wanted])]).nodes["n"]

    assert found.message == (TAKEN if conflict else "")


def test_ports_of_the_container_alone_are_free() -> None:
    inside = ContainerPort(container_port=80)
    spec = {"containers": (Container(name="main", ports=(inside,)),)}

    assert explain([node("n"), pod("q", on="n", spec=spec), pod("p", spec=spec)]).outcome == "schedulable"


def test_sidecars_hold_ports_and_other_init_containers_do_not() -> None:
    port = ContainerPort(container_port=80, host_port=80)
    sidecar = Container(name="side", ports=(port,), restart_policy="Always")
    init = Container(name="init", ports=(port,))

    def fits(container: Container) -> bool:
        there = pod("q", on="n", spec={"init_containers": (container,)})
        return explain([node("n"), there, pod("p", ports=[80])]).outcome == "schedulable"

    assert (fits(sidecar), fits(init)) == (False, True)


def test_a_port_is_free_again_when_its_pod_is_gone() -> None:
    """Row 40 of Kubernetes' tests: TestSchedulerNoPhantomPodAfterDelete."""
    cluster = cluster_of(node("n"), pod("q", on="n", ports=[80]))
    runner, record = plain_runner(cluster), cluster.read(pod("p", ports=[80]))

    def fits() -> bool:
        state = CycleState()
        runner.pre_filter(state, record)
        return len(runner.filter(state, record).feasible) == 1

    assert not fits()
    cluster.remove_pod("default/q")
    assert fits()
