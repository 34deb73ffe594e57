"""The formats of replies, and their headers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from podium.api.input.yaml import Dumper, parse_documents
from podium.apirequests.authorization import User
from podium.server.backend import ServedDocument
from podium.server.http.security import ServerSettings
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.server.protobuf import encode
from podium.server.reviews import ADMINISTRATOR
from podium.store.api_resources import APIResource
from tests.server.serving import PODS, Client, LocalBackend, with_server
from tests.store.objects import Raw, budget, node, pod, running

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"}

_UNREAD = "the object provided is unrecognized (must be of type Pod): "


REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Documents(KubernetesDocuments):
    """Tables of names, one document, and one place where something may be posted."""

    def document(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        accept: str = "",
        body: Any = None,
        user: User = ADMINISTRATOR,
    ) -> ServedDocument | None:
        if path == REVIEW:
            return ServedDocument(body=json.dumps([body, user.name]).encode(), code=201)
        return ServedDocument(body=b'{"kind":"APIVersions"}', etag='"1"') if path == "/api" else None

    def table(self, resource: APIResource, objects: Sequence[Raw], now: int, include_object: str, version: str) -> Raw:
        rows = [{"cells": [raw["metadata"]["name"]], "include": include_object} for raw in objects]
        return {"kind": "Table", "apiVersion": version, "columnDefinitions": [{"name": "Name"}], "rows": rows}


def parsed(data: bytes) -> Any:
    ((_, value),) = parse_documents(data.decode())
    return value


def test_a_table_is_returned_to_clients_that_request_one() -> None:
    async def check(client: Client) -> None:
        response, data = await client.reply("GET", f"{PODS}?limit=1&includeObject=Object", headers=TABLE)
        table = json.loads(data)
        assert response.headers["Content-Type"] == "application/json;as=Table;v=v1;g=meta.k8s.io"
        assert table["rows"] == [{"cells": ["a"], "include": "Object"}]
        assert table["metadata"]["continue"]
        assert table["metadata"]["remainingItemCount"] == 1
        _, of_one = await client.ask("GET", f"{PODS}/b", headers=TABLE)
        assert (of_one["kind"], of_one["rows"][0]["cells"]) == ("Table", ["b"])
        code, refusal = await client.ask("GET", f"{PODS}/c", headers=TABLE)
        assert (code, refusal["kind"]) == (404, "Status")

    with_server(check, pod("a"), pod("b"), documents=Documents(LocalBackend()))


def test_a_table_watch_defines_its_columns_once() -> None:
    async def check(client: Client) -> None:
        async with client.watch(f"{PODS}?watch=1", **TABLE) as watcher:
            first, second = await watcher.next(), await watcher.next()
        assert first["object"]["columnDefinitions"] == [{"name": "Name"}]
        assert first["object"]["rows"][0]["cells"] == ["a"]
        assert first["object"]["metadata"] == {"resourceVersion": "1"}
        assert "columnDefinitions" not in second["object"]
        assert second["object"]["rows"][0]["cells"] == ["b"]

    with_server(check, pod("a"), pod("b"), documents=Documents(LocalBackend()))


def test_metadata_alone_is_returned_on_request() -> None:
    async def check(client: Client) -> None:
        _, listed = await client.ask("GET", PODS, headers=METADATA_LIST)
        assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
        assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}
        _, of_one = await client.ask("GET", f"{PODS}/a", headers=METADATA)
        assert (of_one["kind"], of_one["metadata"]["name"]) == ("PartialObjectMetadata", "a")
        async with client.watch(f"{PODS}?watch=1", **METADATA) as watcher:
            assert (await watcher.next())["object"] == of_one
        for path, headers in ((PODS, METADATA), (f"{PODS}/a", METADATA_LIST)):
            code, status = await client.ask("GET", path, headers=headers)
            assert (code, status["reason"]) == (406, "NotAcceptable")

    with_server(check, pod("a"))


def test_a_rejected_eviction_states_the_wait_in_its_details_without_retry_after() -> None:
    async def check(client: Client) -> None:
        bodies = [
            json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": f"web-{number}"}}).encode()
            for number in range(2)
        ]
        first, _ = await client.reply("POST", f"{PODS}/web-0/eviction", bodies[0])
        response, data = await client.reply("POST", f"{PODS}/web-1/eviction", bodies[1])
        assert (first.status, response.status) == (201, 429)
        status = json.loads(data)
        assert "Retry-After" not in response.headers
        assert 3_500 < status["details"]["retryAfterSeconds"] <= 3_600
        assert "the next is allowed at " in status["message"]

    with_server(check, *(running(f"web-{number}") for number in range(2)), budget(allowed=9, rate="1/1h"))


def test_yaml_is_written_and_read() -> None:
    async def check(client: Client) -> None:
        headers = {"Content-Type": "application/yaml", "Accept": "application/yaml"}
        response, data = await client.reply("POST", PODS, yaml.dump(pod("y"), Dumper=Dumper).encode(), headers=headers)
        assert (response.status, response.content_type) == (201, "application/yaml")
        assert parsed(data)["metadata"]["name"] == "y"
        _, listed = await client.reply("GET", PODS, headers=headers)
        assert [item["metadata"]["name"] for item in parsed(listed)["items"]] == ["y"]
        assert (await client.ask("GET", f"{PODS}?watch=1", headers=headers))[0] == 406

    with_server(check)


def test_bodies_in_protobuf_are_read() -> None:
    headers = {"Content-Type": "application/vnd.kubernetes.protobuf"}

    async def check(client: Client) -> None:
        code, made = await client.ask("POST", PODS, encode(pod("from-protobuf")), headers=headers)
        assert (code, made["metadata"]["name"]) == (201, "from-protobuf")
        code, refusal = await client.ask("POST", PODS, b"x", headers=headers)
        assert (code, refusal["message"]) == (
            400,
            f"{_UNREAD}protobuf: the body does not begin as Kubernetes' objects do",
        )

    with_server(check)


def test_long_replies_are_compressed_if_the_client_accepts_it() -> None:
    async def check(client: Client) -> None:
        headers = {"Accept-Encoding": "gzip"}
        async with client.session.get(client.server.address + PODS, headers=headers) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            packed = await response.json()
        plain, data = await client.reply("GET", PODS, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers
        assert json.loads(data) == packed
        short, _ = await client.reply("GET", f"{PODS}/p1", headers=headers)
        assert "Content-Encoding" not in short.headers

    with_server(check, *(pod(f"p{number}", annotations={"a": "x" * 50_000}) for number in range(12)))


def test_a_body_may_be_packed() -> None:
    async def check(client: Client) -> None:
        body = gzip.compress(json.dumps(pod("a")).encode())
        assert (await client.ask("POST", PODS, body, headers={"Content-Encoding": "gzip"}))[0] == 201
        assert (await client.ask("POST", PODS, body, headers={"Content-Encoding": "br"}))[0] == 415

    with_server(check)


@pytest.mark.parametrize(
    ("path", "agent", "is_pretty"),
    [
        (f"{PODS}/a?pretty=true", "", True),
        (f"{PODS}/a", "curl/8", True),
        (f"{PODS}/a?pretty=0", "curl/8", False),
        (f"{PODS}/none", "curl/8", True),
        (PODS, "curl/8", True),
        ("/version", "curl/8", True),
        ("/version", "kubectl/v1.36.2", False),
    ],
)
def test_json_is_in_lines_for_the_eyes(path: str, agent: str, is_pretty: bool) -> None:
    async def check(client: Client) -> None:
        _, data = await client.reply("GET", path, headers={"User-Agent": agent})
        assert (b"\n" in data) is is_pretty

    with_server(check, pod("a"))


def test_warning_headers_escape_control_characters() -> None:
    async def check(client: Client) -> None:
        body = {**pod("a"), 'x"\r\nSet-Cookie: \u20ac': 1, "spec": {**pod("a")["spec"], "nodeNmae": "n"}}
        response, _ = await client.reply("POST", PODS, body)
        warnings = response.headers.getall("Warning")
        assert all(warning.startswith('299 - "') and warning.endswith('"') for warning in warnings)
        assert any('unknown field \\"spec.nodeNmae\\"' in warning for warning in warnings)
        assert "Set-Cookie" not in response.headers

    with_server(check)


DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DOUBTFUL = """{
  "paused": true, "zone": "z", "odd": 1, "odd": 2, "paused": false,
  "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
    {"name": "m", "image": "i", "size": 1, "tty": true, "tty": false}
  ]}}
}"""
WHOLE = f'{{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {{"name": "a"}}, "spec": {DOUBTFUL}}}'
INNER = "template.spec.containers[0]"
ODD, ZONE, SIZE = (f'unknown field "spec.{name}"' for name in ("odd", "zone", f"{INNER}.size"))
PAUSED, ODD_TWICE, TTY = (f'duplicate field "spec.{name}"' for name in ("paused", "odd", f"{INNER}.tty"))
LINES = [f'line {line}: key "{key}" already set in map' for line, key in ((2, "odd"), (2, "paused"), (4, "tty"))]
OPERATIONS = """[
  {"op": "add", "path": "/spec/zone", "value": 1, "why": "x"},
  {"op": "add", "path": "/x", "path": "/spec/odd", "value": 1}
]"""
APPLIED = '{"apiVersion": "apps/v1", "kind": "Deployment",\n"kind": "Deployment", "metadata": {"name": "a"}}'


@pytest.mark.parametrize(
    ("method", "type_", "body", "problems"),
    [
        # As written; a field that is unknown is not reported as repeated as well.
        ("POST", "application/json", WHOLE, [ZONE, ODD, PAUSED, SIZE, TTY]),
        ("PUT", "application/json", WHOLE, [ZONE, ODD, PAUSED, SIZE, TTY]),
        # The repeated fields of what was sent, then the unknown ones of what was made of it.
        ("POST", "application/yaml", WHOLE, [*LINES, ODD, SIZE, ZONE]),
        (
            "PATCH",
            "application/merge-patch+json",
            f'{{"spec": {DOUBTFUL}}}',
            [ODD_TWICE, PAUSED, TTY, ODD, SIZE, ZONE],
        ),
        (
            "PATCH",
            "application/json-patch+json",
            OPERATIONS,
            ['json patch unknown field "[0].why"', 'json patch duplicate field "[1].path"', ODD, ZONE],
        ),
        (
            "PATCH",
            "application/apply-patch+yaml",
            APPLIED,
            ['line 2: key "kind" already set in map'],
        ),
    ],
)
def test_unknown_and_repeated_fields_are_reported_in_the_order_of_upstream(
    method: str, type_: str, body: str, problems: list[str]
) -> None:
    """[TestFieldValidation]"""
    sound = {**json.loads(WHOLE), "spec": {name: json.loads(DOUBTFUL)[name] for name in ("selector", "template")}}
    del sound["spec"]["template"]["spec"]["containers"][0]["size"]
    path, data = DEPLOYMENTS if method == "POST" else f"{DEPLOYMENTS}/a", body.encode()

    async def check(client: Client) -> None:
        headers = {"Content-Type": type_}
        response, _ = await client.reply(method, f"{path}?fieldManager=m&dryRun=All", data, headers=headers)
        warnings = [warning[7:-1].replace('\\"', '"') for warning in response.headers.getall("Warning")]
        assert warnings == problems
        response, refused = await client.reply(
            method, f"{path}?fieldManager=m&fieldValidation=Strict", data, headers=headers
        )
        assert response.status == 400
        places = [json.loads(refused)["message"].index(problem) for problem in problems]
        assert places == sorted(places)

    with_server(check, *(() if method == "POST" else [sound]))


@pytest.mark.parametrize(
    ("mode", "code", "warns"), [("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)]
)
def test_the_last_of_duplicate_fields_wins(mode: str, code: int, warns: bool) -> None:
    body = b'{"kind":"ConfigMap","metadata":{"name":"a","name":"b"},"data":{"k":"\\u00e9"}}'

    async def check(client: Client) -> None:
        path = f"/api/v1/namespaces/default/configmaps?fieldValidation={mode}"
        response, data = await client.reply("POST", path, body)
        assert response.status == code
        assert ("Warning" in response.headers) is warns
        if code == 201:
            assert json.loads(data)["metadata"]["name"] == "b"
            assert json.loads(data)["data"] == {"k": "\u00e9"}

    with_server(check)


def test_a_merge_patch_takes_away_what_is_null() -> None:
    async def check(client: Client) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        # Not as msgspec would write it, so that it is read closely.
        patch = b'{"metadata":{"labels":{"a":null,"b":"\\u0078"}}}'
        _, patched = await client.ask("PATCH", f"{PODS}/a", patch, headers=headers)
        assert patched["metadata"]["labels"] == {"b": "x"}

    with_server(check, pod("a", labels={"a": "1"}))


def test_unchanged_documents_are_answered_with_not_modified() -> None:
    async def check(client: Client) -> None:
        response, data = await client.reply("GET", "/api")
        assert (response.status, data) == (200, b'{"kind":"APIVersions"}')
        again, nothing = await client.reply("GET", "/api", headers={"If-None-Match": response.headers["ETag"]})
        assert (again.status, nothing) == (304, b"")
        code, posted = await client.ask("POST", REVIEW, {"kind": "Review"})
        assert (code, posted) == (201, [{"kind": "Review"}, "kubernetes-admin"])

    with_server(check, documents=Documents(LocalBackend()))


def test_missing_objects_are_answered_as_clients_expect() -> None:
    async def check(client: Client) -> None:
        assert await client.ask("GET", "/apis/unknown.example.com/v1/things") == (404, "404 page not found\n")
        assert await client.ask("GET", "/nothing") == (404, "404 page not found\n")
        code, status = await client.ask("GET", "/apis/apps/v1/things")
        assert (code, status["reason"]) == (404, "NotFound")

    with_server(check)


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_documents_of_discovery_are_only_read(method: str, path: str) -> None:
    async def check(client: Client) -> None:
        code, status = await client.ask(method, path, {})
        assert (code, status["reason"]) == (405, "MethodNotAllowed")
        assert status["message"] == "the server does not allow this method on the requested resource"
        assert (await client.ask(method, "/apis/unknown.example.com", {}))[0] == 404

    with_server(check)


def test_a_client_without_a_name_manages_fields_as_unknown() -> None:
    async def check(client: Client) -> None:
        for agent, manager in (("", "unknown"), ("robot/1.0 (linux)", "robot")):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": manager}, "data": {"a": "1"}}
            path = "/api/v1/namespaces/default/configmaps"
            response, _ = await client.reply("POST", path, body, headers={"User-Agent": agent})
            assert response.status == 201
            _, found = await client.ask("GET", f"{path}/{manager}")
            assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == [manager]

    with_server(check)


def test_the_root_lists_where_there_is_something() -> None:
    async def check(client: Client) -> None:
        _, found = await client.ask("GET", "/")
        assert {"/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz", "/version"} <= set(found["paths"])

    with_server(check)


def test_every_reply_says_what_it_is_called() -> None:
    async def check(client: Client) -> None:
        first, _ = await client.reply("GET", PODS)
        second, _ = await client.reply("GET", f"{PODS}/none")
        report, _ = await client.reply("GET", PODS, headers={"Audit-ID": "mine"})
        assert first.headers["Audit-Id"] != second.headers["Audit-Id"]
        assert report.headers["Audit-Id"] == "mine"
        assert first.headers["Cache-Control"] == "no-cache, private"
        assert "aiohttp" not in first.headers["Server"]

    with_server(check)


def test_the_version_is_that_of_the_kubernetes_whose_api_it_is() -> None:
    async def check(client: Client) -> None:
        code, version = await client.ask("GET", "/version")
        assert (code, version["major"], version["minor"]) == (200, "1", "36")
        assert (version["gitVersion"], version["compiler"].split()[0]) == ("v1.36.2", "podium")
        assert await client.ask("GET", "/version/") == (200, version)
        assert (await client.ask("POST", "/version", {}))[0] == 405

    with_server(check)


@pytest.mark.parametrize("path", ["/version", "/apis", "/api/v1/pods", "/api/v1/nodes/none"])
def test_a_timeout_that_is_no_duration_is_refused_at_every_path(path: str) -> None:
    async def check(client: Client) -> None:
        code, status = await client.ask("GET", f"{path}?timeout=invalid")
        assert (code, status["reason"]) == (400, "BadRequest")
        assert "invalid timeout specified in the request URL" in status["message"]
        assert (await client.ask("GET", f"{path}?timeout=3m"))[0] in (200, 404)

    with_server(check)


def test_a_review_is_not_answered_as_a_table() -> None:
    async def check(client: Client) -> None:
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        assert (await client.ask("POST", path, {"spec": {}}, headers=headers))[0] == 406

    with_server(check)


@pytest.mark.parametrize("place", ["healthz", "livez", "readyz"])
def test_health_lists_the_checks_of_kube_apiserver(place: str) -> None:
    async def check(client: Client) -> None:
        _, text = await client.ask("GET", f"/{place}?verbose=1")
        assert {"[+]etcd ok", "[+]log ok", "[+]poststarthook/rbac/bootstrap-roles ok"} <= set(text.splitlines())
        assert (await client.ask("GET", f"/{place}/poststarthook/rbac/bootstrap-roles"))[0] == 200

    with_server(check)


def test_health_reports_problems_by_name_alone() -> None:
    problems = {"scheduler": ""}
    settings = ServerSettings(checks=(("scheduler", lambda: problems["scheduler"]),))

    async def check(client: Client) -> None:
        for place in ("healthz", "livez", "readyz"):
            assert await client.ask("GET", f"/{place}") == (200, "ok")
            assert (await client.ask("HEAD", f"/{place}"))[0] == 200
        problems["scheduler"] = "a secret"
        code, text = await client.ask("GET", "/readyz?verbose")
        assert code == 500
        lines = text.splitlines()
        assert lines[0] == "[+]ping ok"
        assert lines[-3:] == ["[-]scheduler failed: reason withheld", "[+]shutdown ok", "readyz check failed"]
        assert (await client.ask("GET", "/livez"))[0] == 200
        assert (await client.ask("GET", "/readyz?exclude=scheduler"))[0] == 200
        assert (await client.ask("GET", "/readyz/scheduler"))[0] == 500
        assert (await client.ask("GET", "/readyz/ping"))[0] == 200
        assert (await client.ask("GET", "/readyz/unknown"))[0] == 404

    with_server(check, settings=settings)


def test_requests_are_counted_under_upstreams_names() -> None:
    async def check(client: Client) -> None:
        await client.ask("POST", PODS, pod("a"))
        await client.ask("GET", f"{PODS}/none")
        await client.ask("GET", f"{PODS}/none/made-up-by-a-client")
        _, text = await client.ask("GET", "/metrics")
        labels = 'group="",resource="pods",scope="namespace",subresource="",verb="CREATE",version="v1"'
        assert f'apiserver_request_total{{code="201",component="apiserver",{labels}}} 1.0' in text
        assert 'code="404",component="apiserver",group="",resource="pods",scope="resource"' in text
        assert "apiserver_request_duration_seconds_bucket" in text
        assert "made-up" not in text

    with_server(check)


def test_internal_errors_are_reported_without_details(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(LocalBackend):
        def answer(self, request: object) -> object:  # type: ignore[override]
            raise RuntimeError("a secret")

    async def check(client: Client) -> None:
        code, status = await client.ask("GET", PODS)
        assert (code, status["reason"]) == (500, "InternalError")
        assert "a secret" not in json.dumps(status)
        assert (await client.ask("GET", "/healthz"))[0] == 200

    with_server(check, node("n1"), backend=Broken())
    assert "a secret" in caplog.text


@pytest.mark.parametrize("path", [PODS, f"{PODS}/a"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_table_is_in_the_version_that_the_client_asks_for(path: str, version: str) -> None:
    async def check(client: Client) -> None:
        asked = {"Accept": f"application/json;as=Table;v={version};g=meta.k8s.io"}
        _, table = await client.ask("GET", path, headers=asked)
        assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")

    with_server(check, pod("a"))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_metadata_and_rows_are_in_the_version_that_the_client_asks_for(version: str) -> None:
    async def check(client: Client) -> None:
        metadata = {"Accept": f"application/json;as=PartialObjectMetadata;v={version};g=meta.k8s.io"}
        rows = {"Accept": f"application/json;as=Table;v={version};g=meta.k8s.io"}
        _, of_one = await client.ask("GET", f"{PODS}/a", headers=metadata)
        _, table = await client.ask("GET", f"{PODS}/a", headers=rows)
        assert of_one["apiVersion"] == table["rows"][0]["object"]["apiVersion"] == f"meta.k8s.io/{version}"
        async with client.watch(f"{PODS}?watch=1", **rows) as watcher:
            assert (await watcher.next())["object"]["apiVersion"] == f"meta.k8s.io/{version}"

    with_server(check, pod("a"))


def test_a_scale_is_shown_as_a_table() -> None:
    async def check(client: Client) -> None:
        _, table = await client.ask("GET", "/apis/apps/v1/namespaces/default/replicasets/web/scale", headers=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
        assert table["rows"][0]["cells"][:3] == ["web", 3, 0]

    labels = {"app": "web"}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
    with_server(check, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec})


@pytest.mark.parametrize(
    "parameters", ["g=meta.k8s.io;v=v1", "as=PartialObject;g=meta.k8s.io;v=v1", "as=Service;g=;v=v1"]
)
def test_forms_that_do_not_exist_are_not_acceptable(parameters: str) -> None:
    async def check(client: Client) -> None:
        assert (await client.ask("GET", PODS, headers={"Accept": f"application/json;{parameters}"}))[0] == 406

    with_server(check)


@pytest.mark.parametrize("watch", ["", "&watch=1"])
def test_an_unknown_content_of_rows_is_a_bad_request(watch: str) -> None:
    async def check(client: Client) -> None:
        code, refusal = await client.ask("GET", f"{PODS}?includeObject=all{watch}", headers=TABLE)
        assert (code, refusal["reason"]) == (400, "BadRequest")
        assert "must be 'Metadata', 'Object', 'None', or empty" in refusal["message"]

    with_server(check, pod("a"))


def test_a_watch_in_yaml_is_not_acceptable() -> None:
    async def check(client: Client) -> None:
        code, refusal = await client.ask("GET", f"{PODS}?watch=1", headers={"Accept": "application/yaml"})
        assert code == 406
        assert refusal["message"].endswith(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        )

    with_server(check)
