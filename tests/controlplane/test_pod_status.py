"""The status of pods under simulated kubelets: which spec it is about, and deadlines."""

from typing import Any

from podium.testing import ControlPlane as Cluster
from tests.store.objects import Raw, pod


def observed(cluster: Cluster, name: str) -> tuple[int, int, set[int]]:
    """Return a pod's generation, the one in its status, and those in its conditions."""
    found = cluster.get("Pod", name) or {}
    status = found["status"]
    in_conditions = {condition.get("observedGeneration", 0) for condition in status["conditions"]}
    return found["metadata"]["generation"], status.get("observedGeneration", 0), in_conditions


def limited(name: str, seconds: int, **fields: Any) -> Raw:
    """Return a pod with activeDeadlineSeconds and no grace period."""
    raw = pod(name, **fields)
    raw["spec"] |= {"activeDeadlineSeconds": seconds, "terminationGracePeriodSeconds": 1}
    return raw


def test_status_and_conditions_name_the_generation_that_the_kubelet_runs() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a"))
        # A binding is no change of the desired state.
        assert observed(cluster, "a") == (1, 1, {1})

        cluster.patch("Pod", "a", {"spec": {"activeDeadlineSeconds": 600}})

        assert observed(cluster, "a") == (2, 2, {2})


def test_the_observed_generation_changes_no_transition_time() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a"))
        before = [condition["lastTransitionTime"] for condition in cluster.pods()[0]["status"]["conditions"]]
        cluster.advance("1m")

        cluster.patch("Pod", "a", {"spec": {"activeDeadlineSeconds": 600}})

        after = [condition["lastTransitionTime"] for condition in cluster.pods()[0]["status"]["conditions"]]
        assert after == before


def test_an_unschedulable_pod_names_the_generation_that_the_scheduler_attempted() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a", cpu=100))

        [condition] = cluster.pods()[0]["status"]["conditions"]
        assert (condition["reason"], condition["observedGeneration"]) == ("Unschedulable", 1)


def test_a_rejected_pod_names_the_generation_that_was_rejected() -> None:
    raw = pod("a", cpu=100)
    raw["spec"]["nodeName"] = "node-1"
    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)

        assert cluster.pods()[0]["status"]["reason"] == "OutOfcpu"
        assert observed(cluster, "a") == (1, 1, {1})


def test_kubelets_before_1_34_report_no_generation() -> None:
    with Cluster(nodes=1, kubernetes_version="1.33") as cluster:
        cluster.apply(pod("a"))
        cluster.patch("Pod", "a", {"spec": {"activeDeadlineSeconds": 600}})

        assert observed(cluster, "a") == (2, 0, {0})


def test_a_deletion_is_a_change_of_the_desired_state() -> None:
    with Cluster(nodes=1, termination="20s") as cluster:
        cluster.apply(pod("a"))

        cluster.delete("Pod", "a")

        assert observed(cluster, "a")[:2] == (2, 2)


def test_a_pod_fails_at_its_deadline() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(limited("a", 60))

        cluster.advance("59s")
        assert cluster.pods()[0]["status"]["phase"] == "Running"
        cluster.advance("2s")

        status = cluster.pods()[0]["status"]
        assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
        assert status["message"] == "Pod was active on the node longer than the specified deadline"
        assert "DeadlineExceeded" in [event["reason"] for event in cluster.events()]


def test_a_deadline_counts_from_the_first_start_and_through_restarts() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(limited("a", 60, annotations={"podium.dev/crash-after": "25s"}))

        cluster.advance("65s")

        [failed] = cluster.pods()
        assert failed["status"]["reason"] == "DeadlineExceeded"


def test_a_deadline_that_is_set_while_the_pod_runs_counts_from_its_start() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(limited("a", 600))
        cluster.advance("50s")

        cluster.patch("Pod", "a", {"spec": {"activeDeadlineSeconds": 60}})
        cluster.advance("12s")

        assert cluster.pods()[0]["status"]["phase"] == "Failed"


def test_containers_that_exit_before_the_deadline_succeed() -> None:
    raw = limited("a", 60, annotations={"podium.dev/duration": "30s"})
    raw["spec"]["restartPolicy"] = "Never"
    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)
        cluster.advance("2m")

        assert cluster.pods()[0]["status"]["phase"] == "Succeeded"
