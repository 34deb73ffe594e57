"""The warnings about new pods: those without a node, victims, and how much was decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.api.versions.release import DEFAULT_RELEASE
from podium.app.admission.decision import MAX_WARNINGS, AdmissionFinding, decide
from podium.app.admission.webhook import WATCHES, reviewed
from podium.app.live.followed_cluster import FollowedCluster
from podium.controllers.observations import Changed
from podium.framework.settings.configuration import default_configuration
from tests.app.exporter.clusters import ZONE, Workload, cluster_of, node

NOW = 1_767_225_900 * 10**9


def followed(*workloads: Workload, nodes: list[Raw] | None = None) -> FollowedCluster:
    cluster = FollowedCluster(default_configuration(), DEFAULT_RELEASE, NOW, WATCHES)
    for raw in cluster_of(nodes or [node("n1"), node("n2")], *workloads)["items"]:
        object_ = decode(raw)
        assert object_ is not None
        cluster.handle(Changed(object_), NOW)
    return cluster


def template(name: str, cpu: str, **spec: Any) -> Raw:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}


def workload(name: str = "new", replicas: int = 1, cpu: str = "1", kind: str = "Deployment", **spec: Any) -> Raw:
    fields: Raw = {"selector": {"matchLabels": {"app": name}}, "template": template(name, cpu, **spec)}
    if kind != "DaemonSet":
        fields["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": fields}


def pod(cpu: str = "1", **spec: Any) -> Raw:
    made = template("new", cpu, **spec)
    return {"apiVersion": "v1", "kind": "Pod", **made, "metadata": {**made["metadata"], "generateName": "new-"}}


def job(parallelism: int, kind: str = "Job", **spec: Any) -> Raw:
    fields = {"parallelism": parallelism, "template": template("new", "1", restartPolicy="Never"), **spec}
    if kind == "CronJob":
        fields = {"schedule": "@daily", "jobTemplate": {"spec": fields}}
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": "new"}, "spec": fields}


def finding(
    cluster: FollowedCluster, raw: Raw, old: Raw | None = None, has_time: Callable[[], bool] = lambda: True
) -> AdmissionFinding:
    resource = {"group": raw["apiVersion"].rpartition("/")[0], "resource": f"{raw['kind'].lower()}s"}
    request: Raw = {"operation": "UPDATE" if old else "CREATE", "namespace": "shop", "resource": resource}
    request |= {"object": raw, "oldObject": old}
    given, before = (reviewed(request, name, {}) for name in ("object", "oldObject"))
    assert given is not None
    before_changes = cluster.cluster.nodes.requested.copy()
    found = decide(cluster.decisions(NOW), given, None if before is None else before.object, has_time)
    assert (cluster.cluster.nodes.requested == before_changes).all()
    return found


def warnings(*of: Any, **more: Any) -> tuple[str, ...]:
    found = finding(*of, **more).warnings()
    assert len(found) <= MAX_WARNINGS
    assert all(len(text) <= 120 and text.isprintable() for text in found)
    return found


BASIS = "decided for the cluster as it is now; no autoscaler, no quotas: see podium plan fit"


def test_pods_that_fit_need_no_warning() -> None:
    cluster = followed()
    for raw in (workload(replicas=8), pod(), job(8), job(8, "CronJob"), workload(kind="DaemonSet")):
        found = finding(cluster, raw)
        assert (found.number > 0, found.decided, found.warnings()) == (True, found.number, ())


def test_replicas_without_a_node_are_counted() -> None:
    assert warnings(followed(), workload(replicas=11)) == (
        "3 of 11 replicas find no node: 2 nodes: Insufficient cpu",
        BASIS,
    )
    assert warnings(followed(), job(9))[0] == "1 of 9 pods finds no node: 2 nodes: Insufficient cpu"
    assert warnings(followed(), job(20, completions=3)) == ()


def test_a_lack_of_room_now_and_nodes_that_can_never_run_the_pod_have_different_warnings() -> None:
    full = followed(Workload("web", ["n1"] * 4 + ["n2"] * 4))
    assert warnings(full, pod())[0] == "this pod finds no node now: 2 nodes: Insufficient cpu"
    text = "no node of this cluster can run this pod: 2 nodes: asks for more cpu than the node has"
    assert warnings(followed(), pod("5"))[0] == text
    selects = warnings(followed(), workload(nodeSelector={ZONE: "z"}))[0]
    assert selects.startswith("no node of this cluster can run a pod of this Deployment: 2 nodes: does not match")


def test_victims_are_named_by_workload() -> None:
    full = followed(Workload("web", ["n1"] * 4), Workload("batch", ["n2"] * 4))
    found = warnings(full, workload(replicas=6, priorityClassName="high"))
    assert sorted(found[:2]) == [
        "this Deployment would preempt 3 pods of ReplicaSet default/batch",
        "this Deployment would preempt 3 pods of ReplicaSet default/web",
    ]
    assert warnings(full, pod(priorityClassName="high"))[0].startswith("this pod would preempt 1 pod of ReplicaSet")


def test_victims_of_many_workloads_are_summed() -> None:
    full = followed(*(Workload(f"w{index}", ["n1"]) for index in range(4)), nodes=[node("n1")])
    found = warnings(full, workload(replicas=4, priorityClassName="high"))
    assert found[3] == "this Deployment would preempt 1 pod of 1 further workload"


def test_only_the_replicas_that_an_update_adds_are_new() -> None:
    cluster = followed(Workload("web", ["n1"] * 4))
    assert finding(cluster, workload(replicas=9), workload(replicas=4)).number == 5
    assert finding(cluster, workload(replicas=3), workload(replicas=4)).number == 0
    assert finding(cluster, job(3), job(3, suspend=True)).number == 3


def test_the_pods_of_a_changed_template_take_the_room_of_the_old_ones() -> None:
    old = Workload("web", ["n1"] * 4 + ["n2"] * 4, "StatefulSet")
    cluster = followed(old)
    raw = next(each for each in old.objects if each["kind"] == "StatefulSet")
    changed = {**raw, "spec": {**raw["spec"], "template": template("web", "1")}}
    found = finding(cluster, changed, raw)
    assert (found.number, found.waiting) == (8, 0)
    assert finding(cluster, workload("web", 8, kind="StatefulSet")).waiting == 8


def test_pods_below_a_partition_and_those_that_are_replaced_on_deletion_keep_their_template() -> None:
    old = Workload("web", ["n1"] * 3, "StatefulSet")
    cluster = followed(old, nodes=[node("n1")])
    raw = next(each for each in old.objects if each["kind"] == "StatefulSet")

    def updated(**spec: Any) -> AdmissionFinding:
        return finding(cluster, {**raw, "spec": {**raw["spec"], "template": template("web", "2"), **spec}}, raw)

    assert (updated().number, updated().waiting) == (3, 1)
    partition = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    found = updated(**partition)
    assert (found.number, found.waiting) == (1, 0)
    assert updated(updateStrategy={"type": "OnDelete"}).number == 0
    daemons = workload(kind="DaemonSet")
    daemons["spec"]["updateStrategy"] = {"type": "OnDelete"}
    changed = {**daemons, "spec": {**daemons["spec"], "template": template("new", "3")}}
    assert finding(cluster, changed, daemons).number == 0


def test_a_paused_deployment_gets_pods_of_a_new_template_when_it_is_resumed() -> None:
    def deployment(cpu: str = "9", replicas: int = 3, *, paused: bool) -> Raw:
        raw = workload(replicas=replicas, cpu=cpu)
        return {**raw, "spec": {**raw["spec"], "paused": paused}}

    cluster = followed()
    assert finding(cluster, deployment(paused=True)).number == 0
    assert finding(cluster, deployment("8", paused=True), deployment(paused=True)).number == 0
    assert finding(cluster, deployment(paused=False), deployment(paused=True)).waiting == 3


def test_pods_that_the_api_server_would_refuse_are_a_warning() -> None:
    assert warnings(followed(), workload(priorityClassName="none"))[0].startswith(
        "no pod of this Deployment would be created: no PriorityClass with name none was found"
    )
    assert warnings(followed(), job(1, "CronJob", template=template("new", "1", runtimeClassName="kata"))) == (
        'no pod of this CronJob would be created: pod rejected: RuntimeClass "kata" not found',
    )


def test_a_pod_that_waits_for_a_claim_finds_no_node() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "missing"}]
    for raw in (workload(replicas=2, resourceClaims=claims), pod(resourceClaims=claims)):
        assert 'no node: could not find ResourceClaim "shop/missing"' in warnings(followed(), raw)[0].replace(
            " now", ""
        )


def test_claims_that_are_made_for_a_created_pod_need_not_exist() -> None:
    claim = {"metadata": {}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disks"}}
    raw = pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}])
    raw["metadata"] |= {"name": "new-1", "uid": "as-the-api-server-gives-it"}
    cluster = followed()
    disks = {"provisioner": "disks", "volumeBindingMode": "WaitForFirstConsumer", "metadata": {"name": "disks"}}
    storage_class = decode({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **disks})
    assert storage_class is not None
    cluster.handle(Changed(storage_class), NOW)
    found = finding(cluster, raw)
    assert (found.decided, found.waiting) == (1, 0)


def test_a_pod_that_is_updated_is_none_of_the_pending_ones_before_it() -> None:
    waiting = Workload("web", [""], owner="", milli=9000)
    raw = waiting.objects[0]
    changed = {**raw, "spec": {**raw["spec"], "nodeSelector": {ZONE: "z"}}}
    assert finding(followed(waiting), changed, raw).pending == 0


def test_the_number_of_existing_replicas_costs_nothing() -> None:
    for kind in ("Deployment", "StatefulSet"):
        before, after = (workload(replicas=number, kind=kind) for number in (2**31 - 2, 2**31 - 1))
        assert (finding(followed(), after, before).number, finding(followed(), after, before).waiting) == (1, 0)


def test_each_pod_of_a_stateful_set_has_its_own_claim() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none"}}
    raw = workload(replicas=3, kind="StatefulSet")
    raw["spec"]["volumeClaimTemplates"] = [claim]
    found = finding(followed(), raw)
    assert (found.number, found.decided, found.waiting) == (3, 3, 3)


def test_a_daemon_set_is_decided_on_the_nodes_that_it_selects() -> None:
    nodes = [node("n1"), node("n2"), node("n3", taints=[{"key": "x", "effect": "NoSchedule"}])]
    cluster = followed(Workload("web", ["n1"] * 4), nodes=nodes)
    assert warnings(cluster, workload(kind="DaemonSet", priorityClassName="high"))[:2] == (
        "1 of 2 nodes lacks room for this DaemonSet: 1 node: Insufficient cpu",
        "this DaemonSet would preempt pods on 1 node",
    )


def test_pods_of_owners_and_deleted_objects_are_not_decided() -> None:
    owned = pod("9")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    assert warnings(followed(), owned) == ()
    deleted = pod("9")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert warnings(followed(), deleted) == ()


@pytest.mark.parametrize("spec", [{"schedulerName": "other"}, {"schedulingGates": [{"name": "wait"}]}])
def test_pods_that_wait_by_intention_and_those_of_other_schedulers_need_no_warning(spec: Raw) -> None:
    assert warnings(followed(), pod("9", **spec)) == ()
    assert warnings(followed(), workload(cpu="9", replicas=3, **spec)) == ()


def test_a_decision_that_ends_early_says_how_far_it_came() -> None:
    times = iter([True] * 3)
    raw = workload(replicas=12, priorityClassName="high")
    full = followed(Workload("web", ["n1"] * 4 + ["n2"] * 4))
    found = warnings(full, raw, has_time=lambda: next(times, False))
    assert found[1] == "only the first 3 of 12 pods were decided in the time allowed"
    assert warnings(full, raw, has_time=lambda: False) == ()


def test_a_warning_names_pending_pods_among_its_caveats() -> None:
    cluster = followed(Workload("web", ["n1"] * 4 + ["n2"] * 4 + [""]))
    assert warnings(cluster, pod())[-1] == (
        "decided for the cluster as it is now, and without 1 pending pod; no autoscaler, no quotas: see podium plan fit"
    )
