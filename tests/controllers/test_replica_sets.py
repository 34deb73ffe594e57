"""ReplicaSets and ReplicationControllers keep their number of pods."""

import re
from typing import Any

import pytest

from podium.controllers.actions import CreateObject, DeleteObject, ReplaceStatus
from podium.controllers.observations import Problem
from podium.controllers.workloads.replica_sets import ReplicaSets
from tests.controllers.workload_rig import LOST, UNSENT, Rig, failing, owned_by, template, workload
from tests.store.objects import Raw, quota

DOWN = Problem(503, "ServiceUnavailable", "the server is down")
SET = workload("ReplicaSet", "web", {"replicas": 2})


def rig_of(*objects: Raw, **settings: Any) -> Rig:
    rig = Rig(ReplicaSets, **settings)
    rig.apply(*objects)
    rig.log.clear()
    rig.actions.clear()
    return rig


def web(replicas: int = 2, **spec: Any) -> Raw:
    return workload("ReplicaSet", "web", {"replicas": replicas, **spec})


def statuses(rig: Rig) -> list[Raw]:
    return [one.raw["status"] for one in rig.actions if isinstance(one, ReplaceStatus)]


# How many pods


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_a_replica_set_creates_owned_pods_from_its_template(kind: str) -> None:
    look: Raw = {"metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}}, "spec": template()["spec"]}
    rig = Rig(ReplicaSets)

    rig.apply(workload(kind, "web", {"replicas": 2, "template": look}))

    assert len(rig.active()) == 2
    for name, pod in rig.pods().items():
        assert re.fullmatch("web-[a-z0-9]{5}", name)
        assert pod.metadata.labels == {"app": "web"}
        assert pod.metadata.annotations == {"note": "x"}
        (reference,) = rig.get("Pod", name)["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["name"], reference["uid"]) == (kind, "web", "web")
        assert reference["controller"] is reference["blockOwnerDeletion"] is True


def test_pods_that_it_has_already_are_counted() -> None:
    rig = rig_of(owned_by(SET, "web-1", nodeName="n1"), owned_by(SET, "web-2"), web())

    assert sorted(rig.pods()) == ["web-1", "web-2"]


@pytest.mark.parametrize(("owner", "first"), [("", "a"), ("Deployment", "b")])
def test_pods_beside_others_of_the_same_deployment_go_first(owner: str, first: str) -> None:
    """A ReplicaSet of its own has no related pods, so that the uid decides (getReplicaSetsWithSameController)."""
    references = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "d", "controller": True}]
    own = workload("ReplicaSet", "web", {"replicas": 3}, **({"ownerReferences": references} if owner else {}))
    nodes = {"a": "n1", "b": "n2", "c": "n2"}
    rig = rig_of(*(owned_by(own, name, nodeName=node) for name, node in nodes.items()), own)

    rig.scale("ReplicaSet", "web", 2)

    assert [one for one in nodes if one not in rig.active()] == [first]


def test_a_pod_without_controller_is_not_adopted_even_if_selected() -> None:
    stray = owned_by(SET, "stray")
    del stray["metadata"]["ownerReferences"]

    assert len(rig_of(stray, web()).active()) == 3


def test_a_deleted_pod_is_replaced_while_it_is_still_terminating() -> None:
    rig = rig_of(web(), runs=False)
    first, second = rig.active()
    rig.run(first, second)
    rig.pass_to(5)

    rig.delete("Pod", first)

    assert rig.log == ["5 create web-"]
    assert first in rig.pods()


def test_a_pod_that_has_ended_is_replaced_and_stays() -> None:
    rig = rig_of(web())
    rig.pass_to(5)
    first, second = rig.active()

    rig.end(first)
    rig.end(second, phase="Succeeded")

    assert rig.log == ["5 create web-", "5 create web-"]
    assert {first, second} <= set(rig.pods())


def test_a_smaller_scale_gives_up_pending_pods_first() -> None:
    rig = rig_of(owned_by(SET, "web-1", nodeName="n1"), owned_by(SET, "web-2"), web(), runs=False)

    rig.scale("ReplicaSet", "web", 1)

    assert rig.log == ["0 delete web-2"]


