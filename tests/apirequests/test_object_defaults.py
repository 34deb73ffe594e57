"""Defaults of fields that clients leave open."""

from __future__ import annotations

from typing import Any

import pytest

from podium.apirequests.request import Request
from tests.apirequests.asking import API, NOW
from tests.store.objects import SECOND, Raw, pod


def created(kind: str, api_version: str, api: API | None = None, name: str = "x", **fields: Any) -> Raw:
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}
    namespace = "" if kind in ("DeviceTaintRule", "Node", "PersistentVolume", "ResourceSlice") else "default"
    response = (api or API()).ask("create", kind, namespace=namespace, body=raw, field_validation="Strict")
    assert response.code == 201, response.to_dict()
    return response.to_dict()


SELECTED: Raw = {"selector": {"matchLabels": {"app": "x"}}}
TEMPLATE: Raw = {
    "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
}
JOB: Raw = {"template": {**TEMPLATE["template"], "spec": {**TEMPLATE["template"]["spec"], "restartPolicy": "Never"}}}


def test_a_deployment_has_replicas_and_a_strategy() -> None:
    raw = created("Deployment", "apps/v1", spec={**SELECTED, **TEMPLATE, "strategy": {}}, status={})

    assert raw["spec"]["replicas"] == 1
    assert raw["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_a_strategy_that_does_not_roll_has_nothing_more() -> None:
    raw = created("Deployment", "apps/v1", spec={**SELECTED, **TEMPLATE, "strategy": {"type": "Recreate"}})

    assert raw["spec"]["strategy"] == {"type": "Recreate"}


def test_a_variable_from_a_file_is_required() -> None:
    source = {"volumeName": "files", "path": "settings.env", "key": "A"}
    container = {"name": "main", "image": "app", "env": [{"name": "A", "valueFrom": {"fileKeyRef": source}}]}
    raw = created("Pod", "v1", spec={"containers": [container], "volumes": [{"name": "files", "emptyDir": {}}]})

    [variable] = raw["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["fileKeyRef"] == {**source, "optional": False}


VOLUMES = [
    ({"iscsi": {"targetPortal": "a", "iqn": "iqn.a", "lun": 0}}, {"iscsiInterface": "default"}),
    ({"rbd": {"monitors": ["a"], "image": "b"}}, {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    (
        {"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "a"}}},
        {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    ),
    (
        {"azureDisk": {"diskName": "a", "diskURI": "b"}},
        {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    ),
]


@pytest.mark.parametrize(("volume", "filled"), VOLUMES)
def test_volumes_of_pods_and_persistent_ones_have_the_settings_of_their_kind(volume: Raw, filled: Raw) -> None:
    [(kind, source)] = volume.items()
    of_pod = created(
        "Pod", "v1", spec={"containers": [{"name": "a", "image": "b"}], "volumes": [{"name": "v"} | volume]}
    )
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **volume}
    persistent = created("PersistentVolume", "v1", spec=spec)

    assert of_pod["spec"]["volumes"][0][kind] == {**source, **filled}
    assert persistent["spec"][kind] == {**source, **filled}


def test_text_in_a_secret_becomes_data() -> None:
    raw = created("Secret", "v1", data={"a": "MQ=="}, stringData={"b": "2"})

    assert raw["data"] == {"a": "MQ==", "b": "Mg=="}
    assert (raw["type"], "stringData" in raw) == ("Opaque", False)


def test_services_have_addresses_and_ports_of_their_own_and_keep_them() -> None:
    api = API()
    spec = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"app": "x"}}
    first, second = (created("Service", "v1", api, name, spec=spec) for name in ("a", "b"))

    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30_086}]
    assert second["spec"]["ports"][0]["nodePort"] == 30_087
    again = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}
    updated = api.ask("update", "Service", "default/a", body=again).to_dict()
    assert updated["spec"] == first["spec"]
    moved = api.ask("patch", "Service", "default/a", body={"spec": {"clusterIP": "10.0.0.12"}})
    assert (moved.code, "may not change once set" in moved.to_dict()["message"]) == (422, True)


def test_a_service_of_another_type_loses_what_that_does_not_have() -> None:
    api = API()
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "x"}}
    created("Service", "v1", api, "a", spec=spec)

    inside = api.ask("patch", "Service", "default/a", body={"spec": {"type": "ClusterIP"}}).to_dict()["spec"]
    assert "nodePort" not in inside["ports"][0]
    assert not {"allocateLoadBalancerNodePorts", "externalTrafficPolicy"} & set(inside)

    change = {"spec": {"type": "ExternalName", "externalName": "x.example"}}
    named = api.ask("patch", "Service", "default/a", body=change)
    assert named.code == 200, named.to_dict()
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(named.to_dict()["spec"])

    again = api.ask("patch", "Service", "default/a", body={"spec": {"type": "NodePort", "externalName": None}})
    assert again.to_dict()["spec"]["clusterIP"]
    assert again.to_dict()["spec"]["ports"][0]["nodePort"]


