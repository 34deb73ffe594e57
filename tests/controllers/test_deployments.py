"""A Deployment keeps ReplicaSets, and moves pods from one template to the next."""

from functools import partial
from typing import Any

import pytest

from podium.controllers.actions import CreateObject, PatchObject, ReplaceStatus
from podium.controllers.observations import Problem
from podium.controllers.workloads.deployments import HASH_LABEL, REVISION, Deployments
from podium.controllers.workloads.replica_sets import ReplicaSets
from tests.controllers.workload_rig import LOST, UNSENT, Rig, failing, owned_by, template, workload
from tests.store.objects import Raw, quota

CONFLICT = Problem(409, "Conflict", "it has changed")


def web(replicas: int = 4, note: str = "", **spec: Any) -> Raw:
    """Return a Deployment; ``note`` makes its template another."""
    look = template()
    if note:
        look["metadata"]["annotations"] = {"note": note}
    return workload("Deployment", "web", {"replicas": replicas, "template": look, **spec})


def rig_of(*objects: Raw, **settings: Any) -> Rig:
    rig = Rig(Deployments, ReplicaSets, **settings)
    rig.apply(*objects)
    rig.log.clear()
    return rig


def sizes(rig: Rig) -> list[int]:
    """Return the scales of the ReplicaSets, by their numbers."""
    sets = (rig.get("ReplicaSet", name) for name in rig.names("ReplicaSet"))
    numbered = sorted((int(one["metadata"]["annotations"][REVISION]), one["spec"]["replicas"]) for one in sets)
    return [replicas for _, replicas in numbered]


def notes(rig: Rig) -> list[str]:
    return [rig.pods()[name].metadata.annotations.get("note", "") for name in rig.active()]


def test_a_deployment_creates_a_replica_set_with_its_template_and_a_hash() -> None:
    rig = rig_of(web(2, minReadySeconds=0))

    (name,) = rig.names("ReplicaSet")
    made = rig.get("ReplicaSet", name)
    hash_ = made["metadata"]["labels"][HASH_LABEL]
    assert name == f"web-{hash_}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH_LABEL: hash_}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "web"
    assert len(rig.active()) == 2
    for pod in rig.pods().values():
        assert pod.metadata.labels == {"app": "web", HASH_LABEL: hash_}


def test_equal_templates_have_equal_hashes() -> None:
    first, second = (rig_of(web(1, note="x"), seed=seed) for seed in (1, 2))

    assert first.names("ReplicaSet") == second.names("ReplicaSet")
    assert first.names("ReplicaSet") != rig_of(web(1, note="y")).names("ReplicaSet")


def test_a_deployment_keeps_the_replica_set_with_its_template_under_any_name() -> None:
    deployment = web(1)
    look = {**template(), "metadata": {"labels": {"app": "web", HASH_LABEL: "old"}}}
    owner = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": True}]
    old = workload("ReplicaSet", "web-old", {"replicas": 1, "template": look}, ownerReferences=owner)

    rig = rig_of(owned_by(old, "web-old-1", nodeName="n1"), old, deployment)

    assert rig.names("ReplicaSet") == ["web-old"]
    assert rig.active() == ["web-old-1"]


def test_a_replica_set_without_controller_is_not_adopted() -> None:
    stray = workload("ReplicaSet", "stray", {"replicas": 1})

    assert len(rig_of(stray, web(1)).names("ReplicaSet")) == 2


def test_its_scale_reaches_its_pods() -> None:
    rig = rig_of(web(2))

    rig.scale("Deployment", "web", 5)
    assert len(rig.active()) == 5

    rig.scale("Deployment", "web", 0)
    assert rig.active() == []


def test_a_new_template_moves_all_pods_within_the_limits() -> None:
    rig = rig_of(web(4, note="old"), runs=False)
    rig.run(*rig.active())

    rig.apply(web(4, note="new"))

    assert sizes(rig) == [3, 2]
    for expected in ([1, 4], [0, 4]):
        rig.run(*(name for name in rig.active() if rig.pods()[name].status.phase == "Pending"))
        assert sizes(rig) == expected
    rig.run(*rig.active())
    assert notes(rig) == ["new"] * 4


def test_pods_that_never_get_ready_stop_a_rollout_and_going_back_ends_it() -> None:
    rig = rig_of(web(4, note="good"), runs=False)
    rig.run(*rig.active())
    rig.apply(web(4, note="bad"))
    assert sizes(rig) == [3, 2]

    rig.apply(web(4, note="good"))

    assert sorted(sizes(rig)) == [0, 4]
    assert notes(rig) == ["good"] * 4


def test_a_template_that_comes_back_gets_the_newest_number() -> None:
    rig = rig_of(web(note="a"))
    (first,) = rig.names("ReplicaSet")

    rig.apply(web(note="b"))
    rig.apply(web(note="a"))

    assert rig.get("ReplicaSet", first)["metadata"]["annotations"][REVISION] == "3"
    assert rig.get("Deployment", "web")["metadata"]["annotations"][REVISION] == "3"
    assert rig.get("ReplicaSet", first)["spec"]["replicas"] == 4


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    recreate = {"strategy": {"type": "Recreate"}}
    rig = rig_of(web(2, note="old", **recreate), runs=False)
    old = rig.active()
    rig.run(*old)

    rig.apply(web(2, note="new", **recreate))
    assert (rig.active(), sizes(rig)) == ([], [0])

    rig.finish(old[0])
    assert sizes(rig) == [0]
    rig.finish(old[1])

    assert notes(rig) == ["new"] * 2


