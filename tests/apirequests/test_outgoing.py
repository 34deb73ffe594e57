"""Outgoing requests: a server reads what the client asked for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.apirequests.http_mapping import (
    JSON,
    HTTPRequest,
    error_of,
    http_request,
    incoming_request,
    patch_type,
    place_of,
    request_of,
    response_of,
)
from podium.apirequests.parameters import read_parameters
from podium.apirequests.request import Request
from podium.store.api_resources import APIResources
from podium.store.listing import ListOptions

RESOURCES = APIResources()
names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,9}[a-z0-9])?", fullmatch=True)
words = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=12)


def read(sent: HTTPRequest) -> Request:
    place = place_of(sent.path, RESOURCES)
    assert place is not None
    body = None if sent.body is None else json.loads(sent.body)
    kind = patch_type(sent.content_type) if sent.method == "PATCH" else "merge"
    return request_of(incoming_request(sent.method, place, read_parameters(sent.query)), body, kind)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    resource = draw(st.sampled_from([resource for resource in RESOURCES.all() if resource.served_versions]))
    verb: Any = draw(st.sampled_from(["get", "list", "watch", "create", "update", "patch", "delete"]))
    namespace = draw(names) if resource.namespaced else ""
    name = draw(names)
    key = f"{namespace}/{name}" if namespace else name
    body: Any = None
    version = draw(st.sampled_from(resource.served_versions))
    more: dict[str, Any] = {} if version == resource.api_version else {"api_version": version}
    if verb in ("list", "watch"):
        more["options"] = ListOptions(
            label_selector=draw(words),
            field_selector=draw(words),
            resource_version=draw(st.sampled_from(["", "0", "17"])),
            limit=draw(st.sampled_from([0, 500])) if verb == "list" else 0,
            continue_token=draw(words),
            send_initial_events=draw(st.sampled_from([None, True, False])) if verb == "watch" else None,
        )
        return Request(verb=verb, kind=resource.name, namespace=draw(st.sampled_from(["", namespace])), **more)
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    if verb in ("create", "update"):
        body = {"apiVersion": version, "kind": resource.kind, "metadata": metadata}
    if verb == "patch":
        body, more["patch_type"] = (
            {"metadata": {"labels": {"a": draw(words)}}},
            draw(st.sampled_from(["merge", "strategic", "apply"])),
        )
        more["force"] = more["patch_type"] == "apply" and draw(st.booleans())
        if more["patch_type"] == "apply":
            body |= {"apiVersion": version, "kind": resource.kind}
    if verb != "get":
        more["dry_run"] = draw(st.booleans())
    if verb in ("create", "update", "patch"):
        more["field_manager"] = draw(names)
        more["field_validation"] = draw(st.sampled_from(["", "Warn", "Strict"]))
    if verb == "create":
        return Request(verb=verb, kind=resource.name, namespace=namespace, body=body, **more)
    return Request(verb=verb, kind=resource.name, key=key, body=body, **more)


@given(requests())
def test_a_server_reads_what_was_asked_for(request: Request) -> None:
    assert read(http_request(request, RESOURCES)) == request


def test_a_subresource_is_written_at_the_path_of_its_object() -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": {"name": "n1"}}
    request = Request(verb="create", kind="Pod", key="default/web", subresource="binding", body=body)

    sent = http_request(request, RESOURCES)

    assert (sent.method, sent.path, sent.content_type) == ("POST", "/api/v1/namespaces/default/pods/web/binding", JSON)
    assert read(sent) == request


def test_a_watch_asks_for_bookmarks_and_for_its_end() -> None:
    sent = http_request(Request(verb="watch", kind="Node"), RESOURCES, timeout_seconds=300, bookmarks=True)

    assert dict(sent.query) == {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "300"}


def test_an_object_goes_to_its_own_namespace_and_one_that_names_none_to_the_default() -> None:
    created = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "kube-system"}}
    plain = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}

    paths = [http_request(Request(verb="create", kind="Event", body=body), RESOURCES).path for body in (created, plain)]

    assert paths == ["/api/v1/namespaces/kube-system/events", "/api/v1/namespaces/default/events"]


@pytest.mark.parametrize("key", ["default/a/b", "a/b/c/d"])
def test_a_key_that_no_path_can_name_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="slash"):
        http_request(Request(verb="get", kind="Pod", key=key), RESOURCES)


def test_a_refusal_is_what_its_status_says() -> None:
    body = {
        "kind": "Status",
        "reason": "TooManyRequests",
        "message": "budget",
        "details": {"retryAfterSeconds": 10, "causes": [{"reason": "DisruptionBudget"}]},
    }

    error = response_of(429, body, retry_after_s=3).error

    assert error is not None
    assert (error.code, error.reason, error.message) == (429, "TooManyRequests", "budget")
    assert error.details == {"retryAfterSeconds": 10, "causes": [{"reason": "DisruptionBudget"}]}


@pytest.mark.parametrize("body", [None, {}, {"kind": "Pod"}, {"kind": "Status", "reason": 3, "details": "none"}])
def test_an_error_without_status_is_a_rejection(body: Any) -> None:
    error = error_of(503, body, retry_after_s=2)

    assert (error.code, error.reason, error.details) == (503, "ServiceUnavailable", {"retryAfterSeconds": 2})


@pytest.mark.parametrize("details", [{"retryAfterSeconds": "soon"}, {"causes": "many"}, {"causes": ["one"]}, "none"])
def test_details_that_are_not_of_their_types_are_left_out(details: object) -> None:
    error = error_of(409, {"kind": "Status", "code": 409, "reason": "Conflict", "details": details})

    assert (error.code, error.reason, error.details) == (409, "Conflict", {})
