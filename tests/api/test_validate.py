from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.policy import PREEMPTION_POLICIES

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GROUPS = {
    "CSINode": "storage.k8s.io/",
    "CSIStorageCapacity": "storage.k8s.io/",
    "Deployment": "apps/",
    "Job": "batch/",
    "PodDisruptionBudget": "policy/",
    "PriorityClass": "scheduling.k8s.io/",
    "ReplicaSet": "apps/",
    "RuntimeClass": "node.k8s.io/",
    "StatefulSet": "apps/",
    "StorageClass": "storage.k8s.io/",
}


def manifest(kind: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": "web", **parts.pop("metadata", {})}
    return {"apiVersion": f"{GROUPS.get(kind, '')}v1", "kind": kind, "metadata": metadata, **parts}


def error_of(kind: str, **parts: Any) -> str:
    """Return the path and the problem with which the object is refused."""
    with pytest.raises(InputError) as caught:
        decode(manifest(kind, **parts))
    return f"{caught.value.path}: {caught.value.problem}"


def pod_error(**spec: Any) -> str:
    return error_of("Pod", spec=spec).removeprefix(".spec")


def accepts(kind: str, **parts: Any) -> bool:
    return decode(manifest(kind, **parts)) is not None


def container_error(**resources: Any) -> str:
    return pod_error(containers=[{"resources": resources}]).removeprefix(".containers[0].resources")


@pytest.mark.parametrize(
    ("kind", "name"), [("Pod", "a.b"), ("Node", "ip-10-0-0-1.ec2.internal"), ("Namespace", "a"), ("Service", "a")]
)
def test_names_follow_rfc_1123(kind: str, name: str) -> None:
    assert accepts(kind, metadata={"name": name})


@pytest.mark.parametrize(("kind", "name"), [("Pod", "A"), ("Namespace", "a.b"), ("Service", "a.b"), ("Node", "../a")])
def test_other_names_are_refused(kind: str, name: str) -> None:
    assert error_of(kind, metadata={"name": name}).startswith(f'.metadata.name: "{name}" is not a valid name')


def test_an_object_needs_a_name() -> None:
    assert error_of("Pod", metadata={"name": "", "generateName": "web-"}).startswith(".metadata.name: is missing")


def test_namespaces_are_labels_and_stand_only_on_kinds_that_have_them() -> None:
    assert error_of("Pod", metadata={"namespace": "a.b"}).startswith('.metadata.namespace: "a.b" is not')
    assert error_of("Node", metadata={"namespace": "a"}) == ".metadata.namespace: a Node is in no namespace; remove it"


def test_annotations_may_hold_any_text_up_to_256_kibibytes_in_all() -> None:
    assert accepts("Pod", metadata={"annotations": {"Example.com/a": "any {text}\n", "b": "x" * 262_000}})
    assert error_of("Pod", metadata={"annotations": {"a": "ä" * 131_072}}) == (
        ".metadata.annotations: take 262145 bytes together; at most 262144 are allowed"
    )


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
def test_timestamps_are_rfc_3339(field: str) -> None:
    assert accepts("Pod", metadata={field: "2026-01-01T00:00:00Z"})
    assert error_of("Pod", metadata={field: "yesterday"}).startswith(f'.metadata.{field}: "yesterday" is not a time')


@pytest.mark.parametrize("amount", ["1 Gi", "", "NaN", "1e99"])
def test_amounts_are_quantities(amount: str) -> None:
    assert container_error(requests={"memory": amount}).startswith(".requests.memory: ")


def test_amounts_are_not_negative() -> None:
    assert container_error(limits={"cpu": "-1"}) == '.limits.cpu: "-1" is negative; it must be 0 or more'


def test_init_containers_overhead_and_pod_level_resources_are_checked_too() -> None:
    wrong = {"requests": {"cpu": "x"}}

    assert pod_error(initContainers=[{"resources": wrong}]).startswith(".initContainers[0].resources.requests.cpu")
    assert pod_error(overhead={"cpu": "x"}).startswith(".overhead.cpu")
    assert pod_error(resources=wrong).startswith(".resources.requests.cpu")


def test_amounts_of_nodes_volumes_claims_and_capacities_are_checked() -> None:
    assert error_of("Node", status={"capacity": {"cpu": "x"}}).startswith(".status.capacity.cpu")
    assert error_of("Node", status={"allocatable": {"pods": "-1"}}).startswith(".status.allocatable.pods")
    assert error_of("PersistentVolume", spec={"capacity": {"storage": "-1"}}).startswith(".spec.capacity.storage")
    claim = {"resources": {"requests": {"storage": "x"}}}
    assert error_of("PersistentVolumeClaim", spec=claim).startswith(".spec.resources.requests.storage")
    assert error_of("CSIStorageCapacity", capacity="x").startswith(".capacity")


def affinity_error(kind: str, when: str, term: Any) -> str:
    return pod_error(affinity={kind: {when: term}}).removeprefix(f".affinity.{kind}.{when}")


@pytest.mark.parametrize("weight", [0, 101, -1])
def test_weights_are_one_to_a_hundred(weight: int) -> None:
    pod_term = {"weight": weight, "podAffinityTerm": {"topologyKey": "zone"}}
    node_term = {"weight": weight, "preference": {}}
    error = f"[0].weight: Invalid value: {weight}: must be between 1 and 100, inclusive"

    assert affinity_error("podAntiAffinity", PREFERRED, [pod_term]) == error
    assert affinity_error("nodeAffinity", PREFERRED, [node_term]) == error


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"restartPolicy": "Sometimes"}, '.restartPolicy: Unsupported value: "Sometimes": supported'),
    ],
)
def test_the_rest_of_a_pod_makes_sense(spec: dict[str, Any], error: str) -> None:
    assert pod_error(**spec).startswith(error)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ({"phase": "Done"}, '.phase: Unsupported value: "Done": supported values: "Pending", "Running"'),
        ({"startTime": "x"}, '.startTime: "x" is not a time'),
        ({"nominatedNodeName": "a b"}, '.nominatedNodeName: "a b" is not a valid name'),
    ],
)
def test_the_status_of_a_pod_makes_sense(status: dict[str, Any], error: str) -> None:
    assert error_of("Pod", status=status).startswith(f".status{error}")


