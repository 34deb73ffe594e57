"""Answers of the API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from podium.apirequests.request import Request, Response, Verb
from podium.apirequests.router import SERVED
from podium.store.listing import ListOptions
from tests.apirequests.asking import API, NOW
from tests.sim.objects import workload
from tests.store.objects import Raw, node, pod

A = "default/a"
BINDING = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
CONFIG: Raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
CSR = "CertificateSigningRequest"
SIGNING: Raw = {
    "apiVersion": "certificates.k8s.io/v1",
    "kind": CSR,
    "metadata": {"name": "web"},
    "spec": {"request": "LS0tLS1CRUdJTgo=", "signerName": "example.com/web", "usages": ["client auth"]},
    "status": {},
}
APPROVED: Raw = {"type": "Approved", "status": "True"}
ROBOT: Raw = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
SHOP: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
DEBUGGER: Raw = {"name": "debugger", "image": "busybox"}


def container(**requests: str) -> Raw:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}


def resized(api: API, cpu: str) -> Raw:
    raw = api.raw("Pod", A)
    main = {**raw["spec"]["containers"][0], "resources": {"requests": {"cpu": cpu}}}
    return {**raw, "spec": {**raw["spec"], "containers": [main]}}


def scale(replicas: int) -> Raw:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas},
    }


def as_stored(api: API, kind: str, key: str, **change: Any) -> Raw:
    return {**api.raw(kind, key), **change}


# Each verb with its subresource: a request, and the code of its answer.
REQUESTS: dict[tuple[str, str], tuple[Callable[[API], Request], int]] = {
    ("get", ""): (lambda _: Request(verb="get", kind="Pod", key=A), 200),
    ("get", "status"): (lambda _: Request(verb="get", kind="Pod", key=A, subresource="status"), 200),
    ("get", "scale"): (lambda _: Request(verb="get", kind="ReplicaSet", key="default/web", subresource="scale"), 200),
    ("list", ""): (lambda _: Request(verb="list", kind="Pod"), 200),
    ("watch", ""): (lambda _: Request(verb="watch", kind="Pod"), 200),
    ("create", ""): (lambda _: Request(verb="create", kind="Pod", namespace="default", body=pod("new")), 201),
    ("create", "binding"): (
        lambda _: Request(verb="create", kind="Pod", key=A, subresource="binding", body=BINDING),
        201,
    ),
    ("create", "eviction"): (
        lambda _: Request(verb="create", kind="Pod", key=A, subresource="eviction", body={"metadata": {"name": "a"}}),
        201,
    ),
    ("update", ""): (
        lambda api: Request(
            verb="update",
            kind="Node",
            key="n1",
            body=as_stored(api, "Node", "n1", metadata={"name": "n1", "labels": {"new": "yes"}}),
        ),
        200,
    ),
    ("update", "status"): (
        lambda api: Request(
            verb="update",
            kind="Pod",
            key=A,
            subresource="status",
            body=as_stored(api, "Pod", A, status={"phase": "Running"}),
        ),
        200,
    ),
    ("update", "scale"): (
        lambda _: Request(verb="update", kind="ReplicaSet", key="default/web", subresource="scale", body=scale(3)),
        200,
    ),
    ("patch", ""): (
        lambda _: Request(verb="patch", kind="Pod", key=A, body={"metadata": {"labels": {"new": "yes"}}}),
        200,
    ),
    ("patch", "status"): (
        lambda _: Request(
            verb="patch",
            kind="Pod",
            key=A,
            subresource="status",
            patch_type="strategic",
            body={"status": {"phase": "Running"}},
        ),
        200,
    ),
    ("patch", "scale"): (
        lambda _: Request(
            verb="patch", kind="ReplicaSet", key="default/web", subresource="scale", body={"spec": {"replicas": 4}}
        ),
        200,
    ),
    ("get", "resize"): (lambda _: Request(verb="get", kind="Pod", key=A, subresource="resize"), 200),
    ("update", "resize"): (
        lambda api: Request(verb="update", kind="Pod", key=A, subresource="resize", body=resized(api, "2")),
        200,
    ),
    ("patch", "resize"): (
        lambda _: Request(
            verb="patch", kind="Pod", key=A, subresource="resize", patch_type="strategic", body=container(cpu="3")
        ),
        200,
    ),
    ("get", "ephemeralcontainers"): (
        lambda _: Request(verb="get", kind="Pod", key=A, subresource="ephemeralcontainers"),
        200,
    ),
    ("update", "ephemeralcontainers"): (
        lambda api: Request(
            verb="update",
            kind="Pod",
            key=A,
            subresource="ephemeralcontainers",
            body=as_stored(api, "Pod", A, spec={**api.raw("Pod", A)["spec"], "ephemeralContainers": [DEBUGGER]}),
        ),
        200,
    ),
    ("patch", "ephemeralcontainers"): (
        lambda _: Request(
            verb="patch",
            kind="Pod",
            key=A,
            subresource="ephemeralcontainers",
            patch_type="strategic",
            body={"spec": {"ephemeralContainers": [DEBUGGER]}},
        ),
        200,
    ),
    ("get", "approval"): (lambda _: Request(verb="get", kind=CSR, key="web", subresource="approval"), 200),
    ("update", "approval"): (
        lambda api: Request(
            verb="update",
            kind=CSR,
            key="web",
            subresource="approval",
            body=as_stored(api, CSR, "web", status={"conditions": [APPROVED]}),
        ),
        200,
    ),
    ("patch", "approval"): (
        lambda _: Request(
            verb="patch", kind=CSR, key="web", subresource="approval", body={"status": {"conditions": [APPROVED]}}
        ),
        200,
    ),
    ("create", "token"): (
        lambda _: Request(verb="create", kind="ServiceAccount", key="default/robot", subresource="token", body={}),
        201,
    ),
    ("update", "finalize"): (
        lambda api: Request(
            verb="update",
            kind="Namespace",
            key="shop",
            subresource="finalize",
            body=as_stored(api, "Namespace", "shop", spec={"finalizers": ["example.com/kept"]}),
        ),
        200,
    ),
    ("delete", ""): (lambda _: Request(verb="delete", kind="Pod", key=A), 200),
    ("deletecollection", ""): (lambda _: Request(verb="deletecollection", kind="Pod", namespace="default"), 200),
}
READS = ("get", "list", "watch")
# What is made and not kept.
NOT_KEPT = {("create", "token")}


def cluster() -> API:
    return API(node("n1"), pod("a"), pod("b"), workload("ReplicaSet", "web", 2), CONFIG, ROBOT, SHOP, SIGNING)


def code(response: Response) -> int:
    assert (response.error is None) == (response.code < 400)
    if response.error is not None:
        body = response.to_dict()
        assert (body["kind"], body["code"], body["status"]) == ("Status", response.code, "Failure")
    return response.code


def test_every_verb_that_is_served_is_asked_for_here() -> None:
    assert REQUESTS.keys() == SERVED


@pytest.mark.parametrize("what", sorted(REQUESTS))
def test_every_verb_is_answered_with_its_code_and_body(what: tuple[str, str]) -> None:
    api = cluster()
    make, expected = REQUESTS[what]
    version = api.store.version

    response = api.answer(make(api))

    assert code(response) == expected
    assert (api.store.version == version) is (what[0] in READS or what in NOT_KEPT)
    if what[0] != "watch":
        assert response.to_dict()["kind"] in (
            CSR,
            "Pod",
            "PodList",
            "Namespace",
            "Node",
            "Scale",
            "Status",
            "TokenRequest",
        )


@pytest.mark.parametrize("what", sorted(REQUESTS))
def test_a_dry_run_has_the_same_answer_and_leaves_no_trace(what: tuple[str, str]) -> None:
    wet, dry = cluster(), cluster()
    make, expected = REQUESTS[what]
    version, before = dry.store.version, dry.ask("list").to_dict()

    answered = wet.answer(make(wet))
    request = make(dry)
    response = dry.answer(
        Request(**{name: getattr(request, name) for name in request.__struct_fields__} | {"dry_run": True})
    )

    assert code(response) == expected
    assert (dry.store.version, dry.ask("list").to_dict()) == (version, before)
    if what[0] not in READS:
        assert unversioned(response) == unversioned(answered)


def unversioned(response: Response) -> Raw:
    raw = response.to_dict()
    metadata = {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
    return {**raw, "metadata": metadata}


def test_the_priority_classes_that_every_cluster_has_are_only_deleted_as_a_collection() -> None:
    kind, api_version = "PriorityClass", "scheduling.k8s.io/v1"
    values = {"system-node-critical": 2_000_001_000, "mine": 5}
    api = API(
        *({"apiVersion": api_version, "kind": kind, "metadata": {"name": n}, "value": v} for n, v in values.items())
    )

    assert api.ask("delete", kind, "system-node-critical").code == 403
    assert api.ask("delete", kind, "mine").code == 200
    assert api.ask("deletecollection", kind).code == 200
    assert api.ask("list", kind).to_dict()["items"] == []


def test_the_object_of_a_dry_run_has_the_version_before_and_a_new_one_has_none() -> None:
    api = cluster()
    metadata = {"annotations": {"a": "b"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}

    changed = api.ask("patch", key=A, body={"metadata": metadata}, patch_type="merge", dry_run=True).to_dict()
    created = api.ask("create", "ConfigMap", namespace="default", body=body, dry_run=True).to_dict()

    assert changed["metadata"]["annotations"] == metadata["annotations"]
    assert changed["metadata"]["resourceVersion"] == str(api.store.get("Pod", A).version)
    assert "resourceVersion" not in created["metadata"]


@pytest.mark.parametrize("what", sorted(REQUESTS))
def test_an_unknown_resource_is_not_found(what: tuple[str, str]) -> None:
    api = cluster()

    response = api.answer(replace(REQUESTS[what][0](api), kind="Widget"))

    assert code(response) in (400, 404)


@pytest.mark.parametrize(
    ("verb", "kind", "subresource", "expected"),
    [
        ("delete", "Pod", "status", 405),
        ("list", "Pod", "scale", 405),
        ("get", "Pod", "binding", 405),
        ("get", "Pod", "log", 501),
        ("create", "Pod", "exec", 501),
        ("get", "Node", "log", 404),
        ("update", "Pod", "finalize", 404),
        ("create", "Pod", "token", 404),
        ("get", "Binding", "", 405),
        ("deletecollection", "Namespace", "", 405),
        ("get", "Pod", "scale", 404),
        ("get", "ConfigMap", "status", 404),
        ("create", "Node", "binding", 404),
        ("create", "Node", "eviction", 404),
    ],
)
def test_an_unsupported_verb_of_a_kind_is_rejected(verb: Any, kind: str, subresource: str, expected: int) -> None:
    key = {"Pod": A, "Node": "n1", "ConfigMap": "default/c", "Binding": A, "Namespace": "shop"}[kind]

    assert code(cluster().ask(verb, kind, key, subresource=subresource, body={})) == expected


class TestCreating:
    def test_an_object_is_created_in_the_namespace_of_the_request(self) -> None:
        raw = {**CONFIG, "metadata": {"name": "new"}}

        response = cluster().ask("create", "ConfigMap", namespace="shop", body=raw)

        assert response.to_dict()["metadata"]["namespace"] == "shop"

    @pytest.mark.parametrize(
        "body",
        [
            None,
            [],
            "text",
            {**CONFIG, "metadata": {"name": "new", "namespace": "other"}},
            {**pod("new")},
            {**CONFIG, "metadata": "none"},
        ],
    )
    def test_a_body_of_another_type_is_rejected(self, body: Any) -> None:
        assert code(cluster().ask("create", "ConfigMap", namespace="default", body=body)) == 400

    def test_clients_cannot_set_server_owned_fields(self) -> None:
        raw = pod("new", metadata={"uid": "mine"}, status={"phase": "Running"})

        plain = API().ask("create", body=raw).to_dict()
        kept = API(takes_history=True).ask("create", body=raw).to_dict()

        assert plain["metadata"]["uid"] != "mine"
        assert plain["status"]["phase"] == "Pending"
        assert (kept["metadata"]["uid"], kept["status"]["phase"]) == ("mine", "Running")

    def test_a_name_that_is_taken_is_a_conflict(self) -> None:
        response = cluster().ask("create", body=pod("a"))

        assert code(response) == 409
        assert response.to_dict()["reason"] == "AlreadyExists"


class TestUpdating:
    def test_the_object_in_the_body_is_that_of_the_request(self) -> None:
        api = cluster()

        assert code(api.ask("update", key="default/b", body=api.raw("Pod", A))) == 400

    @pytest.mark.parametrize("verb", ["update", "patch"])
    @pytest.mark.parametrize("field", ["uid", "resourceVersion"])
    def test_a_precondition_that_is_not_met_is_a_conflict(self, verb: Any, field: str) -> None:
        api = cluster()
        raw = api.raw("Pod", A)
        changed = {**raw, "metadata": {**raw["metadata"], "labels": {"new": "yes"}, field: "99"}}
        body = changed if verb == "update" else {"metadata": {"labels": {"new": "yes"}, field: "99"}}

        assert code(api.ask(verb, key=A, body=body)) == 409

    @pytest.mark.parametrize("verb", ["update", "patch"])
    def test_version_0_makes_an_update_unconditional(self, verb: Any) -> None:
        api = cluster()
        metadata = {**api.raw("Pod", A)["metadata"], "labels": {"new": "yes"}, "resourceVersion": "0"}
        body = {**api.raw("Pod", A), "metadata": metadata} if verb == "update" else {"metadata": metadata}

        assert code(api.ask(verb, key=A, body=body)) == 200
        assert api.raw("Pod", A)["metadata"]["labels"] == {"new": "yes"}

    @pytest.mark.parametrize("body", [None, [], 7])
    def test_an_invalid_patch_is_rejected(self, body: Any) -> None:
        assert code(cluster().ask("patch", key=A, body=body, patch_type="strategic")) == 400

    def test_a_scale_is_answered_with_the_scale(self) -> None:
        api = cluster()

        response = api.ask("patch", "ReplicaSet", "default/web", subresource="scale", body={"spec": {"replicas": 7}})

        assert response.to_dict()["spec"] == {"replicas": 7}
        assert api.raw("ReplicaSet", "default/web")["spec"]["replicas"] == 7


class TestFieldValidation:
    UNKNOWN = pod("new", spec={"nodeNam": "n1"})

    def test_an_unknown_field_is_rejected_on_request(self) -> None:
        api = cluster()

        response = api.ask("create", body=self.UNKNOWN, field_validation="Strict")

        assert code(response) == 400
        assert 'unknown field "spec.nodeNam"' in response.to_dict()["message"]
        assert api.store.find("Pod", "default/new") is None

    def test_people_are_warned_of_it_where_that_is_asked(self) -> None:
        response = cluster().ask("create", body=self.UNKNOWN, field_validation="Warn")

        assert (response.code, response.warnings) == (201, ('unknown field "spec.nodeNam"',))

    @pytest.mark.parametrize("mode", ["", "Ignore"])
    def test_a_valid_create_causes_no_warnings(self, mode: Any) -> None:
        response = cluster().ask("create", body=self.UNKNOWN, field_validation=mode)

        assert (response.code, response.warnings) == (201, ())

    def test_a_patch_that_brings_one_in_is_undone(self) -> None:
        api = cluster()
        before = api.raw("Node", "n1")

        response = api.ask("patch", "Node", "n1", body={"spec": {"podCIDRR": "x"}}, field_validation="Strict")

        assert code(response) == 400
        assert api.raw("Node", "n1") == before

    def test_an_unknown_mode_is_rejected(self) -> None:
        assert code(cluster().ask("create", body=pod("new"), field_validation="Loud")) == 400


class TestDeleting:
    def test_a_pod_that_is_still_to_end_is_the_answer(self) -> None:
        api = API(pod("a", node="n1", status={"phase": "Running"}))

        response = api.ask("delete", key=A, body={"gracePeriodSeconds": 7})

        assert response.to_dict()["metadata"]["deletionGracePeriodSeconds"] == 7

    def test_an_immediate_deletion_is_answered_with_a_status(self) -> None:
        api = cluster()
        uid = api.uid("ConfigMap", "default/c")

        body = api.ask("delete", "ConfigMap", "default/c").to_dict()

        assert (body["kind"], body["status"]) == ("Status", "Success")
        assert body["details"] == {"name": "c", "kind": "configmaps", "uid": uid}

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"preconditions": {"uid": "other"}}, 409),
            ({"preconditions": {"resourceVersion": "99"}}, 409),
            ({"preconditions": []}, 200),
            ({"preconditions": "x"}, 400),
            ({"preconditions": {"uid": 7}}, 400),
            ({"gracePeriodSeconds": "7"}, 400),
            ({"gracePeriodSeconds": True}, 400),
            ({"gracePeriodSeconds": 2**63}, 400),
            ({"propagationPolicy": "Sideways"}, 422),
            ({"propagationPolicy": ["Orphan"]}, 400),
            ({"dryRun": ["Some"]}, 400),
            ([], 400),
            ("x", 400),
        ],
    )
    def test_options_that_cannot_be_met_or_read_are_refused(self, body: Any, expected: int) -> None:
        assert code(cluster().ask("delete", key=A, body=body)) == expected

    @pytest.mark.parametrize("verb", ["delete", "deletecollection"])
    def test_a_dry_run_may_stand_in_the_options(self, verb: Any) -> None:
        api = cluster()

        response = api.ask(verb, key=A, namespace="default", body={"dryRun": ["All"]})

        assert code(response) == 200
        assert api.store.find("Pod", A) is not None

    def test_a_collection_is_what_the_selector_says(self) -> None:
        api = API(pod("a", labels={"app": "x"}), pod("b"))

        response = api.ask("deletecollection", namespace="default", options=ListOptions(label_selector="app=x"))

        assert [raw["metadata"]["name"] for raw in response.to_dict()["items"]] == ["a"]
        assert [one.key for one in api.store.objects("Pod")] == ["default/b"]


class TestListing:
    def test_a_list_comes_in_pages(self) -> None:
        api = cluster()

        first = api.ask("list", options=ListOptions(limit=1)).to_dict()
        token = first["metadata"]["continue"]
        second = api.ask("list", options=ListOptions(limit=1, continue_token=token)).to_dict()

        assert [body["items"][0]["metadata"]["name"] for body in (first, second)] == ["a", "b"]
        assert first["metadata"]["remainingItemCount"] == 1

    @pytest.mark.parametrize("options", [ListOptions(label_selector="=="), ListOptions(continue_token="x")])
    @pytest.mark.parametrize("verb", ["list", "deletecollection"])
    def test_options_that_cannot_be_read_are_refused(self, verb: Any, options: ListOptions) -> None:
        assert code(cluster().ask(verb, options=options)) == 400

    def test_a_router_watch_reports_events_after_a_version(self) -> None:
        api = cluster()
        response = api.ask("watch", options=ListOptions(resource_version=str(api.store.version)))
        assert response.watch is not None

        api.ask("delete", key=A)

        assert [(notice.type, notice.raw["metadata"]["name"]) for notice in response.watch.pull()] == [("DELETED", "a")]
        with pytest.raises(ValueError, match="no body"):
            response.to_dict()


class TestBindingAndEvicting:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"target": {"name": "n1"}}, 201),
            ({"metadata": {"name": "b"}, "target": {"name": "n1"}}, 400),
            ({"metadata": {"uid": "other"}, "target": {"name": "n1"}}, 409),
            ({"metadata": {"resourceVersion": "99"}, "target": {"name": "n1"}}, 409),
            ({"target": {"kind": "Zone", "name": "n1"}}, 500),
            ({"target": "n1"}, 400),
            ({"target": {"name": 7}}, 400),
            (None, 400),
        ],
    )
    def test_a_binding_names_its_pod_and_its_node(self, body: Any, expected: int) -> None:
        assert code(cluster().ask("create", key=A, subresource="binding", body=body)) == expected

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"deleteOptions": {"preconditions": {"uid": "other"}}}, 409),
            ({"deleteOptions": {"gracePeriodSeconds": 1.5}}, 400),
            ({"metadata": {"annotations": {"podium.dev/avoid-for": "a while"}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/avoid-until-replaced": "b"}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/avoid-until-replaced": "default/b/u/b"}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/avoid-until-replaced": "default//u"}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/avoid-until-replaced": ["default/b"]}}}, 400),
            (
                {
                    "metadata": {
                        "annotations": {
                            "podium.dev/avoid-until-replaced": "default/b",
                            "podium.dev/avoid-until-scheduled": "default/b",
                        }
                    }
                },
                400,
            ),
            ({"metadata": {"annotations": {"podium.dev/replacement-node": "not a name"}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/replacement-node": ["n1"]}}}, 400),
            ({"metadata": {"annotations": {"podium.dev/component": 7}}}, 400),
            ({"metadata": {"namespace": "other"}}, 400),
            ({"metadata": []}, 201),
            (7, 400),
        ],
    )
    def test_an_eviction_that_cannot_be_met_or_read_is_refused(self, body: Any, expected: int) -> None:
        assert code(cluster().ask("create", key=A, subresource="eviction", body=body)) == expected

    def test_a_budget_that_is_used_up_is_too_many_requests(self) -> None:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {}},
            "status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1},
        }
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api = API(pod("a", node="n1", status=ready), budget)

        response = api.ask("create", key=A, subresource="eviction", body={})

        assert code(response) == 429
        assert response.to_dict()["details"]["causes"][0]["reason"] == "DisruptionBudget"

    def test_podiums_eviction_fields_are_stored_as_annotations(self) -> None:
        controlled = workload("ReplicaSet", "web", 1, uid="web")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
        api = API(node("n1"), controlled, pod("a", node="n1", metadata={"ownerReferences": [owner]}))
        annotations = {"podium.dev/avoid-node": "true", "podium.dev/avoid-for": "5m", "podium.dev/component": "drain"}

        response = api.ask("create", key=A, subresource="eviction", body={"metadata": {"annotations": annotations}})

        assert code(response) == 201
        avoided = api.raw("Node", "n1")["metadata"]["annotations"]["scheduler.alpha.kubernetes.io/preferAvoidPods"]
        assert '"expireAfter":"5m"' in avoided.replace(" ", "")

    def test_a_replacement_hint_is_shown_in_the_eviction(self) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
        api = API(node("n1"), pod("a", node="n1", metadata={"ownerReferences": [owner]}))
        annotations = {"podium.dev/replacement-first": "true", "podium.dev/replacement-node": "n2"}

        response = api.ask("create", key=A, subresource="eviction", body={"metadata": {"annotations": annotations}})

        assert code(response) == 201
        written = api.raw("Node", "n1")["metadata"]["annotations"]["scheduler.alpha.kubernetes.io/preferAvoidPods"]
        assert '"first":true,"nodeName":"n2"' in written.replace(" ", "")


def test_the_time_of_a_request_is_that_of_what_it_writes() -> None:
    api = cluster()

    created = api.ask("create", body=pod("new")).to_dict()

    assert created["metadata"]["creationTimestamp"] == "1970-01-01T00:01:40Z"
    assert NOW == 100 * 10**9


@pytest.mark.parametrize(
    ("kind", "api_version", "more", "code"),
    [
        ("Lease", "coordination.k8s.io/v1", {}, 201),
        ("Role", "rbac.authorization.k8s.io/v1", {"rules": []}, 201),
        ("LimitRange", "v1", {"spec": {"limits": []}}, 201),
        ("ConfigMap", "v1", {}, 404),
        ("Secret", "v1", {}, 404),
    ],
)
def test_an_update_creates_objects_of_the_kinds_that_allow_it(
    kind: str, api_version: str, more: Raw, code: int
) -> None:
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "default"}, **more}

    assert API().ask("update", kind, "default/a", body=body).code == code


@pytest.mark.parametrize("patch_type", ["merge", "strategic"])
def test_a_patch_with_a_value_of_the_wrong_type_is_invalid(patch_type: Any) -> None:
    api = API(pod("a"))
    patch = {"metadata": {"annotations": {"a": ["b"]}}}

    answer = api.ask("patch", key="default/a", body=patch, patch_type=patch_type, field_validation="Warn")

    assert (answer.code, answer.to_dict()["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("options", "code"),
    [({}, 200), ({"orphanDependents": False}, 202), ({"propagationPolicy": "Foreground"}, 200)],
)
def test_a_deletion_that_finalizers_delay_is_accepted_if_dependents_are_not_orphaned(options: Raw, code: int) -> None:
    metadata = {**CONFIG["metadata"], "finalizers": ["example.com/hold"]}
    api = API({**CONFIG, "metadata": metadata}, {**CONFIG, "metadata": {**CONFIG["metadata"], "name": "d"}})

    assert api.ask("delete", "ConfigMap", "default/c", body=options).code == code
    if "propagationPolicy" not in options:
        assert api.ask("delete", "ConfigMap", "default/d", body=options).code == 200


def test_repeated_owners_are_stored_once_with_a_warning() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    other = {**owner, "uid": "v"}
    api, owners = API(), [owner, other, owner]
    text = (
        "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your "
    )
    text += "requests; duplicate UID(s) observed: u"

    def written(verb: Verb, key: str = "") -> Response:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": owners}}
        return api.ask(verb, "ConfigMap", key, namespace="default", body=body, field_validation="Warn")

    created, patched = written("create"), written("patch", "default/a")

    assert created.warnings == (f".metadata.ownerReferences contains duplicate entries; {text}",)
    after = ".metadata.ownerReferences contains duplicate entries after mutating admission happens"
    assert patched.warnings == (f"{after}; {text}",)
    assert api.raw("ConfigMap", "default/a")["metadata"]["ownerReferences"] == [owner, other]
