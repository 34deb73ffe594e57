"""Resizes of pods in place, as the kubelets of a control plane carry them out."""

from __future__ import annotations

from podium.testing import ControlPlane as Cluster
from tests.store.objects import Raw, pod


def sized(name: str, cpu: str) -> Raw:
    raw = pod(name)
    [main] = raw["spec"]["containers"]
    main |= {"resources": {"requests": {"cpu": cpu}}}
    return raw


def bare() -> Raw:
    raw = sized("bare", "1")
    del raw["spec"]["containers"][0]["resources"]
    return raw


def resize(cluster: Cluster, name: str, cpu: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    cluster.patch("Pod", name, {"spec": {"containers": [container]}}, subresource="resize")


def status(cluster: Cluster, name: str) -> Raw:
    found = cluster.get("Pod", name)
    assert found is not None
    return dict(found["status"])


def given(cluster: Cluster, name: str) -> tuple[str, str]:
    """Return the CPU that a kubelet has allocated to a container, and the one that the container has."""
    [main] = status(cluster, name)["containerStatuses"]
    return main["allocatedResources"]["cpu"], main["resources"]["requests"]["cpu"]


def pending(cluster: Cluster, name: str) -> list[tuple[str, str, int]]:
    conditions = status(cluster, name)["conditions"]
    return [
        (one["reason"], one["message"], one["observedGeneration"])
        for one in conditions
        if one["type"] == "PodResizePending"
    ]


def test_kubelets_report_the_resources_of_fresh_pods() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply([sized("a", "1"), bare()])

        assert given(cluster, "a") == ("1", "1")
        [main] = status(cluster, "bare")["containerStatuses"]
        assert main["resources"] == {}
        assert "allocatedResources" not in main


def test_a_resize_that_fits_is_carried_out_in_place() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(sized("a", "1"))

        resize(cluster, "a", "2")

        assert given(cluster, "a") == ("2", "2")
        assert status(cluster, "a")["observedGeneration"] == 2
        assert status(cluster, "a")["containerStatuses"][0]["restartCount"] == 0
        assert not pending(cluster, "a")


def test_a_container_restarts_for_resources_whose_policy_says_so() -> None:
    raw = sized("a", "1")
    restarts = {"resourceName": "memory", "restartPolicy": "RestartContainer"}
    raw["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "NotRequired"}, restarts]
    raw["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)
        [container] = (cluster.get("Pod", "a") or {})["spec"]["containers"]

        def request(**amounts: str) -> None:
            wanted = {**container, "resources": {"requests": amounts}}
            cluster.patch("Pod", "a", {"spec": {"containers": [wanted]}}, subresource="resize")

        request(cpu="2", memory="1Gi")
        assert status(cluster, "a")["containerStatuses"][0]["restartCount"] == 0

        cluster.advance("1m")
        request(cpu="2", memory="2Gi")

        [main] = status(cluster, "a")["containerStatuses"]
        assert (main["restartCount"], main["ready"], main["resources"]["requests"]["memory"]) == (1, True, "2Gi")
        assert main["lastState"]["terminated"]["finishedAt"] == main["state"]["running"]["startedAt"]


def test_a_container_without_a_limit_restarts_for_that_of_its_pod() -> None:
    def limited(**amounts: str) -> Raw:
        return {"resources": {"requests": amounts, "limits": amounts}}

    restarts = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
    [main] = bare()["spec"]["containers"]
    own, of_pod = {**main, "name": "own", **limited(cpu="1")}, {**main, "name": "of-pod"}
    containers = [{**one, "resizePolicy": [restarts]} for one in (own, of_pod)]
    with Cluster(nodes=1) as cluster:
        cluster.apply(
            [
                pod("a", spec={"containers": containers, **limited(cpu="2", memory="1Gi")}),
                pod("b", spec={"containers": containers[:1], **limited(cpu="2", memory="1Gi")}),
            ]
        )

        def restarted(name: str, **amounts: str) -> int:
            cluster.patch("Pod", name, {"spec": limited(**amounts)}, subresource="resize")
            return int(status(cluster, name)["containerStatuses"][-1]["restartCount"])

        assert restarted("a", cpu="2", memory="2Gi") == 0
        assert restarted("a", cpu="1500m", memory="2Gi") == 1
        assert restarted("b", cpu="1500m", memory="2Gi") == 0


def test_a_resize_waits_for_room_and_says_so() -> None:
    """Smaller requests of others make the room."""
    with Cluster(nodes=1) as cluster:
        cluster.apply([sized("a", "1"), sized("b", "3")])

        resize(cluster, "a", "2")

        message = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
        assert pending(cluster, "a") == [("Deferred", message, 2)]
        assert given(cluster, "a") == ("1", "1")

        resize(cluster, "b", "1")

        assert not pending(cluster, "a")
        assert given(cluster, "a") == ("2", "2")


def test_a_resize_that_is_taken_back_is_not_pending_any_more() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply([sized("a", "1"), sized("b", "3")])
        resize(cluster, "a", "2")

        resize(cluster, "a", "1")

        assert not pending(cluster, "a")
        assert given(cluster, "a") == ("1", "1")
        assert status(cluster, "a")["observedGeneration"] == 3


def test_sidecars_and_whole_pods_report_their_resources_too() -> None:
    raw = sized("a", "1")
    side = {"name": "side", "image": "side:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    raw["spec"] |= {"initContainers": [side], "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}
    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)
        change = {"initContainers": [{"name": "side", "resources": {"requests": {"cpu": "2"}}}]}
        cluster.patch("Pod", "a", {"spec": change}, subresource="resize")

        found = status(cluster, "a")
        assert found["initContainerStatuses"][0]["allocatedResources"] == {"cpu": "2"}
        assert found["resources"] == raw["spec"]["resources"]
        assert found["allocatedResources"] == {"cpu": "3"}


def test_kubelets_before_1_33_report_no_resources() -> None:
    with Cluster(nodes=1, kubernetes_version="1.32") as cluster:
        cluster.apply(sized("a", "1"))

        assert "resources" not in status(cluster, "a")["containerStatuses"][0]