def test_nulls_stand_for_nothing() -> None:
    raw = created("ConfigMap", "v1", data=None, immutable=None)

    assert "data" not in raw


def test_pod_level_requests_are_those_of_the_containers_or_else_the_limits() -> None:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "250m"}}}
    spec = {"containers": [container], "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}

    resources = created("Pod", "v1", spec=spec)["spec"]["resources"]

    assert resources == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("fields", "place"), [({"data": {"a": 1}}, "data.a"), ({"data": []}, "data"), ({"immutable": "yes"}, "immutable")]
)
def test_invalid_field_values_are_rejected(fields: Raw, place: str) -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **fields}

    response = API().ask("create", "ConfigMap", namespace="default", body=raw, field_validation="Warn")

    assert response.code == 400
    assert place in response.to_dict()["message"]


def test_tokens_of_projected_volumes_last_an_hour_unless_they_say_how_long() -> None:
    sources = [
        {"serviceAccountToken": {"path": "a"}},
        {"serviceAccountToken": {"path": "b", "expirationSeconds": 600}},
        {"configMap": {"name": "c"}},
    ]
    volumes = [{"name": "v", "projected": {"sources": sources}}, {"name": "w", "emptyDir": {}}]
    spec = {**TEMPLATE["template"]["spec"], "volumes": volumes}
    template = {"template": {**TEMPLATE["template"], "spec": spec}}
    pod = created("Pod", "v1", spec=spec)["spec"]
    deployment = created("Deployment", "apps/v1", spec={**SELECTED, **template})["spec"]["template"]["spec"]

    for found in (pod, deployment):
        report = found["volumes"][0]["projected"]["sources"]
        assert [source.get("serviceAccountToken", {}).get("expirationSeconds") for source in report] == [
            3_600,
            600,
            None,
        ]


