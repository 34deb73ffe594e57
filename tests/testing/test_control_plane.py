"""The control plane for users' tests: objects in any form, virtual time and clients."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from podium.api.errors import InputError, PodiumError
from podium.apirequests.request import Request
from podium.testing import ControlPlane, RefusedError
from podium.testing.plugin import podium_cluster, podium_clusters
from tests.store.objects import Raw, budget, node, pod, priority_class
from tests.waiting import GUARD_SECONDS

__all__ = ["podium_cluster", "podium_clusters"]


def fetch(url: str) -> Raw:
    with urllib.request.urlopen(url, timeout=GUARD_SECONDS) as answer:
        found: Raw = json.load(answer)
        return found


def test_objects_come_as_dictionaries_as_text_and_in_files(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(pod("c")))
    with ControlPlane(nodes=1) as cluster:
        cluster.apply(pod("a"))
        cluster.apply(yaml.safe_dump(pod("b")))
        cluster.apply(tmp_path / "c.yaml")
        cluster.apply(str(tmp_path / "c.yaml"))
        cluster.apply([pod("d")])

        assert [raw["metadata"]["name"] for raw in cluster.pods()] == ["a", "b", "c", "d"]


def test_existing_objects_are_updated() -> None:
    with ControlPlane() as cluster:
        cluster.apply(pod("a"))
        [changed] = cluster.apply(pod("a", labels={"app": "web"}))

        assert changed["metadata"]["labels"] == {"app": "web"}
        assert [raw["metadata"]["name"] for raw in cluster.pods(label_selector="app=web")] == ["a"]
        assert cluster.get("Pod", "b") is None


def definition(group: str) -> Raw:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_a_custom_resource_is_found_by_its_kind_once_its_definition_is_applied() -> None:
    widget: Raw = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    with ControlPlane() as plane:
        with pytest.raises(RefusedError, match="the kind Widget is not served"):
            plane.get("Widget", "a")
        plane.apply([definition("example.com"), widget])

        found = plane.get("Widget", "a")
        assert found is not None
        assert found["spec"] == {"size": 1}
        assert plane.get("Widget.example.com", "a") == found
        assert plane.objects("Widget") == [found]
        assert plane.patch("Widget", "a", {"spec": {"size": 2}})["spec"] == {"size": 2}

        plane.apply(definition("example.org"))
        with pytest.raises(RefusedError, match=r"Widget may be Widget\.example\.com or Widget\.example\.org"):
            plane.get("Widget", "a")
        plane.delete("Widget.example.com", "a")
        assert plane.get("Widget.example.com", "a") is None


def test_simulated_time_advances_only_on_request() -> None:
    with ControlPlane(nodes=1, start_delay="5s") as cluster:
        cluster.apply(pod("a"))
        assert cluster.pods()[0]["status"]["phase"] == "Pending"

        cluster.advance("4s")
        assert cluster.pods()[0]["status"]["phase"] == "Pending"
        assert cluster.run_until(lambda: cluster.pods()[0]["status"]["phase"] == "Running") == 1
        assert cluster.now_ns == 1_767_225_605 * 10**9


def test_a_condition_that_never_holds_is_reported() -> None:
    with ControlPlane() as cluster, pytest.raises(TimeoutError, match="within 1m30s"):
        cluster.run_until(lambda: False, within="90s")


def test_preemption_is_played_as_in_a_cluster() -> None:
    with ControlPlane(objects=[node("n1", cpu=2), priority_class("high", 1000)]) as cluster:
        cluster.apply(pod("low", cpu=2))
        cluster.apply(pod("urgent", cpu=2, spec={"priorityClassName": "high"}))
        cluster.advance("5s")

        assert cluster.node_of("urgent") == "n1"
        assert cluster.get("Pod", "low") is None
        assert cluster.events("Preempted")[0]["involvedObject"]["name"] == "low"


@pytest.mark.parametrize(("termination", "seconds"), [("1s", 1), ("45s", 30)])
def test_a_deleted_pod_takes_its_termination_time_up_to_the_grace_period(termination: str, seconds: int) -> None:
    with ControlPlane(nodes=1, termination=termination) as cluster:
        cluster.apply(pod("a"))
        cluster.delete("Pod", "a")

        assert cluster.run_until(lambda: cluster.get("Pod", "a") is None) == seconds


def test_a_refusal_says_what_the_api_server_says() -> None:
    with ControlPlane() as cluster, pytest.raises(RefusedError) as refused:
        cluster.request(Request(verb="get", kind="Pod", key="default/a"))

    assert (refused.value.code, refused.value.reason) == (404, "NotFound")
    assert "not found" in str(refused.value)


def test_invalid_initial_state_is_reported() -> None:
    with pytest.raises(PodiumError, match="there is no component schedular"):
        ControlPlane(without=["schedular"])
    with pytest.raises(InputError, match="cpus"):
        ControlPlane(objects={**pod("a"), "spec": {"containers": [{"name": "a", "image": "a", "cpus": 1}]}})
    with pytest.raises(InputError, match="is not Node"):
        ControlPlane(nodes=1, node_template=pod("a"))


def test_the_same_calls_give_the_same_result() -> None:
    def played() -> list[Raw]:
        with ControlPlane(nodes=3) as cluster:
            cluster.apply([pod(f"a{number}") for number in range(9)])
            cluster.advance("1m")
            return [*cluster.pods(), *cluster.events()]

    assert played() == played()


def test_fixtures_give_a_fresh_cluster_and_as_many_as_are_wanted(
    podium_cluster: ControlPlane,
    podium_clusters: Callable[..., ControlPlane],
) -> None:
    other = podium_clusters(nodes=1)
    podium_cluster.apply(pod("a"))

    assert len(podium_cluster.objects("Node")) == 3
    assert podium_cluster.node_of("a")
    assert other.pods() == []


def test_clients_reach_it_over_http_while_it_is_served() -> None:
    with ControlPlane(nodes=1) as cluster:
        with cluster.serve() as served:
            cluster.apply(pod("a"))
            found = fetch(f"{served.url}/api/v1/pods")
            assert [raw["spec"]["nodeName"] for raw in found["items"]] == ["node-1"]
            assert yaml.safe_load(served.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == served.url

            body = json.dumps(pod("b")).encode()
            headers = {"Content-Type": "application/json"}
            asked = urllib.request.Request(f"{served.url}/api/v1/namespaces/default/pods", body, headers)
            with urllib.request.urlopen(asked, timeout=GUARD_SECONDS) as answer:
                assert answer.status == 201
            cluster.run_until(lambda: cluster.node_of("b"))
            assert cluster.now_ns == 1_767_225_600 * 10**9
            path = served.kubeconfig
        assert not path.exists()
        cluster.advance("1m")
        assert len(cluster.pods()) == 2


def test_in_real_time_it_is_served_and_time_passes_by_itself() -> None:
    with ControlPlane(nodes=1, real_time=True, speed=1000) as cluster, cluster.serve() as served:
        cluster.apply(pod("a", annotations={"podium.dev/duration": "10s"}, spec={"restartPolicy": "Never"}))

        took = cluster.run_until(lambda: cluster.pods()[0]["status"]["phase"] == "Succeeded", within="100h")
        assert took > 0
        assert fetch(f"{served.url}/version")["major"] == "1"
        before = cluster.now_ns
        cluster.advance("10s")
        assert cluster.now_ns >= before + 10 * 10**9


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_kubectl_finds_it_by_its_kubeconfig() -> None:
    with ControlPlane(nodes=2) as cluster, cluster.serve() as served:
        environment = {**os.environ, "KUBECONFIG": str(served.kubeconfig)}
        asked = ["kubectl", "get", "nodes", "-o", "name"]
        report = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)

        assert report.stdout == "node/node-1\nnode/node-2\n"


@pytest.mark.parametrize("evicts", [False, True])
def test_user_deletions_become_evictions_if_configured(evicts: bool) -> None:
    with ControlPlane(nodes=1, evict_on_delete=evicts) as cluster:
        cluster.apply([pod("a", labels={"app": "web"}), {**budget(), "spec": {**budget()["spec"], "minAvailable": 1}}])
        cluster.advance("1s")
        if evicts:
            with pytest.raises(RefusedError) as refused:
                cluster.delete("Pod", "a")
            assert refused.value.code == 429
            cluster.delete("Pod", "a", grace_seconds=0)
        else:
            cluster.delete("Pod", "a")
        cluster.advance("1m")

        assert cluster.pods() == []
