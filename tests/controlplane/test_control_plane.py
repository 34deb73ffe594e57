"""The components around a store act on clients' requests, and survive invalid ones."""

from typing import cast

import pytest

from podium.api.errors import PodiumError
from podium.api.meta import Raw
from podium.apirequests.request import Request
from podium.controllers.controller import Controller
from podium.controllers.deadlines import AT_ONCE, Deadline
from podium.controllers.disruption.avoid_lists import AvoidListController
from podium.controllers.kubelets.kubelet import Kubelet
from podium.controllers.kubelets.pod_run import TROUBLE
from podium.controllers.workloads.deployments import Deployments
from podium.controlplane import control_plane
from podium.controlplane.component_names import CONTROLLERS, KUBELET, ROOT_CA_PUBLISHER, SCHEDULER, SWITCHABLE
from podium.controlplane.control_plane import EmbeddedControlPlane
from podium.controlplane.node_simulation import POWER
from podium.runtime import clock as virtual_clock
from podium.runtime.runtime import Component
from podium.store.errors import StoreError
from podium.testing import ControlPlane as Cluster
from podium.testing import RefusedError
from tests.store.objects import Raw as AnyRaw
from tests.store.objects import budget, node, pod
from tests.store.test_definitions import definition, version, widget


def deployment(name: str = "web", replicas: int = 3, **spec: object) -> AnyRaw:
    containers = [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": 1}}}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def phases(cluster: Cluster) -> list[str]:
    return [raw["status"].get("phase", "") for raw in cluster.pods()]


def test_a_deployment_comes_to_run() -> None:
    with Cluster(nodes=2) as cluster:
        cluster.apply(deployment())

        assert phases(cluster) == ["Running"] * 3
        assert {raw["spec"]["nodeName"] for raw in cluster.pods()} == {"node-1", "node-2"}
        [web] = cluster.objects("Deployment")
        assert web["status"]["availableReplicas"] == 3


def test_dependents_are_deleted_with_their_owner_by_the_collector() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment())

        cluster.delete("Deployment", "web")
        cluster.advance("1m")

        assert cluster.pods() == []
        assert cluster.objects("ReplicaSet") == []


def ended(name: str, second: int, phase: str = "Succeeded") -> Raw:
    created = f"2026-01-01T00:00:{second:02}Z"
    return pod(name, metadata={"creationTimestamp": created, "uid": name}, status={"phase": phase})


@pytest.mark.parametrize(("without", "kept"), [((), ["c", "d"]), (("pod-garbage-collector",), ["a", "b", "c", "d"])])
def test_the_oldest_ended_pods_beyond_the_maximum_are_deleted(
    monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...], kept: list[str]
) -> None:
    monkeypatch.setattr(control_plane, "MOST_ENDED", 1)
    objects = [ended("c", 3), ended("a", 2, "Failed"), ended("b", 1), pod("d")]

    with Cluster(objects=objects, without=without) as cluster:
        cluster.advance("20s")
        cluster.apply(budget("any"))

        assert sorted(raw["metadata"]["name"] for raw in cluster.pods()) == kept


def test_custom_objects_go_100ms_after_their_definition_was_deleted() -> None:
    with Cluster() as cluster:
        cluster.plane.store.keeps_custom_objects = True
        cluster.apply(definition(version()))
        cluster.apply([widget("a"), widget("b")])

        cluster.delete("CustomResourceDefinition", "widgets.example.com")
        cluster.delete("Widget.example.com", "a")
        assert [raw["metadata"]["name"] for raw in cluster.objects("Widget.example.com")] == ["b"]
        cluster.advance("100ms")

        assert cluster.objects("CustomResourceDefinition") == []


def test_an_object_with_a_nonexistent_owner_is_collected() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "gone"}
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a", metadata={"ownerReferences": [owner]}))
        cluster.advance("1m")

        assert cluster.pods() == []


def test_a_cluster_that_is_known_in_part_keeps_what_names_owners_that_are_elsewhere() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "elsewhere"}
    with Cluster(objects=[node("n1"), pod("a", node="n1", metadata={"ownerReferences": [owner]})]) as cluster:
        cluster.advance("10m")

        [there] = cluster.pods()
        assert there["status"]["phase"] == "Running"


def test_a_namespace_goes_with_all_that_is_in_it() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cluster.apply(pod("a", namespace="team"))

        cluster.delete("Namespace", "team")
        cluster.advance("1m")

        assert cluster.get("Namespace", "team") is None
        assert cluster.pods("team") == []


