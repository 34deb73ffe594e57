"""A StatefulSet keeps numbered pods, each of which exists at most once."""

from typing import Any

import pytest

from podium.api.versions.release import read_version
from podium.controllers.actions import CreateObject, DeleteObject
from podium.controllers.observations import Problem
from podium.controllers.workloads.stateful_sets import StatefulSets
from tests.controllers.workload_rig import LOST, UNSENT, Rig, failing, owned_by, template, workload
from tests.store.objects import Raw, quota

REVISION = "controller-revision-hash"
CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def db(replicas: int = 3, note: str = "", **spec: Any) -> Raw:
    """Return a StatefulSet; ``note`` makes its template another."""
    look = template(**spec.pop("pod", {}))
    if note:
        look["metadata"]["annotations"] = {"note": note}
    return workload("StatefulSet", "db", {"replicas": replicas, "template": look, **spec})


def rig_of(*objects: Raw, **settings: Any) -> Rig:
    rig = Rig(StatefulSets, **settings)
    rig.apply(*objects)
    rig.log.clear()
    return rig


def reported(rig: Rig) -> list[str]:
    """Return what became of pods: `create db-0`."""
    found = [line.partition(" ")[2] for line in rig.log]
    rig.log.clear()
    return [line for line in found if line.split()[1].removeprefix("db-").isdigit()]


def notes(rig: Rig) -> dict[str, str]:
    return {name: rig.pods()[name].metadata.annotations.get("note", "") for name in rig.active()}


# Which pods


def test_pods_have_numbers_names_and_a_revision() -> None:
    rig = rig_of(db(2, serviceName="peers", ordinals={"start": 5}))

    assert rig.active() == ["db-5", "db-6"]
    pod = rig.get("Pod", "db-5")
    (revision,) = rig.names("ControllerRevision")
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "db-5",
        "apps.kubernetes.io/pod-index": "5",
        REVISION: revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-5", "peers")


def test_each_pod_comes_when_all_before_it_are_ready() -> None:
    rig = rig_of(db(3), runs=False)
    assert rig.active() == ["db-0"]

    rig.run("db-0")
    assert rig.active() == ["db-0", "db-1"]

    rig.run("db-1")
    assert rig.active() == ["db-0", "db-1", "db-2"]


def test_each_pod_must_be_ready_for_the_seconds_asked_for() -> None:
    rig = rig_of(db(2, minReadySeconds=10))
    assert rig.active() == ["db-0"]

    rig.rest()

    assert rig.active() == ["db-0", "db-1"]
    assert rig.seconds == 20


def test_in_parallel_all_come_at_once() -> None:
    assert rig_of(db(3, podManagementPolicy="Parallel"), runs=False).active() == ["db-0", "db-1", "db-2"]