@pytest.mark.parametrize("policy", PREEMPTION_POLICIES)
def test_preemption_policies_are_those_of_kubernetes_and_of_the_design(policy: str) -> None:
    assert accepts("Pod", spec={"preemptionPolicy": policy})
    assert accepts("PriorityClass", value=1, preemptionPolicy=policy)


def test_other_preemption_policies_are_refused() -> None:
    listed = ", ".join(f'"{policy}"' for policy in PREEMPTION_POLICIES)

    for error in (pod_error(preemptionPolicy="never"), error_of("PriorityClass", preemptionPolicy="never")):
        assert error == f'.preemptionPolicy: Unsupported value: "never": supported values: {listed}'


def test_priorities_above_a_billion_are_for_system_classes() -> None:
    assert accepts("PriorityClass", value=1_000_000_000)
    assert accepts("PriorityClass", value=2_000_000_000, metadata={"name": "system-cluster-critical"})
    assert error_of("PriorityClass", value=1_000_000_001).startswith(".value: Forbidden: maximum allowed value")


@pytest.mark.parametrize("amount", [0, 5, "0%", "100%", "007%"])
def test_a_budget_counts_pods_or_percent_of_them(amount: int | str) -> None:
    assert accepts("PodDisruptionBudget", spec={"minAvailable": amount})
    assert accepts("PodDisruptionBudget", spec={"maxUnavailable": amount})


