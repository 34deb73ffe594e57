"""Workloads adopt objects that their selector matches, and release those that it no longer matches."""

from functools import partial
from typing import Any

import pytest

from podium.api.workloads import JOB_TRACKING
from podium.controllers.actions import CreateObject, PatchObject
from podium.controllers.controller import UNOWNED
from podium.controllers.observations import Problem
from podium.controllers.workloads.daemon_sets import DaemonSets
from podium.controllers.workloads.deployments import Deployments
from podium.controllers.workloads.jobs import Jobs
from podium.controllers.workloads.replica_sets import ReplicaSets
from podium.controllers.workloads.stateful_sets import StatefulSets
from tests.controllers.workload_rig import CRASH, LOST, Rig, failing, owned_by, template, workload
from tests.store.objects import Raw
from tests.store.objects import node as node_of

MACHINES: dict[str, Any] = {
    "DaemonSet": partial(DaemonSets, adopts=True),
    "Job": partial(Jobs, adopts=True),
    "ReplicaSet": partial(ReplicaSets, adopts=True),
    "ReplicationController": partial(ReplicaSets, adopts=True),
    "StatefulSet": partial(StatefulSets, adopts=True),
}
SPECS: dict[str, Raw] = {
    "DaemonSet": {},
    "Job": {"manualSelector": True, "selector": {"matchLabels": {"app": "web"}}, "parallelism": 1, "completions": 2},
    "ReplicaSet": {"replicas": 1},
    "ReplicationController": {"replicas": 1},
    "StatefulSet": {"replicas": 1, "serviceName": "web"},
}
KINDS = pytest.mark.parametrize("kind", sorted(SPECS))


def owner(kind: str, **spec: Any) -> Raw:
    return workload(kind, "web", {**SPECS[kind], **spec})


def orphan(name: str = "web-0", kind: str = "ReplicaSet", **metadata: Any) -> Raw:
    pod = owned_by(owner(kind), name, nodeName="n1")
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [], **metadata}}


def rig_of(kind: str, *objects: Raw, **settings: Any) -> Rig:
    rig = Rig(MACHINES[kind], **settings)
    rig.apply(node_of("n1"), *objects)
    return rig


def owners(rig: Rig, name: str, kind: str = "Pod") -> list[str]:
    references = rig.get(kind, name)["metadata"].get("ownerReferences", [])
    return [each["uid"] for each in references if each.get("controller")]


# Adoption


@KINDS
def test_a_workload_adopts_a_pod_that_it_selects_before_it_creates_any(kind: str) -> None:
    rig = rig_of(kind, orphan(), owner(kind, **({"completions": 1} if kind == "Job" else {})))

    assert list(rig.pods()) == ["web-0"]
    assert owners(rig, "web-0") == ["web"]
    created = [action.raw["kind"] for action in rig.actions if isinstance(action, CreateObject)]
    assert "Pod" not in created


@KINDS
def test_a_workload_adopts_a_pod_whose_reference_was_removed(kind: str) -> None:
    rig = rig_of(kind, owner(kind, **({"completions": 1} if kind == "Job" else {})))
    (name,) = rig.active()

    rig.patch("Pod", name, {"metadata": {"ownerReferences": None}})

    assert owners(rig, name) == ["web"]
    assert rig.active() == [name]


def test_an_adopted_pod_keeps_its_other_owners() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c", "blockOwnerDeletion": True}
    rig = rig_of("ReplicaSet", orphan(ownerReferences=[other]), owner("ReplicaSet"))

    first, second = rig.get("Pod", "web-0")["metadata"]["ownerReferences"]
    assert first == other
    assert second["uid"] == "web"
    assert second["controller"] is second["blockOwnerDeletion"] is True


@KINDS
@pytest.mark.parametrize("is_controller", [{}, {"controller": False}])
def test_an_owner_that_is_not_the_controller_becomes_it(kind: str, is_controller: Raw) -> None:
    """The reference that is there changes; there is no second one."""
    rig = rig_of(kind, owner(kind, **({"completions": 1} if kind == "Job" else {})))
    (name,) = rig.active()
    (reference,) = rig.get("Pod", name)["metadata"]["ownerReferences"]
    named = {field: reference[field] for field in ("apiVersion", "kind", "name", "uid")}

    rig.patch("Pod", name, {"metadata": {"ownerReferences": [{**named, **is_controller}]}})

    assert rig.get("Pod", name)["metadata"]["ownerReferences"] == [reference]
    assert rig.active() == [name]


