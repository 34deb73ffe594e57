"""Tables of all kinds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.server.tables.columns import PRINTERS, custom_printer, found_at, table_of
from podium.store.api_resources import BUILT_IN, POD, APIResource
from tests.server.tables.shown import AN_HOUR_AGO, NOW, columns, row
from tests.store.objects import Raw

WIDGET = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
OBJECT: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "7"}, "spec": {}}
# The columns that everybody sees (pkg/printers/internalversion/printers.go).
COLUMNS = {
    ("", "ConfigMap"): "Name, Data, Age",
    ("", "Event"): "Last Seen, Type, Reason, Object, Message",
    ("", "LimitRange"): "Name, Created At",
    ("", "Namespace"): "Name, Status, Age",
    ("", "Node"): "Name, Status, Roles, Age, Version",
    ("", "PersistentVolume"): "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, "
    "VolumeAttributesClass, Reason, Age",
    ("", "PersistentVolumeClaim"): "Name, Status, Volume, Capacity, Access Modes, StorageClass, "
    "VolumeAttributesClass, Age",
    ("", "ReplicationController"): "Name, Desired, Current, Ready, Age",
    ("", "ResourceQuota"): "Name, Age, Request, Limit",
    ("", "Service"): "Name, Type, Cluster-IP, External-IP, Port(s), Age",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): "Name, Mutations, ParamKind, Age",
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): "Name, PolicyName, ParamRef, Age",
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): "Name, Validations, ParamKind, Age",
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): "Name, PolicyName, ParamRef, Age",
    ("apps", "DaemonSet"): "Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age",
    ("apps", "Deployment"): "Name, Ready, Up-to-date, Available, Age",
    ("apps", "StatefulSet"): "Name, Ready, Age",
    ("batch", "CronJob"): "Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age",
    ("batch", "Job"): "Name, Status, Completions, Duration, Age",
    ("coordination.k8s.io", "Lease"): "Name, Holder, Age",
    ("networking.k8s.io", "IPAddress"): "Name, ParentRef, Age",
    ("networking.k8s.io", "ServiceCIDR"): "Name, CIDRs, Age",
    ("podium.dev", "DisruptionPolicy"): "Name, Priorities, Several-Budgets, Caps, Age",
    (
        "policy",
        "PodDisruptionBudget",
    ): "Name, Min Available, Max Unavailable, Allowed Disruptions, Age, Rate, Rate Left",
    ("resource.k8s.io", "ResourceClaim"): "Name, State, Age",
    ("scheduling.k8s.io", "PriorityClass"): "Name, Value, Global-Default, Age, PreemptionPolicy",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
FIELDS = ("conditions", "containers", "name", "ports", "replicas", "rules", "selector", "template", "type")
PARTS = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4) | JSON


@pytest.mark.parametrize("of", sorted(COLUMNS))
def test_columns_are_those_of_kubernetes(of: tuple[str, str]) -> None:
    group, kind = of
    assert ", ".join(columns(kind, group, wide=False)) == COLUMNS[of]


@given(
    st.sampled_from(sorted(PRINTERS)),
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": PARTS,
            "spec": PARTS,
            "status": PARTS,
            "subsets": JSON,
            "data": JSON,
            "involvedObject": JSON,
        },
    ),
)
def test_every_stored_object_is_shown_in_the_table(of: tuple[str, str], raw: Raw) -> None:
    group, kind = of
    resource = APIResource(group=group, kind=kind, plural="things", namespaced=True)
    table = table_of(resource, [raw], NOW)
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])


def test_each_row_comes_with_as_much_of_its_object_as_is_asked_for() -> None:
    def row_object(include: str) -> Any:
        return table_of(POD, [OBJECT], NOW, include)["rows"][0].get("object")

    metadata = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": OBJECT["metadata"]}
    assert row_object("") == row_object("Metadata") == metadata
    assert row_object("Object") == OBJECT
    assert row_object("None") is None


def test_the_columns_of_every_kind_begin_with_what_a_row_is_known_by() -> None:
    for resource in BUILT_IN.values():
        names = columns(resource)
        assert "Name" in names
        assert len(set(names)) == len(names)


def test_few_kinds_show_no_more_than_when_they_were_created() -> None:
    generic = {resource.kind for of, resource in BUILT_IN.items() if of not in PRINTERS}
    assert generic == {
        "Binding",
        "ClusterRole",
        "CustomResourceDefinition",
        "LimitRange",
        "Role",
    }


def test_node_rows_show_whether_they_accept_pods() -> None:
    ready = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
    }
    labels = {"labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "gpu"}}
    found = row("Node", {"metadata": labels, "spec": {"unschedulable": True}, "status": ready})
    assert found["Status"] == "Ready,SchedulingDisabled"
    assert (found["Roles"], found["Internal-IP"], found["External-IP"]) == ("control-plane,gpu", "1.2.3.4", "<none>")
    assert row("Node", {})["Status"] == "Unknown"


@pytest.mark.parametrize(
    ("status", "spec", "completions"),
    [({"succeeded": 1}, {"completions": 3}, "1/3"), ({}, {"parallelism": 2}, "0/1 of 2"), ({}, {}, "0/1")],
)
def test_job_rows_show_completions(status: Raw, spec: Raw, completions: str) -> None:
    assert row("Job", {"spec": spec, "status": status}, "batch")["Completions"] == completions


def test_an_ended_job_shows_its_duration() -> None:
    status = {
        "startTime": AN_HOUR_AGO,
        "completionTime": "2027-01-15T07:01:30Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    }
    found = row("Job", {"status": status}, "batch")
    assert (found["Status"], found["Duration"], found["Age"]) == ("Complete", "90s", "60m")


def test_budgets_show_their_rate_and_its_remaining_tokens() -> None:
    annotations = {"annotations": {"podium.dev/max-disruptions": "2/1h"}}
    used = {"disruptionRate": {"max": "2/1h", "fullTime": "2027-01-15T08:15:00Z"}}
    found = row("PodDisruptionBudget", {"metadata": annotations, "status": used}, "policy")
    assert (found["Rate"], found["Rate Left"]) == ("2/1h", "1")
    plain = row("PodDisruptionBudget", {"spec": {"minAvailable": "50%"}}, "policy")
    assert [plain[name] for name in ("Min Available", "Max Unavailable", "Rate", "Rate Left")] == [
        "50%",
        "N/A",
        "<none>",
        "<none>",
    ]
    wrong = {"annotations": {"podium.dev/max-disruptions": "often"}}
    assert row("PodDisruptionBudget", {"metadata": wrong}, "policy")["Rate"] == "<invalid>"


def test_priority_class_rows_show_the_effective_policy() -> None:
    annotated = {"annotations": {"podium.dev/preemption-policy": "NonPreemptible"}}
    raw = {"metadata": annotated, "value": 5, "preemptionPolicy": "Never"}
    group = "scheduling.k8s.io"
    assert row("PriorityClass", raw, group)["PreemptionPolicy"] == "NonPreemptible"
    assert row("PriorityClass", {"preemptionPolicy": "PreemptNever"}, group)["PreemptionPolicy"] == "PreemptNever"


EACH = {"max": "10/1m", "per": "Namespace"}


def test_a_disruption_policy_shows_what_it_says() -> None:
    spec = {"priorities": "Critical > Normal", "caps": [{"component": "descheduler", "max": "5/1h"}, EACH]}
    found = row("DisruptionPolicy", {"spec": spec}, "podium.dev")
    assert (found["Priorities"], found["Caps"], found["Several-Budgets"]) == (
        "Critical>Normal",
        "descheduler=5/1h,*=10/1m per namespace",
        "Refuse",
    )


def test_a_quota_row_shows_its_usage() -> None:
    status = {"hard": {"pods": "3", "limits.cpu": "2"}, "used": {"pods": "1"}}
    found = row("ResourceQuota", {"status": status})
    assert (found["Request"], found["Limit"]) == ("pods: 1/3", "limits.cpu: 0/2")


def test_autoscalers_of_both_versions_look_alike() -> None:
    target = {"type": "Utilization", "averageUtilization": 50}
    second = {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]}
    measured = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 20}}}
    for spec, status in (
        (second, {"currentMetrics": [measured]}),
        ({"targetCPUUtilizationPercentage": 50}, {"currentCPUUtilizationPercentage": 20}),
    ):
        found = row("HorizontalPodAutoscaler", {"spec": spec, "status": status}, "autoscaling")
        assert found["Targets"] == "cpu: 20%/50%"
    nothing = row("HorizontalPodAutoscaler", {"spec": second}, "autoscaling")
    assert nothing["Targets"] == "cpu: <unknown>/50%"


def test_events_of_both_groups_look_alike() -> None:
    core = {
        "involvedObject": {"kind": "Pod", "name": "a"},
        "reportingComponent": "s",
        "message": "well ",
        "lastTimestamp": AN_HOUR_AGO,
        "count": 2,
    }
    new = {
        "regarding": {"kind": "Pod", "name": "a"},
        "reportingController": "s",
        "note": "well",
        "eventTime": "2027-01-15T07:00:00.000000Z",
        "series": {"count": 2, "lastObservedTime": AN_HOUR_AGO},
    }
    shown = [row("Event", raw) for raw in (core, new)]
    assert [one["Object"] for one in shown] == ["pod/a", "pod/a"]
    assert [one["Message"] for one in shown] == ["well", "well"]
    assert [one["Last Seen"] for one in shown] == ["60m", "60m"]
    assert [one["Count"] for one in shown] == [2, 2]


@pytest.mark.parametrize(
    ("reference", "parameters"),
    [
        (None, "<unset>"),
        ({"name": "a"}, "*/a"),
        ({"name": "a", "namespace": "shop"}, "shop/a"),
        ({"selector": {"matchLabels": {"app": "a"}}}, "app=a"),
    ],
)
def test_policies_and_their_bindings_show_their_parameters(reference: Raw | None, parameters: str) -> None:
    group, spec = "admissionregistration.k8s.io", {"policyName": "small", "validations": [{"expression": "true"}]}
    kind = {} if reference is None else {"paramKind": {"kind": "ConfigMap", "apiVersion": "v1"}}
    binding = {**spec, **({} if reference is None else {"paramRef": reference})}

    shown = row("ValidatingAdmissionPolicy", {"spec": {**spec, **kind}}, group)
    bound = row("ValidatingAdmissionPolicyBinding", {"spec": binding}, group)

    assert (shown["Validations"], shown["ParamKind"]) == (1, "v1/ConfigMap" if kind else "<unset>")
    assert (bound["PolicyName"], bound["ParamRef"]) == ("small", parameters)


def test_addresses_show_what_has_them_and_ranges_what_is_in_them() -> None:
    parent = {"group": "", "resource": "services", "namespace": "shop", "name": "web"}

    assert row("IPAddress", {"spec": {"parentRef": parent}}, "networking.k8s.io")["ParentRef"] == "services/shop/web"
    assert row("ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/8"]}}, "networking.k8s.io")["CIDRs"] == "10.0.0.0/8"


def test_service_rows_show_ports_and_selector() -> None:
    ports = [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    spec = {"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "ports": ports, "selector": {"app": "web"}}
    found = row("Service", {"spec": spec})
    assert (found["Cluster-IP"], found["External-IP"]) == ("10.0.0.1", "<pending>")
    assert (found["Port(s)"], found["Selector"]) == ("80:30080/TCP,53/UDP", "app=web")


def test_custom_kinds_show_what_their_definition_names() -> None:
    printer = custom_printer(
        msgspec.json.encode(
            [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                {"name": "On", "type": "boolean", "jsonPath": ".spec.on", "priority": 1},
                {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
                {"name": "Nothing", "type": "string", "jsonPath": ".spec.nothing"},
            ]
        )
    )
    raw = {
        "metadata": {"name": "w", "creationTimestamp": AN_HOUR_AGO},
        "spec": {"size": 3, "on": True, "tags": ["a"]},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    }
    assert list(printer.cells(raw, NOW)) == ["w", 3, "True", True, "60m", '["a"]', None]
    assert [column.priority for column in printer.columns] == [0, 0, 0, 1, 0, 0, 0]


def test_custom_kinds_without_columns_show_their_age() -> None:
    assert columns(WIDGET) == ["Name", "Age"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        (".a['x.y']", [2]),
        (r".a.x\.y", [2]),
        (".list[0].n", [1]),
        (".list[-1].n", [3]),
        (".list[*].n", [1, 2, 3]),
        (".list[1:].n", [2, 3]),
        (".list[?(@.n>=2)].n", [2, 3]),
        (".list[?(@.s=='two')].n", [2]),
        (".list[?(@.s<1)].n", []),
        (".list[9]", []),
        (".a.b.c", []),
        ("..b", []),
        (".list[", []),
        ("x" * 2_000, []),
    ],
)
def test_paths_find_what_stands_there(path: str, found: list[int]) -> None:
    raw = {"a": {"b": 1, "x.y": 2}, "list": [{"n": 1}, {"n": 2, "s": "two"}, {"n": 3}]}
    assert found_at(raw, path) == found


@given(st.text(alphabet=".[]?()@='\"*:-\\ax1", max_size=30), JSON)
def test_no_path_does_harm(path: str, raw: Any) -> None:
    found_at(raw, path)
