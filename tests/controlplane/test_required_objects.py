"""Objects that every namespace has, and the rules of aggregated roles."""

from __future__ import annotations

import pytest

from podium.api.meta import Raw
from podium.apirequests.request import Request
from podium.testing import ControlPlane, RefusedError

CONTAINERS = [{"name": "main", "image": "app:1"}]
ROLES = "rbac.authorization.k8s.io"


def namespace(name: str) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def role(name: str, labels: dict[str, str], resource: str = "") -> Raw:
    metadata = {"name": name, "labels": labels}
    rules = [{"apiGroups": ["shop"], "resources": [resource], "verbs": ["get"]}] if resource else []
    return {"apiVersion": f"{ROLES}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def found(cluster: ControlPlane, kind: str, name: str, namespace: str = "default") -> Raw:
    raw = cluster.get(kind, name, namespace=namespace)
    assert raw is not None
    return raw


def test_every_namespace_has_the_bundle_that_verifies_the_server() -> None:
    with ControlPlane() as cluster:
        cluster.apply(namespace("shop"))

        for name in ("default", "kube-node-lease", "kube-public", "kube-system", "shop"):
            assert found(cluster, "ConfigMap", "kube-root-ca.crt", namespace=name)["data"]["ca.crt"]


def test_a_deleted_or_changed_bundle_is_restored() -> None:
    with ControlPlane() as cluster:
        before = found(cluster, "ConfigMap", "kube-root-ca.crt")
        cluster.delete("ConfigMap", "kube-root-ca.crt")
        restored = found(cluster, "ConfigMap", "kube-root-ca.crt")
        cluster.patch("ConfigMap", "kube-root-ca.crt", {"data": {"ca.crt": "", "more": "text"}})

        assert restored["metadata"]["uid"] != before["metadata"]["uid"]
        assert found(cluster, "ConfigMap", "kube-root-ca.crt")["data"] == before["data"]


def test_a_deleted_default_account_is_created_again() -> None:
    with ControlPlane() as cluster:
        before = found(cluster, "ServiceAccount", "default")

        cluster.delete("ServiceAccount", "default")

        assert found(cluster, "ServiceAccount", "default")["metadata"]["uid"] != before["metadata"]["uid"]


def test_kube_system_has_the_settings_of_authentication() -> None:
    with ControlPlane() as cluster:
        assert found(cluster, "ConfigMap", "extension-apiserver-authentication", namespace="kube-system")["metadata"]


def test_an_aggregated_role_has_the_rules_of_the_roles_that_it_selects() -> None:
    with ControlPlane() as cluster:
        aggregated = role("shopkeeper", {f"{ROLES}/aggregate-to-view": "true"})
        selector = {"matchLabels": {"for": "shop"}}
        cluster.apply({**aggregated, "aggregationRule": {"clusterRoleSelectors": [selector]}})
        cluster.apply(role("read-goods", {"for": "shop"}, "goods"))

        rule = {"apiGroups": ["shop"], "resources": ["goods"], "verbs": ["get"]}
        assert found(cluster, "ClusterRole", "shopkeeper")["rules"] == [rule]
        for name in ("view", "edit", "admin"):
            assert rule in found(cluster, "ClusterRole", name)["rules"]

        cluster.delete("ClusterRole", "read-goods")
        assert rule not in found(cluster, "ClusterRole", "admin")["rules"]


def test_the_status_of_a_quota_that_a_client_writes_is_counted_again() -> None:
    with ControlPlane() as cluster:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", "namespace": "default"}}
        cluster.apply({**quota, "spec": {"hard": {"pods": "2"}}})

        body = {"status": {"hard": {"pods": "9"}}}
        patch = Request(verb="patch", kind="ResourceQuota", key="default/all", subresource="status", body=body)
        written = cluster.request(patch).object

        assert written is not None
        assert written["status"]["hard"] == {"pods": "9"}
        assert found(cluster, "ResourceQuota", "all")["status"] == {"hard": {"pods": "2"}, "used": {"pods": "0"}}


def test_a_flow_schema_says_whether_its_priority_level_exists() -> None:
    version = "flowcontrol.apiserver.k8s.io/v1"

    def dangling() -> tuple[str, str]:
        [condition] = found(cluster, "FlowSchema", "mine")["status"]["conditions"]
        assert condition["type"] == "Dangling"
        return condition["status"], condition["message"].rpartition('"mine" ')[2]

    with ControlPlane() as cluster:
        spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "mine"}}
        cluster.apply({"apiVersion": version, "kind": "FlowSchema", "metadata": {"name": "mine"}, "spec": spec})
        assert dangling() == ("True", "but there is no such object")
        level = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        kind = {"apiVersion": version, "kind": "PriorityLevelConfiguration"}
        cluster.apply({**kind, "metadata": {"name": "mine"}, "spec": level})
        assert dangling() == ("False", "and it exists")
        cluster.delete("PriorityLevelConfiguration", "mine")
        assert dangling() == ("True", "but there is no such object")