def test_ports_of_endpoint_slices_have_names() -> None:
    raw = created("EndpointSlice", "discovery.k8s.io/v1", addressType="IPv4", endpoints=[], ports=[{"port": 80}])

    assert raw["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]


def test_a_pod_has_what_a_kubelet_would_take_for_granted() -> None:
    containers = [
        {"name": "main", "image": "app", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}},
        {"name": "side", "image": "registry:5000/side:1.2"},
    ]
    raw = created("Pod", "v1", spec={"containers": containers, "volumes": [{"name": "v"}]})
    spec = raw["spec"]
    main, side = spec["containers"]

    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["terminationGracePeriodSeconds"]) == (
        "Always",
        "ClusterFirst",
        30,
    )
    assert (spec["securityContext"], spec["enableServiceLinks"], spec["serviceAccountName"]) == ({}, True, "default")
    assert spec["serviceAccount"] == "default"
    assert (spec["schedulerName"], spec["priority"]) == ("default-scheduler", 0)
    assert spec["volumes"][0] == {"name": "v", "emptyDir": {}}
    assert (main["imagePullPolicy"], side["imagePullPolicy"]) == ("Always", "IfNotPresent")
    assert (main["terminationMessagePath"], main["terminationMessagePolicy"]) == ("/dev/termination-log", "File")
    assert main["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    probe = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
    assert main["livenessProbe"] == {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **probe}
    assert raw["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.mark.parametrize(
    ("of_account", "of_pod", "has_token"),
    [
        (None, None, True),
        (False, None, False),
        (False, True, True),
        (True, False, False),
    ],
)
def test_the_token_of_the_service_account_is_mounted_unless_pod_or_account_opt_out(
    of_account: bool | None, of_pod: bool | None, *, has_token: bool
) -> None:
    api = API()
    created(
        "ServiceAccount",
        "v1",
        api,
        "sa",
        **({} if of_account is None else {"automountServiceAccountToken": of_account}),
    )
    own: Raw = {} if of_pod is None else {"automountServiceAccountToken": of_pod}
    containers = [{"name": "main", "image": "app"}]

    spec = created("Pod", "v1", api, spec={"containers": containers, "serviceAccountName": "sa", **own})["spec"]

    mounts = spec["containers"][0].get("volumeMounts", [])
    assert [mount["mountPath"] for mount in mounts] == ([PATH] if has_token else [])
    assert [volume["name"] for volume in spec.get("volumes", [])] == [mount["name"] for mount in mounts]


@pytest.mark.parametrize(("own", "secret"), [([], "of-account"), ([{"name": "of-pod"}], "of-pod")])
def test_a_pod_without_pull_secrets_has_those_of_its_service_account(own: list[Raw], secret: str) -> None:
    api = API()
    created("ServiceAccount", "v1", api, "sa", imagePullSecrets=[{"name": "of-account"}])
    spec = {"containers": [{"name": "main", "image": "app"}], "serviceAccountName": "sa", "imagePullSecrets": own}

    assert created("Pod", "v1", api, spec=spec)["spec"]["imagePullSecrets"] == [{"name": secret}]


def test_the_label_of_a_namespace_with_its_name_cannot_be_changed() -> None:
    """[TestNamespaceLabels]"""
    api, name = API(), {"kubernetes.io/metadata.name": "shop"}
    body: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert api.ask("create", "Namespace", body=body).to_dict()["metadata"]["labels"] == name

    for labels in (None, {"kubernetes.io/metadata.name": "other"}):
        patched = api.ask("patch", "Namespace", "shop", body={"metadata": {"labels": labels}}).to_dict()
        assert patched["metadata"]["labels"] == name


def test_only_finalization_changes_the_finalizers_of_a_namespace() -> None:
    api, body = API(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    spec = api.ask("create", "Namespace", body=body).to_dict()["spec"]

    others = {"spec": {"finalizers": ["example.com/other"]}}
    assert api.ask("update", "Namespace", "shop", body=body).to_dict()["spec"] == spec
    assert api.ask("update", "Namespace", "shop", body={**body, **others}).to_dict()["spec"] == spec
    assert api.ask("patch", "Namespace", "shop", body=others).to_dict()["spec"] == spec
    finalized = api.ask("update", "Namespace", "shop", subresource="finalize", body={**body, **others})
    assert finalized.to_dict()["spec"] == others["spec"]


def test_an_updated_status_of_a_namespace_has_defaults() -> None:
    api, body = API(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    api.ask("create", "Namespace", body=body)

    status = {"conditions": [{"type": "Example", "status": "Unknown"}]}
    raw = api.ask("update", "Namespace", "shop", subresource="status", body={**body, "status": status}).to_dict()
    assert raw["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert raw["status"] == {**status, "phase": "Active"}


def test_a_link_to_itself_is_not_kept() -> None:
    api = API()
    body: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "selfLink": "/a"}}

    created_ = api.ask("create", "ConfigMap", namespace="default", body=body).to_dict()

    assert "selfLink" not in created_["metadata"]


def test_a_container_that_mounts_something_else_there_has_no_token() -> None:
    main = {"name": "main", "image": "app", "volumeMounts": [{"name": "own", "mountPath": PATH}]}
    own = {"name": "own", "emptyDir": {}}

    spec = created("Pod", "v1", spec={"containers": [main], "volumes": [own]})["spec"]

    assert spec["containers"][0]["volumeMounts"] == main["volumeMounts"]
    assert spec["volumes"] == [own]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app:latest", "Always"),
        ("registry:5000/app", "Always"),
        ("app:1", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
    ],
)
def test_the_latest_image_is_always_pulled(image: str, policy: str) -> None:
    raw = created("Pod", "v1", spec={"containers": [{"name": "main", "image": image}]})

    assert raw["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_a_container_of_a_pod_requests_what_limits_it_and_that_of_a_template_does_not() -> None:
    container = {"name": "main", "image": "app", "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}}
    template = {"template": {**TEMPLATE["template"], "spec": {"containers": [container]}}}
    pod = created("Pod", "v1", spec={"containers": [container]})["spec"]
    deployed = created("Deployment", "apps/v1", spec={**SELECTED, **template})["spec"]["template"]["spec"]

    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert deployed["containers"][0]["resources"] == container["resources"]
    assert ("enableServiceLinks" in deployed, "serviceAccountName" in deployed) == (False, False)
    assert deployed["restartPolicy"] == "Always"


def test_ports_of_pods_in_the_network_of_their_node_are_those_of_the_node() -> None:
    container = {"name": "main", "image": "app", "ports": [{"containerPort": 80}]}
    raw = created("Pod", "v1", spec={"containers": [container], "hostNetwork": True})

    assert raw["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]


def test_given_fields_keep_their_values_when_defaults_apply() -> None:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": asked}]
    for kind, spec in {
        "Deployment": {**SELECTED, **TEMPLATE},
        "StatefulSet": {**SELECTED, **TEMPLATE, "serviceName": "x", "volumeClaimTemplates": claims},
        "DaemonSet": {**SELECTED, **TEMPLATE},
    }.items():
        api = API()
        first = created(kind, "apps/v1", api, spec=spec)
        put = api.ask("update", kind, "default/x", body={**first, "spec": spec}, field_validation="Strict")
        patched = api.ask("patch", kind, "default/x", body={"spec": spec}, field_validation="Strict")

        assert put.to_dict() == patched.to_dict() == first


def test_a_container_that_a_patch_adds_is_filled_in_too() -> None:
    api = API()
    created("Deployment", "apps/v1", api, spec={**SELECTED, **TEMPLATE})
    containers = {"containers": [{"name": "side", "image": "side:1"}]}
    body = {"spec": {"template": {"spec": containers}}}

    response = api.ask("patch", "Deployment", "default/x", body=body, patch_type="strategic", field_validation="Warn")

    side = response.to_dict()["spec"]["template"]["spec"]["containers"][0]
    assert (side["name"], side["imagePullPolicy"], side["terminationMessagePolicy"]) == ("side", "IfNotPresent", "File")


def test_unknown_fields_are_dropped_with_a_warning() -> None:
    api = API()
    container = {"name": "main", "image": "app", "imagePullPolice": "Always"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [container], "colour": "red"},
        "more": 1,
    }

    response = api.ask("create", "Pod", namespace="default", body=body, field_validation="Warn")
    metadata = {"annotations": {"a": "b"}, "size": 1}
    patched = api.ask("patch", "Pod", "default/x", body={"metadata": metadata}, field_validation="Ignore")

    assert set(response.warnings) == {
        'unknown field "spec.containers[0].imagePullPolice"',
        'unknown field "spec.colour"',
        'unknown field "more"',
    }
    raw = response.to_dict()
    assert ("more" in raw, "colour" in raw["spec"], "imagePullPolice" in raw["spec"]["containers"][0]) == (
        False,
        False,
        False,
    )
    assert patched.warnings == ()
    assert patched.to_dict()["metadata"]["annotations"] == {"a": "b"}
    assert "size" not in patched.to_dict()["metadata"]


@pytest.mark.parametrize("spec", [7, [], {"containers": 7}, {"containers": [7]}, {"containers": [{"ports": {}}]}])
def test_a_pod_field_of_the_wrong_type_is_rejected_without_defaults(spec: Any) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}

    assert API().ask("create", "Pod", namespace="default", body=body).code in (400, 422)


def test_volumes_and_claims_are_pending_at_first() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}

    assert created("PersistentVolumeClaim", "v1", spec=claim)["status"] == {"phase": "Pending"}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "x"}, "spec": volume}
    made = API().ask("create", "PersistentVolume", body=body).to_dict()
    assert (made["status"], made["spec"]["hostPath"]) == ({"phase": "Pending"}, {"path": "/a", "type": ""})


