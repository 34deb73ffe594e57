"""Caveats of an answer: present if the input leaves something open, and absent otherwise."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from podium.api.basis import MOST_NAMES, Basis, Caveat
from podium.api.errors import InputWarning
from podium.api.input.codec import Input, load_text

Raw = dict[str, Any]
CONTAINERS = [{"name": "c", "image": "i"}]


def pod(name: str, *, owner: Raw | None = None, **spec: Any) -> Raw:
    references = {} if owner is None else {"ownerReferences": [{"apiVersion": "v1", "controller": True, **owner}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **references},
        "spec": {"containers": CONTAINERS, **spec},
    }


def node(name: str, ready: str = "True") -> Raw:
    conditions = [{"type": "Ready", "status": ready}]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"conditions": conditions}}


def budget(**rest: Any) -> Raw:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec, **rest}


def caveats(
    *raws: Raw, simulates: bool = True, warnings: Sequence[InputWarning] = (), **others: Any
) -> dict[str, Caveat]:
    documents = load_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(raws)}), "input", "ignore")
    found = Basis(Input(documents), ["default-scheduler"], simulates, **others).caveats(warnings)
    return {caveat.about: caveat for caveat in found}


def test_a_complete_cluster_has_no_caveats() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "r1"}
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "uid": "r1"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}},
        },
    }

    objects = (node("n"), replica_set, pod("a", owner=owner, nodeName="n"), budget(status={"disruptionsAllowed": 0}))
    for simulates in (True, False):
        assert caveats(*objects, simulates=simulates) == {}


def test_an_input_without_objects_is_a_caveat() -> None:
    assert caveats()["no-objects"].message == "the input holds no objects"
    for text in ("null", "# nothing\n", "---\n---\n"):
        assert [each.about for each in Basis(Input(load_text(text, "input")), (), False).caveats()] == ["no-objects"]


def test_pods_with_a_missing_owner_are_not_replaced() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "r1"}
    found = caveats(*(pod(f"p{number}", owner=owner) for number in range(30)))

    caveat = found["owners-missing"]
    assert (caveat.count, len(caveat.names)) == (30, MOST_NAMES)
    assert caveat.message == (
        "30 pods of a ReplicaSet that is not in the input: nothing will replace them "
        "(default/p0, default/p1, default/p2 and 27 more)"
    )


def test_one_pod_without_its_owner_is_one() -> None:
    found = caveats(pod("p", owner={"kind": "ReplicaSet", "name": "web", "uid": "r1"}))

    assert (
        "1 pod of a ReplicaSet that is not in the input: nothing will replace it (" in found["owners-missing"].message
    )


def test_a_mirror_of_a_static_pod_is_made_again_by_its_node() -> None:
    assert caveats(node("n"), pod("p", owner={"kind": "Node", "name": "n", "uid": "x"}, nodeName="n")) == {}


def test_one_decision_needs_no_owners() -> None:
    assert caveats(pod("p", owner={"kind": "ReplicaSet", "name": "web", "uid": "r1"}), simulates=False) == {}


def workload(kind: str, name: str, replicas: int, **metadata: Any) -> Raw:
    labels = {"app": name}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "serviceName": name}
    spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}}
    if kind != "StatefulSet":
        del spec["serviceName"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def test_workloads_without_any_pod_are_reported_for_a_single_decision() -> None:
    owned = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}]}
    objects = [
        workload("Deployment", "web", 3),
        workload("ReplicaSet", "web-5d4f8c7b9", 3, **owned),
        workload("StatefulSet", "db", 1),
        workload("ReplicaSet", "none", 0),
    ]

    found = caveats(*objects, simulates=False)["pods-missing"]

    assert found.names == ("Deployment default/web", "StatefulSet default/db")
    assert found.message == (
        "2 workloads without any pod in the input: pods that they want are left out, and take no room "
        "(Deployment default/web, StatefulSet default/db)"
    )
    assert "pods-missing" not in caveats(*objects)


@pytest.mark.parametrize("ended", [False, True])
def test_a_live_pod_of_a_deployment_is_known_by_its_owner_though_the_replica_set_is_missing(ended: bool) -> None:
    one = pod("web-5d4f8c7b9-x", owner={"kind": "ReplicaSet", "name": "web-5d4f8c7b9", "uid": "r1"})
    one["status"] = {"phase": "Succeeded" if ended else "Running"}

    assert ("pods-missing" in caveats(workload("Deployment", "web", 1), one, simulates=False)) is ended


@pytest.mark.parametrize("status", [{}, {"status": {}}, {"status": {"currentHealthy": 3}}])
def test_budgets_without_status_are_a_caveat_of_a_single_decision(status: Raw) -> None:
    assert caveats(budget(**status), simulates=False)["budgets-without-status"].names == ("default/b",)
    assert caveats(budget(**status)) == {}


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_nodes_that_are_not_ready_are_reported(ready: str) -> None:
    assert caveats(node("a"), node("b", ready))["nodes-not-ready"].names == ("b",)


def test_pods_on_missing_nodes_are_reported() -> None:
    assert caveats(node("n"), pod("p", nodeName="gone"))["nodes-missing"].names == ("default/p",)


def test_pending_pods_of_other_schedulers_are_reported() -> None:
    found = caveats(node("n"), pod("p", schedulerName="volcano"), pod("q", schedulerName="volcano", nodeName="n"))

    assert found["other-schedulers"].message == (
        "1 pending pod for scheduler volcano, which takes no part: no scheduler places them (default/p)"
    )


@pytest.mark.parametrize("rule", ["requiredDuringSchedulingIgnoredDuringExecution", "preferred"])
def test_namespaces_whose_labels_are_selected_must_be_there(rule: str) -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    if rule == "preferred":
        side: Raw = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
        }
    else:
        side = {rule: [term]}
    asking = pod("p", affinity={"podAntiAffinity": side})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}

    assert caveats(asking)["namespaces-missing"].names == ("default",)
    assert caveats(asking, namespace) == {}


def test_classes_of_claims_that_are_not_bound_must_be_there() -> None:
    def claim(name: str, **spec: str) -> Raw:
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}

    known = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "known"},
        "provisioner": "disks",
    }
    fine = [claim("a", storageClassName="known"), claim("b", storageClassName="")]
    bound = claim("c", storageClassName="other", volumeName="v")

    assert caveats(known, *fine, bound) == {}
    found = caveats(known, *fine, claim("d", storageClassName="other"))["storage-classes-missing"]
    assert found.names == ("other",)


def test_claims_of_pods_on_nodes_must_be_there() -> None:
    def user(name: str, claim: str | None, **spec: Any) -> Raw:
        own = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
        statuses = [] if claim is None else [{"name": "gpu", **({"resourceClaimName": claim} if claim else {})}]
        return {**pod(name, resourceClaims=own, **spec), "status": {"resourceClaimStatuses": statuses}}

    known = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "known"}}
    fine = [user("a", "known", nodeName="n"), user("b", "other"), user("c", "", nodeName="n"), user("d", None)]
    named = pod("e", nodeName="n", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}])
    ended = user("f", "gone", nodeName="n")
    ended["status"]["phase"] = "Failed"

    assert caveats(node("n"), known, *fine, ended) == {}
    found = caveats(node("n"), known, named, user("g", "other", nodeName="n"), user("h", None, nodeName="n"))
    assert found["device-claims-missing"].names == ("default/e", "default/g", "default/h")


def test_only_skipped_kinds_that_may_affect_pods_are_reported() -> None:
    clusters = [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}} for name in "abc"]
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]

    caveat = caveats(*clusters, *maps)["kinds-passed-over"]

    assert caveat.count == 3
    assert caveat.message == "ignored, although they may create, change or refuse pods: 3 RayCluster (ray.io/v1)"


def test_warnings_are_summed_up_by_reason() -> None:
    warnings = [InputWarning(f"no field x{number}", "unknown-field", source="a.yaml") for number in range(5)]
    warnings.append(InputWarning("looks like a slip", "slip", path=".memory"))

    found = caveats(warnings=warnings)

    assert found["unknown-field"].count == 5
    assert found["unknown-field"].message.endswith("a.yaml: no field x2; and 2 more")
    assert found["slip"].names == (".memory: looks like a slip",)