def test_objects_are_not_created_in_a_missing_namespace() -> None:
    with Cluster() as cluster, pytest.raises(RefusedError) as refused:
        cluster.apply(pod("a", namespace="nowhere"))

    assert (refused.value.code, refused.value.reason) == (404, "NotFound")


def test_objects_of_the_start_bring_their_namespaces() -> None:
    with Cluster(objects=pod("a", namespace="team")) as cluster:
        assert cluster.get("Namespace", "team") is not None


def test_budgets_are_kept_by_their_controller_and_evictions_judged_by_it() -> None:
    with Cluster(nodes=2) as cluster:
        cluster.apply([deployment(replicas=2), {**budget(), "status": {}}])
        one, other = (raw["metadata"]["name"] for raw in cluster.pods())
        limit = cluster.objects("PodDisruptionBudget")[0]["status"]["disruptionsAllowed"]

        for name in (one, other)[:limit]:
            cluster.evict(name)
        with pytest.raises(RefusedError) as refused:
            cluster.evict(other)

    assert refused.value.code == 429


def test_a_node_that_falls_silent_loses_its_pods_which_run_elsewhere() -> None:
    with Cluster(nodes=2) as cluster:
        cluster.apply(deployment(replicas=1))
        [before] = cluster.pods()

        cluster.stop_node(before["spec"]["nodeName"])
        took = cluster.run_until(
            lambda: any(raw["spec"].get("nodeName") != before["spec"]["nodeName"] for raw in cluster.pods())
        )

        assert 300 <= took <= 400
        cluster.start_node(before["spec"]["nodeName"])
        cluster.advance("1m")
        [after] = cluster.pods()
        assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize("name", SWITCHABLE)
def test_each_component_can_be_left_out(name: str) -> None:
    with Cluster(nodes=1, without=[name]) as cluster:
        cluster.apply(deployment(replicas=1))
        cluster.advance("1m")

        assert name not in cluster.plane.checks()
        running = phases(cluster) == ["Running"]
        assert running is (
            name not in {SCHEDULER, "kubelet", "deployment-controller", "replicaset-controller", ROOT_CA_PUBLISHER}
        )


def test_every_machine_that_is_no_scheduler_is_a_component_of_its_own_name() -> None:
    with Cluster() as cluster:
        assert list(cluster.plane.checks()) == [KUBELET, *CONTROLLERS, SCHEDULER]


class Broken(Deployments):
    """Stumbles over deployments."""

    def handle(self, observation: object, now: int) -> list[object]:  # type: ignore[override]
        if getattr(getattr(observation, "object", None), "kind", "") == "Deployment":
            raise ValueError("a mistake")
        return list(super().handle(observation, now))  # type: ignore[arg-type]


def test_an_error_in_one_component_is_reported_and_leaves_the_others_running(caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(nodes=1) as cluster:
        broken = component(cluster.plane, "deployment-controller")
        sound, broken.make = broken.make, lambda: cast(Controller, Broken())
        cluster.plane._live.restart(broken)
        cluster.apply([deployment(), pod("a")])

        assert phases(cluster) == ["Running"]
        assert cluster.plane.checks()["deployment-controller"] == "ValueError: a mistake"
        assert "deployment-controller failed" in caplog.text

        broken.make = sound
        cluster.advance("10m")
        assert cluster.plane.checks()["deployment-controller"] == ""
        assert phases(cluster) == ["Running"] * 4


def test_a_restarted_component_learns_which_machines_are_down() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.stop_node("node-1")
        cluster.plane._live.restart(component(cluster.plane, "kubelet"))
        cluster.apply(pod("a"))

        assert phases(cluster) == ["Pending"]
        machine = component(cluster.plane, "kubelet").controller
        assert isinstance(machine, Kubelet)


def test_more_than_the_log_holds_is_seen_all_the_same() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment())
        store = cluster.plane.store
        store.log.compact(store.version)
        answer = cluster.plane.answer
        with store.transaction():
            cluster.plane._router.answer(Request(verb="create", kind="Pod", body=pod("late")), cluster.now_ns)
        store.log.compact(store.version)

        answer(Request(verb="create", kind="Pod", body=pod("later")))
        cluster.settle()

        assert sorted(phases(cluster)) == ["Pending"] + ["Running"] * 4