def test_surplus_pods_are_adopted_and_then_deleted() -> None:
    rig = rig_of("ReplicaSet", *(orphan(f"web-{number}") for number in range(3)), owner("ReplicaSet"))

    assert len(rig.active()) == 1
    assert [report.split()[1] for report in rig.log] == ["delete", "delete"]


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {"app": "other"}},
        {"namespace": "other"},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x", "controller": True}]},
    ],
    ids=["labels", "namespace", "controller"],
)
def test_a_pod_that_is_not_the_workloads_is_not_adopted(changed: Raw) -> None:
    rig = Rig(MACHINES["ReplicaSet"])
    rig.apply(orphan(**changed), owner("ReplicaSet"))

    assert len(rig.store.objects("Pod")) == 2
    assert not [action for action in rig.actions if isinstance(action, PatchObject)]


def test_replica_sets_adopt_no_pod_that_has_ended_or_is_terminating() -> None:
    ended = {**orphan("ended"), "status": {"phase": "Failed"}}
    rig = rig_of("ReplicaSet", ended, orphan("going", finalizers=["example.com/wait"]), runs=False)
    rig.delete("Pod", "going")

    rig.apply(owner("ReplicaSet"))

    assert not owners(rig, "ended")
    assert not owners(rig, "going")


def test_a_stateful_set_adopts_only_pods_with_its_name_and_an_ordinal() -> None:
    rig = rig_of("StatefulSet", orphan("web-x"), orphan("api-0"), owner("StatefulSet"))

    assert owners(rig, "web-x") == owners(rig, "api-0") == []
    assert owners(rig, "web-0") == ["web"]


def test_an_adopted_pod_of_a_job_is_tracked_and_counted() -> None:
    rig = rig_of("Job", orphan(), owner("Job", completions=1))
    assert rig.get("Pod", "web-0")["metadata"]["finalizers"] == [JOB_TRACKING]

    rig.end("web-0", phase="Succeeded")

    assert rig.get("Job", "web")["status"]["succeeded"] == 1


def test_a_deleted_workload_adopts_nothing() -> None:
    rig = rig_of("ReplicaSet", owner("ReplicaSet", replicas=0))
    rig.patch("ReplicaSet", "web", {"metadata": {"finalizers": ["example.com/wait"]}})
    rig.delete("ReplicaSet", "web")

    rig.apply(orphan())

    assert not owners(rig, "web-0")


# Release


@KINDS
def test_a_workload_releases_and_replaces_a_pod_that_it_no_longer_selects(kind: str) -> None:
    rig = rig_of(kind, owner(kind, **({"completions": 1} if kind == "Job" else {})))
    (name,) = rig.active()

    rig.patch("Pod", name, {"metadata": {"labels": {"app": "other"}}})

    assert not owners(rig, name)
    assert JOB_TRACKING not in rig.get("Pod", name)["metadata"].get("finalizers", [])
    if kind != "StatefulSet":
        # The name of a StatefulSet's pod is taken.
        assert len(rig.active()) == 2


def test_a_stateful_set_adopts_its_pod_again_when_the_labels_are_back() -> None:
    rig = rig_of("StatefulSet", owner("StatefulSet"))
    rig.patch("Pod", "web-0", {"metadata": {"labels": {"app": "other"}}})
    assert not owners(rig, "web-0")

    rig.patch("Pod", "web-0", {"metadata": {"labels": {"app": "web"}}})

    assert owners(rig, "web-0") == ["web"]


def test_a_changed_selector_releases_pods() -> None:
    rig = rig_of("ReplicationController", owner("ReplicationController"))
    (name,) = rig.active()
    look = {**template(), "metadata": {"labels": {"app": "web", "tier": "1"}}}

    rig.patch("ReplicationController", "web", {"spec": {"selector": {"tier": "1"}, "template": look}})

    assert not owners(rig, name)
    assert len(rig.active()) == 2


# ReplicaSets and revisions


def deployment(**spec: Any) -> Raw:
    return workload("Deployment", "web", {"replicas": 1, **spec})


def deployments(*objects: Raw) -> Rig:
    rig = Rig(partial(Deployments, reports_all=True), MACHINES["ReplicaSet"])
    rig.apply(*objects)
    return rig


