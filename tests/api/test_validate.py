from typing import Any

import pytest

from podium.api.codec import decode
from podium.api.errors import InputError
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
    "StatefulSet": "apps/",
    "StorageClass": "storage.k8s.io/",
}


def manifest(kind: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": "web", **parts.pop("metadata", {})}
    return {"apiVersion": f"{GROUPS.get(kind, '')}v1", "kind": kind, "metadata": metadata, **parts}


def error_of(kind: str, **parts: Any) -> str:
    """The path and the problem with which the object is refused."""
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


def test_labels_have_valid_keys_and_values() -> None:
    assert accepts("Pod", metadata={"labels": {"example.com/app": "Web_1.0", "empty": ""}})
    assert error_of("Pod", metadata={"labels": {"a b": "x"}}).startswith('.metadata.labels["a b"]: "a b" is not')
    assert error_of("Pod", metadata={"labels": {"a": "x y"}}).startswith('.metadata.labels.a: "x y" is not')


def test_annotations_may_hold_any_text_up_to_256_kibibytes_in_all() -> None:
    assert accepts("Pod", metadata={"annotations": {"Example.com/a": "any {text}\n", "b": "x" * 262_000}})
    assert error_of("Pod", metadata={"annotations": {"a": "ä" * 131_072}}) == (
        ".metadata.annotations: take 262145 bytes together; at most 262144 are taken"
    )


def test_only_one_owner_may_be_the_controller() -> None:
    owners = [{"kind": "ReplicaSet", "name": name, "controller": True} for name in ("a", "b")]

    assert accepts("Pod", metadata={"ownerReferences": owners[:1]})
    assert error_of("Pod", metadata={"ownerReferences": owners}) == (
        '.metadata.ownerReferences: has two controllers, "ReplicaSet a" and "ReplicaSet b"; '
        "only one may have controller: true"
    )


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
def test_timestamps_are_rfc_3339(field: str) -> None:
    assert accepts("Pod", metadata={field: "2026-01-01T00:00:00Z"})
    assert error_of("Pod", metadata={field: "yesterday"}).startswith(f'.metadata.{field}: "yesterday" is no time')


@pytest.mark.parametrize("amount", ["1 Gi", "", "NaN", "1e99"])
def test_amounts_are_quantities(amount: str) -> None:
    assert container_error(requests={"memory": amount}).startswith(".requests.memory: ")


def test_amounts_are_not_negative() -> None:
    assert container_error(limits={"cpu": "-1"}) == '.limits.cpu: "-1" is negative; it must be 0 or more'


def test_requests_do_not_exceed_limits() -> None:
    assert accepts("Pod", spec={"containers": [{"resources": {"requests": {"cpu": "1000m"}, "limits": {"cpu": 1}}}]})
    assert container_error(requests={"cpu": 2}, limits={"cpu": "1500m"}) == (
        '.requests.cpu: 2 is more than the limit "1500m"'
    )


@pytest.mark.parametrize("name", ["example.com/gpu", "hugepages-2Mi", "pods"])
def test_some_resources_come_in_whole_pieces(name: str) -> None:
    assert "is not a whole number" in container_error(requests={name: "1500m"})


@pytest.mark.parametrize("name", ["example.com/gpu", "hugepages-2Mi"])
def test_some_resources_cannot_be_overcommitted(name: str) -> None:
    error = container_error(requests={name: "2Mi"}, limits={name: "4Mi"})

    assert error.endswith(f'"2Mi" differs from the limit "4Mi", and {name} cannot be overcommitted')


def test_huge_pages_come_in_whole_pages() -> None:
    assert container_error(requests={"hugepages-2Mi": "3Mi"}).endswith('"3Mi" is not a multiple of the page size 2Mi')
    assert "names no page size" in container_error(requests={"hugepages-big": "3Mi"})
    assert "is not a multiple" in container_error(requests={"hugepages-0": "3Mi"})


def test_resources_that_kubernetes_does_not_know_have_a_prefix() -> None:
    assert container_error(requests={"gpu": 1}).startswith('.requests.gpu: "gpu" is no resource')


def test_init_containers_overhead_and_pod_level_resources_are_checked_too() -> None:
    wrong = {"requests": {"cpu": "x"}}

    assert pod_error(initContainers=[{"resources": wrong}]).startswith(".initContainers[0].resources.requests.cpu")
    assert pod_error(overhead={"cpu": "x"}).startswith(".overhead.cpu")
    assert pod_error(resources=wrong).startswith(".resources.requests.cpu")
    assert pod_error(resources={"limits": {"example.com/gpu": 1}}) == (
        '.resources.limits["example.com/gpu"]: cannot be given for a pod as a whole; '
        "only cpu, memory and hugepages-* can"
    )


def test_amounts_of_nodes_volumes_claims_and_capacities_are_checked() -> None:
    assert error_of("Node", status={"capacity": {"cpu": "x"}}).startswith(".status.capacity.cpu")
    assert error_of("Node", status={"allocatable": {"pods": "1.5"}}).startswith(".status.allocatable.pods")
    assert error_of("PersistentVolume", spec={"capacity": {"storage": "-1"}}).startswith(".spec.capacity.storage")
    claim = {"resources": {"requests": {"storage": "x"}}}
    assert error_of("PersistentVolumeClaim", spec=claim).startswith(".spec.resources.requests.storage")
    assert error_of("CSIStorageCapacity", capacity="x").startswith(".capacity")


def affinity_error(kind: str, when: str, term: Any) -> str:
    return pod_error(affinity={kind: {when: term}}).removeprefix(f".affinity.{kind}.{when}")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ({"key": "a", "operator": "In"}, ".values: In needs at least one value"),
        ({"key": "a", "operator": "NotIn", "values": []}, ".values: NotIn needs at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, ".values: Exists takes no values"),
        ({"key": "a", "operator": "DoesNotExist", "values": ["x"]}, ".values: DoesNotExist takes no values"),
    ],
)
def test_operators_of_label_selectors_have_the_right_number_of_values(expression: dict[str, Any], error: str) -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [expression]}}

    assert affinity_error("podAffinity", REQUIRED, [term]) == f"[0].labelSelector.matchExpressions[0]{error}"