def test_an_internal_api_server_error_is_answered_to_the_component(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(nodes=1) as cluster:

        def stumble(request: Request, now: int) -> object:
            raise ZeroDivisionError

        answer = cluster.plane._router.answer
        cluster.request(Request(verb="create", kind="Pod", body=pod("a")))
        monkeypatch.setattr(cluster.plane._router, "answer", stumble)
        cluster.settle()
        monkeypatch.setattr(cluster.plane._router, "answer", answer)
        cluster.advance("10m")

        assert phases(cluster) == ["Running"]


def component(plane: EmbeddedControlPlane, name: str) -> Component:
    return plane._components[name]


def test_a_node_reports_readiness_addresses_version_and_amounts() -> None:
    with Cluster(nodes=2) as cluster:
        first, second = cluster.objects("Node")

    for raw in (first, second):
        status: Raw = raw["status"]
        assert {condition["type"]: condition["status"] for condition in status["conditions"]}["Ready"] == "True"
        assert {address["type"] for address in status["addresses"]} == {"InternalIP", "Hostname"}
        assert status["nodeInfo"]["kubeletVersion"] == "v1.36.2"
        assert status["allocatable"]["pods"] == status["capacity"]["pods"] == "110"
    assert first["status"]["addresses"] != second["status"]["addresses"]


def test_nodes_have_a_spec_and_without_taints_no_list_of_them() -> None:
    with Cluster(nodes=1) as cluster:
        [made] = cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "own"}})
        assert made["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]

        cluster.advance("1s")

        assert [one["spec"] for one in cluster.objects("Node")] == [{}, {}]


def test_partial_information_about_a_node_is_completed() -> None:
    given = {**node("n1"), "status": {**node("n1")["status"], "nodeInfo": {"kubeletVersion": "v1.35.1"}}}
    with Cluster(objects=given) as cluster:
        info = cluster.objects("Node")[0]["status"]["nodeInfo"]

    assert info["kubeletVersion"] == "v1.35.1"
    assert {"architecture", "bootID", "machineID", "osImage", "systemUUID", "kubeProxyVersion"} <= info.keys()


def test_a_status_reported_by_the_node_is_kept() -> None:
    given = {
        **node("n1"),
        "status": {**node("n1")["status"], "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]},
    }
    with Cluster(objects=given) as cluster:
        status = cluster.objects("Node")[0]["status"]

        assert status["addresses"] == [{"type": "InternalIP", "address": "1.2.3.4"}]
        # Amounts become text, as kube-apiserver returns them.
        amounts = {name: str(amount) for name, amount in given["status"]["allocatable"].items()}
        assert status["allocatable"] == status["capacity"] == amounts


def test_a_pod_reports_its_containers_conditions_and_addresses() -> None:
    init = [{"name": "init", "image": "init:1"}]
    with Cluster(nodes=1) as cluster:
        cluster.apply([pod("a", spec={"initContainers": init}), pod("b"), pod("host", spec={"hostNetwork": True})])
        a, b, host = (raw["status"] for raw in cluster.pods())

    [main] = a["containerStatuses"]
    assert (main["ready"], main["started"], main["restartCount"]) == (True, True, 0)
    assert main["containerID"].startswith("podium://")
    assert a["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert {condition["type"] for condition in a["conditions"]} == {
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    }
    assert a["podIP"] != b["podIP"]
    assert a["podIPs"] == [{"ip": a["podIP"]}]
    assert a["hostIP"] == b["hostIP"] == host["podIP"]


def test_a_pod_that_ends_says_how() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a", spec={"restartPolicy": "Never"}))
        cluster.advance("5s")
        cluster.finish_pod("a")
        status = cluster.pods()[0]["status"]

    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert (conditions["Ready"], conditions["ContainersReady"]) == ("False", "False")


def test_an_object_that_cannot_be_collected_is_retried_without_blocking_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply([deployment("web"), deployment("other")])
        store = cluster.plane.store
        delete, refused = store.delete, {"default/web"}

        def hold(kind: str, key: str, **options: object) -> object:
            if kind == "ReplicaSet" and key.rpartition("-")[0] in refused:
                raise StoreError(403, "Forbidden", "somebody holds on to it")
            return delete(kind, key, **options)  # type: ignore[arg-type]

        store.delete = hold  # type: ignore[assignment,method-assign]
        cluster.delete("Deployment", "web")
        cluster.delete("Deployment", "other")
        cluster.advance("50s")
        assert [raw["metadata"]["labels"]["app"] for raw in cluster.objects("ReplicaSet")] == ["web"]
        assert "somebody holds on to it" in caplog.text

        refused.clear()
        cluster.advance("1m")
        assert cluster.objects("ReplicaSet") == []


def test_a_namespace_with_an_undeletable_object_is_emptied_later() -> None:
    with Cluster() as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}})
        store = cluster.plane.store
        delete = store.delete

        def hold(kind: str, key: str, **options: object) -> object:
            if kind == "ConfigMap" and key.startswith("team/"):
                raise StoreError(403, "Forbidden", "somebody holds on to it")
            return delete(kind, key, **options)  # type: ignore[arg-type]

        store.delete = hold  # type: ignore[assignment,method-assign]
        cluster.delete("Namespace", "team")
        assert cluster.get("Namespace", "team") is not None
        store.delete = delete  # type: ignore[method-assign]
        cluster.advance("2m")

        assert cluster.get("Namespace", "team") is None


