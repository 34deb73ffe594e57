from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api import resource_requests
from podium.api.node import NodeStatus
from podium.api.pod import Container, PodSpec, Quantity, ResourceRequirements
from podium.api.resource_requests import MAX_UNITS, node_allocatable, nonzero_requests, pod_requests

MIB = 2**20


def container(
    requests: Mapping[str, Quantity] | None = None,
    limits: Mapping[str, Quantity] | None = None,
    restart_policy: str = "",
) -> Container:
    resources = ResourceRequirements(requests=dict(requests or {}), limits=dict(limits or {}))
    return Container(resources=resources, restart_policy=restart_policy)


def sidecar(requests: Mapping[str, Quantity] | None = None) -> Container:
    return container(requests, restart_policy="Always")


def test_containers_add_up_in_milli_cores_and_whole_units() -> None:
    spec = PodSpec(containers=(container({"cpu": "250m", "memory": "1Mi"}), container({"cpu": 1, "memory": "0.5Mi"})))

    assert pod_requests(spec) == {"cpu": 1_250, "memory": 3 * MIB // 2}


def test_a_resource_that_nothing_names_is_absent_and_one_named_zero_is_zero() -> None:
    assert pod_requests(PodSpec(containers=(container({"cpu": 0}),))) == {"cpu": 0}


def test_the_largest_init_container_counts_where_it_needs_more() -> None:
    spec = PodSpec(
        containers=(container({"cpu": 2, "memory": "1Mi"}),),
        init_containers=(container({"cpu": 1, "memory": "8Mi"}), container({"cpu": 3})),
    )

    assert pod_requests(spec) == {"cpu": 3_000, "memory": 8 * MIB}


def test_a_sidecar_runs_beside_the_containers_and_beside_later_init_containers() -> None:
    before, after = container({"cpu": 5}), container({"cpu": 4})
    spec = PodSpec(containers=(container({"cpu": 1}),), init_containers=(before, sidecar({"cpu": 2}), after))

    # before: 5; after with the sidecar: 6; the containers with the sidecar: 3.
    assert pod_requests(spec) == {"cpu": 6_000}


def test_sidecars_add_to_one_another() -> None:
    spec = PodSpec(containers=(container({"cpu": 1}),), init_containers=(sidecar({"cpu": 2}), sidecar({"cpu": 3})))

    assert pod_requests(spec) == {"cpu": 6_000}


def test_overhead_is_added_to_what_the_containers_need() -> None:
    spec = PodSpec(
        containers=(container({"cpu": 1}),),
        init_containers=(container({"cpu": 2}),),
        overhead={"cpu": "100m", "memory": 5},
    )

    assert pod_requests(spec) == {"cpu": 2_100, "memory": 5}


def test_missing_requests_are_the_limits() -> None:
    spec = PodSpec(containers=(container({"cpu": "1"}, limits={"cpu": "2", "memory": "1Mi"}),))

    assert pod_requests(spec) == {"cpu": 1_000, "memory": MIB}


def test_each_amount_is_rounded_up_to_milli_and_only_the_sum_to_whole_units() -> None:
    spec = PodSpec(containers=(container({"cpu": "1n", "memory": "500m"}), container({"cpu": "1n", "memory": "500m"})))

    assert pod_requests(spec) == {"cpu": 2, "memory": 1}


def test_pod_level_requests_replace_the_sum_before_overhead_is_added() -> None:
    spec = PodSpec(
        containers=(container({"cpu": 1, "memory": "4Mi"}), container({"example.com/gpu": 1})),
        resources=ResourceRequirements(requests={"cpu": 3, "hugepages-2Mi": "4Mi"}),
        overhead={"cpu": "1"},
    )

    assert pod_requests(spec) == {
        "cpu": 4_000,
        "memory": 4 * MIB,
        "hugepages-2Mi": 4 * MIB,
        "example.com/gpu": 1,
    }


def test_a_pod_level_limit_covers_unrequested_resources() -> None:
    limits: dict[str, Quantity] = {"cpu": 8, "memory": "8Mi"}
    spec = PodSpec(containers=(container({"cpu": 1}),), resources=ResourceRequirements(limits=limits))

    assert pod_requests(spec) == {"cpu": 1_000, "memory": 8 * MIB}


def test_amounts_are_clamped_so_that_the_sum_of_a_thousand_pods_is_a_64_bit_integer() -> None:
    spec = PodSpec(containers=(container({"cpu": "9E", "memory": "9999999Ei"}),))

    assert pod_requests(spec) == {"cpu": MAX_UNITS, "memory": MAX_UNITS}
    assert 1_000 * MAX_UNITS < 2**63


def test_scoring_counts_a_hundred_milli_and_200_mebibytes_for_each_container_that_names_none() -> None:
    spec = PodSpec(containers=(container(), container({"cpu": "250m"}), container({"memory": "1Mi"})))

    assert nonzero_requests(spec) == (450, (200 + 200 + 1) * MIB)


def test_scoring_takes_a_zero_that_is_named() -> None:
    assert nonzero_requests(PodSpec(containers=(container({"cpu": 0, "memory": 0}),))) == (0, 0)


def test_scoring_counts_init_containers_and_sidecars_that_name_none() -> None:
    spec = PodSpec(containers=(container({"cpu": 0, "memory": 0}),), init_containers=(sidecar(), container()))

    assert nonzero_requests(spec) == (200, 400 * MIB)


def test_scoring_takes_pod_level_requests_as_they_are() -> None:
    spec = PodSpec(containers=(container(), container()), resources=ResourceRequirements(requests={"cpu": "50m"}))

    assert nonzero_requests(spec) == (50, 400 * MIB)


def test_beside_pod_level_requests_scoring_adds_nothing_to_what_some_container_names() -> None:
    spec = PodSpec(
        containers=(container({"memory": "1Mi"}), container()),
        resources=ResourceRequirements(requests={"cpu": "50m"}),
    )

    assert nonzero_requests(spec) == (50, MIB)


def test_a_node_offers_its_allocatable_amounts() -> None:
    status = NodeStatus(capacity={"cpu": 8}, allocatable={"cpu": "7500m", "pods": "110", "memory": "1Mi"})

    assert node_allocatable(status) == {"cpu": 7_500, "memory": MIB, "pods": 110}


def test_a_node_without_allocatable_amounts_offers_its_capacity() -> None:
    assert node_allocatable(NodeStatus(capacity={"cpu": 8})) == {"cpu": 8_000}


CPUS = st.integers(0, 5).map(lambda cpu: container({"cpu": cpu}))
INITS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=5)


