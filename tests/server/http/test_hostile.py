"""Mistaken and malicious requests get kube-apiserver's answers: code, reason, and part of the message."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.server.serving import NOW, PODS, Client, LocalBackend, with_server
from tests.store.objects import Raw, node, pod, priority_class, running
from tests.store.objects import budget as used_up

A = f"{PODS}/a"
NODES = "/api/v1/nodes"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
LIMIT = 3 * 1024 * 1024
YAML = "application/yaml"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)


class Sent(NamedTuple):
    """A request and the expected answer; `part` of the message."""

    method: str
    path: str
    code: int
    reason: str = ""
    part: str = ""
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})


def posted(body: Any, code: int, reason: str = "", part: str = "", **headers: str) -> Sent:
    return Sent(
        "POST", PODS, code, reason, part, body, {name.replace("_", "-"): text for name, text in headers.items()}
    )


def patched(body: Any, code: int, reason: str, type_: str = "merge-patch", path: str = A) -> Sent:
    return Sent("PATCH", path, code, reason, body=body, headers={"Content-Type": f"application/{type_}+json"})


def with_requests(amount: Any, **limits: Any) -> Raw:
    main = {"name": "main", "image": "i", "resources": {"requests": {"cpu": amount}, "limits": limits}}
    return pod("q", spec={"containers": [main]})


def with_device(amount: str) -> Raw:
    resources = {"requests": {"example.com/gpu": amount}, "limits": {"example.com/gpu": amount}}
    return pod("d", spec={"containers": [{"name": "main", "image": "i", "resources": resources}]})


def owner(name: str) -> Raw:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}


def with_metadata(**metadata: Any) -> Raw:
    return pod("n", metadata=metadata)


def named(name: str) -> Raw:
    return {"metadata": {"name": name}}


def budget(**spec: Any) -> Raw:
    spec = {"selector": {"matchLabels": {"a": "b"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}


def raw_pod(*more: str) -> bytes:
    """Return a pod as text, with further fields of its metadata."""
    return ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"t"' + "".join(more) + "}}").encode()


BODIES = {
    "B01 aliases that unfold": posted(BOMB.encode(), 400, "BadRequest", Content_Type=YAML),
    "B01 an alias of itself": posted(b"a: &a [*a]", 400, "BadRequest", Content_Type=YAML),
    "B02 brackets in JSON": posted(b"[" * (LIMIT - 1), 400, "BadRequest"),
    "B02 brackets in YAML": posted(b"[" * (LIMIT - 1), 400, "BadRequest", Content_Type=YAML),
    "B02 objects deep in one another": posted(b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "BadRequest"),
    "B02 a patch too deep": patched(b'{"a":' * 900 + b"1" + b"}" * 900, 400, "BadRequest"),
    "B03 too long": posted(b" " * (LIMIT + 1), 413, "RequestEntityTooLarge", "limit is 3145728"),
    "B03 too long once unpacked": posted(
        gzip.compress(b" " * (LIMIT + 1)), 413, "RequestEntityTooLarge", Content_Encoding="gzip"
    ),
    "B03 a deletion too long": Sent("DELETE", A, 413, "RequestEntityTooLarge", body=b" " * (LIMIT + 1)),
    "B04 empty": posted(b"", 400, "BadRequest"),
    "B04 truncated": posted(b'{"apiVersion":"v1","kind', 400, "BadRequest"),
    "B04 not UTF-8": posted(b'{"kind":"\xff\xfe"}', 400, "BadRequest"),
    "B04 half a character": posted(b'{"kind":"\\ud800"}', 400, "BadRequest"),
    "B04 not gzip": posted(b"not gzip", 400, "BadRequest", Content_Encoding="gzip"),
    "B04 more than one": posted(b"{}{}", 400, "BadRequest"),
    "B04 a list": posted(b"[]", 400, "BadRequest"),
    "B04 null": posted(b"null", 400, "BadRequest"),
    "B05 too many operations": patched(
        [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001, 413, "RequestEntityTooLarge", "json-patch"
    ),
    "B05 a test that fails": patched([{"op": "test", "path": "/kind", "value": "x"}], 422, "Invalid", "json-patch"),
    "B05 a path that is not": patched([{"op": "remove", "path": "/x/y"}], 422, "Invalid", "json-patch"),
    "B05 no patch": patched({"op": "remove"}, 400, "BadRequest", "json-patch"),
    "B06 unknown fields": Sent(
        "POST", f"{PODS}?fieldValidation=Strict", 400, "BadRequest", "unknown field", {**pod("s"), "sepc": {}}
    ),
    "B06 a field twice": Sent(
        "POST",
        f"{PODS}?fieldValidation=Strict",
        400,
        "BadRequest",
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "metadata.x", '
        'duplicate field "metadata.name"',
        raw_pod(',"x":1,"name":"t"'),
    ),
    "B06 a key twice in YAML": Sent(
        "POST",
        f"{PODS}?fieldValidation=Strict",
        400,
        "BadRequest",
        'strict decoding error: yaml: unmarshal errors:\n  line 4: key "name" already set in map, unknown field "x"',
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: a,\n  name: b}\nx: 1\n",
        {"Content-Type": YAML},
    ),
    "B06 a key twice in YAML that is applied": Sent(
        "PATCH",
        f"{A}?fieldManager=m&fieldValidation=Strict",
        400,
        "BadRequest",
        'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key "kind"',
        b"apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n",
        {"Content-Type": "application/apply-patch+yaml"},
    ),
    "B06 an unknown field that is applied": Sent(
        "PATCH",
        f"{A}?fieldManager=m&fieldValidation=Ignore",
        500,
        "",
        "failed to create typed patch object (default/a; v1, Kind=Pod): .spec.sepc: field not declared in schema",
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {sepc: 1}\n",
        {"Content-Type": "application/apply-patch+yaml"},
    ),
    "B07 of no type": posted(pod("s"), 415, "UnsupportedMediaType", Content_Type="text/plain"),
    "B07 a patch of no type": patched({}, 415, "UnsupportedMediaType", "some-patch"),
    "B07 nothing is accepted": Sent("GET", PODS, 406, "NotAcceptable", headers={"Accept": "text/html"}),
    "B08 another version": posted({**pod("s"), "apiVersion": "v2"}, 400, "BadRequest", "does not match"),
    "B08 another kind": posted(node("n"), 400, "BadRequest"),
    "B15 not a number": posted(raw_pod(',"x":NaN'), 400, "BadRequest"),
    "B15 infinity": posted(raw_pod(',"x":-Infinity'), 400, "BadRequest"),
    "B15 too large": posted(raw_pod(',"generation":1e999'), 400, "BadRequest"),
    "B15 thousands of digits": posted(raw_pod(',"generation":', "9" * 5000), 400, "BadRequest"),
}
QUANTITIES = {
    f"B10 {text!r}": posted(with_requests(text), 400, "BadRequest")
    for text in ("", "abc", "NaN", "1.5.5", "1 Gi", "1gi", "\u0661", "1_000", "1" * 200_000)
} | {
    "B11 a huge exponent": posted(with_requests("1e9223372036854775807"), 400, "BadRequest"),
    "B12 huge": posted(with_requests("9999999Ei"), 201),
    "B12 much of a core": posted(pod("much", cpu="1E"), 201),
    "B13 negative": posted(with_requests("-1"), 422, "Invalid", "must be greater than or equal to 0"),
    "B14 request above limit": posted(with_requests("2", cpu="1"), 422, "Invalid"),
    "B14 half a device": posted(with_device("500m"), 422, "Invalid", "must be an integer"),
}
NAMES = {
    "B20 a name that is none": posted(pod("A_b"), 422, "Invalid"),
    "B20 a label that is none": posted(with_metadata(labels={"a b": "c"}), 422, "Invalid"),
    "B20 a label too long": posted(with_metadata(labels={"a": "c" * 64}), 422, "Invalid"),
    "B21 up": Sent("GET", f"{PODS}/..", 400, "BadRequest", "may not be '..'"),
    "B21 up, written otherwise": Sent("GET", f"{PODS}/%2e%2e", 400, "BadRequest"),
    "B21 a slash": Sent("GET", f"{PODS}/a%2fb", 404, "NotFound"),
    "B21 a percent sign": Sent("GET", f"{PODS}/a%25b", 400, "BadRequest", "may not contain '%'"),
    "B21 NUL": Sent("GET", f"{PODS}/a%00b", 404, "NotFound"),
    "B21 long": Sent("GET", f"{PODS}/{'a' * 100_000}", 404, "NotFound"),
    "B22 another name": Sent("PUT", A, 400, "BadRequest", body=pod("b")),
    "B22 another namespace": posted(pod("s", namespace="other"), 400, "BadRequest"),
    "B22 an eviction of another": Sent(
        "POST", f"{A}/eviction", 400, "BadRequest", body={"kind": "Eviction", "metadata": {"name": "b"}}
    ),
    "B23 annotations too long": posted(with_metadata(annotations={"a": "x" * 262_145}), 422, "Invalid"),
    "B24 labels in no grammar": Sent("GET", f"{PODS}?labelSelector=a+in+(", 400, "BadRequest"),
    "B24 labels with nothing": Sent("GET", f"{PODS}?labelSelector=a==b,,", 400, "BadRequest"),
    "B24 an unknown field": Sent("GET", f"{PODS}?fieldSelector=spec.x%3D1", 400, "BadRequest", "field label not"),
    "B25 both bounds": Sent(
        "POST", BUDGETS, 422, "Invalid", "cannot be both set", budget(minAvailable=1, maxUnavailable=1)
    ),
    "B25 more than all": Sent("POST", BUDGETS, 422, "Invalid", body=budget(minAvailable="101%")),
    "B25 negative": Sent("POST", BUDGETS, 422, "Invalid", body=budget(minAvailable=-1)),
    "B27 an unknown class": posted(
        pod("s", spec={"priorityClassName": "none"}), 403, "Forbidden", "no PriorityClass with name none was found"
    ),
    "B27 another priority": posted(pod("s", priority=7, spec={"priorityClassName": "high"}), 403, "Forbidden"),
}
NAMES |= {
    "B28 many labels": posted(pod("many", labels={f"label-{number}": "value" for number in range(20_000)}), 201),
    "B28 many containers": posted(
        pod("c", spec={"containers": [{"name": f"c{number}", "image": "i"} for number in range(5_000)]}), 422, "Invalid"
    ),
    "B29 two controllers": posted(with_metadata(ownerReferences=[owner("a"), owner("b")]), 422, "Invalid"),
    "B29 a topology of nothing": posted(
        pod(
            "t",
            spec={
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}]
            },
        ),
        422,
        "Invalid",
    ),
}
PROTOCOL = {
    "B34 no version": Sent("GET", f"{PODS}?watch=1&resourceVersion=x", 400, "BadRequest", "Invalid value"),
    "B34 no version in a list": Sent("GET", f"{PODS}?resourceVersion=x", 400, "BadRequest", "Invalid value"),
    "B34 a version to come": Sent("GET", f"{PODS}?resourceVersion=999999", 504, "Timeout"),
    "B35 a match of nothing": Sent("GET", f"{PODS}?resourceVersionMatch=Exact", 422, "Invalid"),
    "B35 exactly any": Sent("GET", f"{PODS}?resourceVersionMatch=Exact&resourceVersion=0", 422, "Invalid"),
    "B35 initial events of a list": Sent("GET", f"{PODS}?sendInitialEvents=true", 422, "Invalid"),
    "B35 half a dry run": Sent("POST", f"{PODS}?dryRun=Some", 422, "Invalid", "dryRun", pod("s")),
    "B35 half a dry deletion": Sent("DELETE", A, 422, "Invalid", "dryRun", {"dryRun": ["Some"]}),
    "B35 no manager": Sent("POST", f"{PODS}?fieldManager={'m' * 129}", 422, "Invalid", "fieldManager", pod("s")),
    "B36 a token of nobody": Sent("GET", f"{PODS}?limit=1&continue=abc", 400, "BadRequest"),
    "B36 a limit that is none": Sent("GET", f"{PODS}?limit=many", 400, "BadRequest"),
    "B37 an eviction read": Sent("GET", f"{A}/eviction", 405, "MethodNotAllowed"),
    "B37 an eviction patched": patched({}, 405, "MethodNotAllowed", path=f"{A}/eviction"),
    "B37 an eviction patched with nothing": patched(None, 405, "MethodNotAllowed", path=f"{A}/eviction"),
    "B37 an object posted": Sent("POST", A, 405, "MethodNotAllowed", body=pod("a")),
    "B37 everywhere": Sent("POST", "/api/v1/pods", 405, "MethodNotAllowed", body=pod("a")),
    "B37 HEAD": Sent("HEAD", A, 405),
    "B37 OPTIONS": Sent("OPTIONS", A, 405, "MethodNotAllowed"),
    "B37 a method of others": Sent("PROPFIND", A, 405, "MethodNotAllowed"),
    "B37 a method of nobody": Sent("BREW", A, 400, "BadRequest"),
    "B37 no such subresource": Sent("GET", f"{A}/nothing", 404, "NotFound"),
    "B37 what needs containers": Sent("GET", f"{A}/log", 501, "", "containers"),
    "no such kind": Sent("GET", "/api/v1/unknowns", 404, "NotFound", "the server could not find"),
    "B40 there already": posted(pod("a"), 409, "AlreadyExists"),
    "B40 stale": Sent("PUT", A, 409, "Conflict", body=pod("a", metadata={"resourceVersion": "1"})),
    "B40 another uid": Sent("DELETE", A, 409, "Conflict", body={"preconditions": {"uid": "x"}}),
    "B41 what stays": patched({"spec": {"containers": [{"name": "x", "image": "i"}]}}, 422, "Invalid"),
    "options that contradict": Sent(
        "DELETE", A, 422, "Invalid", body={"propagationPolicy": "Orphan", "orphanDependents": True}
    ),
    "options of another kind": Sent("DELETE", A, 400, "BadRequest", body=pod("a")),
    "a binding to nothing": Sent(
        "POST", f"{A}/binding", 500, body={**named("a"), "kind": "Binding", "target": {"kind": "Pod", "name": "n"}}
    ),
    "a binding of another": Sent(
        "POST",
        f"{A}/binding",
        409,
        "Conflict",
        body={"metadata": {"name": "a", "uid": "x"}, "target": {"kind": "Node", "name": "n"}},
    ),
    "a binding once more": Sent(
        "POST",
        f"{PODS}/b/binding",
        409,
        "Conflict",
        "already assigned",
        {**named("b"), "target": {"kind": "Node", "name": "n2"}},
    ),
    "a binding of nobody": Sent(
        "POST",
        f"{PODS}/none/binding",
        404,
        "NotFound",
        body={**named("none"), "target": {"kind": "Node", "name": "n1"}},
    ),
    "a binding without a name": Sent(
        "POST", f"{A}/binding", 400, "BadRequest", "name in URL", {"target": {"kind": "Node", "name": "n"}}
    ),
    "an eviction without a name": Sent("POST", f"{A}/eviction", 400, "BadRequest", "name in URL", {}),
    "an update without a name": Sent("PUT", A, 400, "BadRequest", "name must be provided", {"metadata": {}}),
    "a new object that has a version": posted(with_metadata(resourceVersion="5"), 500, part="should not be set"),
    "an object at a version to come": Sent("GET", f"{A}?resourceVersion=999999", 504, "Timeout", "too large"),
    "an object at no version": Sent("GET", f"{A}?resourceVersion=x", 400, "BadRequest"),
    "an eviction of another uid": Sent(
        "POST",
        f"{PODS}/b/eviction",
        409,
        "Conflict",
        body={**named("b"), "deleteOptions": {"preconditions": {"uid": "x"}}},
    ),
    "an eviction beyond the budget": Sent(
        "POST", f"{PODS}/b/eviction", 429, "TooManyRequests", body={"metadata": {"name": "b"}}
    ),
    "many parameters": Sent("GET", f"{PODS}?{'a=1&' * 2000}", 400, "BadRequest"),
    "a client that cannot wait": Sent("POST", f"{PODS}?timeout=soon", 400, "BadRequest", "timeout", pod("s")),
}
ALL = BODIES | QUANTITIES | NAMES | PROTOCOL


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[int, Any]]:
    """Provide the answer to each, all of one server, which is as well afterwards as before."""
    found: dict[str, tuple[int, Any]] = {}

    async def check(client: Client) -> None:
        await client.ask("POST", PODS, pod("a"))
        for name, sent in ALL.items():
            found[name] = await client.ask(sent.method, sent.path, sent.body, headers=sent.headers)
        assert (await client.ask("GET", "/healthz"))[0] == 200

    with_server(check, node("n1"), priority_class("high", 1000), running("b"), used_up(allowed=0))
    return found


@pytest.mark.parametrize("name", ALL)
def test_each_is_answered_as_kube_apiserver_does(name: str, answers: dict[str, tuple[int, Any]]) -> None:
    sent, (code, status) = ALL[name], answers[name]
    assert code == sent.code, status
    if sent.reason:
        assert (status["kind"], status["code"], status["reason"]) == ("Status", code, sent.reason)
        assert sent.part in status["message"]
    assert "Traceback" not in json.dumps(status)


def test_b36_an_expired_token_is_reported_as_expired() -> None:
    async def check(client: Client) -> None:
        _, page = await client.ask("GET", f"{PODS}?limit=1")
        for number in range(200):
            client.backend.store.create(pod(f"p{number}"), now=NOW)
        client.backend.store.log.compact(client.backend.store.version)
        code, status = await client.ask("GET", f"{PODS}?limit=1&continue={page['metadata']['continue']}")
        assert (code, status["reason"]) == (410, "Expired")

    with_server(check, pod("a"), pod("b"))


def test_b39_nothing_comes_into_a_namespace_that_is_not_there_or_about_to_go() -> None:
    backend = LocalBackend(require_namespaces=True)
    ending: Raw = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "ending", "deletionTimestamp": "2026-01-31T09:30:00Z"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Terminating"},
    }
    backend.store.create(ending, now=0)

    async def check(client: Client) -> None:
        code, status = await client.ask("POST", PODS, pod("a"))
        assert (code, status["reason"]) == (404, "NotFound")
        code, status = await client.ask("POST", "/api/v1/namespaces/ending/pods", pod("a", namespace="ending"))
        assert (code, status["reason"]) == (403, "Forbidden")
        assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"

    with_server(check, backend=backend)
