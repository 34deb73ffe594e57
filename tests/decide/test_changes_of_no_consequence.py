"""Input changes that must not change a decision, over random clusters (invariants C8, M1, M2, M3)."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Container, Pod
from podium.api.quantity import milli_value
from tests.builders import explain, node
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, Traits, clusters

KEY = "default/target"
PRESSED = Traits(heavy_target=True, affinity=True, ports=True, budgets=True, nominated=True, terminating=True)
FULL = Traits(always_requests=True, affinity=True, ports=True, soft_spread=True, budgets=True)


def decision(objects: list[Kubernetes]) -> dict[str, Any]:
    """Return the whole decision about the target, with the message of preemption."""
    found = explain(objects, KEY)
    return found.to_dict() | {"message": found.plan.message if found.plan else ""}


@efforts(20)
def test_the_order_of_the_input_does_not_matter(effort: Effort) -> None:
    @effort
    @given(clusters(EVERYTHING) | clusters(PRESSED), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        shuffled = list(objects.all)
        chance.shuffle(shuffled)

        assert decision(shuffled) == decision(objects.all)

    check()


@efforts(20)
def test_a_node_that_can_host_nothing_changes_its_own_entries_alone(effort: Effort) -> None:
    """It has no labels, so that it is in no domain; images count in relation to all nodes, so that there are none."""

    @effort
    @given(clusters(PRESSED) | clusters(FULL))
    def check(objects: Objects) -> None:
        useless = node("zz", cpu=0, memory=0, pods=0, unschedulable=True)
        without = decision(objects.all)

        beside = decision([*objects.all, useless])

        nodes = beside["nodes"]
        if nodes:
            assert nodes.pop("zz") == {
                "status": "UnschedulableAndUnresolvable",
                "plugin": "NodeUnschedulable",
                "reasons": ["node(s) were unschedulable"],
            }
        for found in (beside, without):
            # Both tell of all nodes.
            del found["message"]
            found.pop("remedies", None)
        assert beside == without

    check()


@efforts(20)
def test_measuring_cpu_in_another_unit_changes_nothing(effort: Effort) -> None:
    """Every container states its request: the assumed request of the others has no unit."""

    @effort
    @given(clusters(FULL), st.sampled_from((2, 7)))
    def check(objects: Objects, factor: int) -> None:
        scaled, as_is = decision([_scaled(one, factor) for one in objects.all]), decision(objects.all)
        for found in (scaled, as_is):
            # They tell of amounts.
            found.pop("remedies", None)
        assert scaled == as_is

    check()


@efforts(20)
def test_other_names_of_nodes_in_the_same_order_change_nothing_but_lots(effort: Effort) -> None:
    """The lots between equal nodes depend on their names."""

    @effort
    @given(clusters(EVERYTHING) | clusters(PRESSED))
    def check(objects: Objects) -> None:
        renamed = [_renamed(one) for one in objects.all]
        after = explain(renamed, KEY)
        before = explain(objects.all, KEY)

        found = msgspec.json.decode(msgspec.json.encode(before.to_dict()).replace(b"node-", b"host-"))
        taken = after.to_dict()
        del found["node"], taken["node"]
        assert taken == found

    check()


def _scaled(item: Kubernetes, factor: int) -> Kubernetes:
    if isinstance(item, Node):
        allocatable = item.status.allocatable
        more = {**allocatable, "cpu": f"{milli_value(allocatable['cpu']) * factor}m"}
        return replace(item, status=replace(item.status, allocatable=more))
    if isinstance(item, Pod):
        containers = tuple(_scaled_container(one, factor) for one in item.spec.containers)
        return replace(item, spec=replace(item.spec, containers=containers))
    return item


def _scaled_container(container: Container, factor: int) -> Container:
    requests = container.resources.requests
    more = {**requests, "cpu": f"{milli_value(requests['cpu']) * factor}m"}
    return replace(container, resources=replace(container.resources, requests=more))


def _renamed(item: Kubernetes) -> Kubernetes:
    written = msgspec.json.encode(item).replace(b"node-", b"host-")
    return msgspec.json.decode(written, type=type(item))