@given(st.lists(CPUS, max_size=4), INITS)
def test_the_request_is_the_most_that_runs_at_any_moment(
    containers: list[Container], inits: list[tuple[bool, int]]
) -> None:
    running, moments = 0, []
    for stays, cpu in inits:
        moments.append(running + cpu)
        running += cpu if stays else 0
    together = sum(int(one.resources.requests["cpu"]) for one in containers)
    moments.append(running + together)

    spec = PodSpec(
        containers=tuple(containers),
        init_containers=tuple(sidecar({"cpu": cpu}) if stays else container({"cpu": cpu}) for stays, cpu in inits),
    )

    assert pod_requests(spec).get("cpu", 0) == 1_000 * max(moments)


@pytest.mark.parametrize("order", [1, -1])
def test_resources_are_sorted_by_name_in_every_input_order(order: int) -> None:
    requests = dict(sorted({"memory": 1, "cpu": 1, "example.com/gpu": 1}.items())[::order])

    spec = msgspec.convert({"containers": [{"resources": {"requests": requests}}]}, PodSpec)

    assert list(pod_requests(spec)) == ["cpu", "example.com/gpu", "memory"]


def test_the_cache_of_requests_drops_its_oldest_entry_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[PodSpec] = []
    monkeypatch.setattr(resource_requests, "_KEPT", 2)
    compute = resource_requests.computed_once(computed.append)
    first, second, third = (PodSpec(containers=(container({"cpu": number}),)) for number in (1, 2, 3))

    for spec in (first, second, first, third, second, first):
        compute(spec)

    assert computed == [first, second, third, first]
