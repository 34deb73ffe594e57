"""Paths of kinds and objects."""

from __future__ import annotations

import pytest

from podium.apirequests.http_mapping import ResourcePath, name_problem, path_of, place_of
from podium.store.api_resources import BUILT_IN, POD, APIResource, APIResources

NODE, DEPLOYMENT, NAMESPACE = BUILT_IN["", "Node"], BUILT_IN["apps", "Deployment"], BUILT_IN["", "Namespace"]


def place(path: str) -> ResourcePath | None:
    return place_of(path, APIResources())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ResourcePath(resource=POD)),
        ("/api/v1/nodes/n1", ResourcePath(resource=NODE, name="n1")),
        ("/api/v1/namespaces/d/pods", ResourcePath(resource=POD, namespace="d")),
        ("/api/v1/namespaces/d/pods/a", ResourcePath(resource=POD, namespace="d", name="a")),
        (
            "/api/v1/namespaces/d/pods/a/status",
            ResourcePath(resource=POD, namespace="d", name="a", subresource="status"),
        ),
        ("/api/v1/namespaces", ResourcePath(resource=NAMESPACE)),
        ("/api/v1/namespaces/", ResourcePath(resource=NAMESPACE)),
        ("/api/v1/namespaces/d", ResourcePath(resource=NAMESPACE, name="d")),
        ("/api/v1/namespaces/d/finalize", ResourcePath(resource=NAMESPACE, name="d", subresource="finalize")),
        ("/apis/apps/v1/namespaces/d/deployments", ResourcePath(resource=DEPLOYMENT, namespace="d")),
        ("/api/v1/watch/pods", ResourcePath(resource=POD, watches=True)),
        ("/api/v1/watch/namespaces/d/pods/a", ResourcePath(resource=POD, namespace="d", name="a", watches=True)),
    ],
)
def test_a_path_identifies_a_kind_an_object_or_a_subresource(path: str, expected: ResourcePath) -> None:
    assert place(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/api/v1",
        "/api/v1/",
        "/api/v2/pods",
        "/api/v1//pods",
        "x/api/v1/pods",
        "/api/v1/unknown",
        "/api/v1/deployments",
        "/apis/apps/v1beta1/deployments",
        "/apis/apps/v1",
        "/api/v1/namespaces/d/nodes",
        "/api/v1/pods/a",
        "/api/v1/namespaces/d/pods/a/status/more",
        "/api/v1/watch",
        "/apis//v1/pods",
    ],
)
def test_any_other_path_stands_for_nothing(path: str) -> None:
    assert place(path) is None


def test_the_path_of_each_kind_stands_for_it() -> None:
    resources = APIResources()
    for resource in resources.all():
        if not resource.served_versions:
            continue
        namespace = "d" if resource.namespaced else ""
        for name, subresource in (("", ""), ("a", ""), ("a", "status")):
            expected = ResourcePath(resource=resource, namespace=namespace, name=name, subresource=subresource)
            assert place_of(path_of(resource, namespace, name, subresource), resources) == expected


def test_paths_follow_the_kinds_that_come() -> None:
    resources = APIResources()
    assert place_of("/apis/example.com/v1/widgets", resources) is None
    widget = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=False, is_custom=True)
    resources.define(widget, {})
    assert place_of("/apis/example.com/v1/widgets", resources) == ResourcePath(resource=widget)


@pytest.mark.parametrize(("namespace", "name"), [("", "a"), ("d", "a/b"), ("d/e", "a")])
def test_objects_without_a_valid_path_have_none(namespace: str, name: str) -> None:
    with pytest.raises(ValueError, match="a"):
        path_of(POD, namespace, name)


def test_names_are_not_paths() -> None:
    assert [bool(name_problem(name)) for name in (".", "..", "a%2f", "a/b", "a", "a.b", "...")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]
