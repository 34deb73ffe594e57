"""Conversion of an HTTP request to a request for the router."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from podium.apirequests.authorization import User
from podium.apirequests.http_mapping import incoming_request, place_of, request_of
from podium.apirequests.parameters import read_parameters
from podium.apirequests.request import Request
from podium.store.api_resources import APIResource, APIResources
from podium.store.errors import StoreError
from podium.store.listing import ListOptions
from tests.store.objects import pod, serving

WIDGET = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=False, is_custom=True)
PODS = "/api/v1/namespaces/d/pods"
POD = f"{PODS}/a"


def brought(method: str, path: str, *query: tuple[str, str], body: Any = None) -> Request:
    place = place_of(path, serving(WIDGET))
    assert place is not None
    return request_of(incoming_request(method, place, read_parameters(query)), body)


def refusal(method: str, path: str, *query: tuple[str, str], body: Any = None) -> tuple[int, str]:
    with pytest.raises(StoreError) as caught:
        brought(method, path, *query, body=body)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", POD, (), Request(verb="get", kind="Pod", key="d/a")),
        ("GET", PODS, (), Request(verb="list", kind="Pod", namespace="d")),
        ("GET", "/api/v1/pods", (), Request(verb="list", kind="Pod")),
        (
            "GET",
            PODS,
            (("watch", "true"), ("resourceVersion", "7")),
            Request(verb="watch", kind="Pod", namespace="d", options=ListOptions(resource_version="7")),
        ),
        (
            "GET",
            POD,
            (("watch", "true"),),
            Request(verb="watch", kind="Pod", namespace="d", options=ListOptions(field_selector="metadata.name=a")),
        ),
        ("GET", "/api/v1/watch/nodes", (), Request(verb="watch", kind="Node")),
        (
            "GET",
            f"{POD}/status",
            (("watch", "true"),),
            Request(verb="get", kind="Pod", key="d/a", subresource="status"),
        ),
        (
            "DELETE",
            POD,
            (("gracePeriodSeconds", "0"), ("dryRun", "All")),
            Request(verb="delete", kind="Pod", key="d/a", body={"gracePeriodSeconds": 0}, dry_run=True),
        ),
        ("DELETE", PODS, (), Request(verb="deletecollection", kind="Pod", namespace="d")),
        ("DELETE", "/api/v1/nodes", (), Request(verb="deletecollection", kind="Node")),
    ],
)
def test_method_path_and_query_are_a_request(
    method: str, path: str, query: tuple[tuple[str, str], ...], expected: Request
) -> None:
    assert brought(method, path, *query) == expected


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", POD),
        ("PUT", PODS),
        ("PATCH", PODS),
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/pods"),
        ("HEAD", POD),
        ("OPTIONS", PODS),
        ("BREW", PODS),
        ("POST", "/api/v1/watch/nodes"),
    ],
)
def test_an_unsupported_method_is_not_allowed(method: str, path: str) -> None:
    assert refusal(method, path)[0] == 405


def test_a_name_is_not_a_path() -> None:
    assert refusal("GET", f"{PODS}/..") == (400, "Name parameter invalid: \"..\": may not be '..'")


def test_an_object_leaves_open_what_the_path_says() -> None:
    body = {"metadata": {"name": "a"}}
    assert brought("POST", PODS, body=body).body == {"apiVersion": "v1", "kind": "Pod", **body}
    assert brought("POST", PODS, body=pod("a")).body == pod("a")


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        (PODS, {**pod("a"), "apiVersion": "v2"}, "does not match the expected API version"),
        (PODS, {**pod("a"), "kind": "Node"}, "cannot be handled as a Pod"),
        (PODS, {**pod("a"), "apiVersion": [None]}, "does not match"),
        (PODS, {**pod("a"), "kind": {}}, "cannot be handled as a Pod"),
        (PODS, [], "a list"),
        (PODS, None, "null"),
        (f"{POD}/eviction", {"apiVersion": "policy/v2", "kind": "Eviction"}, "does not match"),
        (f"{POD}/binding", pod("a"), "cannot be handled as a Binding"),
        ("/apis/example.com/v1/widgets", {"apiVersion": "example.com/v1"}, "Object 'Kind' is missing"),
    ],
)
def test_an_object_of_another_kind_than_the_paths_is_a_bad_request(path: str, body: Any, problem: str) -> None:
    code, message = refusal("POST", path, body=body)
    assert code == 400
    assert problem in message


def test_an_eviction_may_be_of_the_older_version() -> None:
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert brought("POST", f"{POD}/eviction", body=body).body["apiVersion"] == "policy/v1"


def test_options_in_the_body_go_before_those_of_the_query() -> None:
    body = {"kind": "DeleteOptions", "gracePeriodSeconds": 5}
    assert brought("DELETE", POD, ("gracePeriodSeconds", "0"), body=body).body == body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (pod("a"), 400),
        ([], 400),
        ({"dryRun": ["Some"]}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"propagationPolicy": "Sideways"}, 422),
    ],
)
def test_invalid_delete_options_are_rejected(body: Any, code: int) -> None:
    assert refusal("DELETE", POD, body=body)[0] == code


def test_a_watch_of_one_object_does_not_ask_for_others() -> None:
    assert refusal("GET", POD, ("watch", "1"), ("fieldSelector", "metadata.name=b"))[0] == 400


def test_omitted_request_fields_have_the_callers_defaults() -> None:
    place = place_of(PODS, APIResources())
    assert place is not None
    request = partial(request_of, user=User("me", ("us",)), field_manager="kubectl", field_validation="Warn")
    said = (("fieldManager", "mine"), ("fieldValidation", "Strict"))
    quiet = request(incoming_request("POST", place, read_parameters(())), pod("a"))
    report = request(incoming_request("POST", place, read_parameters(said)), pod("a"))
    assert (quiet.identity.groups, report.identity.groups) == (("us",), ("us",))
    assert (quiet.user, quiet.field_manager, quiet.field_validation) == ("me", "kubectl", "Warn")
    assert (report.user, report.field_manager, report.field_validation) == ("me", "mine", "Strict")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "Object 'apiVersion' is missing"),
        ({"apiVersion": "v1"}, "Object 'Kind' is missing"),
        ({"apiVersion": "v2", "kind": "Pod"}, "Specified patch version: v2, expected: v1"),
    ],
)
def test_an_applied_object_must_state_its_version(body: Any, problem: str) -> None:
    place = place_of(POD, APIResources())
    assert place is not None
    patch = incoming_request("PATCH", place, read_parameters([("fieldManager", "me")]))

    with pytest.raises(StoreError, match=problem) as caught:
        request_of(patch, body, "apply")

    assert caught.value.code == 400
