"""Events of controllers and kubelets about their actions and the progress of rollouts."""

from __future__ import annotations

import pytest

from podium.api.meta import Raw
from podium.controllers.actions import deletion_of
from podium.controllers.observations import ActionFinished, Problem
from podium.controlplane.action_events import ActionEvents
from podium.store.store import Store
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


TEMPLATE: Raw = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]},
}


def cron_job(policy: str, run: str = "1h") -> Raw:
    template = {**TEMPLATE, "metadata": {"annotations": {"podium.dev/duration": run}}}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": {"spec": {"template": template}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}


def test_a_cron_job_reports_its_jobs_and_those_that_ended() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(cron_job("Allow", run="5s"))
        cluster.advance("70s")

        [job] = [raw["metadata"]["name"] for raw in cluster.objects("Job")]
        assert reported(cluster, "CronJob") == [
            ("SuccessfulCreate", f"Created job {job}"),
            ("SawCompletedJob", f"Saw completed job: {job}, condition: Complete"),
        ]


def test_a_cron_job_reports_an_active_job_that_was_deleted_as_missing() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(cron_job("Forbid"))
        cluster.advance("1m")
        [job] = [raw["metadata"]["name"] for raw in cluster.objects("Job")]

        cluster.delete("Job", job)

        assert ("MissingJob", f"Active job went missing: {job}") in reported(cluster, "CronJob")


def test_a_cron_job_does_not_miss_the_job_that_it_replaces() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(cron_job("Replace"))
        cluster.advance("1m")
        [first] = [raw["metadata"]["name"] for raw in cluster.objects("Job")]
        cluster.advance("1m")
        [second] = [raw["metadata"]["name"] for raw in cluster.objects("Job")]

        assert reported(cluster, "CronJob") == [
            ("SuccessfulCreate", f"Created job {first}"),
            ("SuccessfulDelete", f"Deleted job {first}"),
            ("SuccessfulCreate", f"Created job {second}"),
        ]
        [tick] = cluster.objects("CronJob")
        assert [each["name"] for each in tick["status"]["active"]] == [second]


def test_a_job_reports_that_it_is_suspended_and_resumed() -> None:
    spec = {"template": TEMPLATE, "suspend": True}
    with Cluster(nodes=1) as cluster:
        cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
        cluster.patch("Job", "j", {"spec": {"suspend": False}})

        assert [one for one in reported(cluster, "Job") if "Created" not in one[1]] == [
            ("Suspended", "Job suspended"),
            ("Resumed", "Job resumed"),
        ]


def numbered(**spec: object) -> Raw:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    selector = {"matchLabels": {"app": "x"}}
    fields = {"serviceName": "x", "selector": selector, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": fields}


ENDS = [
    ("Failed", "Warning", "RecreatingFailedPod", "StatefulSet default/db is recreating failed Pod db-0"),
    ("Succeeded", "Normal", "RecreatingTerminatedPod", "StatefulSet default/db is recreating terminated Pod db-0"),
]


@pytest.mark.parametrize(("phase", "type_", "reason", "message"), ENDS)
def test_a_stateful_set_reports_claims_pods_and_their_replacement(
    phase: str, type_: str, reason: str, message: str
) -> None:
    resources = {"requests": {"storage": "1Gi"}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}
    with Cluster(nodes=1) as cluster:
        cluster.apply(numbered(replicas=1, volumeClaimTemplates=[claim]))
        cluster.patch("Pod", "db-0", {"status": {"phase": phase}}, subresource="status")

        assert reported(cluster, "StatefulSet") == [
            ("SuccessfulCreate", "create Claim data-db-0 Pod db-0 in StatefulSet db success"),
            ("SuccessfulCreate", "create Pod db-0 in StatefulSet db successful"),
            (reason, message),
            ("SuccessfulDelete", "delete Pod db-0 in StatefulSet db successful"),
        ]
        assert [event["type"] for event in cluster.events(reason)] == [type_]
        cluster.advance("10s")
        assert [event["count"] for event in cluster.events("SuccessfulCreate")] == [1, 2]


def test_a_failed_pod_beyond_the_replicas_of_its_stateful_set_is_not_recreated() -> None:
    store = Store()
    owner = store.create({**numbered(replicas=0), "metadata": {"name": "db", "namespace": "default"}}, now=0)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": owner.uid, "controller": True}
    for name in ("db-0", "db-1"):
        raw = pod(name, metadata={"ownerReferences": [reference]})
        store.create({**raw, "status": {"phase": "Failed"}}, now=0, was_there=True)
    events = ActionEvents(store)
    deleted = deletion_of(store.get("Pod", "default/db-0").object, "StatefulSet default/db")

    found = list(events.events_of(ActionFinished(deleted), events.before(deleted)))
    refused = list(events.events_of(ActionFinished(deleted, Problem(403, "Forbidden", "no")), events.before(deleted)))

    assert [record.reason for record in found] == ["SuccessfulDelete"]
    assert [(record.reason, record.message) for record in refused] == [
        ("FailedDelete", "delete Pod db-0 in StatefulSet db failed error: no")
    ]


def test_a_refused_pod_of_a_stateful_set_is_reported_in_its_words() -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}
    with Cluster(nodes=1) as cluster:
        cluster.apply(quota)
        cluster.apply(numbered(replicas=1))

        reason, message = reported(cluster, "StatefulSet")[0]

    assert reason == "FailedCreate"
    assert message.startswith("create Pod db-0 in StatefulSet db failed error: ")


def test_a_refused_replica_set_is_reported_by_its_deployment() -> None:
    hard = {"count/replicasets.apps": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    with Cluster(nodes=1) as cluster:
        cluster.apply(quota)
        cluster.apply(deployment())

        reason, message = reported(cluster, "Deployment")[0]

    assert reason == "ReplicaSetCreateError"
    assert message.startswith('Failed to create new replica set "web-')


@pytest.mark.parametrize(
    ("phase", "reason", "message"),
    [
        ("Failed", "FailedDaemonPod", "Found failed daemon pod {} on node node-1, will try to kill it"),
        ("Succeeded", "SucceededDaemonPod", "Found succeeded daemon pod {} on node node-1, will try to delete it"),
    ],
)
def test_an_ended_daemon_pod_is_reported_before_its_deletion(phase: str, reason: str, message: str) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "app"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    with Cluster(nodes=1) as cluster:
        cluster.apply({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec})
        [made] = cluster.pods()
        name = made["metadata"]["name"]

        cluster.patch("Pod", name, {"status": {"phase": phase}}, subresource="status")

        assert reported(cluster, "DaemonSet")[:3] == [
            ("SuccessfulCreate", f"Created pod: {name}"),
            (reason, message.format(f"default/{name}")),
            ("SuccessfulDelete", f"Deleted pod: {name}"),
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
