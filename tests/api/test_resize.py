"""The resources that count for a pod during an in-place resize."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api import resource_requests
from podium.api.errors import InputError
from podium.api.input.codec import load_text
from podium.api.pod import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Quantity,
    ResourceRequirements,
)
from podium.api.resource_requests import effective_spec, pod_requests
from podium.cluster.cluster import Cluster

Amounts = Mapping[str, Quantity]

INFEASIBLE = (PodCondition(type="PodResizePending", status="True", reason="Infeasible"),)
DEFERRED = (PodCondition(type="PodResizePending", status="True", reason="Deferred"),)


def status(running: Amounts | None, allocated: Amounts, name: str = "main") -> ContainerStatus:
    """Return a container's status: its actual resources (None: not reported), and its allocated resources."""
    resources = None if running is None else ResourceRequirements(requests=dict(running))
    return ContainerStatus(name=name, resources=resources, allocated_resources=dict(allocated))


def resized(
    wanted: Amounts,
    reported: ContainerStatus,
    conditions: tuple[PodCondition, ...] = (),
    *,
    limits: Amounts | None = None,
    node_name: str = "n",
) -> Pod:
    resources = ResourceRequirements(requests=dict(wanted), limits=dict(limits or {}))
    return Pod(
        spec=PodSpec(containers=(Container(name="main", resources=resources),), node_name=node_name),
        status=PodStatus(container_statuses=(reported,), conditions=conditions),
    )


def counted(pod: Pod) -> Mapping[str, int]:
    return pod_requests(effective_spec(pod))


@pytest.mark.parametrize(
    ("wanted", "running", "allocated"), [("3", "1", "2"), ("1", "3", "2"), ("1", "2", "3"), ("3", "3", "3")]
)
def test_the_greatest_of_spec_status_and_allocation_counts(wanted: str, running: str, allocated: str) -> None:
    assert counted(resized({"cpu": wanted}, status({"cpu": running}, {"cpu": allocated}))) == {"cpu": 3_000}


def test_each_resource_by_itself() -> None:
    pod = resized({"cpu": "2", "memory": "1"}, status({"cpu": "1", "memory": "3"}, {"cpu": "1", "memory": "2"}))

    assert counted(pod) == {"cpu": 2_000, "memory": 3}


def test_a_spec_that_the_kubelet_found_infeasible_does_not_count() -> None:
    reported = status({"cpu": "1"}, {"cpu": "2"})

    assert counted(resized({"cpu": "9"}, reported, INFEASIBLE)) == {"cpu": 2_000}
    assert counted(resized({"cpu": "9"}, reported, DEFERRED)) == {"cpu": 9_000}


def test_limits_stand_in_for_requests_of_the_spec_alone() -> None:
    reported = status({"cpu": "1"}, {"cpu": "2"})

    assert counted(resized({}, reported, limits={"cpu": "3", "memory": "4"})) == {"cpu": 3_000, "memory": 4}
    assert counted(resized({}, reported, INFEASIBLE, limits={"cpu": "3", "memory": "4"})) == {"cpu": 2_000}


def test_an_allocation_without_what_the_container_runs_with_says_nothing() -> None:
    assert counted(resized({"cpu": "1"}, status(None, {"cpu": "2"}), INFEASIBLE)) == {"cpu": 1_000}


def test_init_containers_count_by_their_spec_unless_they_always_restart() -> None:
    wanted = ResourceRequirements(requests={"cpu": "1"})
    reported = (status({"cpu": "4"}, {}, "plain"), status({"cpu": "2"}, {}, "sidecar"))
    plain = Container(name="plain", resources=wanted)
    sidecar = Container(name="sidecar", resources=wanted, restart_policy="Always")
    pod = Pod(spec=PodSpec(init_containers=(plain, sidecar)), status=PodStatus(init_container_statuses=reported))

    assert counted(pod) == {"cpu": 2_000}


def as_a_whole(
    wanted: Amounts, running: Amounts | None, allocated: Amounts, conditions: tuple[PodCondition, ...] = ()
) -> Pod:
    return Pod(
        spec=PodSpec(containers=(Container(),), resources=ResourceRequirements(requests=dict(wanted)), node_name="n"),
        status=PodStatus(
            resources=None if running is None else ResourceRequirements(requests=dict(running)),
            allocated_resources=dict(allocated),
            conditions=conditions,
        ),
    )


def test_requests_of_the_pod_as_a_whole_are_resized_too() -> None:
    assert counted(as_a_whole({"cpu": "1"}, {"cpu": "3"}, {"cpu": "2"})) == {"cpu": 3_000}
    assert counted(as_a_whole({"cpu": "9"}, {"cpu": "1"}, {"cpu": "2"}, INFEASIBLE)) == {"cpu": 2_000}
    assert counted(as_a_whole({"cpu": "1"}, None, {"cpu": "2"})) == {"cpu": 1_000}
    assert counted(as_a_whole({"cpu": "1"}, {"cpu": "1", "memory": "7"}, {})) == {"cpu": 1_000}


def test_a_pod_whose_status_agrees_with_its_spec_is_of_the_class_of_one_without_status() -> None:
    cluster = Cluster()
    report = resized({"cpu": "1"}, status({"cpu": "1000m"}, {"cpu": "1"}))
    untold = msgspec.structs.replace(report, status=PodStatus())

    assert effective_spec(report) is report.spec
    assert cluster.read(report).pod_class is cluster.read(untold).pod_class


def test_a_pod_that_waits_for_a_node_is_counted_by_its_spec() -> None:
    cluster = Cluster()
    reported = status({"cpu": "2"}, {})
    placed, waiting = resized({"cpu": "1"}, reported), resized({"cpu": "1"}, reported, node_name="")

    assert [cluster.read(pod).pod_class.requests for pod in (placed, waiting)] == [{0: 2_000}, {0: 1_000}]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "2"]),
            st.sampled_from([None, "1", "2", "3"]),
            st.sampled_from([(), INFEASIBLE, DEFERRED]),
            st.booleans(),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_pods_that_share_parts_have_the_effective_requests_that_each_has_by_itself(
    readings: list[tuple[str, str | None, tuple[PodCondition, ...], bool, bool]],
) -> None:
    spec = PodSpec(containers=(Container(name="main", resources=ResourceRequirements(requests={"cpu": "1"})),))
    whole = {cpu: ResourceRequirements(requests={"cpu": cpu}) for cpu in ("1", "2", "3")}
    shared = {cpu: (status({"cpu": cpu}, {"cpu": cpu}),) for cpu in ("1", "2")}

    for cpu, of_pod, conditions, has_level, resizes_pods in readings:
        pod = Pod(
            spec=msgspec.structs.replace(spec, node_name="n", resources=whole["2"] if has_level else None),
            status=PodStatus(
                container_statuses=shared[cpu],
                resources=None if of_pod is None else whole[of_pod],
                conditions=conditions,
            ),
        )
        found = effective_spec(pod, resizes_pods=resizes_pods)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resource_requests, "_AS_WRITTEN", {})
            assert found == effective_spec(pod, resizes_pods=resizes_pods)


def test_an_invalid_amount_in_the_status_is_named() -> None:
    text = (
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, '
        '"status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "many"}}]}}'
    )

    with pytest.raises(InputError, match=r"\.status\.containerStatuses\[0\]\.allocatedResources\.cpu"):
        load_text(text.encode(), "pods.json")