def test_a_job_takes_the_labels_of_its_template_and_keeps_its_own() -> None:
    assert created("Job", "batch/v1", spec=JOB)["metadata"]["labels"] == {"app": "x"}

    own = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "own", "labels": {"a": "b"}}, "spec": JOB}
    assert API().ask("create", "Job", namespace="default", body=own).to_dict()["metadata"]["labels"] == {"a": "b"}


def test_an_autoscaler_has_a_metric_and_the_rules_of_a_behavior() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    spec: Raw = {"maxReplicas": 3, "scaleTargetRef": target}
    plain = created("HorizontalPodAutoscaler", "autoscaling/v2", spec=spec)["spec"]
    given = {**spec, "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}}
    ruled = created("HorizontalPodAutoscaler", "autoscaling/v2", spec=given)["spec"]

    (metric,) = plain["metrics"]
    assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
    assert "behavior" not in plain
    assert ruled["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 5
    assert [policy["type"] for policy in ruled["behavior"]["scaleDown"]["policies"]] == ["Percent"]
    assert [policy["type"] for policy in ruled["behavior"]["scaleUp"]["policies"]] == ["Pods", "Percent"]
    assert ruled["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0


def test_a_node_has_a_spec_and_its_capacity_is_allocatable() -> None:
    body: Raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "x"},
        "status": {"capacity": {"memory": "1Gi"}},
    }

    raw = API().ask("create", "Node", body=body, field_validation="Strict").to_dict()

    assert raw["spec"].keys() <= {"taints"}
    assert raw["status"]["allocatable"] == {"memory": "1Gi"}


@pytest.mark.parametrize("value", ["", "x"])
def test_a_new_node_counts_as_not_ready_until_a_controller_removes_the_taint(value: str) -> None:
    other, own = {"key": "a", "effect": "NoExecute"}, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    api = API()

    added = created("Node", "v1", spec={"taints": [other]}, api=api)["spec"]["taints"]
    assert added == [other, own]

    stated = {**own, "value": value} if value else own
    assert created("Node", "v1", spec={"taints": [stated]})["spec"]["taints"] == [stated]
    removed = api.ask("patch", "Node", "x", body={"spec": {"taints": [other]}}, patch_type="merge").to_dict()
    assert removed["spec"]["taints"] == [other]


def test_a_request_for_devices_asks_for_one() -> None:
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "x"}},
        {"name": "b", "exactly": {"deviceClassName": "x", "allocationMode": "All"}},
        {"name": "c", "firstAvailable": [{"name": "s", "deviceClassName": "x"}]},
    ]
    spec = created("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": requests}})["spec"]

    first, second, third = spec["devices"]["requests"]
    assert (first["exactly"]["allocationMode"], first["exactly"]["count"]) == ("ExactCount", 1)
    assert "count" not in second["exactly"]
    assert third["firstAvailable"][0]["count"] == 1


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "status"),
    [
        ("Deployment", "apps/v1", {**SELECTED, **TEMPLATE}, {}),
        ("ReplicaSet", "apps/v1", {**SELECTED, **TEMPLATE}, {"replicas": 0}),
        ("Service", "v1", {"ports": [{"port": 80}]}, {"loadBalancer": {}}),
    ],
)
def test_a_new_object_has_an_empty_status(kind: str, api_version: str, spec: Raw, status: Raw) -> None:
    assert created(kind, api_version, spec=spec)["status"] == status


