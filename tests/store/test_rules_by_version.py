"""API server rules that depend on the version."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.versions.release import read_version
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import Raw, budget, node, pod, running

ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"


def served(version: str, *objects: Raw) -> Store:
    store = Store()
    store.serve_as(read_version(version))
    for raw in objects:
        store.create(raw, now=0)
    return store


def zoned() -> Raw:
    labels: dict[str, Any] = {ZONE: "a", REGION: "r", HOST: "n1"}
    return node("n1", **labels)


@pytest.mark.parametrize(("version", "nominated"), [("1.34", "n2"), ("1.35", "")])
def test_a_binding_clears_the_nomination_since_1_35(version: str, nominated: str) -> None:
    store = served(version, pod("web", status={"nominatedNodeName": "n2"}))

    bound = store.bind("default/web", "n1", now=0)

    assert bound.raw["status"].get("nominatedNodeName", "") == nominated
    assert bound.object.status.nominated_node_name == nominated  # type: ignore[attr-defined]


@pytest.mark.parametrize(("version", "added"), [("1.34", {}), ("1.35", {ZONE: "a", REGION: "r"})])
def test_a_bound_pod_gets_the_labels_of_its_zone_and_region_since_1_35(version: str, added: dict[str, str]) -> None:
    store = served(version, zoned(), pod("web", labels={"app": "a"}))

    bound = store.bind("default/web", "n1", now=0)

    assert bound.raw["metadata"]["labels"] == bound.object.metadata.labels == {"app": "a", **added}


def test_labels_of_the_node_replace_those_of_the_pod() -> None:
    store = served("1.35", zoned(), pod("web", labels={ZONE: "elsewhere"}), pod("lost"))

    assert store.bind("default/web", "n1", now=0).object.metadata.labels[ZONE] == "a"
    assert store.bind("default/lost", "no-node", now=0).object.metadata.labels == {}


@pytest.mark.parametrize(
    ("version", "is_new", "zone"), [("1.34", True, None), ("1.35", True, "a"), ("1.35", False, None)]
)
def test_a_pod_that_is_created_on_a_node_gets_them_unless_it_is_from_a_dump(
    version: str, is_new: bool, zone: str | None
) -> None:
    store = served(version, zoned())

    created = store.create(pod("static", node="n1"), now=0, is_new=is_new)

    assert created.object.metadata.labels.get(ZONE) == zone


@pytest.mark.parametrize(("version", "is_merged"), [("1.33", False), ("1.34", True)])
def test_label_keys_of_spread_constraints_are_merged_into_selectors_since_1_34(version: str, is_merged: bool) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    labels = {"app": "a", "pod-template-hash": "x"}
    store = served(version)

    created = store.create(pod("web", labels=labels, spec={"topologySpreadConstraints": [constraint]}), now=0)

    selector = created.raw["spec"]["topologySpreadConstraints"][0]["labelSelector"]
    assert ("matchExpressions" in selector) is is_merged


def test_label_keys_of_affinity_are_merged_in_all_versions() -> None:
    term = {
        "topologyKey": ZONE,
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"app": "a", "pod-template-hash": "x"}

    created = served("1.31").create(pod("web", labels=labels, spec={"affinity": affinity}), now=0)

    (merged,) = created.raw["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert merged["labelSelector"]["matchExpressions"][0]["values"] == ["x"]


NEEDS = "The disruption budget web needs 1 healthy pods and has 2 currently"
NONE = "The disruption budget web does not allow evicting pods currently"


@pytest.mark.parametrize(
    ("healthy", "condition", "after"),
    [
        (2, None, NONE),
        (2, ("InsufficientPods", ""), NONE),
        (2, ("Frozen", "not now"), f"{NONE} (Frozen): not now"),
        (2, ("SyncFailed", "no scale"), f"{NONE} because it failed sync: no scale"),
        (1, ("SyncFailed", "no scale"), f"{NONE} because it failed sync: no scale"),
        (1, ("InsufficientPods", ""), NEEDS.replace("has 2", "has 1")),
    ],
)
def test_a_refused_eviction_says_why_the_budget_allows_none_since_1_35(
    healthy: int, condition: tuple[str, str] | None, after: str
) -> None:
    status: Raw = {"currentHealthy": healthy, "desiredHealthy": 1}
    if condition is not None:
        reason, message = condition
        status["conditions"] = [
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }
        ]

    def refusal(version: str) -> str:
        store = served(version, running("web-0"), budget(allowed=0, status=status))
        with pytest.raises(StoreError) as refused:
            store.evict("default/web-0", now=0)
        return refused.value.message

    assert NEEDS.replace("has 2", f"has {healthy}") in refusal("1.34")
    assert after in refusal("1.35")


def test_fields_of_pods_that_the_version_does_not_know_are_dropped() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    container = {"name": "main", "image": "a", "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "1"}}}
    spec: Raw = {
        "containers": [container],
        "resources": {"requests": {"cpu": "2"}},
        "resourceClaims": claims,
        "securityContext": {"supplementalGroupsPolicy": "Strict", "runAsUser": 1},
    }

    def kept(version: str, gates: dict[str, bool] | None = None) -> set[str]:
        store = Store()
        store.serve_as(read_version(version).with_gates(gates or {}))
        raw = store.create(pod("web", spec=spec), now=0).raw["spec"]
        (main,) = raw["containers"]
        assert main["resources"]["requests"] == {"cpu": "1"}
        assert raw["securityContext"]["runAsUser"] == 1
        found = {name for name in ("resources", "resourceClaims") if name in raw}
        assert ("claims" in main["resources"]) is ("resourceClaims" in found)
        return found | {name for name in raw["securityContext"] if name == "supplementalGroupsPolicy"}

    assert kept("1.32") == set()
    assert kept("1.33") == {"supplementalGroupsPolicy"}
    assert kept("1.33", {"PodLevelResources": True}) == {"supplementalGroupsPolicy", "resources"}
    assert kept("1.34") == {"supplementalGroupsPolicy", "resources", "resourceClaims"}


def test_pods_of_a_dump_keep_their_fields() -> None:
    spec: Raw = {"resources": {"requests": {"cpu": "2"}}}

    assert "resources" in served("1.33").create(pod("web", spec=spec, metadata={"uid": "u"}), now=0).raw["spec"]


def made_job(**status: Any) -> Raw:
    container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default"},
        "spec": {"suspend": True, "managedBy": "example.com/queue", "template": template},
        "status": status,
    }


@pytest.mark.parametrize(("version", "is_kept"), [("1.31", False), ("1.32", True)])
def test_managers_of_jobs_are_known_since_1_32(version: str, is_kept: bool) -> None:
    assert ("managedBy" in served(version, made_job()).get("Job", "default/sum").raw["spec"]) is is_kept


STARTED: Raw = {
    "startTime": "1970-01-01T00:00:00Z",
    "conditions": [{"type": "Suspended", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
}


@pytest.mark.parametrize(
    ("version", "status", "directives", "resources"),
    [
        ("1.35", {}, True, False),
        ("1.35", STARTED, False, False),
        ("1.36", {}, True, True),
        ("1.36", STARTED, True, True),
        ("1.36", {**STARTED, "active": 1}, False, False),
    ],
)
def test_a_suspended_job_allows_template_changes_by_version(
    version: str, status: Raw, directives: bool, resources: bool
) -> None:
    def may(change: Raw) -> bool:
        store = served(version, made_job(**status))
        raw = store.get("Job", "default/sum").raw
        template = {**raw["spec"]["template"], "spec": {**raw["spec"]["template"]["spec"], **change}}
        try:
            store.update({**raw, "spec": {**raw["spec"], "template": template}})
        except StoreError:
            return False
        return True

    container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "2"}}}
    assert may({"nodeSelector": {"disk": "ssd"}}) is directives
    assert may({"containers": [container]}) is resources


TEMPLATE: Raw = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "resources": {"requests": {"cpu": "1"}}},
}
REPLICAS: Raw = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
}


def without_resources() -> Raw:
    spec = {name: value for name, value in TEMPLATE["spec"].items() if name != "resources"}
    return {**REPLICAS, "spec": {**REPLICAS["spec"], "template": {**TEMPLATE, "spec": spec}}}


@pytest.mark.parametrize(("version", "is_kept"), [("1.33", False), ("1.34", True)])
def test_an_update_of_a_template_cannot_add_a_field_that_the_version_drops(version: str, is_kept: bool) -> None:
    store = served(version, without_resources())

    for stored in (
        store.update(REPLICAS),
        store.patch("ReplicaSet", "default/a", {"spec": {"template": TEMPLATE}}, "merge"),
    ):
        assert ("resources" in stored.raw["spec"]["template"]["spec"]) is is_kept
    assert store.get("ReplicaSet", "default/a").object.metadata.generation == (2 if is_kept else 1)


def test_an_update_keeps_a_dropped_field_that_the_object_has_already() -> None:
    store = served("1.34", REPLICAS)
    store.serve_as(read_version("1.33"))
    other = {**TEMPLATE["spec"], "resources": {"requests": {"cpu": "2"}}}

    changed = store.patch("ReplicaSet", "default/a", {"spec": {"template": {"spec": other}}}, "merge")

    assert changed.raw["spec"]["template"]["spec"]["resources"] == {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(("version", "kept"), [("1.32", {}), ("1.33", {"allocatedResources": {"cpu": "1"}})])
def test_an_update_of_a_status_drops_fields_as_well(version: str, kept: Raw) -> None:
    store = served(version, pod("a"))
    status = {"name": "c", "ready": True, "restartCount": 0, "image": "i", "imageID": "", **kept}
    given = {**status, "allocatedResources": {"cpu": "1"}}

    written = store.update_status({**store.get("Pod", "default/a").raw, "status": {"containerStatuses": [given]}})

    assert written.raw["status"]["containerStatuses"] == [status]
