"""Admission webhooks, as requests of clients and components wait for them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from podium.apirequests.authorization import User
from podium.apirequests.request import Request, Response
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.runtime.clock import SystemClock
from podium.store.webhook_calls import WebhookAnswer, WebhookCall
from tests.store.objects import Raw
from tests.waiting import GUARD_SECONDS

URL = "https://127.0.0.1:1/hook"
SCALE: Raw = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
Hook = Callable[[Raw], Raw]


def allowed(review: Raw, **more: Any) -> Raw:
    return {"apiVersion": "admission.k8s.io/v1", "response": {"uid": review["request"]["uid"], "allowed": True, **more}}


def patching(*operations: Raw) -> Hook:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda review: allowed(review, patchType="JSONPatch", patch=patch)


def denying(**status: Any) -> Hook:
    return lambda review: {"response": {"uid": review["request"]["uid"], "allowed": False, "status": status}}


def webhooks(kind: str, *hooks: Raw) -> Raw:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": kind.lower()},
        "webhooks": list(hooks),
    }


def hook(name: str = "check.example.com", resource: str = "configmaps", **more: Any) -> Raw:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]}
    return {
        "name": name,
        "rules": [rule],
        "clientConfig": {"url": f"{URL}/{name}"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


class Rig:
    """A plane, and webhooks by their names; `calls` are the names of those that were called."""

    def __init__(self, *configurations: Raw, **hooks: Hook) -> None:
        self.plane: EmbeddedControlPlane = assemble(
            open_store(0), SystemClock(1000.0), ControlPlaneSettings(), InitialContent((), 1)
        ).plane
        self.plane.call = self.call
        self.hooks = hooks
        self.calls: list[WebhookCall] = []
        for raw in configurations:
            assert self.plane.answer(Request(verb="create", kind=raw["kind"], body=raw, field_manager="m")).code == 201

    async def call(self, call: WebhookCall) -> WebhookAnswer:
        self.calls.append(call)
        answer = self.hooks.get(call.url.partition("?")[0].rpartition("/")[2].partition(".")[0])
        return WebhookAnswer(problem="connection refused") if answer is None else WebhookAnswer(answer(call.body))

    def ask(self, verb: Any, kind: str = "ConfigMap", key: str = "", **more: Any) -> Response:
        request = Request(verb=verb, kind=kind, key=key, **more)
        return asyncio.run(self.plane.respond(request, 100))

    def create(self, name: str = "a", **more: Any) -> Response:
        metadata = {"name": name, "namespace": "default"}
        raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
        return self.ask("create", namespace="default", body=raw, identity=User("me"), **more)


def message(response: Response) -> str:
    return str(response.to_dict().get("message"))


def test_a_validating_webhook_is_asked_about_the_object_as_it_will_be() -> None:
    rig = Rig(webhooks("Validating", hook()), check=lambda review: allowed(review, warnings=["look out"]))

    response = rig.create()
    assert (response.code, response.warnings) == (201, ("look out",))
    [call] = rig.calls
    request = call.body["request"]
    assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "a", "default")
    assert (request["object"]["data"], request["oldObject"]) == ({"a": "1"}, None)
    assert (request["userInfo"]["username"], request["dryRun"]) == ("me", False)
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert call.seconds == 10


def test_the_url_of_a_call_states_its_timeout() -> None:
    rig = Rig(webhooks("Validating", hook(timeoutSeconds=3)), check=allowed)
    assert rig.create().code == 201
    [call] = rig.calls
    assert (call.url, call.seconds) == (f"{URL}/check.example.com?timeout=3s", 3)


def test_a_denial_has_the_webhooks_code_and_message() -> None:
    rig = Rig(webhooks("Validating", hook()), check=denying(code=409, reason="Conflict", message="not now"))
    response = rig.create()
    assert (response.code, message(response)) == (
        409,
        'admission webhook "check.example.com" denied the request: not now',
    )
    assert rig.plane.store.find("ConfigMap", "default/a") is None
    rig.hooks["check"] = denying()
    response = rig.create()
    assert (response.code, message(response)) == (
        400,
        'admission webhook "check.example.com" denied the request without explanation',
    )


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
def test_the_failure_policy_decides_about_calls_that_fail(policy: str, code: int) -> None:
    response = Rig(webhooks("Validating", hook(failurePolicy=policy))).create()
    assert response.code == code
    if code == 500:
        failed = 'failed calling webhook "check.example.com": failed to call webhook: connection refused'
        assert message(response) == f"Internal error occurred: {failed}"


def test_webhooks_of_both_kinds_are_asked_about_each_object_that_is_deleted() -> None:
    """[TestWebhookAdmission]"""
    rig = Rig(check=allowed, change=allowed)
    for name in ("a", "b"):
        assert rig.create(name).code == 201
    for raw in (webhooks("Validating", hook()), webhooks("Mutating", hook("change.example.com"))):
        assert rig.ask("create", raw["kind"], body=raw).code == 201

    assert rig.ask("deletecollection", namespace="default").code == 200

    asked = [call.body["request"] for call in rig.calls]
    names = [
        (call.url.partition("?")[0].rpartition("/")[2], one["name"]) for call, one in zip(rig.calls, asked, strict=True)
    ]
    assert names == [
        (f"{of}.example.com", name) for name in ("a", "b", "kube-root-ca.crt") for of in ("change", "check")
    ]
    assert {(one["operation"], one["options"]["kind"], one.get("object")) for one in asked} == {
        ("DELETE", "DeleteOptions", None)
    }
    assert [one["oldObject"]["metadata"]["name"] for one in asked] == [name for _, name in names]


def labelling(name: str, needed: str = "") -> Hook:
    """Return a webhook that adds a label once, if the object has the needed one."""

    def answer(review: Raw) -> Raw:
        labels = review["request"]["object"]["metadata"]["labels"]
        is_due = name not in labels and (not needed or needed in labels)
        add = {"op": "add", "path": f"/metadata/labels/{name}", "value": "x"}
        return patching(add)(review) if is_due else allowed(review)

    return answer


@pytest.mark.parametrize(
    ("order", "asked", "labels"),
    [
        # The selector is met when the second webhook is due; the first one is asked again after it.
        (("first", "second"), ["first", "second", "first"], {"given", "first", "second"}),
        # A webhook that did not apply at first is not asked again.
        (("second", "first"), ["first"], {"given", "first"}),
    ],
)
def test_each_webhook_is_matched_with_the_object_as_the_ones_before_have_changed_it(
    order: tuple[str, ...], asked: list[str], labels: set[str]
) -> None:
    """[TestWebhookReinvocationPolicy]"""
    selectors: dict[str, Raw] = {"second": {"objectSelector": {"matchLabels": {"first": "x"}}}}
    hooks = (hook(f"{name}.example.com", reinvocationPolicy="IfNeeded", **selectors.get(name, {})) for name in order)
    rig = Rig(webhooks("Mutating", *hooks), first=labelling("first"), second=labelling("second", "first"))
    metadata = {"name": "a", "namespace": "default", "labels": {"given": "x"}}

    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    made = rig.ask("create", namespace="default", body=body, identity=User("me")).to_dict()

    assert made["metadata"]["labels"].keys() == labels
    assert [call.url.rpartition("/")[2].partition(".")[0] for call in rig.calls] == asked


@pytest.mark.parametrize(
    ("listed", "sent"), [(["v1beta1"], "v1beta1"), (["v2", "v1beta1", "v1"], "v1beta1"), (["v1", "v1beta1"], "v1")]
)
def test_a_review_has_the_first_version_that_the_webhook_accepts_and_the_api_server_knows(
    listed: list[str], sent: str
) -> None:
    rig = Rig(webhooks("Validating", hook(admissionReviewVersions=listed)), check=allowed)

    assert rig.create().code == 201

    assert [call.body["apiVersion"] for call in rig.calls] == [f"admission.k8s.io/{sent}"]


def test_an_answer_without_a_response_is_a_failure() -> None:
    response = Rig(webhooks("Validating", hook()), check=lambda review: {}).create()
    assert "received invalid webhook response" in message(response)


def test_mutating_webhooks_change_the_object_one_after_the_other() -> None:
    def second(review: Raw) -> Raw:
        assert review["request"]["object"]["data"] == {"a": "1", "b": "2"}
        return patching({"op": "add", "path": "/data/c", "value": "3"})(review)

    rig = Rig(
        webhooks("Mutating", hook("first.example.com"), hook("second.example.com")),
        first=patching({"op": "add", "path": "/data/b", "value": "2"}),
        second=second,
    )
    assert rig.create().to_dict()["data"] == {"a": "1", "b": "2", "c": "3"}
    assert len(rig.calls) == 2


def test_a_webhook_that_wants_it_is_asked_again_after_a_later_change() -> None:
    def first(review: Raw) -> Raw:
        seen = review["request"]["object"]["data"].get("b", "nothing")
        return patching({"op": "add", "path": "/data/seen", "value": seen})(review)

    rig = Rig(
        webhooks("Mutating", hook("first.example.com", reinvocationPolicy="IfNeeded"), hook("second.example.com")),
        first=first,
        second=patching({"op": "add", "path": "/data/b", "value": "2"}),
    )
    assert rig.create().to_dict()["data"] == {"a": "1", "b": "2", "seen": "2"}
    assert len(rig.calls) == 3


def test_a_dry_run_does_not_call_webhooks_with_side_effects() -> None:
    rig = Rig(check=allowed)
    # Only an older API version took such a webhook.
    rig.plane.store.create(webhooks("Validating", hook(sideEffects="Some")), now=0)
    response = rig.create(dry_run=True)
    assert (response.code, message(response)) == (
        400,
        'admission webhook "check.example.com" does not support dry run',
    )
    assert rig.calls == []
    assert rig.create().code == 201


def test_match_conditions_and_rules_decide_which_webhooks_are_called() -> None:
    conditions = [{"name": "others", "expression": "request.userInfo.username != 'me'"}]
    rig = Rig(webhooks("Validating", hook(matchConditions=conditions), hook("pods.example.com", "pods")))
    assert (rig.create().code, rig.calls) == (201, [])


def test_deletions_and_status_updates_are_reviewed() -> None:
    def check(review: Raw) -> Raw:
        request = review["request"]
        seen.append((request["operation"], request.get("subResource", ""), request["object"] is None))
        return allowed(review)

    seen: list[Any] = []
    rig = Rig(webhooks("Validating", hook(), hook("check.nodes.example.com", "nodes/status")), check=check)
    rig.create()
    assert rig.ask("delete", key="default/a").code == 200
    assert rig.ask("patch", "Node", "node-1", subresource="status", body={"status": {"phase": "x"}}).code == 200
    assert seen == [("CREATE", "", False), ("DELETE", "", True), ("UPDATE", "status", False)]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("update", {**SCALE, "metadata": {"name": "a", "namespace": "default"}, "spec": {"replicas": 5}}),
        ("patch", {"spec": {"replicas": 5}}),
    ],
)
def test_scales_are_reviewed_as_such_by_validating_webhooks_alone(verb: str, body: Raw) -> None:
    configurations = [webhooks(kind, hook(resource="deployments/scale")) for kind in ("Validating", "Mutating")]
    rig = Rig(*configurations, check=lambda review: allowed(review, warnings=["large"]))
    template: Raw = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}
    assert rig.ask("create", "Deployment", namespace="default", body=raw).code == 201

    response = rig.ask(verb, "Deployment", "default/a", subresource="scale", body=body)
    assert (response.code, response.warnings) == (200, ("large",))
    [call] = rig.calls
    request = call.body["request"]
    assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert request["resource"] == {"group": "apps", "version": "v1", "resource": "deployments"}
    assert (request["operation"], request["subResource"], request["name"]) == ("UPDATE", "scale", "a")
    assert [request[name]["spec"]["replicas"] for name in ("object", "oldObject")] == [5, 1]
    rig.hooks["check"] = denying(code=403, message="too many")
    assert rig.ask("patch", "Deployment", "default/a", subresource="scale", body={"spec": {"replicas": 9}}).code == 403
    scale = rig.ask("get", "Deployment", "default/a", subresource="scale").object
    assert scale is not None
    assert scale["spec"] == {"replicas": 5}


def test_connections_to_pods_are_reviewed_before_they_are_refused() -> None:
    rig = Rig(webhooks("Validating", hook(resource="pods/attach")), check=denying(message="keep out"))
    response = rig.ask("get", "Pod", "default/web", subresource="attach", identity=User("me"))
    assert message(response) == 'admission webhook "check.example.com" denied the request: keep out'
    [call] = rig.calls
    request = call.body["request"]
    assert (request["operation"], request["subResource"], request["name"]) == ("CONNECT", "attach", "web")
    assert request["userInfo"]["username"] == "me"
    for subresource in ("exec", "log"):
        assert rig.ask("get", "Pod", "default/web", subresource=subresource).code == 501
    assert len(rig.calls) == 1


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_webhooks_with_a_condition_that_cannot_be_parsed_are_refused(kind: str) -> None:
    conditions = [{"name": "bad", "expression": "object.metadata.name ="}]
    raw = webhooks(kind, hook(matchConditions=conditions))
    refusal = message(Rig().ask("create", raw["kind"], body=raw))
    place = 'webhooks[0].matchConditions[0].expression: Invalid value: "object.metadata.name =": compilation failed'
    assert place in refusal


def test_what_configures_webhooks_is_not_reviewed() -> None:
    rig = Rig(webhooks("Validating", hook(resource="*")), check=denying())
    assert rig.ask("delete", "ValidatingWebhookConfiguration", "validating").code == 200
    assert rig.create().code == 201


REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
    },
}


def objects_of_replica_set(rig: Rig, kind: str, number: int) -> list[Raw]:
    """Return so many objects of a kind that the plane writes once there is a ReplicaSet."""
    seen: dict[str, Raw] = {}

    async def story() -> None:
        running = asyncio.ensure_future(ControlPlaneRunner(rig.plane, SystemClock(1000.0)).run())
        watch = rig.plane.answer(Request(verb="watch", kind=kind)).watch
        assert watch is not None
        assert (await rig.plane.respond(Request(verb="create", kind="ReplicaSet", body=REPLICA_SET), 100)).code == 201
        while len(seen) < number:
            woken = asyncio.Event()
            watch.wake_by(woken.set)
            await woken.wait()
            seen.update({notice.raw["metadata"]["name"]: notice.raw for notice in watch.pull()})
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(story(), GUARD_SECONDS))
    return [*seen.values()]


def test_pods_of_components_are_reviewed_and_changed() -> None:
    rig = Rig(
        webhooks("Mutating", hook("label.example.com", "pods")),
        label=patching({"op": "add", "path": "/metadata/labels/made", "value": "here"}),
    )

    pods = objects_of_replica_set(rig, "Pod", 2)

    assert [pod["metadata"]["labels"] for pod in pods] == [{"app": "web", "made": "here"}] * 2


def test_an_action_is_not_repeated_when_a_webhook_is_asked_about_its_event() -> None:
    rig = Rig(webhooks("Mutating", hook("mark.example.com", "events")), mark=allowed)

    events = objects_of_replica_set(rig, "Event", 2)

    pods = {stored.object.metadata.name for stored in rig.plane.store.objects("Pod")}
    assert len(pods) == 2
    assert {event["message"] for event in events if event["reason"] == "SuccessfulCreate"} <= {
        f"Created pod: {name}" for name in pods
    }
    assert {call.body["request"]["object"]["kind"] for call in rig.calls} == {"Event"}


@pytest.mark.parametrize(("answer", "is_kept"), [(allowed, False), (denying(message="not now"), True)])
def test_the_garbage_collector_waits_for_webhooks(answer: Hook, is_kept: bool) -> None:
    rig = Rig(check=answer, change=allowed)
    assert rig.create("owner").code == rig.create("other").code == 201
    owner = rig.plane.store.get("ConfigMap", "default/owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    owned = {"metadata": {"ownerReferences": [reference]}}
    assert rig.ask("patch", key="default/other", body=owned, patch_type="merge").code == 200
    assert rig.ask("delete", key="default/owner").code == 200
    for kind, name in (("Validating", "check"), ("Mutating", "change")):
        raw = webhooks(kind, hook(f"{name}.example.com"))
        assert rig.plane.answer(Request(verb="create", kind=raw["kind"], body=raw, field_manager="m")).code == 201

    rig.plane.turn()

    assert (rig.plane.store.find("ConfigMap", "default/other") is not None) is is_kept
    asked = [call.body["request"] for call in rig.calls]
    assert [(one["operation"], one["name"]) for one in asked] == [("DELETE", "other")] * 2


def test_a_service_is_reached_by_its_endpoints_under_its_own_name() -> None:
    service = {"namespace": "default", "name": "hooks", "path": "/check", "port": 8443}
    rig = Rig(webhooks("Validating", hook(clientConfig={"service": service})), check=allowed)
    assert message(rig.create()).endswith('failed to call webhook: service "hooks" not found')
    ports = [{"name": "https", "port": 8443}]
    for kind, raw in (
        ("Service", {"spec": {"ports": ports}}),
        ("Endpoints", {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "https", "port": 9443}]}]}),
    ):
        metadata = {"name": "hooks", "namespace": "default"}
        body = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **raw}
        assert rig.ask("create", kind, namespace="default", body=body).code == 201
    assert rig.create().code == 201
    [call] = rig.calls
    assert (call.url, call.server_name) == ("https://10.1.2.3:9443/check?timeout=10s", "hooks.default.svc")
