"""Fields that an update cannot change."""

from contextlib import nullcontext
from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, pod, quota
from tests.store.refusals import answer, refusal

FORBIDDEN = "pod updates may not change fields other than `spec.containers[*].image`"


def updated(before: Raw, **spec: Any) -> tuple[Store, Raw]:
    """Return a store with the pod, and an update that changes its spec; None takes a field away."""
    store = Store()
    stored = store.create(before, now=0)
    changed = {**stored.raw["spec"], **spec}
    return store, {**stored.raw, "spec": {name: value for name, value in changed.items() if value is not None}}


CONTAINER: Raw = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": 1}}}
TOLERATION = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
GATES = [{"name": "example.com/a"}, {"name": "example.com/b"}]


def running(**spec: Any) -> Raw:
    return pod("web", node="n1", metadata={"uid": "web"}, spec={"containers": [CONTAINER], **spec})


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (running(), {"containers": [{**CONTAINER, "image": "web:2"}]}),
        (running(initContainers=[CONTAINER]), {"initContainers": [{**CONTAINER, "image": "web:2"}]}),
        (running(), {"activeDeadlineSeconds": 60}),
        (running(activeDeadlineSeconds=60), {"activeDeadlineSeconds": 59}),
        (running(), {"tolerations": [TOLERATION]}),
        (running(tolerations=[TOLERATION]), {"tolerations": [{"operator": "Exists"}, TOLERATION]}),
        (running(tolerations=[TOLERATION]), {"tolerations": [{**TOLERATION, "tolerationSeconds": 50}]}),
        (running(), {"nodeSelector": {}, "hostNetwork": False}),
        (pod("web", spec={"schedulingGates": GATES}), {"schedulingGates": GATES[:1]}),
        (pod("web", spec={"schedulingGates": GATES}), {"nodeSelector": {"zone": "a"}, "schedulingGates": None}),
    ],
)
def test_b41_some_fields_of_a_pod_can_be_changed(before: Raw, change: Raw) -> None:
    store, raw = updated(before, **change)

    assert store.update(raw).raw["spec"] == raw["spec"]


@pytest.mark.parametrize(
    ("before", "change", "message"),
    [
        (running(), {"nodeName": "n2"}, FORBIDDEN),
        (running(), {"nodeName": None}, FORBIDDEN),
        (running(), {"containers": [{**CONTAINER, "resources": {}}]}, FORBIDDEN),
        (running(), {"containers": [CONTAINER, {**CONTAINER, "name": "b"}]}, "pod updates may not add or remove"),
        (running(), {"priority": 7}, FORBIDDEN),
        (running(), {"priorityClassName": "high"}, FORBIDDEN),
        (running(), {"nodeSelector": {"zone": "a"}}, FORBIDDEN),
        (running(), {"schedulingGates": GATES}, "only deletion is allowed"),
        (running(), {"terminationGracePeriodSeconds": 1}, FORBIDDEN),
        (running(), {"activeDeadlineSeconds": -1}, "activeDeadlineSeconds"),
        (running(activeDeadlineSeconds=60), {"activeDeadlineSeconds": 61}, "activeDeadlineSeconds"),
        (running(activeDeadlineSeconds=60), {"activeDeadlineSeconds": None}, "activeDeadlineSeconds"),
        (running(tolerations=[TOLERATION]), {"tolerations": None}, "existing tolerations stay"),
        (running(tolerations=[TOLERATION]), {"tolerations": [{"operator": "Exists"}]}, "existing tolerations stay"),
    ],
)
def test_b41_other_fields_of_a_pod_stay(before: Raw, change: Raw, message: str) -> None:
    store, raw = updated(before, **change)

    error = refusal(store, lambda: store.update(raw))

    assert answer(error) == (422, "Invalid")
    assert message in error.message
    assert error.details["causes"][0]["reason"] in ("FieldValueForbidden", "FieldValueInvalid")


def zones(*values: str, **more: Any) -> Raw:
    expressions = [{"key": "zone", "operator": "In", "values": [value]} for value in values]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}, **more}


PREFERRED: Raw = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