@pytest.mark.parametrize("values", [[], ["1", "2"], ["x"], ["1.5"]])
def test_gt_and_lt_take_one_integer(values: list[str]) -> None:
    term = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": values}]}

    assert affinity_error("nodeAffinity", REQUIRED, {"nodeSelectorTerms": [term]}) == (
        ".nodeSelectorTerms[0].matchExpressions[0].values: Gt needs exactly one value, a 64-bit integer"
    )


@pytest.mark.parametrize(
    ("field", "error"),
    [
        ({"key": "metadata.uid", "operator": "In", "values": ["x"]}, "key"),
        ({"key": "metadata.name", "operator": "Exists"}, "operator"),
        ({"key": "metadata.name", "operator": "In", "values": ["x", "y"]}, "values"),
    ],
)
def test_nodes_are_selected_by_the_field_of_their_name_alone(field: dict[str, Any], error: str) -> None:
    term = {"nodeSelectorTerms": [{"matchFields": [field]}]}

    found = affinity_error("nodeAffinity", REQUIRED, term)

    assert found.startswith(f".nodeSelectorTerms[0].matchFields[0].{error}: ")


def test_a_node_selector_has_at_least_one_term() -> None:
    error = affinity_error("nodeAffinity", REQUIRED, {})

    assert error.startswith(".nodeSelectorTerms: is empty")


@pytest.mark.parametrize("weight", [0, 101, -1])
def test_weights_are_one_to_a_hundred(weight: int) -> None:
    pod_term = {"weight": weight, "podAffinityTerm": {"topologyKey": "zone"}}
    node_term = {"weight": weight, "preference": {}}
    error = f"[0].weight: {weight} is out of range; it must be 1 to 100"

    assert affinity_error("podAntiAffinity", PREFERRED, [pod_term]) == error
    assert affinity_error("nodeAffinity", PREFERRED, [node_term]) == error


def test_preferred_terms_are_checked_as_required_ones_are() -> None:
    pod_term = {"weight": 1, "podAffinityTerm": {"topologyKey": ""}}
    node_term = {"weight": 1, "preference": {"matchExpressions": [{"key": "-", "operator": "Exists"}]}}

    error = affinity_error("podAffinity", PREFERRED, [pod_term])
    assert error.startswith("[0].podAffinityTerm.topologyKey: is empty")
    error = affinity_error("nodeAffinity", PREFERRED, [node_term])
    assert error.startswith('[0].preference.matchExpressions[0].key: "-" is not a valid key')


def test_a_topology_key_is_not_empty() -> None:
    error = "topologyKey: is empty; write a node label's key"

    assert affinity_error("podAffinity", REQUIRED, [{"topologyKey": ""}]) == f"[0].{error}"
    spread = {"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}
    assert pod_error(topologySpreadConstraints=[spread]) == f".topologySpreadConstraints[0].{error}"


@pytest.mark.parametrize("field", ["matchLabelKeys", "mismatchLabelKeys", "namespaces"])
def test_keys_and_namespaces_of_a_term_are_valid(field: str) -> None:
    error = affinity_error("podAffinity", REQUIRED, [{"topologyKey": "zone", field: ["ok", "not ok"]}])

    assert error.startswith(f'[0].{field}[1]: "not ok" is not a valid')


@pytest.mark.parametrize(
    ("constraint", "error"),
    [
        ({"maxSkew": 0}, ".maxSkew: 0 is out of range; it must be 1 or more"),
        ({"minDomains": 0}, ".minDomains: 0 is out of range; it must be 1 or more"),
        (
            {"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"},
            ".minDomains: counts only with whenUnsatisfiable: DoNotSchedule",
        ),
        ({"matchLabelKeys": ["/"]}, '.matchLabelKeys[0]: "/" is not a valid key'),
        ({"labelSelector": {"matchLabels": {"a": "-"}}}, '.labelSelector.matchLabels.a: "-" is not a valid label'),
    ],
)
def test_spread_constraints_make_sense(constraint: dict[str, Any], error: str) -> None:
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}

    assert pod_error(topologySpreadConstraints=[spread]).startswith(f".topologySpreadConstraints[0]{error}")


