from msgspec.structs import replace

from podium.api.pod import Container, PodSpec, Quantity, ResourceRequirements
from podium.api.resource_requests import qos_class

FULL: dict[str, Quantity] = {"cpu": "1", "memory": "1Gi"}


def pod(*containers: ResourceRequirements, init: tuple[ResourceRequirements, ...] = ()) -> PodSpec:
    return PodSpec(
        containers=tuple(Container(resources=one) for one in containers),
        init_containers=tuple(Container(resources=one) for one in init),
    )


def needs(requests: dict[str, Quantity], limits: dict[str, Quantity] | None = None) -> ResourceRequirements:
    return ResourceRequirements(requests=requests, limits=limits or {})


def test_a_pod_that_requests_nothing_is_best_effort() -> None:
    assert qos_class(pod(needs({}), needs({}))) == "BestEffort"
    assert qos_class(PodSpec()) == "BestEffort"


def test_requests_of_zero_and_of_other_resources_are_best_effort() -> None:
    assert qos_class(pod(needs({"cpu": 0, "example.com/gpu": 1}, {"example.com/gpu": 1}))) == "BestEffort"


def test_limits_equal_to_requests_in_every_container_are_guaranteed() -> None:
    assert qos_class(pod(needs(FULL, {"cpu": "1000m", "memory": "1024Mi"}), needs(FULL, FULL))) == "Guaranteed"


def test_limits_alone_are_guaranteed_since_requests_follow_them() -> None:
    assert qos_class(pod(needs({}, FULL))) == "Guaranteed"


def test_requests_below_limits_are_burstable() -> None:
    assert qos_class(pod(needs({"cpu": "500m"}, FULL))) == "Burstable"


def test_requests_without_limits_are_burstable() -> None:
    assert qos_class(pod(needs(FULL))) == "Burstable"


def test_a_limit_on_one_resource_alone_is_burstable() -> None:
    assert qos_class(pod(needs({}, {"cpu": "1"}))) == "Burstable"


def test_a_container_without_limits_makes_a_guaranteed_pod_burstable() -> None:
    assert qos_class(pod(needs(FULL, FULL), needs({}))) == "Burstable"


def test_init_containers_count() -> None:
    assert qos_class(pod(needs(FULL, FULL), init=(needs({}),))) == "Burstable"
    assert qos_class(pod(needs(FULL, FULL), init=(needs(FULL, FULL),))) == "Guaranteed"


def test_pod_level_resources_decide_alone() -> None:
    spec = pod(needs({"cpu": "1"}))
    containers = spec.containers

    assert qos_class(PodSpec(containers=containers, resources=needs(FULL, FULL))) == "Guaranteed"
    assert qos_class(PodSpec(containers=containers, resources=needs(FULL))) == "Burstable"
    assert qos_class(PodSpec(containers=containers, resources=needs({}))) == "BestEffort"


def test_a_pod_level_request_left_open_is_what_the_containers_request() -> None:
    spec = PodSpec(containers=pod(needs({"cpu": "500m"})).containers, resources=needs({}, FULL))

    assert qos_class(spec) == "Burstable"


def test_pods_that_share_containers_have_the_class_of_their_own_resources() -> None:
    guaranteed = pod(needs(FULL, FULL))
    assert qos_class(guaranteed) == "Guaranteed"
    assert qos_class(replace(guaranteed, resources=needs(FULL, {"cpu": "2"}))) == "Burstable"
    assert qos_class(replace(guaranteed, init_containers=(Container(),))) == "Burstable"
    assert qos_class(replace(guaranteed, node_name="n1")) == "Guaranteed"