@pytest.mark.parametrize(("strategy", "is_available"), [("RollingUpdate", "True"), ("Recreate", "False")])
def test_an_available_deployment_may_lack_some_pods_unless_it_recreates(strategy: str, is_available: str) -> None:
    rig = rig_of(web(4, strategy={"type": strategy}))
    rig.unready(rig.names("Pod")[0])

    conditions = {one["type"]: one["status"] for one in rig.get("Deployment", "web")["status"]["conditions"]}

    assert conditions["Available"] == is_available


def test_a_paused_deployment_is_scaled_and_rolls_out_nothing() -> None:
    rig = rig_of(web(2, note="old"))

    rig.apply(web(3, note="new", paused=True))
    assert notes(rig) == ["old"] * 3

    rig.apply(web(3, note="new"))
    assert notes(rig) == ["new"] * 3


def test_the_oldest_templates_are_forgotten() -> None:
    rig = rig_of(web(1, note="0", revisionHistoryLimit=2))

    for number in range(1, 6):
        rig.apply(web(1, note=str(number), revisionHistoryLimit=2))

    sets = (rig.get("ReplicaSet", name) for name in rig.names("ReplicaSet"))
    assert sorted(one["metadata"]["annotations"][REVISION] for one in sets) == ["4", "5", "6"]


def test_a_name_that_is_taken_is_passed_over() -> None:
    (name,) = rig_of(web(1)).names("ReplicaSet")
    rig = rig_of(workload("ReplicaSet", name, {"replicas": 0}))

    rig.apply(web(1))

    assert len(rig.names("ReplicaSet")) == 2
    assert rig.get("Deployment", "web")["status"]["collisionCount"] == 1
    assert len(rig.active()) == 1


def test_a_deleted_deployment_removes_its_dependents_and_creates_nothing() -> None:
    rig = rig_of(web(2))

    rig.delete("Deployment", "web", propagation="Foreground")

    assert rig.names("Deployment") == rig.names("ReplicaSet") == rig.names("Pod") == []
    assert not [line for line in rig.log if "create" in line]


def test_a_replica_set_scaled_by_a_user_is_scaled_back() -> None:
    rig = rig_of(web(2))

    rig.scale("ReplicaSet", rig.names("ReplicaSet")[0], 5)

    assert len(rig.active()) == 2


def test_the_time_that_pods_must_be_ready_is_passed_on() -> None:
    rig = rig_of(web(1))

    rig.patch("Deployment", "web", {"spec": {"minReadySeconds": 5}})

    (name,) = rig.names("ReplicaSet")
    assert rig.get("ReplicaSet", name)["spec"]["minReadySeconds"] == 5
    assert "availableReplicas" not in rig.get("Deployment", "web")["status"]
    rig.rest()
    assert rig.get("Deployment", "web")["status"]["availableReplicas"] == 1


def test_the_status_sums_up_the_replica_sets() -> None:
    rig = rig_of(web(4, note="old"), runs=False)
    rig.run(*rig.active())
    rig.apply(web(4, note="new"))

    status = rig.get("Deployment", "web")["status"]
    (condition,) = status.pop("conditions")

    assert status == {
        "observedGeneration": 2,
        "replicas": 5,
        "updatedReplicas": 2,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "unavailableReplicas": 2,
    }
    assert (condition["type"], condition["status"]) == ("Available", "True")
    rig.end(*rig.active())
    (condition,) = rig.get("Deployment", "web")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "MinimumReplicasUnavailable")


@pytest.mark.parametrize("problem", [LOST, UNSENT])
def test_a_creation_without_an_answer_makes_no_second_replica_set(problem: Problem) -> None:
    rig = Rig(Deployments, ReplicaSets)
    rig.fault = failing(CreateObject, problem)

    rig.apply(web(2))
    rig.rest()

    assert len(rig.names("ReplicaSet")) == 1
    assert len(rig.active()) == 2


def test_a_scale_that_is_refused_is_tried_again() -> None:
    rig = rig_of(web(2))
    rig.fault = failing(PatchObject, CONFLICT)

    rig.scale("Deployment", "web", 3)
    rig.rest()

    assert len(rig.active()) == 3


def test_while_a_step_is_not_seen_no_other_is_made() -> None:
    rig = rig_of(web(4, note="old"))
    rig.lags = True
    rig.apply(web(4, note="new"))
    for _ in range(5):
        rig.show("Deployment", index=0)
        rig.show("Pod", index=0)
        rig.settle()

    assert sizes(rig) == [4, 1]


