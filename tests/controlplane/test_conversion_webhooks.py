"""Webhooks that convert custom objects between the versions of their kind, as requests and watches wait for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from podium.apirequests.request import Request, Response
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import EmbeddedControlPlane
from podium.runtime.clock import SystemClock
from podium.server.http.security import ServerSettings
from podium.server.http.server import Server
from podium.server.kubernetes_documents import KubernetesDocuments
from podium.store.listing import ListOptions
from podium.store.webhook_calls import CallNeededError, WebhookAnswer, WebhookCall
from tests.store.objects import Raw

GROUP, KIND, NAME = "stable.example.com", "Host.stable.example.com", "hosts.stable.example.com"
V1, V2 = f"{GROUP}/v1", f"{GROUP}/v2"
Answer = Callable[[Raw], Any]


def version(name: str, *fields: str, storage: bool) -> Raw:
    properties = {field: {"type": "string", "maxLength": 20} for field in fields}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "selectableFields": [{"jsonPath": f".{field}"} for field in fields],
        "subresources": {"status": {}},
    }


def versions(stored: str = "v1") -> list[Raw]:
    return [version("v1", "hostPort", storage=stored == "v1"), version("v2", "host", "port", storage=stored == "v2")]


def definition(**conversion: Any) -> Raw:
    webhook = {"clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"], **conversion}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Host", "plural": "hosts"},
            "versions": versions(),
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def host(api_version: str, name: str = "a", **content: Any) -> Raw:
    return {
        "apiVersion": api_version,
        "kind": "Host",
        "metadata": {"name": name, "namespace": "default"},
        **content,
    }


def converted(raw: Raw, api_version: str) -> Raw:
    found = {name: value for name, value in raw.items() if name not in ("hostPort", "host", "port")}
    if api_version == V2:
        found["host"], _, found["port"] = raw.get("hostPort", "").partition(":")
    else:
        found["hostPort"] = f"{raw.get('host', '')}:{raw.get('port', '')}"
    return {**found, "apiVersion": api_version}


def reviewed(review: Raw, *objects: Raw, status: Any = None, **more: Any) -> Raw:
    result = {"status": "Success"} if status is None else status
    response = {"uid": review["request"]["uid"], "result": result, "convertedObjects": list(objects), **more}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}


def converting(review: Raw) -> Raw:
    request = review["request"]
    return reviewed(review, *(converted(raw, request["desiredAPIVersion"]) for raw in request["objects"]))


class Rig:
    """A plane, and a webhook that answers as the test says; `calls` are its calls."""

    def __init__(self, raw: Raw | None = None) -> None:
        self.plane: EmbeddedControlPlane = assemble(
            open_store(0), SystemClock(1000.0), ControlPlaneSettings(), InitialContent((), 1)
        ).plane
        self.plane.call = self.call
        self.reply: Answer = converting
        self.calls: list[WebhookCall] = []
        body = raw or definition()
        assert self.ask("create", body=body, kind="CustomResourceDefinition").code == 201

    async def call(self, call: WebhookCall) -> WebhookAnswer:
        self.calls.append(call)
        answer = self.reply(call.body)
        return answer if isinstance(answer, WebhookAnswer) else WebhookAnswer(answer)

    def ask(self, verb: Any, kind: str = KIND, key: str = "", **more: Any) -> Response:
        request = Request(verb=verb, kind=kind, key=key, field_manager="m", **more)
        return asyncio.run(self.plane.respond(request, 100))

    def create(self, api_version: str, name: str = "a", **content: Any) -> Response:
        body = host(api_version, name, **content)
        return self.ask("create", namespace="default", body=body, api_version=api_version, field_validation="Strict")

    def get(self, api_version: str, name: str = "a") -> Raw:
        return self.ask("get", key=f"default/{name}", api_version=api_version).to_dict()

    def stored(self, name: str = "a") -> Raw:
        return self.plane.store.get(KIND, f"default/{name}").raw

    def store_as(self, stored: str) -> None:
        raw = self.plane.store.get("CustomResourceDefinition", NAME).raw
        body = {**raw, "spec": {**raw["spec"], "versions": versions(stored)}}
        response = self.ask("update", kind="CustomResourceDefinition", key=NAME, body=body)
        assert response.code == 200, response.to_dict()


def test_an_object_is_stored_in_the_storage_version_and_read_in_any() -> None:
    rig = Rig()
    created = rig.create(V2, host="localhost", port="8080").to_dict()

    assert (created["apiVersion"], created["host"], created["port"]) == (V2, "localhost", "8080")
    assert (rig.stored()["apiVersion"], rig.stored()["hostPort"]) == (V1, "localhost:8080")
    assert "host" not in rig.stored()
    assert rig.get(V1)["hostPort"] == "localhost:8080"
    assert created["metadata"] == {**rig.get(V2)["metadata"]}


def test_the_webhook_gets_a_review_for_its_first_known_version() -> None:
    rig = Rig(definition(conversionReviewVersions=["v3", "v1beta1", "v1"]))
    rig.create(V2, host="localhost", port="8080")

    [call, _] = rig.calls
    assert (call.url, call.body["apiVersion"]) == ("https://127.0.0.1:1/convert", "apiextensions.k8s.io/v1beta1")
    assert call.body["request"]["desiredAPIVersion"] == V1
    [sent] = call.body["request"]["objects"]
    assert (sent["apiVersion"], sent["host"], sent["metadata"]["name"]) == (V2, "localhost", "a")


def test_an_object_in_the_stored_version_is_not_converted() -> None:
    rig = Rig()
    rig.create(V1, hostPort="localhost:8080")
    rig.get(V1)

    assert rig.calls == []


def test_a_list_is_converted_in_one_call_although_its_objects_are_stored_in_several_versions() -> None:
    rig = Rig()
    rig.create(V1, "a", hostPort="a:1")
    rig.create(V1, "b", hostPort="b:2")
    rig.store_as("v2")
    rig.create(V2, "c", host="c", port="3")
    assert rig.calls == []

    listed = rig.ask("list", api_version=V2).to_dict()

    assert [(raw["apiVersion"], raw["host"], raw["port"]) for raw in listed["items"]] == [
        (V2, "a", "1"),
        (V2, "b", "2"),
        (V2, "c", "3"),
    ]
    assert [len(call.body["request"]["objects"]) for call in rig.calls] == [2]
    assert rig.plane.store.get("CustomResourceDefinition", NAME).raw["status"]["storedVersions"] == ["v1", "v2"]


def test_an_update_stores_an_object_in_the_current_storage_version() -> None:
    rig = Rig()
    rig.create(V1, hostPort="a:1")
    rig.store_as("v2")
    assert rig.stored()["apiVersion"] == V1

    patched = rig.ask("patch", key="default/a", body={"hostPort": "b:2"}, api_version=V1)

    assert patched.to_dict()["hostPort"] == "b:2"
    assert (rig.stored()["apiVersion"], rig.stored()["host"]) == (V2, "b")
    assert rig.stored()["metadata"]["generation"] == 2


def test_each_version_has_its_own_schema() -> None:
    rig = Rig()

    unknown = rig.create(V2, hostPort="a:1").to_dict()
    invalid = rig.create(V2, host="h" * 21).to_dict()

    assert (unknown["code"], 'unknown field "hostPort"' in unknown["message"]) == (400, True)
    assert (invalid["code"], invalid["details"]["causes"][0]["field"]) == (422, "host")


def test_fields_that_the_wanted_version_does_not_know_are_pruned() -> None:
    rig = Rig()
    rig.create(V1, hostPort="a:1")
    rig.reply = lambda review: reviewed(review, {**converted(review["request"]["objects"][0], V2), "hostPort": "a:1"})

    assert "hostPort" not in rig.get(V2)


def test_a_configuration_is_applied_in_its_version() -> None:
    rig = Rig()

    def applied(config: Raw) -> Raw:
        return rig.ask("patch", key="default/a", body=config, patch_type="apply", api_version=V2).to_dict()

    created = applied(host(V2, host="a", port="1"))
    changed = applied(host(V2, host="b"))

    assert (created["host"], created["port"], changed["host"], changed["port"]) == ("a", "1", "b", "")
    assert rig.stored()["hostPort"] == "b:"


def test_a_status_is_written_in_its_version() -> None:
    rig = Rig()
    rig.create(V1, hostPort="a:1")

    asked = rig.ask("patch", key="default/a", subresource="status", body={"host": "b"}, api_version=V2)

    assert (asked.code, rig.stored()["hostPort"]) == (200, "a:1")


def test_labels_and_annotations_alone_change_in_the_metadata() -> None:
    def changing(review: Raw) -> Raw:
        raw = converted(review["request"]["objects"][0], review["request"]["desiredAPIVersion"])
        more = {"labels": {"to": "v2"}, "annotations": {"from": "v1"}, "finalizers": ["foo"], "generation": 42}
        return reviewed(review, {**raw, "metadata": {**raw["metadata"], **more}})

    rig = Rig()
    rig.create(V1, hostPort="a:1")
    rig.reply = changing
    metadata = rig.get(V2)["metadata"]

    assert (metadata["labels"], metadata["annotations"]) == ({"to": "v2"}, {"from": "v1"})
    assert ("finalizers" in metadata, metadata["generation"]) == (False, 1)
    found = rig.ask("list", api_version=V2, options=ListOptions(label_selector="to=v2")).to_dict()
    assert len(found["items"]) == 1


def other(review: Raw, **change: Any) -> Raw:
    raw = converted(review["request"]["objects"][0], V2)
    return reviewed(review, {**raw, **change})


FAILURES: list[tuple[Answer, str]] = [
    (lambda review: WebhookAnswer(problem="connection refused"), " failed: connection refused"),
    (lambda review: {}, " failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got"),
    (lambda review: {**reviewed(review), "response": None}, " failed: no response provided"),
    (lambda review: reviewed(review, uid="x"), ' failed: expected response.uid="'),
    (lambda review: reviewed(review, status={"message": "custom error"}), " failed: custom error"),
    (lambda review: reviewed(review, status={}), " failed: response.result.status was '', not 'Success'"),
    (reviewed, " returned 0 objects, expected 1"),
    (lambda review: other(review, apiVersion=V1), f"invalid groupVersion (expected {V2}, received {V1})"),
    (lambda review: other(review, kind="Guest"), "invalid kind (expected Host, received Guest)"),
    (lambda review: other(review, metadata=None), "missing metadata in converted object"),
    (
        lambda review: other(review, metadata={"name": "b", "namespace": "default"}),
        "must have the same name: a != b",
    ),
    (
        lambda review: other(review, metadata={"name": "a", "namespace": "default", "uid": "x"}),
        "must have the same UID:  != x",
    ),
    (
        lambda review: other(review, metadata={"name": "a", "namespace": "default", "labels": {"a": 1}}),
        "invalid metadata.labels",
    ),
]


@pytest.mark.parametrize(("reply", "problem"), FAILURES)
def test_a_failed_conversion_is_an_internal_error_in_upstreams_words(reply: Answer, problem: str) -> None:
    rig = Rig()
    rig.create(V1, hostPort="a:1")
    rig.reply = reply

    status = rig.get(V2)

    assert (status["code"], "reason" in status) == (500, False)
    assert status["message"].startswith(f"conversion webhook for {V1}, Kind=Host")
    assert problem in status["message"]


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("get", {}),
    ("list", {"key": ""}),
    ("create", {"key": "", "namespace": "default", "body": host(V2, "b")}),
    ("update", {"body": host(V2)}),
    ("patch", {"body": {"host": "b"}}),
    ("delete", {}),
    ("deletecollection", {"key": ""}),
    ("get", {"subresource": "status"}),
    ("patch", {"subresource": "status", "body": {}}),
]


@pytest.mark.parametrize(("verb", "more"), REQUESTS)
def test_a_failed_conversion_refuses_any_request(verb: str, more: dict[str, Any]) -> None:
    rig = Rig()
    rig.create(V1, hostPort="a:1")
    before = rig.stored()
    rig.reply = lambda review: reviewed(review, status={"message": "no"})

    status = rig.ask(verb, api_version=V2, **{"key": "default/a", **more}).to_dict()

    assert status["code"] == 500, status
    assert status["message"].endswith("failed: no")
    assert (rig.stored(), len(rig.plane.store.objects(KIND))) == (before, 1)


def test_other_versions_are_selected_by_their_own_fields() -> None:
    rig = Rig()
    for name, address in (("a", "one:80"), ("b", "one:8080"), ("c", "two:80")):
        rig.create(V1, name, hostPort=address)

    def names(selector: str, api_version: str) -> list[str]:
        options = ListOptions(field_selector=selector)
        listed = rig.ask("list", api_version=api_version, options=options).to_dict()
        return [raw["metadata"]["name"] for raw in listed["items"]]

    assert names("host=one", V2) == ["a", "b"]
    assert names("host=one,port=80", V2) == ["a"]
    assert names("hostPort=one:8080", V1) == ["b"]
    refused = rig.ask("list", api_version=V1, options=ListOptions(field_selector="host=one"))
    assert (refused.code, "field label not supported" in refused.to_dict()["message"]) == (400, True)
    rig.ask("deletecollection", api_version=V2, options=ListOptions(field_selector="port=80"))
    assert [stored.key for stored in rig.plane.store.objects(KIND)] == ["default/b"]


def test_a_watch_returns_the_events_of_a_call_first() -> None:
    rig = Rig()
    watch = rig.ask("watch", api_version=V2, options=ListOptions(field_selector="host=one")).watch
    assert watch is not None
    rig.create(V1, "a", hostPort="one:80")
    rig.create(V1, "b", hostPort="two:80")
    answers = {}
    with pytest.raises(CallNeededError) as needed:
        watch.pull()
    answers[needed.value.call.key] = WebhookAnswer(converting(needed.value.call.body))
    rig.create(V1, "c", hostPort="one:8080")

    rig.plane.store.webhooks.answers = answers
    notices = watch.pull()
    assert [(notice.type, notice.raw["apiVersion"], notice.raw["host"]) for notice in notices] == [("ADDED", V2, "one")]
    with pytest.raises(CallNeededError) as needed:
        watch.pull()
    answers[needed.value.call.key] = WebhookAnswer(converting(needed.value.call.body))
    assert [notice.raw["port"] for notice in watch.pull()] == ["8080"]


def test_a_stream_waits_for_the_webhook_and_ends_with_its_failure() -> None:
    rig = Rig()
    path = f"/apis/{V2}/namespaces/default/hosts"

    async def story() -> None:
        server = Server(rig.plane, KubernetesDocuments(rig.plane), ServerSettings(port=0))
        await server.start()
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{server.address}{path}?watch=1") as events:
                old = f"{server.address}/apis/{V1}/namespaces/default/hosts"
                for name in ("a", "b"):
                    async with session.post(old, json=host(V1, name, hostPort=f"{name}:80")) as created:
                        assert created.status == 201
                    event = json.loads(await events.content.readline())
                    assert (event["type"], event["object"]["host"]) == ("ADDED", name)
                rig.reply = lambda review: reviewed(review, status={"message": "no"})
                async with session.delete(f"{old}/a") as deleted:
                    assert deleted.status == 200
                event = json.loads(await events.content.readline())
                assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
                assert event["object"]["message"].endswith("failed: no")
                assert await events.content.readline() == b""
        finally:
            await server.stop()

    asyncio.run(story())


def test_components_write_without_the_webhook() -> None:
    rig = Rig()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}}
    uid = rig.ask("create", kind="ConfigMap", namespace="default", body=owner).to_dict()["metadata"]["uid"]
    raw = host(V1, hostPort="a:1")
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]
    rig.ask("create", namespace="default", body=raw, api_version=V1)
    rig.store_as("v2")

    rig.ask("delete", kind="ConfigMap", key="default/owner")
    rig.plane.turn()

    assert rig.plane.store.find(KIND, "default/a") is None
    assert rig.calls == []


@pytest.mark.parametrize(
    ("conversion", "field", "problem"),
    [
        ({"strategy": "Webhook"}, "webhookClientConfig", "Required value: required when strategy is set to Webhook"),
        ({"strategy": "Webhook"}, "conversionReviewVersions", "Required value"),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "eA=="}}},
            "webhookClientConfig",
            "Required value: exactly one of url or service is required",
        ),
        (
            {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "http://x"}}},
            "webhookClientConfig.url",
            "'https' is the only allowed URL scheme",
        ),
        (
            {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v3"]}},
            "conversionReviewVersions",
            "must include at least one of v1, v1beta1",
        ),
        (
            {"strategy": "None", "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}},
            "webhookClientConfig",
            "should not be set when strategy is not set to Webhook",
        ),
    ],
)
def test_a_conversion_that_no_webhook_can_do_is_refused(conversion: Raw, field: str, problem: str) -> None:
    rig = Rig()
    raw = rig.plane.store.get("CustomResourceDefinition", NAME).raw

    body = {**raw, "spec": {**raw["spec"], "conversion": conversion}}
    refused = rig.ask("update", kind="CustomResourceDefinition", key=NAME, body=body).to_dict()

    assert refused["code"] == 422
    assert (
        problem
        in {cause["field"]: cause["message"] for cause in refused["details"]["causes"]}[f"spec.conversion.{field}"]
    )