def test_a_deployment_adopts_a_replica_set_of_its_template() -> None:
    rig = deployments(workload("ReplicaSet", "old", {"replicas": 1}, labels={"app": "web"}), deployment())

    assert rig.names("ReplicaSet") == ["old"]
    assert owners(rig, "old", "ReplicaSet") == ["web"]


def test_a_deployment_replaces_the_pods_of_an_adopted_replica_set() -> None:
    old = workload("ReplicaSet", "old", {"replicas": 1}, labels={"app": "web"})
    rig = deployments(old, deployment(template=template(hostNetwork=True)))

    assert rig.get("ReplicaSet", "old")["spec"]["replicas"] == 0
    assert len(rig.names("ReplicaSet")) == 2
    assert owners(rig, "old", "ReplicaSet") == ["web"]


def test_a_deployment_releases_a_replica_set_that_it_no_longer_selects() -> None:
    rig = deployments(deployment())
    (name,) = rig.names("ReplicaSet")

    rig.patch("ReplicaSet", name, {"metadata": {"labels": {"app": "other"}}})

    assert not owners(rig, name, "ReplicaSet")


def test_a_replica_set_that_was_orphaned_is_adopted_by_the_next_deployment() -> None:
    rig = deployments(deployment())
    (name,) = rig.names("ReplicaSet")
    rig.delete("Deployment", "web", propagation="Orphan")
    assert not owners(rig, name, "ReplicaSet")

    again = deployment()
    again["metadata"]["uid"] = "again"
    rig.apply(again)

    assert rig.names("ReplicaSet") == [name]
    assert owners(rig, name, "ReplicaSet") == ["again"]


@pytest.mark.parametrize("kind", ["DaemonSet", "StatefulSet"])
def test_a_workload_adopts_the_revisions_of_its_predecessor(kind: str) -> None:
    rig = rig_of(kind, owner(kind))
    (name,) = rig.names("ControllerRevision")
    (pod,) = rig.active()
    rig.delete(kind, "web", propagation="Orphan")
    assert not owners(rig, name, "ControllerRevision")

    again = owner(kind)
    again["metadata"]["uid"] = "again"
    rig.apply(again)

    assert rig.names("ControllerRevision") == [name]
    assert owners(rig, name, "ControllerRevision") == owners(rig, pod) == ["again"]


# Faults


@pytest.mark.parametrize(
    "problem", [LOST, CRASH, Problem(503, "ServiceUnavailable", "down"), Problem(409, "Conflict", "")]
)
def test_an_adoption_that_failed_or_got_no_answer_is_repeated(problem: Problem) -> None:
    rig = Rig(MACHINES["ReplicaSet"])
    rig.fault = failing(PatchObject, problem)
    rig.apply(orphan(), owner("ReplicaSet"))

    rig.rest()

    assert list(rig.pods()) == ["web-0"]
    assert owners(rig, "web-0") == ["web"]


def test_a_pod_that_is_gone_before_its_adoption_is_observed_does_not_block() -> None:
    rig = Rig(MACHINES["ReplicaSet"])
    rig.apply(orphan())
    rig.lags = rig.merges = True
    rig.apply(owner("ReplicaSet"))
    rig.show("ReplicaSet")
    rig.tick()
    assert owners(rig, "web-0") == ["web"]

    rig.delete("Pod", "web-0")
    rig.lags = False
    rig.settle()

    (name,) = rig.active()
    assert name != "web-0"


def test_controllers_that_do_not_adopt_see_no_orphans() -> None:
    assert not ReplicaSets().pod_aspects & UNOWNED
    assert ReplicaSets(adopts=True).pod_aspects & UNOWNED


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_pods_with_all_labels_of_the_template_are_counted(kind: str) -> None:
    """[TestFullyLabeledReplicas]"""
    labels = {"app": "web", "track": "stable"}
    rig = rig_of(kind, owner(kind, replicas=2, template={**template(), "metadata": {"labels": labels}}), runs=False)
    counted = rig.get(kind, "web")["status"]

    rig.patch("Pod", rig.active()[0], {"metadata": {"labels": {"track": "canary"}}})

    assert (counted["replicas"], counted["fullyLabeledReplicas"]) == (2, 2)
    assert rig.get(kind, "web")["status"]["fullyLabeledReplicas"] == 1