def checked(cluster: ControlPlane, name: str, group: str, plural: str, *validations: Raw) -> list[Raw]:
    """Create a validating policy, and return the warnings about the types in its expressions."""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [plural]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [*validations]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
    cluster.apply({**kind, "metadata": {"name": name}, "spec": spec})
    status = (cluster.get("ValidatingAdmissionPolicy", name) or {})["status"]
    assert status["observedGeneration"] == 1
    found: list[Raw] = status["typeChecking"].get("expressionWarnings", [])
    return found


def test_a_validating_policy_says_which_expressions_do_not_fit_the_types_of_its_kinds() -> None:
    number, text = {"expression": "object.spec.replicas > 1"}, {"expression": "object.spec.replicas > '1'"}
    mixed = {**text, "messageExpression": "'wants more than ' + object.spec.replicas"}
    with ControlPlane() as cluster:
        assert checked(cluster, "right", "apps", "deployments", number) == []
        assert checked(cluster, "any", "apps", "*", text) == []
        first, second = checked(cluster, "wrong", "apps", "deployments", mixed)
        assert first["fieldRef"] == "spec.validations[0].expression"
        assert second["fieldRef"] == "spec.validations[0].messageExpression"
        assert "apps/v1, Kind=Deployment: " in first["warning"]
        assert "found no matching overload for '_>_' applied to '(int, string)'" in first["warning"]
        assert "found no matching overload for '_+_' applied to '(string, int)'" in second["warning"]


def test_a_validating_policy_is_checked_against_the_schema_of_a_custom_kind() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    with ControlPlane() as cluster:
        cluster.apply(definition)
        [warning] = checked(cluster, "p", "example.com", "widgets", {"expression": "object.spec.weight < 10"})
        assert "undefined field 'weight'" in warning["warning"]


def test_a_pod_needs_an_existing_service_account() -> None:
    def with_account(name: str) -> Raw:
        spec = {"serviceAccountName": name, "containers": CONTAINERS}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    with ControlPlane() as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "known"}})
        cluster.apply(with_account("known"))

        with pytest.raises(RefusedError, match='serviceaccount "missing" not found'):
            cluster.apply(with_account("missing"))


def test_the_accounts_of_pods_that_are_there_at_the_start_exist() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"serviceAccountName": "runner", "containers": CONTAINERS},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    with ControlPlane(objects=[web]) as cluster:
        assert found(cluster, "ServiceAccount", "runner")["metadata"]["uid"]
        cluster.settle()
        assert len(cluster.pods()) == 1


def test_the_accounts_that_the_initial_objects_of_each_kind_name_exist() -> None:
    pod_spec = {"serviceAccountName": "of-pod", "containers": CONTAINERS}
    template = {"spec": {**pod_spec, "serviceAccountName": "of-cron-job", "restartPolicy": "Never"}}
    cron_job = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}
    objects = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": cron_job},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": pod_spec},
    ]

    with ControlPlane(objects=objects) as cluster:
        assert found(cluster, "ServiceAccount", "of-cron-job")
        assert found(cluster, "ServiceAccount", "of-pod")


def test_a_deleted_attributes_class_stays_until_no_volume_and_no_claim_has_it() -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "driverName": "d"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/"}}
    with ControlPlane() as cluster:
        for name in ("free", "gold"):
            [made] = cluster.apply({**kind, "metadata": {"name": name}})
            assert made["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]
        for of, name, spec in (("PersistentVolumeClaim", "c", claim), ("PersistentVolume", "v", volume)):
            raw = {"apiVersion": "v1", "kind": of, "metadata": {"name": name}}
            cluster.apply({**raw, "spec": {**spec, "volumeAttributesClassName": "gold"}})
        for name in ("free", "gold"):
            cluster.delete("VolumeAttributesClass", name)

        assert cluster.get("VolumeAttributesClass", "free") is None
        cluster.delete("PersistentVolumeClaim", "c")
        assert found(cluster, "VolumeAttributesClass", "gold")["metadata"]["deletionTimestamp"]
        cluster.delete("PersistentVolume", "v")
        assert cluster.get("VolumeAttributesClass", "gold") is None