@pytest.mark.parametrize(
    ("toleration", "error"),
    [
        ({"key": "a b"}, '.key: "a b" is not a valid key'),
        ({}, ".operator: must be Exists when there is no key"),
        ({"key": "a", "operator": "Exists", "value": "x"}, ".value: must be empty when the operator is Exists"),
        ({"key": "a", "value": "x y"}, '.value: "x y" is not a valid label value'),
        ({"key": "a", "operator": "Gt", "value": "x"}, ".value: must be a 64-bit integer when the operator is Gt"),
        ({"key": "a", "tolerationSeconds": 5}, ".effect: must be NoExecute when tolerationSeconds is given"),
    ],
)
def test_tolerations_make_sense(toleration: dict[str, Any], error: str) -> None:
    assert pod_error(tolerations=[toleration]).startswith(f".tolerations[0]{error}")


@pytest.mark.parametrize("port", [-1, 65_536])
def test_ports_are_in_range(port: int) -> None:
    error = pod_error(containers=[{"ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": port}]}])

    assert error == f".containers[0].ports[1].hostPort: {port} is no port; it must be 1 to 65535"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"nodeName": "a b"}, '.nodeName: "a b" is not a valid name'),
        ({"nodeSelector": {"a": "x y"}}, '.nodeSelector.a: "x y" is not a valid label value'),
        ({"priorityClassName": "A"}, '.priorityClassName: "A" is not a valid name'),
        ({"restartPolicy": "Sometimes"}, '.restartPolicy: "Sometimes" is not one of Always, OnFailure, Never'),
        ({"containers": [{"restartPolicy": "x"}]}, '.containers[0].restartPolicy: "x" is not one of Always'),
        ({"containers": [{"ports": [{"protocol": "IP"}]}]}, '.containers[0].ports[0].protocol: "IP" is not one of'),
        ({"terminationGracePeriodSeconds": -1}, ".terminationGracePeriodSeconds: -1 is negative"),
        ({"schedulingGates": [{"name": "a b"}]}, '.schedulingGates[0].name: "a b" is not a valid key'),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": ""}}]}, ".volumes[0].persistentVolumeClaim.claimName"),
    ],
)
def test_the_rest_of_a_pod_makes_sense(spec: dict[str, Any], error: str) -> None:
    assert pod_error(**spec).startswith(error)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ({"phase": "Done"}, '.phase: "Done" is not one of Pending, Running, Succeeded, Failed, Unknown'),
        ({"startTime": "x"}, '.startTime: "x" is no time'),
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
    listed = "is not one of PreemptLowerPriority, Never, PreemptNever, NonPreemptible, NonPreemptiblePreemptNever"

    assert pod_error(preemptionPolicy="Sometimes") == f'.preemptionPolicy: "Sometimes" {listed}'
    assert error_of("PriorityClass", preemptionPolicy="never") == f'.preemptionPolicy: "never" {listed}'


def test_priorities_above_a_billion_are_for_system_classes() -> None:
    assert accepts("PriorityClass", value=1_000_000_000)
    assert accepts("PriorityClass", value=2_000_000_000, metadata={"name": "system-cluster-critical"})
    assert error_of("PriorityClass", value=1_000_000_001).startswith(".value: 1000000001 is out of range")


@pytest.mark.parametrize("amount", [0, 5, "0%", "100%", "007%"])
def test_a_budget_counts_pods_or_percent_of_them(amount: int | str) -> None:
    assert accepts("PodDisruptionBudget", spec={"minAvailable": amount})
    assert accepts("PodDisruptionBudget", spec={"maxUnavailable": amount})


@pytest.mark.parametrize("amount", [-1, "5", "%", "-1%", "1.5%", "101%", "٣%", "1 %", f"{'9' * 5_000}%"])
def test_other_amounts_of_a_budget_are_refused(amount: int | str) -> None:
    assert error_of("PodDisruptionBudget", spec={"maxUnavailable": amount}).startswith(".spec.maxUnavailable: ")