def test_an_annotation_switches_a_nodes_machine_off_and_on() -> None:
    def ready() -> str:
        conditions = cluster.objects("Node")[0]["status"]["conditions"]
        return next(str(condition["status"]) for condition in conditions if condition["type"] == "Ready")

    with Cluster(nodes=1) as cluster:
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {POWER: "off"}}})
        cluster.advance("1m")
        assert ready() == "Unknown"
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {POWER: None}}})
        cluster.advance("1m")
        assert ready() == "True"


def test_an_annotation_lets_containers_on_a_node_fail() -> None:
    def restarts() -> int:
        return int(cluster.pods()[0]["status"]["containerStatuses"][0]["restartCount"])

    with Cluster(objects=pod("a"), nodes=1) as cluster:
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {TROUBLE: "20s"}}})
        cluster.advance("55s")
        assert restarts() == 2
        cluster.patch("Node", "node-1", {"metadata": {"annotations": {TROUBLE: None}}})
        cluster.advance("10m")
        assert restarts() == 2


def test_a_node_may_be_switched_off_from_the_start_and_one_of_its_name_is_another() -> None:
    off = {**node("n1"), "metadata": {"name": "n1", "annotations": {POWER: "off"}}}
    with Cluster(objects=off) as cluster:
        cluster.apply(pod("a"))
        assert phases(cluster) == ["Pending"]

        cluster.delete("Node", "n1")
        cluster.apply([node("n1"), pod("b")])
        assert "Running" in phases(cluster)


def test_components_that_never_rest_at_one_instant_end_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    class Restless(AvoidListController):
        def deadline(self) -> Deadline:
            return AT_ONCE

    monkeypatch.setattr(virtual_clock, "MAX_READS", 1000)
    with Cluster() as cluster:
        restless = component(cluster.plane, "avoid-list-controller")
        restless.make = Restless
        cluster.plane._live.restart(restless)

        with pytest.raises(PodiumError, match="go on for ever"):
            cluster.settle()


HEARTBEAT = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")


def test_all_conditions_of_a_node_whose_kubelet_never_posted_become_unknown() -> None:
    dark = {**node("dark"), "metadata": {"name": "dark", "annotations": {POWER: "off"}}, "status": {}}
    with Cluster(nodes=1, objects=[dark]) as cluster:
        cluster.advance("2m")

        dark = cluster.get("Node", "dark") or {}
        found = {condition["type"]: condition for condition in dark["status"]["conditions"]}
        assert {(found[type_]["status"], found[type_]["reason"]) for type_ in HEARTBEAT} == {
            ("Unknown", "NodeStatusNeverUpdated")
        }
        assert found["Ready"]["message"] == "Kubelet never posted node status."
        assert found["Ready"]["lastHeartbeatTime"] == dark["metadata"]["creationTimestamp"]
        keys = [(taint["key"], taint["effect"]) for taint in dark["spec"]["taints"]]
        assert ("node.kubernetes.io/unreachable", "NoExecute") in keys


def test_all_conditions_of_a_node_whose_kubelet_fell_silent_become_unknown() -> None:
    with Cluster(nodes=2) as cluster:
        cluster.stop_node("node-1")
        cluster.advance("2m")

        conditions = (cluster.get("Node", "node-1") or {})["status"]["conditions"]
        found = {condition["type"]: (condition["status"], condition["reason"]) for condition in conditions}
        assert {found[type_] for type_ in HEARTBEAT} == {("Unknown", "NodeStatusUnknown")}


def test_without_kubelets_a_new_node_is_not_known_until_a_client_posts_its_state() -> None:
    def ready(cluster: Cluster) -> str:
        conditions = (cluster.get("Node", "new") or {}).get("status", {}).get("conditions", [])
        return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), "")

    with Cluster(nodes=1, without=[KUBELET]) as cluster:
        cluster.apply({**node("new"), "status": {}})
        assert ready(cluster) == ""
        cluster.advance("2m")
        assert ready(cluster) == "Unknown"
        posted = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        cluster.patch("Node", "new", posted, subresource="status")
        cluster.advance("2m")
        assert ready(cluster) == "True"
        assert not (cluster.get("Node", "node-1") or {}).get("spec", {}).get("taints")