def test_nothing_is_written_when_nothing_has_changed() -> None:
    rig = rig_of(web(2, note="a"))
    rig.apply(web(2, note="b"))
    rig.actions.clear()

    rig.restart(0)
    rig.restart(1)
    rig.rest()

    assert rig.actions == []
    assert not all(machine.deadline().keeps_alive for machine in rig.machines)


# Annotations and reasons


def annotations(rig: Rig, name: str) -> Raw:
    found: Raw = rig.get("ReplicaSet", name)["metadata"]["annotations"]
    return found


def progressing(rig: Rig) -> tuple[str, str]:
    """Return status and reason of the condition Progressing."""
    conditions = rig.get("Deployment", "web")["status"]["conditions"]
    (found,) = [condition for condition in conditions if condition["type"] == "Progressing"]
    return found["status"], found["reason"]


def reasons(rig: Rig) -> list[str]:
    """Return all reasons of the condition Progressing that were written."""
    written = [one.raw for one in rig.actions if isinstance(one, ReplaceStatus) and one.raw["kind"] == "Deployment"]
    conditions = [condition for raw in written for condition in raw["status"].get("conditions", ())]
    return [condition["reason"] for condition in conditions if condition["type"] == "Progressing"]


def reporting(*objects: Raw, **settings: Any) -> Rig:
    rig = Rig(partial(Deployments, reports_all=True), ReplicaSets, **settings)
    rig.apply(*objects)
    return rig


def test_a_replica_set_has_the_annotations_of_its_deployment_and_its_scale() -> None:
    change = {"metadata": {"annotations": {"kubernetes.io/change-cause": "new image", "other": None}}}
    rig = rig_of({**web(4), "metadata": {**web()["metadata"], "annotations": {"other": "x", REVISION: "7"}}})
    (name,) = rig.names("ReplicaSet")
    scale = {"desired-replicas": "4", "max-replicas": "5", "revision": "1"}
    ours = {f"deployment.kubernetes.io/{key}": value for key, value in scale.items()}
    assert annotations(rig, name) == {"other": "x", **ours}

    rig.patch("Deployment", "web", change)

    assert annotations(rig, name)["kubernetes.io/change-cause"] == "new image"


def test_a_replica_set_that_comes_back_lists_its_earlier_revisions() -> None:
    rig = rig_of(web(note="a"))
    (first,) = rig.names("ReplicaSet")

    for note in ("b", "a", "b", "a"):
        rig.apply(web(note=note))

    assert annotations(rig, first)[REVISION] == "5"
    assert annotations(rig, first)["deployment.kubernetes.io/revision-history"] == "1,3"


def test_a_scale_during_a_rollout_is_in_proportion_and_noted() -> None:
    rolling = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}}
    rig = rig_of(web(10, note="a", **rolling), runs=False)
    rig.run(*rig.active())
    rig.apply(web(10, note="b", **rolling))
    assert sizes(rig) == [8, 5]

    rig.scale("Deployment", "web", 30)

    assert sizes(rig) == [20, 13]
    for name in rig.names("ReplicaSet"):
        assert annotations(rig, name)["deployment.kubernetes.io/desired-replicas"] == "30"
        assert annotations(rig, name)["deployment.kubernetes.io/max-replicas"] == "33"


def test_a_scale_that_changes_no_size_is_noted() -> None:
    rig = rig_of(web(1), runs=False)
    (name,) = rig.names("ReplicaSet")
    rig.patch("ReplicaSet", name, {"metadata": {"annotations": {"deployment.kubernetes.io/desired-replicas": "9"}}})

    assert annotations(rig, name)["deployment.kubernetes.io/desired-replicas"] == "1"


def test_a_created_replica_set_and_one_that_was_there_have_different_reasons() -> None:
    created = reporting(web(1), runs=False)
    there = workload("ReplicaSet", "there", {"replicas": 1}, labels={"app": "web"})
    found = reporting(there, web(1), runs=False)

    assert "NewReplicaSetCreated" in reasons(created)
    assert "FoundNewReplicaSet" in reasons(found)
    assert "NewReplicaSetCreated" not in reasons(found)


def test_going_back_to_an_earlier_template_creates_no_new_replica_set() -> None:
    rig = reporting(web(4, note="a"), runs=False)
    rig.run(*rig.active())
    rig.apply(web(4, note="b"))
    rig.run(*(name for name in rig.active() if rig.pods()[name].status.phase == "Pending"))
    rig.rest()

    rig.actions.clear()
    rig.apply(web(4, note="a"))

    assert progressing(rig) == ("True", "ReplicaSetUpdated")
    assert "NewReplicaSetCreated" not in reasons(rig)


def test_a_refused_creation_of_a_replica_set_shows_in_the_status_of_the_deployment() -> None:
    rig = rig_of(quota("few", {"pods": "1"}), web(2))
    (failure,) = [
        one for one in rig.get("Deployment", "web")["status"]["conditions"] if one["type"] == "ReplicaFailure"
    ]
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert "exceeded quota: few" in failure["message"]

    rig.patch("ResourceQuota", "few", {"spec": {"hard": {"pods": "5"}}})

    assert "ReplicaFailure" not in [one["type"] for one in rig.get("Deployment", "web")["status"]["conditions"]]
