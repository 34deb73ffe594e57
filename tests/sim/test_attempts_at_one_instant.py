"""Attempts at one instant are bounded, whatever plugins reject and whatever requeues, and time advances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS, QueueSettings
from podium.framework.events import EVERY_EVENT, ActionType, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import PermitResult, PluginContext
from podium.framework.settings.configuration import Configuration
from podium.framework.verdicts import SUCCESS, Code, Status, unresolvable, unschedulable
from tests.builders import configuration
from tests.sim.attempts import failed_attempts_told
from tests.sim.simulating import simulate
from tests.store.objects import node, pod

MOST_AT_ONCE = QueueSettings().most_pops_at_once
ANSWERS: dict[str, Any] = {
    "rejects": unschedulable("no"),
    "rejects for good": unresolvable("no"),
    "errs": Status(Code.ERROR, ("oh dear",)),
    "raises": ValueError("oh dear"),
    "waits in vain": PermitResult(Status(Code.WAIT), 0),
    "waits a second": PermitResult(Status(Code.WAIT), SECOND_NS),
}
EVENTS: dict[str, Sequence[EventToRegister]] = {
    "every event": EVERY_EVENT,
    "pods that leave": (EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE),),
    "pods that change": (EventToRegister(EventResource.POD, ActionType.UPDATE),),
    "nothing": (),
}


class Refuses:
    """Answers as its arguments say at each point, and waits for what they say."""

    def __init__(self, context: PluginContext) -> None:
        self._args = context.args

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Any:
        return self._answer("reserve")

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        self._answer("unreserve")

    def permit(self, state: CycleState, pod: PodRecord, node_name: str) -> Any:
        return self._answer("permit")

    def pre_bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Any:
        return self._answer("pre_bind")

    def bind(self, state: CycleState, pod: PodRecord, node_name: str) -> Any:
        return self._answer("bind") if "bind" in self._args["answers"] else Status(Code.SKIP)

    def events_to_register(self) -> Sequence[EventToRegister]:
        return EVENTS[self._args["events"]]

    def _answer(self, point: str) -> Any:
        answer = ANSWERS.get(self._args["answers"].get(point), SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        return answer


def refusing(events: str, **answers: str) -> Configuration:
    name = f"{__name__}:Refuses"
    args = {name: {"answers": answers, "events": events}}
    return configuration(args, plugins={"multiPoint": {"enabled": [name]}, "bind": {"enabled": [name]}})


CASES = [
    (point, answer)
    for point in ("reserve", "permit", "pre_bind", "bind")
    for answer in ANSWERS
    if "waits" not in answer or point == "permit"
]


@pytest.mark.parametrize("events", EVENTS)
@pytest.mark.parametrize(("point", "answer"), CASES)
def test_pods_rejected_during_binding_are_not_attempted_for_ever(point: str, answer: str, events: str) -> None:
    pods = [pod(name, priority=number) for number, name in enumerate("ab")]

    with failed_attempts_told() as report:
        result = simulate([node("n1", cpu=8), *pods], until=20, configuration=refusing(events, **{point: answer}))

    found = Counter(report)
    assert found
    assert max(found.values()) <= MOST_AT_ONCE
    # Backoffs of 1, 2, 4, 8 and 10 seconds, and attempts between them that are not worth counting.
    assert all(number <= 6 * MOST_AT_ONCE for number in Counter(name for _, name in report).values())
    assert result.summary["end"] == 20


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_a_pod_is_not_woken_by_its_own_way_back(point: str) -> None:
    refused = refusing("pods that leave", **{point: "rejects"})

    with failed_attempts_told() as report:
        simulate([node("n1", cpu=8), pod("a")], until=200, configuration=refused)

    assert report == [(0, "default/a")]


def test_a_rejection_at_permit_wakes_other_pods() -> None:
    result = simulate(
        [node("n1", cpu=1), pod("a", priority=2), pod("b", priority=1)],
        until=3,
        configuration=refusing("nothing", permit="waits a second"),
    )

    assert [event.time for event in result.events if event.pod == "default/b" and event.reason == "Nominated"] == [1]


def test_a_plugin_that_cannot_unreserve_loses_no_pod_and_no_room() -> None:
    settings = refusing("every event", permit="waits a second", unreserve="raises")

    result = simulate([node("n1", cpu=1), pod("a", priority=2), pod("b", priority=1)], until=9, configuration=settings)

    report = [(event.time, event.pod) for event in result.events if event.reason == "FailedUnreserve"]
    assert {pod for _, pod in report} == {"default/a", "default/b"}
    assert len(report) > 3