def test_a_smaller_scale_gives_up_pods_that_crowd_a_node_with_those_of_the_same_deployment() -> None:
    rig = Rig(ReplicaSets)
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}]
    new = workload("ReplicaSet", "new", {"replicas": 2}, ownerReferences=owner)
    old = workload("ReplicaSet", "old", {"replicas": 1}, ownerReferences=owner)
    pods = [owned_by(new, "new-1", nodeName="n1"), owned_by(new, "new-2", nodeName="n2")]
    rig.apply(*pods, owned_by(old, "old-1", nodeName="n2"), new, old)

    rig.scale("ReplicaSet", "new", 1)

    assert rig.log == ["0 delete new-2"]


def test_a_deleted_daemon_set_creates_no_pods() -> None:
    rig = rig_of(web())
    rig.delete("ReplicaSet", "web", propagation="Foreground")

    assert rig.log == []
    assert rig.names("Pod") == rig.names("ReplicaSet") == []


def test_a_namesake_makes_its_own_pods() -> None:
    rig = rig_of(web())
    before = rig.active()
    rig.lags = True
    rig.delete("ReplicaSet", "web", propagation="Orphan")
    rig.store.create({**web(), "metadata": {**SET["metadata"], "uid": "second"}}, now=rig.now)

    rig.lags, rig.merges = False, True
    rig.settle()

    owners = {pod.metadata.controller.uid for pod in rig.pods().values() if pod.metadata.controller}
    assert owners == {"second"}
    assert len(rig.active()) == len(before) + 2


# What it has not seen yet


def test_a_lagging_watch_makes_no_surplus_pods() -> None:
    rig = rig_of()
    rig.store.create(web(3), now=rig.now)
    rig.lags = True
    rig.show("ReplicaSet")
    rig.settle()
    made = rig.active()

    for _ in range(3):
        rig.show("ReplicaSet", 1)
        rig.show("Pod", 1)
        rig.settle()
    rig.lags = False
    rig.settle()

    assert rig.active() == made
    assert rig.log == ["0 create web-"] * 3


def test_a_lagging_watch_makes_it_give_up_no_more_pods_than_are_too_many() -> None:
    rig = rig_of(web(4))
    rig.lags = True
    rig.scale("ReplicaSet", "web", 2)
    rig.show("ReplicaSet")
    rig.settle()

    for _ in range(2):
        rig.show("Pod", 1)
        rig.settle()

    assert len(rig.log) == 2


def test_a_pod_that_was_never_seen_is_missed_after_five_minutes() -> None:
    rig = rig_of()
    rig.lags = rig.merges = True
    rig.store.create(web(1), now=rig.now)
    rig.show("ReplicaSet")
    rig.settle()
    (name,) = rig.active()
    rig.delete("Pod", name)
    rig.show()
    rig.lags = False

    rig.pass_to(299)
    assert rig.active() == []

    rig.rest()
    assert rig.log == ["0 create web-", "300 create web-"]


def test_a_replica_set_controller_restarts_at_any_time_without_surplus_pods() -> None:
    rig = rig_of(web(3))
    rig.end(rig.active()[0])
    before = rig.active()

    rig.restart()

    assert rig.active() == [*before, *rig.active()[2:]]
    assert len(rig.active()) == 3
    actions = len(rig.actions)
    rig.restart()
    assert len(rig.actions) == actions


# What goes wrong


def test_a_creation_whose_answer_is_lost_counts_as_not_made_and_the_surplus_goes() -> None:
    rig = rig_of()
    rig.lags = True
    rig.store.create(web(1), now=rig.now)
    rig.show("ReplicaSet")
    rig.fault = failing(CreateObject, LOST)
    rig.settle()
    rig.show("ReplicaSet")
    rig.now += 10**9
    rig.settle()
    assert rig.log == ["0 create web- (Timeout)", "1 create web-"]

    rig.lags = False
    rig.settle()

    assert len(rig.active()) == 1
    assert len(rig.log) == 3


def test_a_creation_that_was_not_carried_out_is_tried_again() -> None:
    rig = rig_of()
    rig.fault = failing(CreateObject, UNSENT, times=2)

    rig.apply(web(1))
    assert rig.machines[0].deadline().keeps_alive
    rig.rest()

    assert rig.log == ["0 create web- (Timeout)", "1 create web- (Timeout)", "3 create web-"]


