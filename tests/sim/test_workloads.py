"""Deployments, ReplicaSets and Jobs: the number of their pods, and the fate of what they own."""

import re
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.sim.results.result import result_of
from podium.sim.simulation import Simulation
from tests.sim.objects import TEMPLATE, job, owned, scenario, template, workload
from tests.sim.played import played, pods, reported
from tests.store.objects import SECOND, Raw, node, pod

SET = workload("ReplicaSet", "web", 2, uid="rs")


def delete(at: str, kind: str, name: str) -> Raw:
    return {"at": at, "delete": {"kind": kind, "name": name}}


def alive(simulation: Simulation) -> list[str]:
    return [name for name, one in pods(simulation).items() if not one.is_terminating and not one.is_terminal]


def test_a_replica_set_makes_its_pods_with_names_and_owner() -> None:
    simulation = played(node("n1"), SET)

    assert len(alive(simulation)) == 2
    for name, made in pods(simulation).items():
        owner = made.metadata.controller
        assert re.fullmatch("web-[a-z0-9]{5}", name)
        assert owner is not None
        assert (owner.kind, owner.name, owner.uid) == ("ReplicaSet", "web", "rs")
        assert made.metadata.labels == {"app": "web"}


def test_pods_that_an_owner_has_already_are_counted() -> None:
    simulation = played(node("n1"), SET, owned(pod("web-1", node="n1"), SET), owned(pod("web-2"), SET))

    assert list(pods(simulation)) == ["web-1", "web-2"]


def test_a_pod_without_controller_is_not_counted_even_if_selected() -> None:
    simulation = played(node("n1"), SET, pod("web-1", labels={"app": "web"}))

    assert len(alive(simulation)) == 3


def test_a_deleted_pod_is_replaced_while_it_is_still_terminating() -> None:
    simulation = played(node("n1"), SET, owned(pod("web-1", node="n1"), SET), scenario(delete("5s", "Pod", "web-1")))

    assert reported(simulation, "Killing", "Terminated") == [
        "5 Killing default/web-1 on n1 by scenario",
        "35 Terminated default/web-1 on n1 by kubelet",
    ]
    created = [event for event in simulation.history.events if event.reason == "Created"]
    assert [(event.time, event.by) for event in created] == [
        (0, "ReplicaSet default/web"),
        (5, "ReplicaSet default/web"),
    ]


def test_a_pod_that_failed_is_replaced() -> None:
    late = {"at": "1s", "apply": [{**owned(pod("web-1", node="n1", cpu=99), SET)}]}

    simulation = played(node("n1", cpu=2), workload("ReplicaSet", "web", 3, uid="rs"), scenario(late))

    assert reported(simulation, "Failed") == ["1 Failed default/web-1 on n1 by kubelet"]
    assert len(alive(simulation)) == 3


def test_a_smaller_scale_gives_up_pending_pods_first() -> None:
    three = [owned(pod(name, **where), SET) for name, where in (("web-1", {"node": "n1"}), ("web-2", {"cpu": 99}))]
    smaller = {"at": "5s", "apply": [workload("ReplicaSet", "web", 1)]}

    simulation = played(node("n1"), SET, *three, scenario(smaller))

    assert alive(simulation) == ["web-1"]


def test_a_deployment_makes_a_replica_set_that_makes_pods() -> None:
    simulation = played(node("n1"), workload("Deployment", "web", 2))

    (stored,) = simulation.store.objects("ReplicaSet")
    owner = stored.object.metadata.controller
    assert owner is not None
    assert (owner.kind, owner.name) == ("Deployment", "web")
    names = list(pods(simulation))
    assert len(names) == 2
    assert all(name.startswith(stored.object.metadata.name + "-") for name in names)
    labels = {"app": "web", "pod-template-hash": stored.object.metadata.labels["pod-template-hash"]}
    assert all(one.metadata.labels == labels for one in pods(simulation).values())


def test_a_deployment_keeps_the_replica_set_that_has_its_template() -> None:
    deployment = workload("Deployment", "web", 1, uid="d")
    labelled = {**TEMPLATE, "metadata": {"labels": {"app": "web", "pod-template-hash": "old"}}}
    replica_set = owned(workload("ReplicaSet", "web-old", 1, template=labelled, uid="rs"), deployment)

    simulation = played(node("n1"), deployment, replica_set, owned(pod("web-old-1", node="n1"), replica_set))

    assert [one.object.metadata.name for one in simulation.store.objects("ReplicaSet")] == ["web-old"]
    assert list(pods(simulation)) == ["web-old-1"]