@pytest.mark.parametrize(
    ("before", "after", "is_taken"),
    [
        ({}, zones("a"), True),
        (zones("a"), zones("a", "b"), True),
        (zones("a"), {**zones("a"), "nodeAffinity": {**zones("a")["nodeAffinity"], **PREFERRED["nodeAffinity"]}}, True),
        (zones("a", "b"), zones("a"), False),
        (zones("a"), zones("b"), False),
        (zones("a"), {}, False),
        (zones("a"), zones("a", **APART), False),
    ],
)
def test_the_node_affinity_of_a_gated_pod_can_be_narrowed(before: Raw, after: Raw, is_taken: bool) -> None:
    store, raw = updated(pod("web", spec={"schedulingGates": GATES, "affinity": before}), affinity=after)

    if is_taken:
        assert store.update(raw).raw["spec"]["affinity"] == after
    else:
        assert answer(refusal(store, lambda: store.update(raw))) == (422, "Invalid")


def test_the_node_selector_of_a_gated_pod_keeps_its_conditions() -> None:
    store, raw = updated(
        pod("web", spec={"schedulingGates": GATES, "nodeSelector": {"zone": "a"}}), nodeSelector={"zone": "b"}
    )

    assert answer(refusal(store, lambda: store.update(raw))) == (422, "Invalid")


def test_an_update_may_leave_out_what_admission_filled_in() -> None:
    store = Store()
    before = store.create(pod("web"), now=0)

    after = store.update(pod("web", labels={"app": "web"}))

    assert after.raw["spec"] == before.raw["spec"]


def workload(kind: str, **spec: Any) -> Raw:
    template = {"metadata": {"labels": {"app": "web", "tier": "a"}}, "spec": pod("web")["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
def test_the_selector_of_a_workload_stays(kind: str) -> None:
    store = Store()
    store.create(workload(kind), now=0)
    changed = workload(kind, selector={"matchLabels": {"tier": "a"}})

    error = refusal(store, lambda: store.update(changed))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "spec.selector"
    assert store.update(workload(kind, replicas=5)).object.metadata.generation == 2


def test_the_scopes_of_a_quota_stay() -> None:
    store = Store()
    store.create(quota("all", {"pods": 1}), now=0)
    store.update(quota("all", {"pods": 2}, scopes=[]))

    error = refusal(store, lambda: store.update(quota("all", {"pods": 1}, scopes=["BestEffort"])))

    assert answer(error) == (422, "Invalid")


def kept(kind: str, api_version: str = "v1", **fields: Any) -> Store:
    store = Store()
    store.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}, now=0)
    return store


ROLES = "rbac.authorization.k8s.io/v1"
DEVICES, NETWORK, STORAGE = "resource.k8s.io/v1", "networking.k8s.io/v1", "storage.k8s.io/v1"
ATTACHED = "spec.attachRequired"
CLAIMS: list[Raw] = [
    {"devices": {"requests": [{"name": name, "exactly": {"deviceClassName": "gpu"}}]}} for name in ("a", "b")
]


@pytest.mark.parametrize(
    ("kind", "api_version", "before", "change", "field"),
    [
        ("ConfigMap", "v1", {"data": {"a": "1"}, "immutable": True}, {"data": {"a": "2"}}, "data"),
        ("ConfigMap", "v1", {"immutable": True}, {"immutable": False}, "immutable"),
        ("Secret", "v1", {"type": "Opaque"}, {"type": "example.com/mine"}, "type"),
        ("RoleBinding", ROLES, {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}, "roleRef"),
        ("EndpointSlice", "discovery.k8s.io/v1", {"addressType": "IPv4"}, {"addressType": "IPv6"}, "addressType"),
        (
            "IngressClass",
            NETWORK,
            {"spec": {"controller": "a.b/c"}},
            {"spec": {"controller": "a.b/d"}},
            "spec.controller",
        ),
        ("RuntimeClass", "node.k8s.io/v1", {"handler": "a"}, {"handler": "b"}, "handler"),
        ("CSIDriver", STORAGE, {"spec": {"attachRequired": True}}, {"spec": {"attachRequired": False}}, ATTACHED),
        ("ResourceClaim", DEVICES, {"spec": CLAIMS[0]}, {"spec": CLAIMS[1]}, "spec"),
        ("ResourceClaimTemplate", DEVICES, {"spec": {"spec": CLAIMS[0]}}, {"spec": {"spec": CLAIMS[1]}}, "spec"),
        ("Service", "v1", {"spec": {"clusterIP": "10.96.0.9"}}, {"spec": {"clusterIP": "None"}}, "spec.clusterIPs[0]"),
    ],
)
def test_immutable_fields_of_kept_only_kinds_cannot_change(
    kind: str, api_version: str, before: Raw, change: Raw, field: str
) -> None:
    store = kept(kind, api_version, **before)
    raw = (store.find(kind, "x") or store.get(kind, "default/x")).raw

    error = refusal(store, lambda: store.update({**raw, **change}))

    assert (error.code, error.details["causes"][0]["field"]) == (422, field)
    assert store.update({**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}}).raw["metadata"]["labels"]


