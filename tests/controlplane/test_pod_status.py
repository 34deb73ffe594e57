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


def ready(cluster: Cluster, name: str) -> tuple[str, str]:
    """Return the status and the message of a pod's condition Ready."""
    conditions = {
        condition["type"]: condition for condition in (cluster.get("Pod", name) or {})["status"]["conditions"]
    }
    assert conditions["ContainersReady"]["status"] == "True"
    return conditions["Ready"]["status"], conditions["Ready"].get("message", "")


def test_a_pod_is_ready_when_the_conditions_of_all_its_gates_are_true() -> None:
    raw = pod("a")
    raw["spec"]["readinessGates"] = [{"conditionType": "example.com/first"}, {"conditionType": "example.com/second"}]

    def report(type_: str, status: str) -> None:
        known = (cluster.get("Pod", "a") or {})["status"]["conditions"]
        conditions = [condition for condition in known if condition["type"] != type_]
        changed = {"status": {"conditions": [*conditions, {"type": type_, "status": status}]}}
        cluster.patch("Pod", "a", changed, subresource="status")

    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)
        missing = 'corresponding condition of pod readiness gate "example.com/{}" does not exist.'
        assert ready(cluster, "a") == ("False", f"{missing.format('first')}, {missing.format('second')}")

        report("example.com/first", "True")
        assert ready(cluster, "a") == ("False", missing.format("second"))

        report("example.com/second", "True")
        assert ready(cluster, "a") == ("True", "")

        report("example.com/first", "False")
        false = 'the status of pod readiness gate "example.com/first" is not "True", but False'
        assert ready(cluster, "a") == ("False", false)


def test_an_ephemeral_container_runs_once_it_is_added() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(pod("a"))
        for names in (("first",), ("first", "second")):
            cluster.advance("1m")
            added = {"spec": {"ephemeralContainers": [{"name": name, "image": "debug:1"} for name in names]}}
            cluster.patch("Pod", "a", added, subresource="ephemeralcontainers")

        first, second = (cluster.get("Pod", "a") or {})["status"]["ephemeralContainerStatuses"]
        assert (first["name"], second["name"], second["ready"], second["restartCount"]) == ("first", "second", False, 0)
        assert first["state"]["running"]["startedAt"] < second["state"]["running"]["startedAt"]


def test_extended_resources_that_a_client_adds_to_the_capacity_can_be_allocated() -> None:
    resource = "example.com/license"

    def amounts() -> list[str | None]:
        status = (cluster.get("Node", "node-1") or {})["status"]
        return [status[field].get(resource) for field in ("capacity", "allocatable")]

    with Cluster(nodes=1) as cluster:
        cluster.patch("Node", "node-1", {"status": {"capacity": {resource: "3"}}}, subresource="status")
        assert amounts() == ["3", "3"]

        cluster.patch("Node", "node-1", {"status": {"capacity": {resource: None}}}, subresource="status")
        assert amounts() == [None, None]