def test_a_pod_comes_back_once_it_is_gone() -> None:
    rig = rig_of(db(3), runs=False)
    for name in ("db-0", "db-1", "db-2"):
        rig.run(name)
    rig.pass_to(5)
    reported(rig)

    rig.delete("Pod", "db-1")
    assert reported(rig) == []

    rig.finish("db-1")
    assert reported(rig) == ["create db-1"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_deleted_and_comes_back(phase: str) -> None:
    rig = rig_of(db(3))
    rig.pass_to(5)

    rig.end("db-1", phase=phase)

    assert reported(rig) == ["delete db-1", "create db-1"]


def test_a_pod_that_ends_as_soon_as_it_is_made_comes_back_later_and_later() -> None:
    rig = rig_of(db(1), runs=False)
    for _ in range(3):
        rig.end("db-0")
        rig.skip()

    assert [line for line in rig.log if "create" in line] == ["1 create db-0", "3 create db-0", "7 create db-0"]


def test_a_smaller_scale_takes_from_the_end_one_at_a_time() -> None:
    rig = rig_of(db(3), runs=False)
    for name in ("db-0", "db-1", "db-2"):
        rig.run(name)
    reported(rig)

    rig.scale("StatefulSet", "db", 1)
    assert reported(rig) == ["delete db-2"]

    rig.finish("db-2")
    assert reported(rig) == ["delete db-1"]


def test_a_smaller_scale_waits_for_all_that_stay_to_be_ready() -> None:
    rig = rig_of(db(3), runs=False)
    for name in ("db-0", "db-1", "db-2"):
        rig.run(name)
    rig.unready("db-0")
    reported(rig)

    rig.scale("StatefulSet", "db", 1)
    assert reported(rig) == []

    rig.run("db-0")
    assert reported(rig) == ["delete db-2"]


def test_a_pod_that_is_not_ready_goes_after_one_before_it_that_is_not_ready_either_has_come_back() -> None:
    rig = rig_of(db(3), runs=False)
    for name in ("db-0", "db-1", "db-2"):
        rig.run(name)
    rig.unready("db-1")
    rig.unready("db-2")
    reported(rig)

    rig.scale("StatefulSet", "db", 1)
    assert reported(rig) == []

    rig.run("db-1")
    assert reported(rig) == ["delete db-2"]


def test_pods_that_have_ended_do_not_hold_up_a_smaller_scale() -> None:
    rig = rig_of(db(3))
    rig.lags = True
    rig.end("db-1", "db-2")
    rig.scale("StatefulSet", "db", 1)
    rig.lags = False

    rig.settle()

    assert sorted(rig.pods()) == ["db-0"]


def test_pods_with_other_names_are_left_alone() -> None:
    rig = rig_of(owned_by(db(), "other"), owned_by(db(), "db-x"), owned_by(db(), "db-01"), db(1))

    assert sorted(rig.pods()) == ["db-0", "db-01", "db-x", "other"]


def test_a_deleted_daemon_set_creates_no_pods() -> None:
    rig = rig_of(db(2), runs=False)
    rig.patch("StatefulSet", "db", {"metadata": {"finalizers": ["example.com/kept"]}})
    rig.delete("StatefulSet", "db")
    reported(rig)

    rig.run("db-0")

    assert reported(rig) == []
    assert rig.get("StatefulSet", "db")["status"]["readyReplicas"] == 1


# Claims


def test_a_pod_gets_its_claims_before_it_comes() -> None:
    rig = Rig(StatefulSets)

    rig.apply(db(1, volumeClaimTemplates=[CLAIM], pod={"volumes": [{"name": "tmp"}, {"name": "data"}]}))

    assert rig.log[1:] == ["0 create data-db-0", "0 create db-0"]
    claim = rig.get("PersistentVolumeClaim", "data-db-0")
    assert claim["spec"] == CLAIM["spec"]
    assert claim["metadata"]["labels"] == {"app": "web"}
    assert rig.get("Pod", "db-0")["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
        {"name": "tmp"},
    ]


def test_claims_stay_and_are_used_again() -> None:
    rig = rig_of(db(2, volumeClaimTemplates=[CLAIM]))
    before = rig.get("PersistentVolumeClaim", "data-db-1")

    rig.scale("StatefulSet", "db", 0)
    rig.scale("StatefulSet", "db", 2)

    assert rig.get("PersistentVolumeClaim", "data-db-1") == before


def test_a_pod_waits_for_a_claim_that_is_about_to_go() -> None:
    rig = rig_of(db(1, volumeClaimTemplates=[CLAIM]))
    rig.patch("PersistentVolumeClaim", "data-db-0", {"metadata": {"finalizers": ["example.com/kept"]}})
    rig.delete("PersistentVolumeClaim", "data-db-0")

    rig.delete("Pod", "db-0")
    assert rig.active() == []

    rig.patch("PersistentVolumeClaim", "data-db-0", {"metadata": {"finalizers": None}})
    rig.rest()
    assert rig.active() == ["db-0"]
    assert rig.names("PersistentVolumeClaim") == ["data-db-0"]


def test_a_pod_that_is_pending_gets_a_claim_that_is_lost() -> None:
    rig = rig_of(db(1, volumeClaimTemplates=[CLAIM]), runs=False)

    rig.delete("PersistentVolumeClaim", "data-db-0")
    rig.patch("Pod", "db-0", {"metadata": {"annotations": {"seen": "again"}}})

    assert rig.names("PersistentVolumeClaim") == ["data-db-0"]


def test_a_claim_that_is_refused_is_asked_for_again_and_the_pod_waits() -> None:
    rig = rig_of(quota("none", {"persistentvolumeclaims": "0"}), db(1, volumeClaimTemplates=[CLAIM]))
    assert rig.active() == []

    rig.patch("ResourceQuota", "none", {"spec": {"hard": {"persistentvolumeclaims": "1"}}})

    assert rig.active() == ["db-0"]


# Templates


def test_a_new_template_exchanges_pods_from_the_end_one_after_another() -> None:
    rig = rig_of(db(3, note="old"), runs=False)
    for name in ("db-0", "db-1", "db-2"):
        rig.run(name)
    reported(rig)

    rig.apply(db(3, note="new"))
    for name in ("db-2", "db-1", "db-0"):
        assert reported(rig) == [f"delete {name}"]
        rig.finish(name)
        assert reported(rig) == [f"create {name}"]
        rig.run(name)

    assert set(notes(rig).values()) == {"new"}
    status = rig.get("StatefulSet", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_pods_before_the_partition_keep_their_template_even_when_they_come_back() -> None:
    update = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
    rig = rig_of(db(3, note="old", **update))

    rig.apply(db(3, note="new", **update))
    assert notes(rig) == {"db-0": "old", "db-1": "old", "db-2": "new"}

    rig.pass_to(5)
    rig.end("db-1")
    assert notes(rig) == {"db-0": "old", "db-1": "old", "db-2": "new"}
    status = rig.get("StatefulSet", "db")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)


def test_the_partition_counts_from_the_first_number() -> None:
    given = {"updateStrategy": {"rollingUpdate": {"partition": 2}}, "ordinals": {"start": 5}}
    rig = rig_of(db(3, note="old", **given))

    rig.apply(db(3, note="new", **given))
    assert notes(rig) == {"db-5": "old", "db-6": "old", "db-7": "new"}

    rig.pass_to(5)
    rig.end("db-6")
    assert notes(rig) == {"db-5": "old", "db-6": "old", "db-7": "new"}


def test_a_first_number_that_changes_moves_the_pods_from_the_highest_on() -> None:
    rig = rig_of(db(3))

    rig.apply(db(3, ordinals={"start": 2}))
    assert rig.active() == ["db-2", "db-3", "db-4"]
    assert reported(rig) == ["create db-3", "create db-4", "delete db-1", "delete db-0"]

    rig.apply(db(3, ordinals={"start": 1}))
    assert rig.active() == ["db-1", "db-2", "db-3"]


def test_on_delete_pods_get_the_new_template_when_they_come_back() -> None:
    update = {"updateStrategy": {"type": "OnDelete"}}
    rig = rig_of(db(2, note="old", **update))

    rig.apply(db(2, note="new", **update))
    assert set(notes(rig).values()) == {"old"}

    rig.pass_to(5)
    rig.delete("Pod", "db-0")
    assert notes(rig) == {"db-0": "new", "db-1": "old"}


def test_a_template_that_comes_back_is_the_newest_revision_again() -> None:
    rig = rig_of(db(1, note="a"))
    (first,) = rig.names("ControllerRevision")

    rig.apply(db(1, note="b"))
    rig.apply(db(1, note="a"))

    revisions = {name: rig.get("ControllerRevision", name)["revision"] for name in rig.names("ControllerRevision")}
    assert len(revisions) == 2
    assert max(revisions, key=lambda name: revisions[name]) == first
    assert notes(rig) == {"db-0": "a"}


def test_the_oldest_revisions_are_forgotten() -> None:
    rig = rig_of(db(1, note="0", revisionHistoryLimit=1))

    for number in range(1, 5):
        rig.apply(db(1, note=str(number), revisionHistoryLimit=1))

    numbers = [rig.get("ControllerRevision", name)["revision"] for name in rig.names("ControllerRevision")]
    assert sorted(numbers) == [4, 5]


def test_of_revisions_with_equal_numbers_the_one_that_was_created_first_is_the_oldest() -> None:
    rig = rig_of(db(1, revisionHistoryLimit=1))
    (present,) = rig.names("ControllerRevision")
    uid = rig.get("StatefulSet", "db")["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid, "controller": True}
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": {}, "revision": 1}

    for name in ("db-z", "db-a"):
        rig.pass_to(rig.seconds + 1)
        rig.apply({**revision, "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner]}})

    assert sorted(rig.names("ControllerRevision")) == sorted(["db-a", present])


def test_pods_that_another_controller_has_made_of_the_present_template_stay() -> None:
    labels = {"metadata": {"labels": {"app": "web", REVISION: "db-5d4f8c7b9"}}}
    pods = [owned_by(db(), f"db-{number}", nodeName="n1") for number in range(2)]
    pods = [{**pod, "metadata": {**pod["metadata"], **labels["metadata"]}} for pod in pods]
    status = {"observedGeneration": 1, "currentRevision": "db-5d4f8c7b9", "updateRevision": "db-5d4f8c7b9"}

    rig = rig_of(*pods, {**db(2), "status": status})

    assert reported(rig) == []
    assert rig.names("ControllerRevision") == ["db-5d4f8c7b9"]
    rig.apply(db(2, note="new"))
    assert set(notes(rig).values()) == {"new"}


def test_a_revision_that_is_known_by_its_name_may_say_what_another_api_server_had_filled_in() -> None:
    rig = rig_of(db(1, note="a"))
    (name,) = rig.names("ControllerRevision")
    rig.lags = True
    filled_in = {**template(), "metadata": {"labels": {"app": "web"}, "annotations": {"note": "a"}, "more": {}}}
    rig.patch("ControllerRevision", name, {"data": {"spec": {"template": filled_in}}})

    rig.restart()

    assert rig.names("ControllerRevision") == [name]
    assert reported(rig) == []


def test_pods_that_do_not_say_what_their_template_was_stay() -> None:
    rig = rig_of(owned_by(db(), "db-0", nodeName="n1"), db(1))

    assert reported(rig) == []
    assert rig.get("StatefulSet", "db")["status"]["updatedReplicas"] == 1


# Status, and what goes wrong


def test_the_status_counts_what_is_there() -> None:
    rig = rig_of(db(2), runs=False)
    rig.run("db-0")
    (revision,) = rig.names("ControllerRevision")

    assert rig.get("StatefulSet", "db")["status"] == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
    }


@pytest.mark.parametrize("problem", [LOST, UNSENT])
def test_answers_that_are_lost_make_nothing_twice(problem: Problem) -> None:
    rig = Rig(StatefulSets)
    rig.fault = failing(CreateObject, problem, times=4)

    rig.apply(db(2, volumeClaimTemplates=[CLAIM]))
    rig.rest()

    assert rig.active() == ["db-0", "db-1"]
    assert rig.names("PersistentVolumeClaim") == ["data-db-0", "data-db-1"]
    assert len(rig.names("ControllerRevision")) == 1


def test_a_deletion_that_fails_is_tried_again() -> None:
    rig = rig_of(db(2))
    rig.fault = failing(DeleteObject, Problem(500, "InternalError", ""))

    rig.scale("StatefulSet", "db", 1)
    rig.rest()

    assert rig.active() == ["db-0"]


def test_a_deletion_that_comes_late_does_not_hit_the_replacement() -> None:
    rig = rig_of(db(1))
    rig.pass_to(5)
    rig.end("db-0")
    uid = rig.get("Pod", "db-0")["metadata"]["uid"]

    deletions = [one for one in rig.actions if isinstance(one, DeleteObject)]

    assert deletions
    assert all(one.uid not in ("", uid) for one in deletions)


def test_nothing_is_written_when_nothing_has_changed() -> None:
    rig = rig_of(db(2, note="a", volumeClaimTemplates=[CLAIM]))
    rig.apply(db(2, note="b", volumeClaimTemplates=[CLAIM]))
    rig.actions.clear()

    rig.restart()
    rig.rest()

    assert rig.actions == []
    assert not rig.machines[0].deadline().keeps_alive


# Several unavailable pods, and owners of claims


def test_as_many_pods_are_exchanged_at_once_as_may_be_unavailable_with_the_gate() -> None:
    release = read_version("1.36").with_gates({"MaxUnavailableStatefulSet": True})
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    rig = Rig(lambda: StatefulSets(release), runs=False)
    rig.store.serve_as(release)
    rig.apply(db(4, note="a", updateStrategy=update))
    for _ in range(4):
        rig.run_all()
        rig.settle()
    reported(rig)

    rig.apply(db(4, note="b", updateStrategy=update))
    assert reported(rig) == ["delete db-3", "delete db-2"]
    rig.runs = True
    rig.settle()

    assert notes(rig) == {f"db-{number}": "b" for number in range(4)}


def claim_owners(rig: Rig, number: int) -> list[str]:
    references = rig.get("PersistentVolumeClaim", f"data-db-{number}")["metadata"].get("ownerReferences", [])
    return [f"{each['kind']} {each['name']}" for each in references]


def retained(replicas: int, deleted: str, scaled: str) -> Raw:
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    return db(replicas, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)


def test_claims_go_with_their_stateful_set_if_it_says_so() -> None:
    rig = rig_of(retained(1, "Delete", "Retain"))
    assert claim_owners(rig, 0) == ["StatefulSet db"]

    rig.apply(retained(1, "Retain", "Retain"))
    assert claim_owners(rig, 0) == []

    rig.apply(retained(1, "Delete", "Delete"))
    rig.delete("StatefulSet", "db")
    assert rig.names("PersistentVolumeClaim") == []


@pytest.mark.parametrize(("scaled", "left"), [("Delete", ["data-db-0"]), ("Retain", ["data-db-0", "data-db-1"])])
@pytest.mark.parametrize("deleted", ["Delete", "Retain"])
def test_claims_go_with_pods_that_are_scaled_away_if_it_says_so(deleted: str, scaled: str, left: list[str]) -> None:
    rig = rig_of(retained(2, deleted, scaled))

    rig.apply(retained(1, deleted, scaled))

    assert rig.names("PersistentVolumeClaim") == left


def test_a_pod_that_is_replaced_keeps_its_claims_whatever_happens_when_it_is_scaled_away() -> None:
    rig = rig_of(retained(2, "Retain", "Delete"))

    rig.delete("Pod", "db-1")

    assert rig.names("PersistentVolumeClaim") == ["data-db-0", "data-db-1"]
    assert claim_owners(rig, 1) == []


@pytest.mark.parametrize(("scaled", "waits"), [("Delete", True), ("Retain", False)])
def test_a_pod_waits_for_claims_that_go_with_the_pod_before_it(scaled: str, waits: bool) -> None:
    rig = rig_of(retained(2, "Retain", scaled))
    rig.scale("StatefulSet", "db", 1)
    old = {"apiVersion": "v1", "kind": "Pod", "name": "db-1", "uid": "old"}
    metadata = {"name": "data-db-1", "namespace": "default", "ownerReferences": [old]}
    if scaled == "Retain":
        rig.delete("PersistentVolumeClaim", "data-db-1")
    # The garbage collector has not deleted it yet.
    rig.apply({**CLAIM, "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata})

    rig.scale("StatefulSet", "db", 2)
    assert rig.active() == (["db-0"] if waits else ["db-0", "db-1"])

    rig.delete("PersistentVolumeClaim", "data-db-1")
    assert rig.active() == ["db-0", "db-1"]


def test_a_claim_that_another_controller_owns_is_left_alone() -> None:
    rig = rig_of(retained(1, "Retain", "Retain"))
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": True}
    rig.patch("PersistentVolumeClaim", "data-db-0", {"metadata": {"ownerReferences": [other]}})

    rig.apply(retained(1, "Delete", "Delete"))

    assert claim_owners(rig, 0) == ["ConfigMap x"]