RULE: Raw = {"deviceSelector": {"pool": "a"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
FIRST, THEN, STATED = "1970-01-01T00:01:40Z", "1970-01-01T00:02:00Z", "2026-01-01T12:00:00Z"


def patched(api: API, kind: str, spec: Raw) -> Raw:
    """Return the spec of an object after a later patch."""
    request = Request(verb="patch", kind=kind, key="x", body={"spec": spec}, patch_type="merge")
    spec = api.answer(request, NOW + 20 * SECOND).to_dict()["spec"]
    assert isinstance(spec, dict)
    return spec


@pytest.mark.parametrize("takes_history", [False, True])
def test_the_taint_of_a_rule_has_the_time_when_its_effect_was_stated(takes_history: bool) -> None:
    api = API(takes_history=takes_history)
    assert created("DeviceTaintRule", "resource.k8s.io/v1beta2", api, spec=RULE)["spec"]["taint"]["timeAdded"] == FIRST

    def time_after(**taint: Any) -> str:
        return str(patched(api, "DeviceTaintRule", {"taint": taint})["taint"]["timeAdded"])

    assert time_after(value="a") == FIRST
    assert time_after(effect="NoExecute") == THEN
    assert time_after(effect="NoSchedule", timeAdded=STATED) == STATED
    assert time_after(timeAdded=None) == THEN


def test_the_taints_of_the_devices_of_a_slice_have_times() -> None:
    api, bare = API(), {"key": "broken", "effect": "NoSchedule"}
    devices = [{"name": "a", "taints": [bare, {**bare, "key": "old", "timeAdded": STATED}]}, {"name": "b"}]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec: Raw = {"driver": "a.com", "pool": pool, "nodeName": "n", "devices": devices}

    made = created("ResourceSlice", "resource.k8s.io/v1", api, spec=spec)["spec"]["devices"]
    assert [taint["timeAdded"] for taint in made[0]["taints"]] == [FIRST, STATED]
    assert "taints" not in made[1]

    changed = patched(api, "ResourceSlice", {"devices": [made[0], {"name": "b", "taints": [bare]}]})["devices"]
    assert changed[0] == made[0]
    assert changed[1]["taints"] == [{**bare, "timeAdded": THEN}]


def test_a_negative_grace_period_of_a_pod_is_one_second_and_that_of_a_template_stays() -> None:
    spec: Raw = {"containers": [{"name": "main", "image": "app"}], "terminationGracePeriodSeconds": -1}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}

    assert created("Pod", "v1", spec=spec)["spec"]["terminationGracePeriodSeconds"] == 1
    made = created("Deployment", "apps/v1", spec={**SELECTED, "template": template})["spec"]["template"]
    assert made["spec"]["terminationGracePeriodSeconds"] == -1


def test_empty_fields_of_metadata_are_absent() -> None:
    empty: Raw = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": [], "generateName": ""}
    api = API()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **empty}}
    assert not api.ask("create", "ConfigMap", namespace="default", body=body).to_dict()["metadata"].keys() & empty

    full = {**body, "metadata": {"name": "x", "labels": {"a": ""}, "finalizers": ["example.com/a"]}}
    updated = api.ask("update", "ConfigMap", "default/x", body=full).to_dict()["metadata"]
    assert (updated["labels"], updated["finalizers"]) == ({"a": ""}, ["example.com/a"])

    patch = {"metadata": {"labels": {"a": None}, "finalizers": []}}
    left = api.ask("patch", "ConfigMap", "default/x", body=patch, patch_type="merge").to_dict()["metadata"]
    assert not left.keys() & empty


