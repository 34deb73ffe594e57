"""The documents at paths without objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.apirequests.authorization import User
from podium.server.backend import ServedDocument
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.store.api_resources import POD, APIResource
from podium.store.errors import StoreError
from tests.server.serving import NOW, LocalBackend
from tests.store.objects import Raw, budget, node, pod

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLDER = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
WIDGET = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ACCESS: Raw = {"kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
METRICS = "/apis/metrics.k8s.io/v1beta1"


DB = {"matchLabels": {"app": "db"}}


class Documents:
    """Documents of a backend with a node that two pods are on, of which one runs."""

    def __init__(self) -> None:
        running = pod("a", node="n1", cpu="250m", labels={"app": "web"}, status={"phase": "Running"})
        self.backend = LocalBackend(node("n1"), pod("b", node="n1"))
        self.backend.store.create(running, now=0, is_new=False)
        self.documents = KubernetesDocuments(self.backend)

    def found(self, path: str, accept: str = "", **more: Any) -> ServedDocument:
        found = self.documents.document("GET", path, accept=accept, **more)
        assert found is not None, path
        return found

    def read(self, path: str, **more: Any) -> Raw:
        raw: Raw = json.loads(self.found(path, **more).body)
        return raw

    def posted(self, path: str, body: Any) -> Raw:
        found = self.documents.document("POST", path, body=body, user=User("anna"))
        assert found is not None
        raw: Raw = json.loads(found.body)
        return raw


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/api/", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ],
)
def test_plain_discovery_is_a_document_for_each_part(path: str, kind: str) -> None:
    assert Documents().read(path)["kind"] == kind


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (AGGREGATED, "v2"),
        (OLDER, "v2beta1"),
        (f"{AGGREGATED},{OLDER},application/json", "v2"),
        (f"application/vnd.kubernetes.protobuf,{OLDER}", "v2beta1"),
        (f"application/json,{AGGREGATED}", ""),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", ""),
        ("", ""),
    ],
)
def test_discovery_is_aggregated_only_if_the_client_prefers_it(accept: str, version: str) -> None:
    for path in ("/api", "/apis"):
        found = Documents().found(path, accept)
        raw = json.loads(found.body)
        assert (raw["kind"] == "APIGroupDiscoveryList") is bool(version)
        if version:
            assert raw["apiVersion"] == f"apidiscovery.k8s.io/{version}"
            assert found.content_type == (
                f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            )


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/api/v2", "/apis/nothing", "/apis/apps/v2", "/openapi/v3/apis/apps/v2"]
)
def test_elsewhere_there_is_nothing(path: str) -> None:
    assert Documents().documents.document("GET", path) is None


def test_documents_follow_the_kinds() -> None:
    documents = Documents()
    before = documents.found("/apis", AGGREGATED)
    assert documents.found("/apis", AGGREGATED) is before
    documents.backend.resources.define(WIDGET, {})
    after = documents.found("/apis", AGGREGATED)
    assert b"widgets" in after.body
    assert after.etag != before.etag
    documents.backend.resources.remove(WIDGET.name)
    assert documents.found("/apis", AGGREGATED).etag == before.etag


def test_the_schemas_of_kubernetes_own_kinds_are_made_once() -> None:
    documents = Documents()
    before = documents.read("/openapi/v3")["paths"]
    core = documents.found("/openapi/v3/api/v1")
    documents.backend.resources.define(WIDGET, {})
    assert set(documents.read("/openapi/v3")["paths"]) - set(before) == {"apis/example.com/v1"}
    assert documents.found("/openapi/v3/api/v1") is core
    documents.backend.resources.remove(WIDGET.name)
    assert documents.read("/openapi/v3")["paths"] == before


def test_the_index_of_schemas_leads_to_documents() -> None:
    documents = Documents()
    paths = documents.read("/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/podium.dev/v1alpha1"} <= set(paths)
    for place, report in paths.items():
        path, _, hash_ = report["serverRelativeURL"].partition("?hash=")
        assert path == f"/openapi/v3/{place}"
        assert documents.found(path).etag == f'"{hash_}"'
        assert documents.read(path)["openapi"] == "3.0.0"


def test_version_2_of_the_schemas_has_the_kinds_of_all_versions_and_follows_them() -> None:
    documents = Documents()
    made = documents.read("/openapi/v2")
    assert {"io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment"} <= set(made["definitions"])
    before = documents.found("/openapi/v2").etag

    documents.backend.resources.define(WIDGET, {})

    assert "com.example.v1.Widget" in documents.read("/openapi/v2")["definitions"]
    assert documents.found("/openapi/v2").etag != before


def test_a_custom_kind_does_not_take_the_name_of_a_schema() -> None:
    documents = Documents()
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    before = documents.read("/openapi/v2")["definitions"][name]
    group = "apiextensions.apis.pkg.apiextensions-apiserver.k8s.io"
    own = APIResource(group=group, kind="CustomResourceDefinition", plural="others", namespaced=True, is_custom=True)

    documents.backend.resources.define(own, {})

    definitions = documents.read("/openapi/v2")["definitions"]
    assert definitions[name] == before
    assert f"{name}_v2" in definitions


def test_version_2_of_the_schemas_as_protobuf_has_only_a_head() -> None:
    documents = Documents()
    found = documents.found("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert found.body == b"\n\x032.0\x12\x11\n\nKubernetes\x12\x032.0"


def test_reviews_are_posted() -> None:
    documents = Documents().documents
    for method in ("GET", "PUT"):
        with pytest.raises(StoreError) as refused:
            documents.document(method, REVIEW, body=ACCESS)
        assert refused.value.code == 405


def test_reviews_are_answered() -> None:
    documents = Documents()
    assert documents.posted(REVIEW, ACCESS)["status"]["allowed"] is True
    local = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
    assert documents.posted(local, {"spec": ACCESS["spec"]})["status"]["allowed"] is True
    who = documents.posted("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert who["status"]["userInfo"]["username"] == "anna"


def test_a_token_review_accepts_only_the_servers_token() -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    for token, is_good in (("right", True), ("wrong", False)):
        documents = KubernetesDocuments(LocalBackend(), lambda given, _: User("a") if given == "right" else None)
        found = documents.document("POST", path, body={"spec": {"token": token}})
        assert found is not None
        assert json.loads(found.body)["status"].get("authenticated", False) is is_good


def test_metrics_are_of_what_runs() -> None:
    documents = Documents()
    assert [item["usage"]["cpu"] for item in documents.read(f"{METRICS}/nodes")["items"]] == ["250m"]
    assert documents.read(f"{METRICS}/nodes/n1")["usage"]["cpu"] == "250m"
    for path in ("pods", "namespaces/default/pods"):
        assert [item["metadata"]["name"] for item in documents.read(f"{METRICS}/{path}")["items"]] == ["a"]
    assert documents.read(f"{METRICS}/namespaces/default/pods/a")["kind"] == "PodMetrics"
    assert documents.read(f"{METRICS}/pods", query=[("labelSelector", "app=db")])["items"] == []


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("nodes/n2", [], 404),
        ("namespaces/default/pods/b", [], 404),
        ("pods", [("labelSelector", "a in (")], 400),
    ],
)
def test_metrics_of_missing_objects_are_rejected(path: str, query: list[tuple[str, str]], code: int) -> None:
    with pytest.raises(StoreError) as refused:
        Documents().found(f"{METRICS}/{path}", query=query)
    assert refused.value.code == code


def test_pods_are_shown_with_the_budgets_that_select_them() -> None:
    documents = Documents()
    for made in (budget("web"), budget("all", spec={"selector": {}}), budget("db", spec={"selector": DB})):
        documents.backend.store.create(made, now=0)
    pods = [stored.raw for stored in documents.backend.store.objects("Pod")]

    table = documents.documents.table(documents.backend.resources.named("Pod"), pods, 0, "None", "meta.k8s.io/v1")

    assert table["columnDefinitions"][-1] == {
        "name": "Budget",
        "type": "string",
        "format": "",
        "description": "The disruption budgets that select the pod.",
        "priority": 1,
    }
    assert {row["cells"][0]: row["cells"][-1] for row in table["rows"]} == {"a": "all,web", "b": "all"}
    assert {len(row["cells"]) for row in table["rows"]} == {len(table["columnDefinitions"])}


def test_tables_are_made() -> None:
    documents = Documents().documents
    assert documents.table(POD, [pod("a")], NOW, "None", "meta.k8s.io/v1")["rows"][0]["cells"][0] == "a"