def test_a_new_template_moves_all_replicas_to_a_new_replica_set() -> None:
    changed = workload("Deployment", "web", 2, template=template(note="new"))

    simulation = played(node("n1"), workload("Deployment", "web", 2), scenario({"at": "5s", "apply": [changed]}))

    sets = {one.key: one.raw["spec"]["replicas"] for one in simulation.store.objects("ReplicaSet")}
    assert sorted(sets.values()) == [0, 2]
    (current,) = [key for key, replicas in sets.items() if replicas]
    assert len(alive(simulation)) == 2
    assert all(f"default/{name}".startswith(current) for name in alive(simulation))


def test_the_scale_of_a_deployment_reaches_its_pods() -> None:
    more = {"at": "5s", "apply": [workload("Deployment", "web", 5)]}

    assert len(alive(played(node("n1"), workload("Deployment", "web", 2), scenario(more)))) == 5


def test_dependents_are_deleted_with_their_owner() -> None:
    steps = scenario(delete("5s", "Deployment", "web"))

    simulation = played(node("n1"), workload("Deployment", "web", 2), steps)

    assert simulation.store.objects("ReplicaSet") == []
    assert pods(simulation) == {}
    assert [line for line in reported(simulation, "Killing") if not line.endswith("by garbage-collector")] == []


def lasting(seconds: int, **spec: Any) -> Raw:
    metadata = {"annotations": {"podium.dev/duration": f"{seconds}s"}}
    return job("sum", template={"metadata": metadata, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}, **spec)


def test_a_job_runs_as_many_pods_at_once_as_allowed_until_enough_have_succeeded() -> None:
    simulation = played(node("n1"), lasting(10, completions=5, parallelism=2))

    finished = [event.time for event in simulation.history.events if event.reason == "Finished"]
    assert finished == [10, 10, 20, 20, 30]
    assert alive(simulation) == []


def test_a_job_that_says_nothing_runs_one_pod_once() -> None:
    simulation = played(node("n1"), lasting(10))

    assert [re.sub("sum-[a-z0-9]{5}", "sum", line) for line in reported(simulation, "Finished", "Created")] == [
        "0 Created default/sum by Job default/sum",
        "10 Finished default/sum on n1 by kubelet",
    ]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_job_whose_containers_are_started_again_fails_when_they_were_so_often_enough(limit: int) -> None:
    metadata = {"annotations": {"podium.dev/crash-after": "5s"}}
    inner = {"metadata": metadata, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}

    simulation = played(node("n1"), job("sum", template=inner, backoffLimit=limit), until_ns=10**12)

    conditions = simulation.store.get("Job", "default/sum").raw["status"]["conditions"]
    failed = next(one for one in conditions if one["type"] == "Failed")
    assert failed["reason"] == "BackoffLimitExceeded"
    assert failed["message"] == "Job has reached the specified backoff limit"
    assert [event.reason for event in simulation.history.events].count("Restarted") == max(limit, 1)
    assert alive(simulation) == []


def test_a_job_without_completions_starts_nothing_after_the_first_success() -> None:
    step = {"at": "4s", "delete": {"kind": "Pod", "name": "early"}}
    work = {**lasting(10, parallelism=2), "metadata": {"name": "sum", "uid": "job"}}
    early = owned(pod("early", node="n1", annotations={"podium.dev/duration": "2s"}), work)

    simulation = played(node("n1"), work, early, scenario(step))

    assert len(simulation.store.objects("Pod")) == 1
    assert reported(simulation, "Finished")[0] == "2 Finished default/early on n1 by kubelet"


def test_a_deleted_pod_of_a_job_counts_as_failed_and_is_replaced_after_a_while() -> None:
    work = {**lasting(10), "metadata": {"name": "sum", "uid": "job"}}
    first = owned(pod("first", node="n1", annotations={"podium.dev/duration": "10s"}), work)

    simulation = played(node("n1"), work, first, scenario(delete("3s", "Pod", "first")))

    assert [line.split()[0] for line in reported(simulation, "Created", "Finished")] == ["10", "13", "23"]


def test_a_job_gives_up_after_more_failures_than_it_may_have() -> None:
    work = {**lasting(10, backoffLimit=1, completions=3, parallelism=1), "metadata": {"name": "sum", "uid": "job"}}
    failed = [owned(pod(name, node="n1", status={"phase": "Failed"}), work) for name in ("x", "y")]

    assert reported(played(node("n1"), work, failed[0]), "Finished") != []
    assert reported(played(node("n1"), work, *failed), "Finished") == []


