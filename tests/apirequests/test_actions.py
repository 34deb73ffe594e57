"""The requests that controllers' actions become."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from podium.api.avoid_list import AwaitedPod, EvictionHints
from podium.api.input.codec import decode
from podium.api.pod import NOMINATED_NODE_ANNOTATION, PodCondition
from podium.apirequests.actions import carry_out, conversation_of
from podium.apirequests.request import Request, Response, read_eviction
from podium.controllers.actions import (
    Action,
    Bind,
    BindClaim,
    CreateObject,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    Record,
    ReleaseClaim,
    ReplaceStatus,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.controllers.observations import Problem
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.apirequests.asking import API, NOW
from tests.pod_statuses import set_pod_status
from tests.store.objects import SECOND, Raw, node, pod

A = "default/a"
TARGET = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="room is needed")
VOLUME: Raw = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {}}
CLAIM: Raw = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {},
}
DEVICES: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {},
}
MADE: Raw = {**DEVICES, "metadata": {"generateName": "a-", "namespace": "default"}}


def cluster() -> API:
    return API(node("n1"), pod("a"), VOLUME, CLAIM, DEVICES)


@dataclass(frozen=True)
class Case:
    """An action, and the requests that it is: verb, kind and subresource."""

    make: Callable[[API], Action]
    requests: tuple[str, ...]


GET, STATUS = "get Pod", "patch Pod/status"
CASES: dict[type[Action], Case] = {
    Bind: Case(lambda api: Bind(A, api.uid("Pod", A), "n1"), ("create Pod/binding",)),
    ReportUnschedulable: Case(
        lambda api: ReportUnschedulable(A, api.uid("Pod", A), "Unschedulable", "no room", "n1"), (GET, STATUS)
    ),
    Nominate: Case(lambda api: Nominate(A, api.uid("Pod", A), "n1"), (GET, STATUS)),
    ReportStatus: Case(lambda api: ReportStatus("Pod", A, api.uid("Pod", A), "test", (TARGET,)), (GET, STATUS)),
    BindClaim: Case(
        lambda api: BindClaim("default/data", api.uid("PersistentVolumeClaim", "default/data"), "disk", "n1", "u"),
        ("get PersistentVolumeClaim", "get PersistentVolume", "patch PersistentVolume"),
    ),
    ReserveClaim: Case(
        lambda api: ReserveClaim(
            "default/gpu", api.uid("ResourceClaim", "default/gpu"), A, api.uid("Pod", A), {"devices": {}}
        ),
        ("get ResourceClaim", "update ResourceClaim", "update ResourceClaim/status"),
    ),
    ReleaseClaim: Case(
        lambda api: ReleaseClaim("default/gpu", "", A, api.uid("Pod", A)),
        ("get ResourceClaim", "update ResourceClaim/status"),
    ),
    Record: Case(lambda api: Record(A, api.uid("Pod", A), "Normal", "Scheduled", "it fits"), ("create Event",)),
    CreateObject: Case(lambda _: CreateObject(pod("new"), "test"), ("create Pod",)),
    ReplaceStatus: Case(
        lambda api: ReplaceStatus({**api.raw("Pod", A), "status": {"phase": "Running"}}, "test"), ("update Pod/status",)
    ),
    PatchObject: Case(
        lambda api: PatchObject("Node", "n1", api.uid("Node", "n1"), {"spec": {"unschedulable": True}}, "test"),
        ("patch Node",),
    ),
    DeleteObject: Case(lambda api: DeleteObject("Pod", A, api.uid("Pod", A), "test"), ("delete Pod",)),
    Evict: Case(lambda api: Evict(A, api.uid("Pod", A), "test", "drain"), ("create Pod/eviction",)),
}


def reported(request: Request) -> str:
    what = f"{request.verb} {request.kind}"
    return f"{what}/{request.subresource}" if request.subresource else what


def problem(api: API, action: Action) -> Problem | None:
    return carry_out(api.answer, action, NOW, "scheduler").problem


def test_every_action_is_carried_out_here() -> None:
    assert CASES.keys() == set(get_args(Action))


@pytest.mark.parametrize("type_", CASES, ids=lambda type_: type_.__name__)
def test_every_action_is_the_requests_of_a_real_client(type_: type[Action]) -> None:
    api = cluster()
    version = api.store.version

    assert problem(api, CASES[type_].make(api)) is None

    assert tuple(map(reported, api.sent)) == CASES[type_].requests
    assert api.store.version > version


@pytest.mark.parametrize("type_", CASES, ids=lambda type_: type_.__name__)
def test_a_client_that_waits_for_its_answers_asks_the_same(type_: type[Action]) -> None:
    at_once, waiting = cluster(), cluster()
    carry_out(at_once.answer, CASES[type_].make(at_once), NOW, "scheduler")
    conversation = conversation_of(CASES[type_].make(waiting), "scheduler", NOW)

    request = next(conversation, None)
    while request is not None:
        answer = waiting.answer(request)
        try:
            request = conversation.send(answer)
        except StopIteration:
            request = None

    assert waiting.sent == at_once.sent
    assert waiting.store.version == at_once.store.version


@pytest.mark.parametrize("type_", [one for one in CASES if one not in (CreateObject, Record, ReleaseClaim)])
def test_an_action_on_a_namesake_is_refused_as_a_conflict(type_: type[Action]) -> None:
    api, other = cluster(), cluster()
    for kind, key in (("Pod", A), ("Node", "n1"), ("ResourceClaim", "default/gpu")):
        other.store.delete(kind, key, now=0)
    other.store.delete("PersistentVolumeClaim", "default/data", now=0)
    action = CASES[type_].make(api)
    for raw in (node("n1"), pod("a"), DEVICES, CLAIM):
        other.store.create(raw, now=0)
    version = other.store.version

    refused = problem(other, action)

    assert refused is not None
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert other.store.version == version


@pytest.mark.parametrize("type_", [one for one in CASES if one not in (CreateObject, Record, ReleaseClaim)])
def test_an_action_on_what_is_gone_is_not_found(type_: type[Action]) -> None:
    api = cluster()
    refused = problem(API(), CASES[type_].make(api))

    assert refused is not None
    assert refused.code == 404


# Of the actions that are answered with an object, which one that is.
WRITTEN: dict[type[Action], tuple[str, str]] = {
    ReportUnschedulable: ("Pod", A),
    Nominate: ("Pod", A),
    ReportStatus: ("Pod", A),
    BindClaim: ("PersistentVolumeClaim", "default/data"),
    ReserveClaim: ("ResourceClaim", "default/gpu"),
    ReleaseClaim: ("ResourceClaim", "default/gpu"),
    CreateObject: ("Pod", "default/new"),
    ReplaceStatus: ("Pod", A),
    PatchObject: ("Node", "n1"),
}


@pytest.mark.parametrize("type_", CASES, ids=lambda type_: type_.__name__)
def test_an_answer_contains_the_written_version(type_: type[Action]) -> None:
    api = cluster()
    about = WRITTEN.get(type_)

    finished = carry_out(api.answer, CASES[type_].make(api), NOW, "scheduler")

    assert finished.written == (None if about is None else api.raw(*about))


@pytest.mark.parametrize("type_", [one for one in WRITTEN if one is not CreateObject], ids=lambda type_: type_.__name__)
def test_a_redundant_action_is_answered_with_the_current_version(type_: type[Action]) -> None:
    api = cluster()
    action = CASES[type_].make(api)
    carry_out(api.answer, action, NOW)
    version = api.store.version

    again = carry_out(api.answer, CASES[type_].make(api), NOW)

    assert api.store.version == version
    assert again.written == api.raw(*WRITTEN[type_])


def test_the_uid_is_a_precondition_where_kubernetes_has_it() -> None:
    api = cluster()
    uid = api.uid("Pod", A)
    problem(api, Bind(A, uid, "n1"))
    problem(api, ReportStatus("Pod", A, uid, "test", (TARGET,)))
    problem(api, DeleteObject("Pod", A, uid, "kubelet", 0))

    bind, _, patch, delete = api.sent

    assert bind.written_body["metadata"]["uid"] == patch.written_body["metadata"]["uid"] == uid
    assert bind.written_body["target"] == {"kind": "Node", "name": "n1"}
    assert patch.patch_type == "strategic"
    assert delete.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
        "gracePeriodSeconds": 0,
    }


@pytest.mark.parametrize(
    "avoid_for",
    [
        EvictionHints(),
        EvictionHints(avoid_for_ns=90 * SECOND),
        EvictionHints(until_scheduled="default/b"),
        EvictionHints(avoid_for_ns=SECOND, until_scheduled="default/b"),
        EvictionHints(until_replaced=AwaitedPod(namespace="default", name="b")),
        EvictionHints(avoid_for_ns=SECOND, until_replaced=AwaitedPod(namespace="default", name="b", uid="u")),
    ],
)
@pytest.mark.parametrize("avoid_node", [True, False])
@pytest.mark.parametrize("left", [{}, {"first": True}, {"node_name": "n2"}])
def test_eviction_fields_survive_a_round_trip(avoid_for: EvictionHints, avoid_node: bool, left: dict[str, Any]) -> None:
    api = cluster()
    uid = api.uid("Pod", A)
    hints = dataclasses.replace(avoid_for, avoid_node=avoid_node, **left)
    action = Evict(A, uid, "test", "drain", 7, hints)
    problem(api, action)

    read = read_eviction(api.sent[-1].body, A)

    assert (read.component, read.hints) == ("drain", action.hints)
    assert (read.delete.uid, read.delete.grace_seconds) == (action.uid, 7)


def test_a_report_that_changes_nothing_is_not_sent() -> None:
    api = cluster()
    report = ReportUnschedulable(A, api.uid("Pod", A), "Unschedulable", "no room", "n1")
    problem(api, report)
    api.sent.clear()

    assert problem(api, report) is None
    assert list(map(reported, api.sent)) == [GET]


@pytest.mark.parametrize("waited", [False, True])
def test_a_binding_has_the_same_effect_with_or_without_a_parsed_body(*, waited: bool) -> None:
    outcome, untold = API(pod("a")), API(pod("a"))
    for api in (outcome, untold):
        if waited:
            waits = {"type": "PodScheduled", "status": "False"}
            set_pod_status(api.store, A, {"nominatedNodeName": "n0"}, [waits], now=SECOND)

    carry_out(outcome.answer, Bind(A, outcome.uid("Pod", A), "n1"), NOW)
    untold.answer(replace(outcome.sent[-1], body=outcome.sent[-1].written_body))

    bound = outcome.store.get("Pod", A)
    assert bound == untold.store.get("Pod", A)
    assert bound.object == decode(bound.raw)


def test_a_transition_is_dated_when_the_status_of_the_condition_changes() -> None:
    api = cluster()
    uid = api.uid("Pod", A)
    for second, status, reason in ((1, "False", "x"), (2, "False", "y"), (3, "True", "y")):
        condition = PodCondition(type="Ready", status=status, reason=reason)
        carry_out(api.answer, ReportStatus("Pod", A, uid, "kubelet", (condition,)), second * SECOND)
        (written,) = api.raw("Pod", A)["status"]["conditions"]
        assert written["reason"] == reason
        assert written["lastTransitionTime"] == f"1970-01-01T00:00:0{3 if second == 3 else 1}Z"


def test_a_nomination_in_the_annotation_ends_with_the_other() -> None:
    api = API(pod("a", annotations={NOMINATED_NODE_ANNOTATION: "n1", "mine": "yes"}))
    uid = api.uid("Pod", A)
    problem(api, Nominate(A, uid, "n1"))

    assert problem(api, Nominate(A, uid, "", "default/b")) is None

    assert api.raw("Pod", A)["metadata"]["annotations"] == {"mine": "yes"}
    assert "nominatedNodeName" not in api.raw("Pod", A)["status"]


def test_an_event_names_its_object_and_its_component() -> None:
    api = cluster()
    uid = api.uid("Pod", A)
    problem(api, Record(A, uid, "Warning", "FailedScheduling", "no room", related="default/b"))
    problem(api, Record("", "u", "Warning", "FailedCreate", "no", workload="ReplicaSet default/web"))

    of_pod, of_set = (request.body for request in api.sent)

    assert of_pod["involvedObject"]["uid"] == uid
    assert (of_pod["source"], of_pod["related"]["name"]) == ({"component": "scheduler"}, "b")
    assert (of_set["involvedObject"]["apiVersion"], of_set["involvedObject"]["name"]) == ("apps/v1", "web")


class TestDeviceClaims:
    def reserve(self, api: API, **more: Any) -> Problem | None:
        claim = "" if "made" in more else "default/gpu"
        uid = api.uid("ResourceClaim", claim) if claim else ""
        return problem(api, ReserveClaim(claim, uid, A, api.uid("Pod", A), **more))

    def claim(self, api: API) -> Raw:
        return api.raw("ResourceClaim", "default/gpu")

    def test_a_claim_gets_its_devices_its_user_and_its_protection(self) -> None:
        api = cluster()

        assert self.reserve(api, allocation={"devices": {}}) is None

        claim = self.claim(api)
        assert claim["status"]["allocation"] == {"allocationTimestamp": "1970-01-01T00:01:40Z", "devices": {}}
        assert [user["name"] for user in claim["status"]["reservedFor"]] == ["a"]
        assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]

    def test_to_reserve_it_again_is_nothing(self) -> None:
        api = cluster()
        self.reserve(api, allocation={"devices": {}})
        version = api.store.version

        assert self.reserve(api, allocation={"devices": {}}) is None
        assert api.store.version == version

    def test_a_claim_that_lost_its_devices_or_got_others_is_a_conflict(self) -> None:
        api = API(pod("a"), pod("b"), DEVICES)
        uid = api.uid("ResourceClaim", "default/gpu")

        lost = self.reserve(api)
        problem(api, ReserveClaim("default/gpu", uid, "default/b", api.uid("Pod", "default/b"), {"devices": {}}))
        others = self.reserve(api, allocation={"devices": {}})

        assert lost is not None
        assert "was deallocated" in lost.message
        assert others is not None
        assert "got allocated elsewhere" in others.message

    def test_a_claim_with_other_users_keeps_its_devices(self) -> None:
        api = API(pod("a"), pod("b"), DEVICES)
        self.reserve(api, allocation={"devices": {}})
        uid = api.uid("ResourceClaim", "default/gpu")
        problem(api, ReserveClaim("default/gpu", uid, "default/b", api.uid("Pod", "default/b")))

        refused = problem(api, ReleaseClaim("default/gpu", uid, A, api.uid("Pod", A), deallocate=True))
        released = problem(api, ReleaseClaim("default/gpu", uid, A, api.uid("Pod", A)))

        assert refused is not None
        assert refused.code == 409
        assert released is None
        assert [user["name"] for user in self.claim(api)["status"]["reservedFor"]] == ["b"]

    def test_a_claim_for_extended_resources_is_made_and_goes_with_its_reservation(self) -> None:
        api = API(pod("a"))
        uid = api.uid("Pod", A)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": True}
        annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
        made = {**MADE, "metadata": {**MADE["metadata"], "ownerReferences": [owner], "annotations": annotations}}
        mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}

        assert self.reserve(api, allocation={"devices": {}}, made=made, mappings=(mapping,)) is None

        (claim,) = api.store.objects("ResourceClaim")
        status = api.raw("Pod", A)["status"]["extendedResourceClaimStatus"]
        assert status == {"requestMappings": [mapping], "resourceClaimName": claim.object.metadata.name}
        assert problem(api, ReleaseClaim("", "", A, uid)) is None
        assert api.store.objects("ResourceClaim") == []

    def test_to_release_what_is_gone_is_nothing(self) -> None:
        api = API(pod("a"))

        assert problem(api, ReleaseClaim("default/gpu", "u", A, api.uid("Pod", A))) is None
        assert problem(api, ReleaseClaim("", "", A, api.uid("Pod", A))) is None


def test_an_answer_that_did_not_come_ends_a_conversation() -> None:
    api = cluster()

    def silent(request: Request, now: int) -> Response:
        if request.verb == "get":
            return api.answer(request)
        return Response(code=0, error=StoreError(0, "Timeout", "no answer came"))

    found = carry_out(silent, Nominate(A, api.uid("Pod", A), "n1"), NOW)

    assert found.problem == Problem(0, "Timeout", "no answer came")


def test_reports_are_what_the_store_itself_would_write() -> None:
    """The patch that is sent comes to the same as a change of the status in place."""
    before: Raw = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False", "reason": "r"}]}
    api, plain = API(pod("a", status=before)), Store()
    plain.create(pod("a", status=before), now=0)
    fields = {"phase": "Running", "startTime": "1970-01-01T00:00:01Z", "containerStatuses": [{"name": "main"}]}
    conditions = (PodCondition(type="Ready", status="True"), TARGET)

    problem(api, ReportStatus("Pod", A, api.uid("Pod", A), "kubelet", conditions, fields))
    observed: Raw = {"status": "True", "observedGeneration": 1}
    written = [
        {"type": "Ready", **observed},
        {"type": TARGET.type, **observed, "reason": TARGET.reason, "message": TARGET.message},
    ]
    set_pod_status(plain, A, fields, written, now=NOW)

    assert api.raw("Pod", A) == plain.get("Pod", A).raw