def test_webhooks_and_policies_have_the_defaults_of_upstream() -> None:
    group = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    everything = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    called: Raw = {"name": "a.example.com", "clientConfig": {"service": {"namespace": "default", "name": "web"}}}
    called |= {"sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule]}

    def created(kind: str, **content: Any) -> Raw:
        body = {"apiVersion": group, "kind": kind, "metadata": {"name": "a"}, **content}
        return API().ask("create", kind, body=body).to_dict()

    webhook = created("MutatingWebhookConfiguration", webhooks=[called])["webhooks"][0]
    constraints = {"resourceRules": [rule]}
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
    policy = created("MutatingAdmissionPolicy", spec={"matchConstraints": constraints, "mutations": [mutation]})["spec"]
    binding = created("MutatingAdmissionPolicyBinding", spec={"policyName": "a", "paramRef": {"name": "b"}})["spec"]

    assert webhook["clientConfig"]["service"]["port"] == 443
    assert webhook["rules"][0]["scope"] == policy["matchConstraints"]["resourceRules"][0]["scope"] == "*"
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"], webhook["reinvocationPolicy"]) == ("Fail", 10, "Never")
    assert (policy["failurePolicy"], policy["reinvocationPolicy"]) == ("Fail", "Never")
    assert everything.items() <= webhook.items()
    assert everything.items() <= policy["matchConstraints"].items()
    assert binding["paramRef"]["parameterNotFoundAction"] == "Deny"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects"),
        ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"failurePolicy": "Other"}, "webhooks[0].failurePolicy"),
        ({"name": "A b"}, "webhooks[0].name"),
    ],
)
def test_a_webhook_that_cannot_be_called_is_refused(change: Raw, field: str) -> None:
    called: Raw = {"name": "a.example.com", "clientConfig": {"url": "https://a"}, "sideEffects": "None"}
    kind = "ValidatingWebhookConfiguration"
    body: Raw = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}}
    body["webhooks"] = [{**called, "admissionReviewVersions": ["v1"], **change}]

    answer = API().ask("create", kind, body=body).to_dict()

    assert [cause["field"] for cause in answer["details"]["causes"]] == [field]