def test_a_budget_does_not_set_both_amounts() -> None:
    error = error_of("PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})

    assert error == ".spec: minAvailable and maxUnavailable cannot be both set; remove one"


def test_the_selector_and_the_disrupted_pods_of_a_budget_are_valid() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "In"}]}

    assert error_of("PodDisruptionBudget", spec={"selector": selector}).startswith(".spec.selector.matchExpressions[0]")
    status = {"disruptedPods": {"web-0": "x"}}
    assert error_of("PodDisruptionBudget", status=status).startswith('.status.disruptedPods["web-0"]: "x" is no time')


def test_the_rate_of_a_budget_is_how_many_disruptions_in_how_long() -> None:
    annotation = "podium.dev/max-disruptions"
    path = f'.metadata.annotations["{annotation}"]'

    assert accepts("PodDisruptionBudget", metadata={"annotations": {annotation: "1/1h"}})
    assert error_of("PodDisruptionBudget", metadata={"annotations": {annotation: "hourly"}}) == (
        f'{path}: "hourly" is no rate; write how many in how long, as in "1/1h"'
    )


def test_the_annotation_of_a_priority_class_is_a_policy_that_there_is() -> None:
    annotation = "podium.dev/preemption-policy"

    assert accepts("PriorityClass", metadata={"annotations": {annotation: "NonPreemptible"}})
    assert error_of("PriorityClass", metadata={"annotations": {annotation: "Non"}}).startswith(
        f'.metadata.annotations["{annotation}"]: "Non" is not one of'
    )


@pytest.mark.parametrize(
    ("kind", "parts", "error"),
    [
        ("Node", {"spec": {"taints": [{"key": "", "effect": "NoSchedule"}]}}, '.spec.taints[0].key: ""'),
        ("Node", {"spec": {"taints": [{"key": "a", "value": "-", "effect": "NoSchedule"}]}}, ".spec.taints[0].value"),
        (
            "CSINode",
            {"spec": {"drivers": [{"name": "d", "allocatable": {"count": -1}}]}},
            ".spec.drivers[0].allocatable.count: -1 is negative",
        ),
        ("CSINode", {"spec": {"drivers": [{"name": "d", "topologyKeys": ["-"]}]}}, ".spec.drivers[0].topologyKeys[0]"),
        (
            "PersistentVolume",
            {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}},
            ".spec.nodeAffinity.required.nodeSelectorTerms: is empty",
        ),
        (
            "PersistentVolumeClaim",
            {"spec": {"selector": {"matchLabels": {"-": "x"}}}},
            '.spec.selector.matchLabels["-"]',
        ),
        ("CSIStorageCapacity", {"nodeTopology": {"matchLabels": {"a": "-"}}}, ".nodeTopology.matchLabels.a"),
        (
            "StorageClass",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "-", "values": ["x"]}]}]},
            ".allowedTopologies[0].matchLabelExpressions[0].key",
        ),
        (
            "StorageClass",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a"}]}]},
            ".allowedTopologies[0].matchLabelExpressions[0].values: is empty",
        ),
        ("Service", {"spec": {"selector": {"a": "-"}}}, ".spec.selector.a"),
        ("Job", {"spec": {"parallelism": -1}}, ".spec.parallelism: -1 is negative"),
        ("Job", {"spec": {"completions": -1}}, ".spec.completions: -1 is negative"),
        ("Job", {"spec": {"backoffLimit": -1}}, ".spec.backoffLimit: -1 is negative"),
        ("ReplicationController", {"spec": {"replicas": -1}}, ".spec.replicas: -1 is negative"),
        ("ReplicationController", {"spec": {"selector": {"a": "-"}}}, ".spec.selector.a"),
        ("ReplicaSet", {"spec": {"replicas": -1}}, ".spec.replicas: -1 is negative"),
    ],
)
def test_other_kinds_make_sense(kind: str, parts: dict[str, Any], error: str) -> None:
    assert error_of(kind, **parts).startswith(error)


@pytest.mark.parametrize("kind", ["Job", "ReplicationController"])
def test_templates_are_checked_as_pods_are(kind: str) -> None:
    template: dict[str, Any] = {"metadata": {"labels": {"a": "-"}}}
    assert error_of(kind, spec={"template": template}).startswith(".spec.template.metadata.labels.a")

    template = {"spec": {"nodeName": "a b"}}
    assert error_of(kind, spec={"template": template}).startswith(".spec.template.spec.nodeName")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize("spec", [{}, {"selector": {"matchLabels": {"app": "web"}}}])
def test_a_workload_selects_the_pods_that_it_makes(kind: str, spec: dict[str, Any]) -> None:
    template = {"metadata": {"labels": {"app": "web"}}}
    selector = {"matchLabels": {"app": "web"}}

    assert accepts(kind, spec={"selector": selector, "template": template})
    assert error_of(kind, spec=spec).startswith(".spec.selector: does not select the pods of the template")