def test_a_refused_creation_is_tried_again_with_one_pod_after_a_growing_wait() -> None:
    rig = rig_of(quota("few", {"pods": "1"}), web(3))

    rig.pass_to(12)

    assert len(rig.active()) == 1
    assert rig.log == [f"{seconds} create web- (Forbidden)" for seconds in (1, 3, 7)]
    assert not rig.machines[0].deadline().keeps_alive
    assert rig.machines[0].deadline().time_ns is not None


def test_a_rejection_stays_in_the_status_until_the_pods_exist() -> None:
    rig = rig_of(quota("few", {"pods": "1"}), web(2))
    (condition,) = rig.get("ReplicaSet", "web")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
    assert (condition["reason"], "exceeded quota: few" in condition["message"]) == ("FailedCreate", True)

    rig.patch("ResourceQuota", "few", {"spec": {"hard": {"pods": "5"}}})

    assert len(rig.active()) == 2
    assert "conditions" not in rig.get("ReplicaSet", "web")["status"]


def test_a_raised_quota_is_retried_at_once() -> None:
    other = workload("ReplicaSet", "db", {"replicas": 2})
    rig = rig_of(quota("few", {"pods": "2"}), other, web(1))
    rig.pass_to(100)
    rig.log.clear()

    rig.scale("ReplicaSet", "db", 1)

    assert [line for line in rig.log if "web" in line] == ["100 create web-"]


def test_a_scale_that_fits_ends_the_failure() -> None:
    rig = rig_of(quota("few", {"pods": "1"}), web(2))

    rig.scale("ReplicaSet", "web", 1)

    assert "conditions" not in rig.get("ReplicaSet", "web")["status"]


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    rig = rig_of()
    rig.fault = failing(CreateObject, Problem(429, "TooManyRequests", "slow down", retry_after_ns=20 * 10**9))

    rig.apply(web(1))
    rig.rest()

    assert rig.log == ["0 create web- (TooManyRequests)", "20 create web-"]


def test_a_deletion_that_fails_is_tried_again() -> None:
    rig = rig_of(web(2))
    rig.fault = failing(DeleteObject, DOWN, times=2)

    rig.scale("ReplicaSet", "web", 1)
    assert len(rig.active()) == 2
    rig.rest()

    assert len(rig.log) == 3
    assert len(rig.active()) == 1


def test_a_pod_that_is_gone_already_is_waited_for_and_no_other_goes_in_its_place() -> None:
    rig = rig_of(web(3))
    rig.pass_to(5)
    rig.lags = True
    chosen = rig.active()[0]
    rig.patch("Pod", chosen, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}})
    rig.show("Pod")
    rig.delete("Pod", chosen)
    rig.scale("ReplicaSet", "web", 2)
    rig.show("ReplicaSet")
    rig.settle()
    assert rig.log == [f"5 delete {chosen} (NotFound)"]

    rig.lags = False
    rig.rest()

    assert len(rig.active()) == 2
    assert len(rig.log) == 1


@pytest.mark.failure(62)
def test_pods_that_end_as_soon_as_they_are_made_are_replaced_later_and_later() -> None:
    rig = rig_of(web(2), runs=False)

    for _ in range(4):
        rig.end(*rig.active())
        rig.pass_to(rig.seconds + 1 if rig.seconds == 0 else 2 * rig.seconds + 1)

    assert [line.split()[0] for line in rig.log] == ["1", "1", "3", "3", "7", "7", "15", "15"]


def test_a_pod_that_was_there_when_it_began_is_replaced_at_once_however_new_it_is() -> None:
    rig = rig_of(owned_by(SET, "web-1", nodeName="n1"), owned_by(SET, "web-2"), web(), runs=False)

    rig.delete("Pod", "web-1")

    assert [line.split()[:2] for line in rig.log] == [["0", "create"]]


def test_pods_that_end_at_once_for_ever_do_not_keep_it_from_being_settled() -> None:
    rig = rig_of(web(1), runs=False)
    for _ in range(11):
        rig.end(*rig.active())
        if not rig.machines[0].deadline().keeps_alive:
            break
        rig.skip()

    assert not rig.machines[0].deadline().keeps_alive
    assert rig.log[-1] == "811 create web-"


def test_a_pod_that_lived_for_a_while_is_replaced_at_once() -> None:
    rig = rig_of(web(1))
    rig.pass_to(1)

    rig.end(*rig.active())

    assert rig.log == ["1 create web-"]