def test_data_that_is_not_fixed_changes() -> None:
    store = kept("ConfigMap", data={"a": "1"})

    assert store.update({**store.get("ConfigMap", "default/x").raw, "data": {"a": "2"}}).raw["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("kind", "name", "is_right"),
    [
        ("ClusterRole", "system:controller:x", True),
        ("ClusterRole", "a/b", False),
        ("ClusterRoleBinding", "Admins", True),
        ("ClusterRoleBinding", "..", False),
        ("IngressClass", "Bad_Name", False),
    ],
)
def test_names_of_roles_are_parts_of_paths(kind: str, name: str, is_right: bool) -> None:
    group = "networking.k8s.io" if kind == "IngressClass" else "rbac.authorization.k8s.io"
    raw = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}}
    store = Store()

    if is_right:
        assert store.create(raw, now=0, is_new=True).key == name
    else:
        assert refusal(store, lambda: store.create(raw, now=0, is_new=True)).code == 422


def test_a_service_gives_its_address_up_for_the_name_of_something_outside() -> None:
    store = kept("Service", spec={"clusterIP": "10.96.0.9"})
    named: Raw = {"spec": {"type": "ExternalName", "externalName": "a.b"}}

    changed = store.update({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, **named})

    assert "clusterIP" not in changed.raw["spec"]


def test_a_slice_of_devices_stays_with_its_driver_and_its_node() -> None:
    spec: Raw = {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n1"}
    store = kept("ResourceSlice", DEVICES, spec=spec)
    raw = store.get("ResourceSlice", "x").raw

    for field, value in (("driver", "a.c"), ("nodeName", "n2")):
        error = refusal(store, lambda: store.update({**raw, "spec": {**spec, field: value}}))  # noqa: B023 - at once
        assert (error.code, error.details["causes"][0]["field"]) == (422, f"spec.{field}")


MARKED: Raw = {"metadata": {"labels": {"app": "x"}}}


def job(template: Raw | None = None, **spec: Any) -> Raw:
    template = template or {**MARKED, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    selecting = {"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}}
    metadata = {"name": "x", "namespace": "default"}
    spec = {"template": template, **selecting, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def claim(**spec: Any) -> Raw:
    wanted: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x"}, "spec": {**wanted, **spec}}


def sized(storage: str) -> Raw:
    return {"resources": {"requests": {"storage": storage}}}


def volume(**spec: Any) -> Raw:
    wanted: Raw = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "x"}, "spec": {**wanted, **spec}}


def node(**spec: Any) -> Raw:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "spec": spec}


def template(**spec: Any) -> Raw:
    return {**MARKED, "spec": {"restartPolicy": "Never", "containers": [CONTAINER], **spec}}


OTHER_IMAGE = template(containers=[{**CONTAINER, "image": "web:2"}])
FILLED_IN = template(containers=[{**CONTAINER, "imagePullPolicy": "IfNotPresent"}], dnsPolicy="ClusterFirst")
BOUND: Raw = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
STARTED: Raw = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
INDEXED: Raw = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (job(), job(parallelism=3, backoffLimit=1, suspend=True)),
        (job(), job(FILLED_IN)),
        (job(suspend=True), job(template(nodeSelector={"zone": "a"}), suspend=False)),
        (job(suspend=True), job({**template(), "metadata": {"labels": {"app": "x", "a": "b"}}}, suspend=True)),
        (job(**INDEXED), job(**{**INDEXED, "completions": 3, "parallelism": 3})),
        (claim(), claim(volumeName="pv", storageClassName="fast")),
        (claim(), claim(volumeMode="Filesystem")),
        (volume(), volume(capacity={"storage": "2Gi"}, persistentVolumeReclaimPolicy="Delete")),
        (node(), node(podCIDR="10.0.0.0/24", providerID="a", unschedulable=True)),
    ],
)
def test_mutable_fields_can_change(before: Raw, after: Raw) -> None:
    store = Store()
    stored = store.create(before, now=0)

    assert store.update({**after, "metadata": stored.raw["metadata"]}).raw["spec"] == after["spec"]