@pytest.mark.parametrize("amount", [-1, "5", "%", "-1%", "1.5%", "101%", "٣%", "1 %", f"{'9' * 5_000}%"])
def test_other_amounts_of_a_budget_are_refused(amount: int | str) -> None:
    assert error_of("PodDisruptionBudget", spec={"maxUnavailable": amount}).startswith(".spec.maxUnavailable: ")


def test_a_budget_does_not_set_both_amounts() -> None:
    error = error_of("PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})

    assert error == ".spec: Invalid value: an object: minAvailable and maxUnavailable cannot be both set"


def test_the_times_of_disrupted_pods_are_times() -> None:
    status = {"disruptedPods": {"web-0": "x"}}
    assert error_of("PodDisruptionBudget", status=status).startswith(
        '.status.disruptedPods["web-0"]: "x" is not a time'
    )


def test_the_rate_of_a_budget_is_how_many_disruptions_in_how_long() -> None:
    annotation = "podium.dev/max-disruptions"
    path = f'.metadata.annotations["{annotation}"]'

    assert accepts("PodDisruptionBudget", metadata={"annotations": {annotation: "1/1h"}})
    assert error_of("PodDisruptionBudget", metadata={"annotations": {annotation: "hourly"}}) == (
        f'{path}: "hourly" is not a rate; write how many in how long, as in "1/1h"'
    )


def test_the_annotation_of_a_priority_class_is_a_policy_that_there_is() -> None:
    annotation = "podium.dev/preemption-policy"

    assert accepts("PriorityClass", metadata={"annotations": {annotation: "NonPreemptible"}})
    assert error_of("PriorityClass", metadata={"annotations": {annotation: "Non"}}).startswith(
        f'.metadata.annotations["{annotation}"]: Unsupported value: "Non"'
    )


@pytest.mark.parametrize(
    ("kind", "parts", "error"),
    [
        (
            "CSINode",
            {"spec": {"drivers": [{"name": "d", "allocatable": {"count": -1}}]}},
            ".spec.drivers[0].allocatable.count: Invalid value: -1",
        ),
        ("RuntimeClass", {"overhead": {"podFixed": {"cpu": "x"}}}, ".overhead.podFixed.cpu"),
        ("LimitRange", {"spec": {"limits": [{"max": {"cpu": "x"}}]}}, ".spec.limits[0].max.cpu"),
        (
            "LimitRange",
            {"spec": {"limits": [{}, {"min": {"cpu": "-1"}}]}},
            ".spec.limits[1].min.cpu",
        ),
        ("Job", {"spec": {"parallelism": -1}}, ".spec.parallelism: Invalid value: -1"),
        ("Job", {"spec": {"completions": -1}}, ".spec.completions: Invalid value: -1"),
        ("Job", {"spec": {"backoffLimit": -1}}, ".spec.backoffLimit: Invalid value: -1"),
        ("ReplicationController", {"spec": {"replicas": -1}}, ".spec.replicas: Invalid value: -1"),
        ("ReplicaSet", {"spec": {"replicas": -1}}, ".spec.replicas: Invalid value: -1"),
    ],
)
def test_other_kinds_make_sense(kind: str, parts: dict[str, Any], error: str) -> None:
    assert error_of(kind, **parts).startswith(error)


@pytest.mark.parametrize("kind", ["Job", "ReplicationController"])
def test_templates_are_checked_as_pods_are(kind: str) -> None:
    template = {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}
    path = ".spec.template.spec.containers[0].resources.limits.cpu"
    assert error_of(kind, spec={"template": template}).startswith(path)


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize("spec", [{}, {"selector": {"matchLabels": {"app": "web"}}}])
def test_a_workload_selects_the_pods_that_it_makes(kind: str, spec: dict[str, Any]) -> None:
    template = {"metadata": {"labels": {"app": "web"}}}
    selector = {"matchLabels": {"app": "web"}}

    assert accepts(kind, spec={"selector": selector, "template": template})
    assert error_of(kind, spec=spec).startswith(".spec.selector: does not select the pods of the template")
