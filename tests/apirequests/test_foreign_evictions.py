"""Evictions at API servers without avoid lists: the evicting component writes the list itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, AwaitedPod, EvictionHints, avoid_list
from podium.apirequests.actions import conversation_of
from podium.apirequests.request import Request, Response, run_conversation
from podium.controllers.actions import Evict
from podium.store.errors import StoreError
from tests.apirequests.asking import API, NOW
from tests.store.objects import Raw, budget, disruption_policy, node, pod, running

A = "default/a"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": True}
FIRST: dict[str, Any] = {"first": True, "node_name": "n2"}
WHOLE: tuple[str, ...] = (
    "get Pod",
    "get DisruptionPolicy",
    "create Pod/eviction (dry run)",
    "get Node",
    "patch Node",
    "create Pod/eviction",
)
EXHAUSTED = StoreError(429, "TooManyRequests", "the budget is used up")
Fault = Callable[[Request], "StoreError | None"]


def owned(name: str, **more: Any) -> Raw:
    return running(name, metadata={"ownerReferences": [OWNER]}, **more)


class Foreign:
    """An API server that reads nothing of ours in evictions; ``fault`` may refuse a request, or do something before."""

    def __init__(self, *objects: Raw) -> None:
        self.api = API(node("n1"), node("n2"), *objects)
        self.fault: Fault = lambda request: None

    def ask(self, request: Request, now: int) -> Response:
        error = self.fault(request)
        if request.subresource == "eviction":
            assert "annotations" not in request.body["metadata"]
        if error is not None:
            self.api.sent.append(request)
            return Response(code=error.code, error=error)
        return self.api.answer(request, now)

    def evict(self, name: str = "a", now: int = NOW, uid: str = "", **more: Any) -> StoreError | None:
        key = f"default/{name}"
        found = uid or self.api.uid("Pod", key)
        self.api.sent.clear()
        hints = EvictionHints(**{"avoid_node": True, **more})
        action = Evict(key, found, "test", "rescheduler", hints=hints)
        try:
            run_conversation(conversation_of(action, "rescheduler", now, is_podium_server=False), self.ask, now)
        except StoreError as error:
            return error
        return None

    @property
    def asked(self) -> tuple[str, ...]:
        """Return what was sent, in its order."""
        return tuple(reported(request) for request in self.api.sent)

    @property
    def list(self) -> AvoidList:
        return avoid_list(self.text)

    @property
    def text(self) -> str:
        found = self.api.raw("Node", "n1")["metadata"].get("annotations", {}).get(PREFER_AVOID_PODS, "")
        assert isinstance(found, str)
        return found

    def is_ending(self, name: str = "a") -> bool:
        return bool(self.api.raw("Pod", f"default/{name}")["metadata"].get("deletionTimestamp"))


def reported(request: Request) -> str:
    kind = f"{request.kind}/{request.subresource}" if request.subresource else request.kind
    return f"{request.verb} {kind}{' (dry run)' if request.dry_run else ''}"


def refusing(wanted: str, error: StoreError, times: int = 1) -> Fault:
    left = [times]

    def fault(request: Request) -> StoreError | None:
        if reported(request) != wanted or not left[0]:
            return None
        left[0] -= 1
        return error

    return fault


def test_the_node_is_written_before_the_pod_is_evicted() -> None:
    foreign = Foreign(owned("a"))

    assert foreign.evict(**FIRST) is None

    assert foreign.asked == WHOLE
    (entry,), (left,) = foreign.list.entries, foreign.list.replacements
    assert (entry.controller.uid, entry.reason) == ("u1", "rescheduler")
    assert (left.evicted_pod.name, left.first, left.node_name) == ("a", True, "n2")
    assert foreign.is_ending()


def test_foreign_evictions_write_the_same_list_as_podiums_server() -> None:
    ours, foreign = Foreign(owned("a")), Foreign(owned("a"))
    wanted: dict[str, Any] = {"avoid_for_ns": 90 * 10**9, **FIRST}
    action = Evict(A, ours.api.uid("Pod", A), "test", "rescheduler", hints=EvictionHints(avoid_node=True, **wanted))

    run_conversation(conversation_of(action, "rescheduler", NOW), ours.api.answer, NOW)
    foreign.evict(**wanted)

    assert ours.text.replace(ours.api.uid("Pod", A), "uid") == foreign.text.replace(foreign.api.uid("Pod", A), "uid")


def test_an_eviction_that_leaves_nothing_is_a_plain_one() -> None:
    foreign = Foreign(owned("a"), pod("bare", node="n1"), pod("pending"))

    assert foreign.evict(avoid_node=False) is None
    assert foreign.asked == WHOLE[-1:]
    for name in ("bare", "pending"):
        assert foreign.evict(name) is None
        assert foreign.asked == (WHOLE[0], WHOLE[-1])


def test_a_refused_dry_run_leaves_nodes_alone() -> None:
    foreign = Foreign(owned("a"))
    foreign.fault = refusing(WHOLE[2], EXHAUSTED)

    error = foreign.evict()

    assert error is EXHAUSTED
    assert foreign.asked == WHOLE[:3]
    assert foreign.text == ""


def test_a_budget_is_asked_and_not_debited_by_the_dry_run() -> None:
    foreign = Foreign(owned("a"), owned("b"), budget(allowed=1))

    assert foreign.evict("a") is None

    error = foreign.evict("b")
    assert error is not None
    assert error.code == 429
    assert foreign.api.raw("PodDisruptionBudget", "default/web")["status"]["disruptionsAllowed"] == 0


def before_that(*objects: Raw) -> Foreign:
    """Return where another pod of the controller was evicted some time ago."""
    foreign = Foreign(owned("old"), owned("a"), *objects)
    assert foreign.evict("old", now=NOW - 10**10, **FIRST) is None
    return foreign


@pytest.mark.parametrize("code", [429, 403, 404, 409, 500, 503])
def test_hints_are_removed_when_the_eviction_is_rejected_after_all(code: int) -> None:
    for foreign in (Foreign(owned("a")), before_that()):
        before, refusal = foreign.text, StoreError(code, "", "no")
        foreign.fault = refusing(WHOLE[-1], refusal)

        assert foreign.evict(**FIRST) is refusal

        assert foreign.asked == (*WHOLE, "get Node", "patch Node")
        assert foreign.text == before
        assert not foreign.is_ending()


@pytest.mark.parametrize("code", [502, 504])
def test_hints_are_kept_when_the_pod_may_have_been_evicted(code: int) -> None:
    foreign = Foreign(owned("a"))
    foreign.fault = refusing(WHOLE[-1], StoreError(code, "", "nobody knows"))

    assert foreign.evict() is not None

    assert foreign.asked == WHOLE
    assert foreign.list.entries


def test_asking_again_leaves_no_more_than_once() -> None:
    foreign = Foreign(owned("a"))
    foreign.fault = refusing(WHOLE[-1], StoreError(504, "Timeout", "nobody knows"))
    foreign.evict(**FIRST)

    assert foreign.evict(now=NOW + 10**9, **FIRST) is None

    assert (len(foreign.list.entries), len(foreign.list.replacements)) == (1, 1)


def test_concurrent_changes_by_other_clients_are_kept() -> None:
    foreign = Foreign(owned("a"))
    others = {"podSignature": {"podController": {**OWNER, "uid": "u2"}}, "reason": "theirs"}

    def fault(request: Request) -> StoreError | None:
        if reported(request) != WHOLE[-1]:
            return None
        found = {"preferAvoidPods": [others, *_entries(foreign)]}
        annotate(foreign, found)
        return EXHAUSTED

    foreign.fault = fault

    assert foreign.evict(**FIRST) is EXHAUSTED

    assert [entry.reason for entry in foreign.list.entries] == ["theirs"]


def _entries(foreign: Foreign) -> list[Any]:
    found: list[Any] = json.loads(foreign.text)["preferAvoidPods"]
    return found


def annotate(foreign: Foreign, found: Raw) -> None:
    body = {"metadata": {"annotations": {PREFER_AVOID_PODS: json.dumps(found)}}}
    foreign.api.router.answer(Request(verb="patch", kind="Node", key="n1", body=body), NOW)


def test_a_node_that_others_write_at_the_same_time_is_read_again() -> None:
    foreign = Foreign(owned("a"))
    writes: list[Request] = []

    def fault(request: Request) -> StoreError | None:
        if reported(request) == "patch Node" and len(writes) < 3:
            writes.append(request)
            annotate(foreign, {"preferAvoidPods": [], "other": len(writes)})
        return None

    foreign.fault = fault

    assert foreign.evict() is None

    assert foreign.asked == (*WHOLE[:3], *(["get Node", "patch Node"] * 4), WHOLE[-1])
    assert len(foreign.list.entries) == 1


def test_a_node_that_is_never_left_alone_ends_the_attempt() -> None:
    foreign = Foreign(owned("a"))
    conflict = StoreError(409, "Conflict", "somebody else was faster")
    foreign.fault = refusing("patch Node", conflict, times=100)

    assert foreign.evict() is conflict

    assert foreign.asked == (*WHOLE[:3], *(["get Node", "patch Node"] * 5))
    assert not foreign.is_ending()


def test_without_the_right_to_patch_nodes_no_pod_is_evicted() -> None:
    foreign = Foreign(owned("a"))
    forbidden = StoreError(403, "Forbidden", "nodes are not yours to patch")
    foreign.fault = refusing("patch Node", forbidden)

    assert foreign.evict() is forbidden

    assert not foreign.is_ending()


def test_a_rejected_eviction_is_reported_though_no_hint_can_be_removed() -> None:
    foreign = Foreign(owned("a"))
    seen: list[str] = []

    def fault(request: Request) -> StoreError | None:
        seen.append(reported(request))
        if seen.count("patch Node") == 2:
            return StoreError(503, "ServiceUnavailable", "not now")
        return EXHAUSTED if reported(request) == WHOLE[-1] else None

    foreign.fault = fault

    assert foreign.evict() is EXHAUSTED


def test_a_pod_on_a_deleted_node_is_evicted_by_the_client() -> None:
    foreign = Foreign(owned("a", node="n9"))

    assert foreign.evict() is None

    assert foreign.asked == (*WHOLE[:4], WHOLE[-1])
    assert foreign.is_ending()


def test_another_pod_of_that_name_is_left_alone() -> None:
    foreign = Foreign(owned("a"))

    error = foreign.evict(uid="of another one")

    assert error is not None
    assert (error.code, foreign.asked) == (409, ("get Pod",))
    assert foreign.text == ""


def test_a_pod_that_is_to_have_the_room_is_looked_at() -> None:
    wanted: dict[str, Any] = {"until_scheduled": "default/big"}
    missing, waiting, placed = (Foreign(owned("a"), *more) for more in ([], [pod("big")], [pod("big", node="n2")]))

    error = missing.evict(**wanted)
    assert error is not None
    assert error.code == 404
    assert not missing.is_ending()

    assert waiting.evict(**wanted) is None
    (entry,) = waiting.list.entries
    assert entry.until_scheduled is not None
    assert entry.until_scheduled.name == "big"

    assert placed.evict(**wanted) is None
    assert placed.text == ""


def test_an_awaited_pod_without_uid_is_looked_up() -> None:
    missing, there, report = (Foreign(owned("a"), *more) for more in ([], [pod("big", node="n2")], []))

    def waiting_for(uid: str = "") -> dict[str, Any]:
        return {"until_replaced": AwaitedPod(namespace="default", name="big", uid=uid)}

    error = missing.evict(**waiting_for())
    assert error is not None
    assert (error.code, missing.is_ending(), missing.text) == (404, False, "")
    for foreign, wanted in ((there, waiting_for()), (report, waiting_for("u-big"))):
        assert foreign.evict(**wanted) is None
        (entry,) = foreign.list.entries
        assert entry.until_replaced is not None
        assert entry.until_replaced.key == "default/big"
        assert entry.until_replaced.uid == (
            foreign.api.raw("Pod", "default/big")["metadata"]["uid"] if foreign is there else "u-big"
        )


def test_an_expected_replacement_is_recorded_even_without_hints() -> None:
    foreign = Foreign(owned("a"))

    assert foreign.evict(is_awaited=True) is None

    (left,) = foreign.list.replacements
    assert (left.evicted_pod.name, left.first, left.node_name) == ("a", False, "")


def test_lists_are_as_long_as_the_policy_says_where_there_is_one_that_may_be_seen() -> None:
    policy = disruption_policy(avoidLists={"maxEntries": 1})
    others = [
        running("b", metadata={"ownerReferences": [{**OWNER, "uid": "u2"}]}),
        running("c", metadata={"ownerReferences": [{**OWNER, "uid": "u3"}]}),
    ]
    seen, hidden = Foreign(policy, *others), Foreign(policy, *others)
    hidden.fault = refusing("get DisruptionPolicy", StoreError(403, "Forbidden", "no"), times=9)

    for foreign in (seen, hidden):
        assert foreign.evict("b") is None
        assert foreign.evict("c") is None

    assert [entry.controller.uid for entry in seen.list.entries] == ["u3"]
    assert [entry.controller.uid for entry in hidden.list.entries] == ["u2", "u3"]


def test_an_unreadable_disruption_policy_rejects_the_eviction() -> None:
    foreign = Foreign(owned("a"))
    down = StoreError(500, "InternalError", "it stumbled")
    foreign.fault = refusing("get DisruptionPolicy", down)

    assert foreign.evict() is down
    assert not foreign.is_ending()