@pytest.mark.parametrize("allows", [True, False, None])
def test_a_bound_claim_can_grow_only_if_its_class_allows_expansion(*, allows: bool | None) -> None:
    store = Store()
    class_ = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    store.create(
        {**class_, "provisioner": "a/b", **({} if allows is None else {"allowVolumeExpansion": allows})}, now=0
    )
    stored = store.create({**claim(storageClassName="fast"), **BOUND}, now=0)
    larger = {**claim(storageClassName="fast", **sized("3Gi")), "metadata": stored.raw["metadata"]}

    if allows:
        assert store.update(larger).raw["spec"]["resources"]["requests"]["storage"] == "3Gi"
    else:
        with pytest.raises(StoreError, match="storageclass that provisions the pvc must support resize") as error:
            store.update(larger)
        assert error.value.code == 403


def test_a_claim_of_no_class_cannot_grow() -> None:
    store = Store()
    stored = store.create({**claim(), **BOUND}, now=0)

    with pytest.raises(StoreError, match="only dynamically provisioned pvc can be resized"):
        store.update({**claim(**sized("3Gi")), "metadata": stored.raw["metadata"]})


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (job(), job(OTHER_IMAGE), "spec.template"),
        (job(), job(template(nodeSelector={"zone": "a"})), "spec.template"),
        (job(suspend=True), job(OTHER_IMAGE, suspend=True), "spec.template"),
        ({**job(suspend=True), **STARTED}, job(template(nodeSelector={"zone": "a"})), "spec.template"),
        (job(completions=1), job(completions=2), "spec.completions"),
        (job(**INDEXED), job(**{**INDEXED, "completions": 3}), "spec.completions"),
        (job(), job(managedBy="a.b/c"), "spec.managedBy"),
        (claim(), claim(accessModes=["ReadWriteMany"]), "spec"),
        (claim(), claim(**sized("3Gi")), "spec"),
        (claim(volumeName="a"), claim(volumeName="b"), "spec"),
        (claim(storageClassName="a"), claim(storageClassName="b"), "spec"),
        ({**claim(), **BOUND}, claim(**sized("1Gi")), "spec.resources.requests.storage"),
        (volume(), volume(hostPath={"path": "/b"}), "spec.persistentvolumesource"),
        (volume(), volume(volumeMode="Block"), "spec.volumeMode"),
        (node(providerID="a"), node(providerID="b"), "spec.providerID"),
        (node(podCIDR="10.0.0.0/24"), node(), "spec.podCIDR"),
    ],
)
def test_immutable_fields_keep_their_first_value(before: Raw, after: Raw, field: str) -> None:
    store = Store()
    stored = store.create(before, now=0)

    error = refusal(store, lambda: store.update({**after, "metadata": stored.raw["metadata"]}))

    assert (error.code, error.details["causes"][0]["field"]) == (422, field)


def test_an_immutable_field_may_be_completed_with_its_defaults() -> None:
    store = Store()
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    metadata = {"name": "c", "namespace": "default"}
    request = {"deviceClassName": "gpu"}

    def claim(**fields: Any) -> Raw:
        return {**head, "metadata": metadata, "spec": {"devices": {"requests": [{"name": "a", "exactly": fields}]}}}

    store.create(claim(**request), now=0)
    store.update(claim(**request, allocationMode="ExactCount", count=1))

    error = refusal(store, lambda: store.update(claim(**request, allocationMode="ExactCount", count=2)))
    assert answer(error) == (422, "Invalid")


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [({"schedule": "bad"}, True), ({"timeZone": "Nowhere/X"}, True), ({"schedule": "0 * * * *"}, False)],
)
def test_a_cron_job_takes_only_schedules_that_can_be_read(change: Raw, *, is_refused: bool) -> None:
    store = Store()
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}}}
    spec = {"schedule": "* * * * *", "jobTemplate": template}
    raw = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    with pytest.raises(StoreError, match="must be nil or non-empty string"):
        store.create({**raw, "spec": {**spec, "timeZone": ""}}, now=0)
    store.create(raw, now=0)

    with pytest.raises(StoreError) if is_refused else nullcontext():
        store.update({**raw, "spec": {**spec, **change}})
