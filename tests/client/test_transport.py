"""The HTTP requests of actions, and their answers."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, EvictionHints, avoid_list
from podium.api.pod import PodCondition
from podium.apirequests.request import Request
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.session import Session
from podium.client.transport import HTTPTransport, TransportSettings
from podium.controllers.actions import Action, Bind, DeleteObject, Evict, Record, ReportStatus, ReportUnschedulable
from podium.controllers.observations import ActionFinished, Problem
from podium.controllers.scheduling.scheduler import Scheduler
from podium.runtime.runtime import Component, RequestedAction
from tests.client.api_server import CUT, APIServer, refusal
from tests.store.objects import Raw, budget, node, pod, running
from tests.waiting import GUARD_SECONDS

COMPONENT = Component("default-scheduler", Scheduler)
TARGET = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


class Rig:
    """A transport to a server; `answers` are those that came, in their order."""

    def __init__(self, server: APIServer, timeout_s: float = GUARD_SECONDS, **options: Any) -> None:
        self.server = server
        access = ClusterAccess(name="test", server=server.url)
        credentials = Credentials(access, time.time_ns)
        self.session = Session(access, credentials, server.store.resources, timeout_s=timeout_s)
        self.answers: list[ActionFinished] = []
        self.faults: list[BaseException] = []
        self.transport = HTTPTransport(
            self.session, self._answered, time.time_ns, on_fault=self.faults.append, **options
        )

    def _answered(self, requested: RequestedAction, finished: ActionFinished) -> None:
        assert finished.action is requested.action
        self.answers.append(finished)

    async def send(self, *actions: Action) -> list[Problem | None]:
        for action in actions:
            self.transport.send(RequestedAction(COMPONENT, 1, action), 0)
        assert await self.transport.drain(GUARD_SECONDS)
        assert not self.faults
        return [answered.problem for answered in self.answers]

    def uid(self, name: str) -> str:
        return self.server.store.get("Pod", f"default/{name}").uid

    def bind(self, name: str, node_name: str = "n1") -> Bind:
        return Bind(f"default/{name}", self.uid(name), node_name)

    def delete(self, name: str) -> DeleteObject:
        return DeleteObject("Pod", f"default/{name}", self.uid(name), "test")

    def node_of(self, name: str) -> str:
        return str(self.server.store.get("Pod", f"default/{name}").raw["spec"].get("nodeName", ""))


def play(story: Callable[[Rig], Any], timeout_s: float = GUARD_SECONDS, **options: Any) -> None:
    async def run() -> None:
        async with APIServer() as server:
            server.add(node("n1"), node("n2"), pod("a"), pod("b"))
            rig = Rig(server, timeout_s, **options)
            try:
                await story(rig)
            finally:
                await rig.transport.close()
                await rig.session.close()

    asyncio.run(run())


def first(*verbs: str, times: int = 1) -> Callable[[Request], bool]:
    """Return the first requests of some verbs."""
    left = [times]

    def matches(request: Request) -> bool:
        if request.verb not in verbs or not left[0]:
            return False
        left[0] -= 1
        return True

    return matches


def answering(matches: Callable[[Request], bool], make: Callable[[], web.StreamResponse]) -> Any:
    async def fault(request: Request) -> web.StreamResponse | None:
        return make() if matches(request) else None

    return fault


def test_a_binding_is_carried_out_and_answered_once() -> None:
    async def story(rig: Rig) -> None:
        assert await rig.send(rig.bind("a")) == [None]
        assert rig.node_of("a") == "n1"

    play(story)


def test_an_answer_contains_the_written_version() -> None:
    async def story(rig: Rig) -> None:
        assert await rig.send(ReportStatus("Pod", "default/a", rig.uid("a"), "test", (TARGET,))) == [None]
        [answered] = rig.answers
        assert answered.written == rig.server.store.get("Pod", "default/a").raw

    play(story)


def test_a_rejection_is_reported_with_its_reason() -> None:
    async def story(rig: Rig) -> None:
        [problem] = await rig.send(Bind("default/none", "u", "n1"))
        assert problem is not None
        assert (problem.code, problem.reason) == (404, "NotFound")

    play(story)


def test_actions_on_one_object_are_sent_in_order() -> None:
    async def story(rig: Rig) -> None:
        uid = rig.uid("a")
        await rig.send(
            ReportUnschedulable("default/a", uid, "Unschedulable", "first"),
            ReportUnschedulable("default/a", uid, "Unschedulable", "second"),
            ReportUnschedulable("default/a", uid, "Unschedulable", "third"),
        )
        patches = [
            request.body["status"]["conditions"][0]["message"] for request in rig.server.sent if request.verb == "patch"
        ]
        assert patches == ["first", "second", "third"]

    play(story)


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_to_wait_gets_the_request_again(code: int) -> None:
    async def story(rig: Rig) -> None:
        rig.server.before = answering(first("create"), lambda: refusal(code, "TooManyRequests", retry_after=1))
        assert await rig.send(rig.bind("a")) == [None]
        assert rig.transport.counts.waited == 1

    play(story)


def test_an_eviction_that_the_budget_does_not_allow_is_not_tried_again_here() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(running("web-1"), budget(allowed=0))
        [problem] = await rig.send(Evict("default/web-1", rig.uid("web-1"), "test", "drain"))
        assert problem is not None
        assert (problem.code, problem.cause) == (429, "DisruptionBudget")
        assert rig.transport.counts.waited == 0

    play(story)


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": True}


def owned(name: str) -> Raw:
    return running(name, metadata={"ownerReferences": [OWNER]})


def leaving(rig: Rig) -> Evict:
    """Return an eviction of web-1 that leaves something on its node, at a server of others."""
    rig.transport.is_podium_server = False
    hints = EvictionHints(avoid_node=True, first=True)
    return Evict("default/web-1", rig.uid("web-1"), "test", "rescheduler", hints=hints)


def list_of(rig: Rig) -> AvoidList:
    annotations = rig.server.store.get("Node", "n1").object.metadata.annotations
    return avoid_list(annotations.get(PREFER_AVOID_PODS, ""))


def test_at_a_server_of_others_what_an_eviction_leaves_is_written_first() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(owned("web-1"))
        assert await rig.send(leaving(rig)) == [None]
        assert (len(list_of(rig).entries), len(list_of(rig).replacements)) == (1, 1)
        assert [request.kind for request in rig.server.sent if request.verb in ("create", "patch")] == [
            "Pod",
            "Node",
            "Pod",
        ]
        assert [request.dry_run for request in rig.server.sent if request.subresource == "eviction"] == [True, False]

    play(story)


def test_at_podiums_own_server_the_eviction_says_what_is_to_be_left() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(owned("web-1"))
        eviction = leaving(rig)
        rig.transport.is_podium_server = True
        assert await rig.send(eviction) == [None]
        assert len(rig.server.sent) == 1
        assert len(list_of(rig).replacements) == 1

    play(story)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_answer_that_gets_lost_leaves_what_the_eviction_left_once(when: str) -> None:
    """The request never came, or was carried out: the pod is looked at, and the eviction asked for again if need be."""

    async def story(rig: Rig) -> None:
        rig.server.add(owned("web-1"))
        evictions = iter(range(9))
        is_lost = lambda request: request.subresource == "eviction" and next(evictions) == 1  # noqa: E731
        setattr(rig.server, when, answering(is_lost, lambda: CUT))
        assert await rig.send(leaving(rig)) == [None]
        assert (len(list_of(rig).entries), len(list_of(rig).replacements)) == (1, 1)
        assert rig.server.store.get("Pod", "default/web-1").object.metadata.deletion_timestamp

    play(story)


def test_a_refused_eviction_leaves_nothing() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(owned("web-1"))
        evictions = iter(range(9))
        refused = lambda request: request.subresource == "eviction" and next(evictions) == 1  # noqa: E731
        rig.server.before = answering(refused, lambda: refusal(429, "TooManyRequests"))
        [problem] = await rig.send(leaving(rig))
        assert problem is not None
        assert problem.code == 429
        assert not list_of(rig)

    play(story)


def test_hints_are_removed_when_no_pod_will_be_disrupted() -> None:
    allowed = iter((True, False))

    async def story(rig: Rig) -> None:
        rig.server.add(owned("web-1"))
        [problem] = await rig.send(leaving(rig))
        assert problem is not None
        assert "no pod is to be disrupted at present" in problem.message
        assert not list_of(rig)

    play(story, may_disrupt=lambda: next(allowed))


def test_a_conflict_is_reported_at_once() -> None:
    async def story(rig: Rig) -> None:
        rig.server.before = answering(first("create"), lambda: refusal(409, "Conflict"))
        [problem] = await rig.send(rig.bind("a"))
        assert problem is not None
        assert (problem.code, len(rig.server.sent)) == (409, 1)

    play(story)


def test_a_binding_whose_answer_got_lost_is_looked_for_and_not_sent_again() -> None:
    async def story(rig: Rig) -> None:
        rig.server.after = answering(first("create"), lambda: refusal(504, "Timeout"))
        assert await rig.send(rig.bind("a")) == [None]
        assert [request.verb for request in rig.server.sent] == ["create", "get"]

    play(story)


def test_a_binding_that_got_lost_itself_is_sent_again() -> None:
    async def story(rig: Rig) -> None:
        rig.server.before = answering(first("create"), lambda: refusal(504, "Timeout"))
        assert await rig.send(rig.bind("a")) == [None]
        assert [request.verb for request in rig.server.sent] == ["create", "get", "create"]
        assert rig.node_of("a") == "n1"

    play(story)


def test_a_binding_overtaken_by_another_client_is_not_forced() -> None:
    async def story(rig: Rig) -> None:
        async def fault(request: Request) -> web.StreamResponse | None:
            if request.verb == "create" and len(rig.server.sent) == 1:
                rig.server.store.bind("default/a", "n2", now=0)
                return refusal(504, "Timeout")
            return None

        rig.server.before = fault
        [problem] = await rig.send(rig.bind("a"))
        assert problem is not None
        assert problem.code == 409
        assert rig.node_of("a") == "n2"

    play(story)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_on_a_broken_connection_is_carried_out_once(when: str) -> None:
    async def story(rig: Rig) -> None:
        setattr(rig.server, when, answering(first("create"), lambda: CUT))
        assert await rig.send(rig.bind("a")) == [None]
        assert rig.node_of("a") == "n1"
        expected = ["create", "get", "create"] if when == "before" else ["create", "get"]
        assert [request.verb for request in rig.server.sent] == expected

    play(story)


def test_a_deletion_without_an_answer_is_done_when_the_pod_is_on_its_way_out() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(running("c"))
        rig.server.after = answering(first("delete"), lambda: refusal(504, "Timeout"))
        assert await rig.send(rig.delete("c")) == [None]
        assert [request.verb for request in rig.server.sent] == ["delete", "get"]

    play(story)


def test_a_status_without_an_answer_is_compared_and_written_if_it_is_not_there() -> None:
    async def story(rig: Rig) -> None:
        rig.server.before = answering(first("patch"), lambda: refusal(504, "Timeout"))
        uid = rig.uid("a")
        assert await rig.send(ReportStatus("Pod", "default/a", uid, "test", (TARGET,))) == [None]
        assert [request.verb for request in rig.server.sent] == ["get", "patch", "get", "patch"]
        rig.server.sent.clear()
        rig.server.after = answering(first("patch"), lambda: refusal(504, "Timeout"))
        other = PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")
        await rig.send(ReportStatus("Pod", "default/a", uid, "test", (other,)))
        assert [request.verb for request in rig.server.sent] == ["get", "patch", "get"]

    play(story)


def test_an_answer_that_is_too_slow_is_none_and_what_was_asked_is_looked_for() -> None:
    async def story(rig: Rig) -> None:
        left = [1]

        async def fault(request: Request) -> web.StreamResponse | None:
            if request.verb == "create" and left[0]:
                left[0] -= 1
                # What is asked next has all the time that it needs.
                rig.session._timeout_s = GUARD_SECONDS
                await rig.server.ending.wait()
            return None

        rig.server.after = fault
        assert await rig.send(rig.bind("a")) == [None]
        assert rig.transport.counts.lost == 1

    play(story, timeout_s=0.3)


def test_a_timeout_is_never_reported_as_success() -> None:
    async def story(rig: Rig) -> None:
        rig.server.before = answering(lambda request: True, lambda: refusal(504, "Timeout"))
        [problem] = await rig.send(rig.bind("a"))
        assert problem is not None
        assert problem.code in (0, 504)

    play(story)


def test_a_server_that_is_not_there_has_done_nothing() -> None:
    async def story(rig: Rig) -> None:
        bind = rig.bind("a")
        await rig.server.runner.cleanup()
        [problem] = await rig.send(bind)
        assert problem is not None
        assert problem.code == 503

    play(story)


def test_a_possibly_deposed_leader_sends_no_write() -> None:
    async def story(rig: Rig) -> None:
        uid = rig.uid("a")
        [first_problem, second] = await rig.send(
            rig.bind("a"), ReportUnschedulable("default/b", rig.uid("b"), "Unschedulable", "full")
        )
        assert first_problem is not None
        assert second is not None
        assert (first_problem.code, second.code) == (503, 503)
        assert [request.verb for request in rig.server.sent] == ["get"]
        assert uid

    play(story, seconds_to_write=lambda: 0.0)


def test_no_more_requests_than_allowed_are_on_their_way_at_once() -> None:
    async def story(rig: Rig) -> None:
        rig.server.add(*(pod(f"p{number}") for number in range(12)))
        here, most, three = [0], [0], asyncio.Barrier(3)

        async def fault(request: Request) -> web.StreamResponse | None:
            here[0] += 1
            most[0] = max(most[0], here[0])
            await three.wait()
            # A fourth one would come meanwhile.
            await asyncio.sleep(0.01)
            here[0] -= 1
            return None

        rig.server.before = fault
        problems = await rig.send(*(rig.bind(f"p{number}") for number in range(12)))
        assert problems == [None] * 12
        assert most[0] == 3

    play(story, settings=TransportSettings(concurrency=3))


def test_a_repeated_event_increments_the_count_of_the_first() -> None:
    async def story(rig: Rig) -> None:
        event = Record("default/a", rig.uid("a"), "Warning", "FailedScheduling", "0/2 nodes are available")
        for _ in range(3):
            await rig.send(event)
        [stored] = rig.server.store.objects("Event")
        assert (stored.raw["count"], stored.raw["involvedObject"]["name"]) == (3, "a")

    play(story)


def test_events_of_one_pod_are_rate_limited() -> None:
    async def story(rig: Rig) -> None:
        uid = rig.uid("a")
        await rig.send(
            *(Record("default/a", uid, "Warning", "FailedScheduling", f"message {number}") for number in range(40))
        )
        assert len(rig.server.sent) == 25
        assert rig.transport.counts.dropped_events == 15

    play(story)


def test_an_answer_that_cannot_be_handed_over_holds_up_no_later_action_on_the_same_object() -> None:
    async def story(rig: Rig) -> None:
        taken: list[Action] = []

        def fail_once(requested: RequestedAction, finished: ActionFinished) -> None:
            taken.append(requested.action)
            if len(taken) == 1:
                raise RuntimeError("by way of a test")

        rig.transport.answer = fail_once
        actions: list[Action] = [rig.bind("a"), rig.delete("a"), rig.bind("b")]
        for action in actions:
            rig.transport.send(RequestedAction(COMPONENT, 1, action), 0)
        assert await rig.transport.drain(GUARD_SECONDS)
        rig.transport.send(RequestedAction(COMPONENT, 1, rig.delete("b")), 0)
        assert await rig.transport.drain(GUARD_SECONDS)

        assert sorted(action.key for action in taken if isinstance(action, DeleteObject)) == ["default/a", "default/b"]
        assert [str(fault) for fault in rig.faults] == ["by way of a test"]

    play(story)
