"""Events of controllers and kubelets about their actions and the progress of rollouts."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.testing import ControlPlane as Cluster
from tests.controlplane.test_control_plane import deployment
from tests.store.objects import pod


def reported(cluster: Cluster, kind: str) -> list[tuple[str, str]]:
    """Reason and message of each Event about objects of the kind, in their order."""
    return [
        (event["reason"], event["message"]) for event in cluster.events() if event["involvedObject"]["kind"] == kind
    ]


def progress_of(cluster: Cluster) -> Raw:
    [web] = cluster.objects("Deployment")
    conditions: dict[str, Raw] = {condition["type"]: condition for condition in web["status"]["conditions"]}
    return conditions["Progressing"]


def test_a_rollout_reports_each_step() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment(replicas=2))
        [first] = cluster.objects("ReplicaSet")
        name = first["metadata"]["name"]
        made = [raw["metadata"]["name"] for raw in cluster.pods()]

        cluster.patch("Deployment", "web", {"spec": {"replicas": 1}})

        assert reported(cluster, "Deployment") == [
            ("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to 2"),
            ("ScalingReplicaSet", f"Scaled down replica set {name} from 2 to 1"),
        ]
        created, deleted = reported(cluster, "ReplicaSet")[:2], reported(cluster, "ReplicaSet")[2:]
        assert sorted(created) == sorted(("SuccessfulCreate", f"Created pod: {pod}") for pod in made)
        assert [reason for reason, _ in deleted] == ["SuccessfulDelete"]


def test_a_pod_reports_events_of_its_containers() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("web"))

        assert reported(cluster, "Pod")[1:] == [
            ("Created", "Created container: main"),
            ("Started", "Started container main"),
        ]


def test_a_deleted_pod_reports_once_that_its_containers_stopped() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("web", spec={"containers": [{"name": name, "image": "i"} for name in ("main", "side")]}))
        cluster.delete("Pod", "web")

        told_at_the_end = reported(cluster, "Pod")[5:]

        assert told_at_the_end == [("Killing", "Stopping container main"), ("Killing", "Stopping container side")]


def test_a_pod_whose_containers_have_ended_stops_none() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("web", spec={"restartPolicy": "Never"}))
        cluster.finish_pod("web")
        cluster.delete("Pod", "web")

        assert "Killing" not in [reason for reason, _ in reported(cluster, "Pod")]


def test_a_job_reports_pod_creation_and_completion() -> None:
    template = {
        "metadata": {"labels": {"job": "j"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    with Cluster(nodes=1) as cluster:
        cluster.apply(job)
        [made] = cluster.pods()

        cluster.finish_pod(made["metadata"]["name"])

        assert reported(cluster, "Job") == [
            ("SuccessfulCreate", f"Created pod: {made['metadata']['name']}"),
            ("Completed", "Job completed"),
        ]


def test_a_complete_deployment_reports_its_condition() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment())
        [made] = cluster.objects("ReplicaSet")

        found = progress_of(cluster)
        assert (found["status"], found["reason"]) == ("True", "NewReplicaSetAvailable")
        assert found["message"] == f'ReplicaSet "{made["metadata"]["name"]}" has successfully progressed.'


def test_a_rollout_that_does_not_get_on_is_late_at_its_deadline_and_not_before() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment(replicas=9, progressDeadlineSeconds=60))
        assert (progress_of(cluster)["status"], progress_of(cluster)["reason"]) == ("True", "ReplicaSetUpdated")

        cluster.advance("59s")
        assert progress_of(cluster)["status"] == "True"
        cluster.advance("2s")

        assert (progress_of(cluster)["status"], progress_of(cluster)["reason"]) == (
            "False",
            "ProgressDeadlineExceeded",
        )
        cluster.patch("Deployment", "web", {"spec": {"replicas": 2}})
        assert progress_of(cluster)["reason"] == "NewReplicaSetAvailable"


def test_a_paused_deployment_reports_its_condition_until_it_resumes() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(deployment())

        cluster.patch("Deployment", "web", {"spec": {"paused": True}})
        assert (progress_of(cluster)["status"], progress_of(cluster)["reason"]) == ("Unknown", "DeploymentPaused")
        cluster.patch("Deployment", "web", {"spec": {"paused": False}})

        assert progress_of(cluster)["status"] == "True"


def test_an_unclaimed_volume_is_reported_as_available() -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    with Cluster() as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec})

        [volume] = cluster.objects("PersistentVolume")
        assert volume["status"]["phase"] == "Available"