@pytest.mark.parametrize(
    "status", [{"succeeded": 1}, {"conditions": [{"type": "Complete", "status": "True"}]}, {"failed": 7}]
)
def test_a_job_that_was_done_before_stays_done(status: Raw) -> None:
    assert played(node("n1"), job("sum", status=status)).store.objects("Pod") == []


def test_a_suspended_job_gives_up_its_pods() -> None:
    suspended = lasting(10, suspend=True)

    simulation = played(node("n1"), lasting(10), scenario({"at": "3s", "apply": [suspended]}))

    assert reported(simulation, "Finished") != []
    assert [line.split()[1] for line in reported(simulation, "Killing")] == ["Killing"]


def test_the_status_of_a_job_is_read_strictly() -> None:
    with pytest.raises(InputError, match=r"Job default/sum, \.status\.succeeded: \"many\" is not a whole number"):
        played(job("sum", status={"succeeded": "many"}))


def test_a_namespace_that_is_deleted_is_emptied_though_controllers_would_fill_it_again() -> None:
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    web = workload("Deployment", "web", 3)
    web["metadata"]["namespace"] = "shop"
    work = lasting(100, completions=2)
    work["metadata"]["namespace"] = "shop"

    simulation = played(node("n1"), shop, web, work, pod("other"), scenario(delete("5s", "Namespace", "shop")))

    assert [one.key for kind in simulation.store.resources.all() for one in simulation.store.objects(kind.name)] == [
        "n1",
        "default/other",
    ]
    assert simulation.elapsed_ns == 35 * 10**9


def test_workloads_whose_pods_are_refused_are_named_with_the_reason() -> None:
    inner = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "high"}}
    spec = {"hard": {"pods": "2"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": spec}
    high = workload("Deployment", "high", 3, template=inner)
    low = workload("ReplicaSet", "low", 3)

    result = result_of(played(node("n1"), quota, high, low, until_ns=10 * 10**9))

    short = result.summary["short"]
    assert [(one["wants"], one["has"]) for one in short] == [(3, 0), (3, 2)]
    assert short[0]["workload"].startswith("ReplicaSet default/high-")
    assert short[0]["reason"].startswith("no PriorityClass with name high was found")
    assert short[1]["workload"] == "ReplicaSet default/low"
    assert short[1]["reason"].startswith("exceeded quota: small")
    refused = (one for one in result.events if one.reason == "FailedCreate" and one.by == short[1]["workload"])
    assert [(one.time, one.last_time, one.count) for one in refused] == [(0, 0, 1), (1, 7, 3)]


def test_a_workload_that_has_got_its_pods_in_the_end_is_not_short() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
    inner = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "priorityClassName": "high"}}
    web = workload("ReplicaSet", "web", 1, template=inner)

    result = result_of(played(node("n1"), web, scenario({"at": "5s", "apply": [high]})))

    assert result.summary["short"] == []


def test_a_cron_job_runs_its_jobs_while_the_simulation_lasts() -> None:
    template = {"spec": lasting(30)["spec"]}
    metadata = {"name": "backup", "namespace": "default"}
    spec = {"schedule": "@hourly", "jobTemplate": template, "successfulJobsHistoryLimit": 1}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}

    simulation = played(node("n1"), cron, until_ns=3 * 3600 * SECOND)

    finished = [event.time for event in simulation.history.events if event.reason == "Finished"]
    assert finished == [3630, 7230]
    assert len(simulation.store.objects("Job")) == 2
    assert played(node("n1"), cron).elapsed_ns == 0


def test_jobs_on_schedule_that_follow_each_other_without_a_pause_keep_no_run_going() -> None:
    """From 5 minutes on, a pod of the CronJob runs at any time; the other Job's pod ends after 6 minutes."""
    spec = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": lasting(420)["spec"]}}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"}, "spec": spec}

    assert played(node("n1"), cron, lasting(360)).elapsed_ns == 360 * SECOND


def test_a_schedule_that_cannot_be_read_is_an_error_at_its_field() -> None:
    template = {"spec": lasting(30)["spec"]}
    spec = {"schedule": "0 25 * * *", "jobTemplate": template}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "backup"}, "spec": spec}

    with pytest.raises(InputError, match=r'\.spec\.schedule: "25" is not a valid hour; write 0 to 23'):
        played(node("n1"), cron)
