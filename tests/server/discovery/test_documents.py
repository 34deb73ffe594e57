"""The discovery documents."""

from __future__ import annotations

from collections import defaultdict

import pytest

from podium.apirequests.router import SERVED
from podium.server.discovery import (
    ANSWERED,
    aggregated,
    group,
    group_list,
    resource_list,
    served_kinds,
)
from podium.store.api_resources import BUILT_IN, APIResource
from podium.store.custom_kinds import version_order
from tests.store.objects import Raw, serving

WIDGET = APIResource(
    group="example.com", kind="Widget", plural="widgets", namespaced=True, has_scale=True, is_custom=True
)
SERVED_KINDS = served_kinds(serving(WIDGET).all())


def entries(api_version: str) -> dict[str, Raw]:
    found = resource_list(SERVED_KINDS, api_version)
    assert found is not None
    return {entry["name"]: entry for entry in found["resources"]}


def test_every_stored_kind_is_in_discovery() -> None:
    report = {(kind.group, kind.kind) for kind in SERVED_KINDS}
    assert report >= {of for of, kind in BUILT_IN.items() if kind.served_versions} | {("example.com", "Widget")}


def test_both_discovery_forms_agree() -> None:
    for is_core in (True, False):
        for found in aggregated(SERVED_KINDS, "v2", is_core=is_core)["items"]:
            name = found["metadata"].get("name", "")
            for version in found["versions"]:
                plain = entries(f"{name}/{version['version']}" if name else version["version"])
                names = [
                    report
                    for entry in version["resources"]
                    for report in (
                        entry["resource"],
                        *(f"{entry['resource']}/{one['subresource']}" for one in entry.get("subresources", ())),
                    )
                ]
                assert names == list(plain)
                assert all(plain[entry["resource"]]["verbs"] == entry["verbs"] for entry in version["resources"])


def test_the_core_stands_by_itself() -> None:
    assert [one["metadata"] for one in aggregated(SERVED_KINDS, "v2", is_core=True)["items"]] == [{}]
    names = [one["name"] for one in group_list(SERVED_KINDS)["groups"]]
    assert "" not in names
    assert names.index("apps") < names.index("example.com") < names.index("metrics.k8s.io")


def test_a_group_names_its_versions_the_best_first() -> None:
    found = group(SERVED_KINDS, "autoscaling")
    assert found is not None
    assert [version["version"] for version in found["versions"]] == ["v2", "v1"]
    assert found["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}


@pytest.mark.parametrize("name", ["", "nothing.io"])
def test_unserved_groups_have_no_discovery_documents(name: str) -> None:
    assert group(SERVED_KINDS, name) is None
    assert resource_list(SERVED_KINDS, f"{name}/v1") is None


def test_every_subresource_of_the_router_is_in_discovery() -> None:
    report: dict[str, set[str]] = defaultdict(set)
    for kind in SERVED_KINDS:
        for subresource in kind.subresources:
            report[subresource.name].update(subresource.verbs)
    for verb, name in SERVED:
        assert not name or verb in report[name], (verb, name)


def test_kubectl_finds_how_to_evict_bind_and_scale() -> None:
    core, apps = entries("v1"), entries("apps/v1")
    assert core["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert core["pods/binding"]["kind"] == "Binding"
    assert apps["deployments/scale"]["group"] == "autoscaling"
    assert "nodes/scale" not in core
    assert "daemonsets/scale" not in apps


def test_short_names_and_categories_are_those_of_kubernetes() -> None:
    pods, nodes = entries("v1")["pods"], entries("v1")["nodes"]
    assert (pods["shortNames"], pods["categories"], pods["singularName"]) == (["po"], ["all"], "pod")
    assert nodes["shortNames"] == ["no"]
    assert "categories" not in nodes
    assert entries("policy/v1")["poddisruptionbudgets"]["shortNames"] == ["pdb"]


def test_short_names_within_a_group_are_one_kinds() -> None:
    seen = set()
    for kind in SERVED_KINDS:
        for name in kind.short_names:
            assert (kind.api_version, name) not in seen
            seen.add((kind.api_version, name))


def test_custom_kinds_are_listed_with_their_subresources() -> None:
    widgets = entries("example.com/v1")
    assert set(widgets) == {"widgets", "widgets/status", "widgets/scale"}


def test_every_version_of_a_stored_kind_names_its_storage_version_by_a_hash() -> None:
    hashed = {version: entries(version)["events"]["storageVersionHash"] for version in ("v1", "events.k8s.io/v1")}
    assert hashed["v1"] == hashed["events.k8s.io/v1"] == "r2yiGXH7wu8="
    assert "storageVersionHash" not in entries("authentication.k8s.io/v1")["tokenreviews"]


def test_answered_only_kinds_support_create_get_and_list() -> None:
    assert {verb for kind in ANSWERED for verb in kind.verbs} == {"create", "get", "list"}


def test_versions_are_ordered_by_how_stable_they_are() -> None:
    versions = ["foo10", "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1"]
    wanted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(versions, key=version_order) == wanted