def test_created_objects_have_canonical_amounts() -> None:
    api = API()
    requests = {"cpu": "1000m", "memory": 1_073_741_824}
    main = {"name": "main", "image": "app:1", "resources": {"requests": requests, "limits": {"cpu": "1.5"}}}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [main]}}

    created = api.ask("create", namespace="default", body=body).to_dict()

    expected = {"requests": {"cpu": "1", "memory": "1073741824"}, "limits": {"cpu": "1500m"}}
    assert created["spec"]["containers"][0]["resources"] == expected
    assert requests == {"cpu": "1000m", "memory": 1_073_741_824}


@pytest.mark.parametrize("written", ["1000m", 1, "1.0"])
def test_an_update_may_write_the_same_amount_in_another_form(written: Any) -> None:
    raw = pod("a")
    raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": written}}
    api = API(raw)
    updated = api.raw("Pod", "default/a")
    canonical = {**updated["spec"]["containers"][0], "resources": {"requests": {"cpu": "1"}}}
    body = {**updated, "spec": {**updated["spec"], "containers": [canonical]}}

    assert api.ask("update", key="default/a", body=body).code == 200
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}]
    assert api.ask("patch", key="default/a", body=patch, patch_type="json").code == 200
    assert api.ask("patch", key="default/a", body=container_of("2"), patch_type="strategic").code == 422


def container_of(cpu: str) -> Raw:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