# Status


def test_the_status_counts_active_and_ready_pods() -> None:
    rig = Rig(ReplicaSets, runs=False)
    rig.apply(web(3))
    first, second, _ = rig.active()

    rig.run(first, second)
    rig.unready(second)

    expected = {"replicas": 3, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
    assert rig.get("ReplicaSet", "web")["status"] == expected
    rig.scale("ReplicaSet", "web", 0)
    assert rig.get("ReplicaSet", "web")["status"] == {"replicas": 0, "observedGeneration": 2}


def test_a_pod_is_available_when_it_has_been_ready_for_the_seconds_asked_for() -> None:
    rig = rig_of(web(1, minReadySeconds=10))
    assert "availableReplicas" not in rig.get("ReplicaSet", "web")["status"]

    rig.pass_to(9.5)
    assert "availableReplicas" not in rig.get("ReplicaSet", "web")["status"]

    rig.rest()
    assert rig.seconds == 10
    assert rig.get("ReplicaSet", "web")["status"]["availableReplicas"] == 1


def test_a_status_is_written_once_however_much_happens_before_it_is_seen() -> None:
    rig = rig_of(web(3), runs=False)
    rig.lags = True
    for name in rig.active():
        rig.run(name)
        rig.show("Pod")
        rig.settle()
    assert [one["readyReplicas"] for one in statuses(rig)] == [1]

    rig.lags = False
    rig.settle()

    assert [one["readyReplicas"] for one in statuses(rig)] == [1, 3]


def test_a_status_that_is_refused_is_written_again() -> None:
    rig = rig_of(web(1), runs=False)
    rig.fault = failing(ReplaceStatus, Problem(409, "Conflict", "it has changed"))

    rig.run(*rig.active())
    assert "readyReplicas" not in rig.get("ReplicaSet", "web")["status"]
    rig.rest()

    assert rig.get("ReplicaSet", "web")["status"]["readyReplicas"] == 1


def test_terminating_pods_of_replica_sets_are_counted_if_the_version_does_so() -> None:
    for kind, counts in (("ReplicaSet", [0, 1, 0]), ("ReplicationController", [None, None, None])):
        rig = Rig(lambda: ReplicaSets(counts_terminating=True), runs=False)
        rig.apply(workload(kind, "web", {"replicas": 1}))
        (name,) = rig.active()
        rig.run(name)
        found = [rig.get(kind, "web")["status"].get("terminatingReplicas")]

        rig.delete("Pod", name)
        found.append(rig.get(kind, "web")["status"].get("terminatingReplicas"))
        rig.finish(name)
        found.append(rig.get(kind, "web")["status"].get("terminatingReplicas"))

        assert found == counts


def test_status_fields_counted_by_others_are_removed() -> None:
    rig = Rig(ReplicaSets)

    rig.apply({**web(1), "status": {"replicas": 1, "fullyLabeledReplicas": 1, "terminatingReplicas": 4}})

    assert rig.get("ReplicaSet", "web")["status"].keys() == {
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    }


def test_nothing_is_written_when_nothing_has_changed() -> None:
    rig = rig_of(web(2))

    rig.restart()
    rig.rest()

    assert rig.actions == []
    assert not rig.machines[0].deadline().keeps_alive
    assert rig.machines[0].deadline().time_ns is None


def test_rejected_pods_are_reported_to_their_workload_once_at_a_time() -> None:
    rig = Rig(ReplicaSets)
    refused = Problem(403, "Forbidden", "Pod default/web-x is forbidden: exceeded quota: small")
    rig.fault = failing(CreateObject, refused, times=4)

    rig.apply(workload("ReplicaSet", "web", {"replicas": 3}))
    rig.pass_to(2)

    report = f"FailedCreate ReplicaSet default/web: Error creating: {refused.message}"
    assert rig.recorded == [f"0 {report}", f"1 {report}"]


@pytest.mark.parametrize("problem", [LOST, Problem(403, "Forbidden", "", None, "NamespaceTerminating")])
def test_a_workload_reports_no_failure_for_possibly_created_pods_or_ending_namespaces(problem: Problem) -> None:
    rig = Rig(ReplicaSets)
    rig.fault = failing(CreateObject, problem)

    rig.apply(workload("ReplicaSet", "web", {"replicas": 1}))

    assert rig.recorded == []
