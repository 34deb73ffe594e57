"""kubectl with workloads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.server.kubectl.command import Kubectl
from tests.server.kubectl.objects import QUICK, deployment, pod_spec
from tests.store.objects import Raw

NeedsVersion = Callable[[int], None]


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """Provide a Deployment of two pods that run."""
    kubectl.apply(deployment())
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    return kubectl


def images(kubectl: Kubectl) -> set[str]:
    pods = kubectl.read("pods")["items"]
    return {one["spec"]["containers"][0]["image"] for one in pods if "deletionTimestamp" not in one["metadata"]}


def job(name: str, **annotations: str) -> Raw:
    template = {"metadata": {"annotations": {**QUICK, **annotations}}, "spec": pod_spec()}
    template["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def test_a_rollout_is_followed_to_its_end(web: Kubectl) -> None:
    assert "successfully rolled out" in web("rollout", "status", "deployment/web")
    assert [row[:4] for row in web.rows("get", "deployments")] == [["web", "2/2", "2", "2"]]


def test_scaling_changes_the_number_of_pods(web: Kubectl) -> None:
    assert web("scale", "deployment/web", "--replicas=3").strip() == "deployment.apps/web scaled"
    web("rollout", "status", "deployment/web", "--timeout=60s")
    assert len(web.rows("get", "pods")) == 3
    assert "Expected replicas to be 7" in web.fails("scale", "deployment/web", "--current-replicas=7", "--replicas=1")
    replicas = web("get", "--raw", f"/apis/apps/v1/namespaces/{web.namespace}/deployments/web/scale")
    assert '"replicas":3' in replicas.replace(" ", "")


def test_a_change_of_the_image_is_rolled_out_and_undone(web: Kubectl) -> None:
    web("set", "image", "deployment/web", "main=web:2")
    web("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(web) == {"web:2"}
    assert [row[0] for row in web.rows("rollout", "history", "deployment/web")] == ["REVISION", "1", "2"]
    assert "web:1" in web("rollout", "history", "deployment/web", "--revision=1")
    assert "rolled back" in web("rollout", "undo", "deployment/web")
    web("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(web) == {"web:1"}


def test_a_restart_replaces_the_pods(web: Kubectl) -> None:
    before = set(web("get", "pods", "-o", "name").split())
    web("rollout", "restart", "deployment/web")
    web("rollout", "status", "deployment/web", "--timeout=60s")
    for name in before:
        web.wait(name, "delete")
    assert len(web("get", "pods", "-o", "name").split()) == 2


def test_a_paused_rollout_waits(web: Kubectl) -> None:
    web("rollout", "pause", "deployment/web")
    web("set", "image", "deployment/web", "main=web:2")
    assert images(web) == {"web:1"}
    web("rollout", "resume", "deployment/web")
    web("rollout", "status", "deployment/web", "--timeout=60s")
    assert images(web) == {"web:2"}


def test_resources_and_environment_are_set(web: Kubectl) -> None:
    web("set", "resources", "deployment/web", "--requests=cpu=200m")
    web("set", "env", "deployment/web", "A=1")
    container = web.read("deployment", "web")["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["requests"]["cpu"] == "200m"
    assert container["env"] == [{"name": "A", "value": "1"}]


def test_a_service_and_an_autoscaler_are_made_for_a_workload(web: Kubectl) -> None:
    web("expose", "deployment", "web", "--port=80", "--target-port=8080")
    assert web.read("service", "web")["spec"]["selector"] == {"app": "web"}
    assert web.rows("get", "service", "web")[0][1] == "ClusterIP"
    web("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")
    assert web.rows("get", "hpa", "web")[0][1] == "Deployment/web"


def test_jobs_are_waited_for(kubectl: Kubectl) -> None:
    kubectl.apply(job("j", **{"podium.dev/duration": "1s"}))
    kubectl.wait("job/j", "condition=complete")
    row = kubectl.rows("get", "job", "j")[0]
    assert "1/1" in row
    assert kubectl("get", "pods", "--field-selector=status.phase=Succeeded", "-o", "name").startswith("pod/j-")
    assert "Completed" in kubectl("get", "pods")


def test_a_job_is_made_from_a_cron_job(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(21)
    kubectl("create", "cronjob", "c", "--image=web:1", "--schedule=@yearly")
    kubectl("create", "job", "now", "--from=cronjob/c")
    assert kubectl.read("job", "now")["metadata"]["ownerReferences"][0]["name"] == "c"


def test_stateful_and_daemon_sets_are_rolled_out(kubectl: Kubectl) -> None:
    for kind, more in (("StatefulSet", {"serviceName": "s", "replicas": 2}), ("DaemonSet", {})):
        raw = deployment("s")
        del raw["spec"]["replicas"]
        raw |= {"kind": kind, "spec": {**raw["spec"], **more}}
        kubectl.apply(raw)
        kubectl("rollout", "status", f"{kind.lower()}/s", "--timeout=60s")
        shown = kubectl("get", kind.lower(), "s")
        assert ("2/2" if kind == "StatefulSet" else "DESIRED") in shown
        kubectl("delete", kind.lower(), "s")


def test_waiting_for_an_impossible_condition_times_out(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    refused = kubectl.fails("wait", "configmap/c", "--for=condition=Ready", "--timeout=1s")
    assert "timed out" in refused
