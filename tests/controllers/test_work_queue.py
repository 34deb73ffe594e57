"""The order, retries and backoff of a controller's work queue."""

import pytest

from podium.controllers.actions import DeleteObject
from podium.controllers.controller import WorkQueue
from podium.controllers.observations import ActionFinished, Problem

SECOND = 10**9


def answered(code: int, retry_after_ns: int | None = None) -> ActionFinished:
    problem = Problem(code, "", "", retry_after_ns) if code else None
    return ActionFinished(DeleteObject("Pod", "default/p", "u", "test"), problem)


NO_ANSWER = ActionFinished(DeleteObject("Pod", "default/p", "u", "test"), Problem(0, "", ""))
REFUSALS = [400, 403, 422]
PASSING = [answered(409), answered(429), answered(500), answered(503), NO_ANSWER]


@pytest.mark.parametrize("failure", PASSING)
def test_transient_failures_are_awaited_however_often_they_occurred(failure: ActionFinished) -> None:
    queue: WorkQueue[str] = WorkQueue()

    for _ in range(3):
        now = queue.deadline().time_ns or 0
        queue.take(now)
        queue.answer("a", failure, now)

    assert queue.deadline().keeps_alive
    assert queue.deadline().time_ns == 7 * SECOND


@pytest.mark.parametrize("code", REFUSALS)
def test_an_item_rejected_twice_is_retried_and_keeps_nothing_alive(code: int) -> None:
    queue: WorkQueue[str] = WorkQueue()

    queue.answer("a", answered(code), 0)
    assert queue.deadline().keeps_alive
    assert queue.take(SECOND) == "a"
    queue.answer("a", answered(code), SECOND)

    assert not queue.deadline().keeps_alive
    assert queue.take(3 * SECOND - 1) is None
    assert queue.take(3 * SECOND) == "a"


def test_a_missing_node_is_not_retried() -> None:
    queue: WorkQueue[str] = WorkQueue()

    queue.answer("a", answered(404), 0)

    assert queue.deadline().time_ns is None
    assert not queue.deadline().keeps_alive


def test_the_first_failure_after_a_success_waits_as_the_first() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.answer("a", answered(500), 0)
    queue.take(SECOND)

    queue.answer("a", answered(0), SECOND)

    queue.answer("a", answered(500), 2 * SECOND)
    assert queue.deadline().time_ns == 3 * SECOND


def test_a_success_does_not_take_back_what_else_has_failed_for_the_key() -> None:
    queue: WorkQueue[str] = WorkQueue()

    queue.answer("a", answered(500), 0)
    queue.answer("a", answered(0), 0)

    assert queue.take(SECOND) == "a"


def test_failures_at_one_time_count_as_one() -> None:
    queue: WorkQueue[str] = WorkQueue()

    for _ in range(5):
        queue.answer("a", answered(500), 0)

    assert queue.take(SECOND) == "a"
    assert queue.take(SECOND) is None


def test_a_server_that_asks_for_a_wait_gets_it() -> None:
    queue: WorkQueue[str] = WorkQueue()

    queue.answer("a", answered(503, 20 * SECOND), 0)

    assert queue.deadline().time_ns == 20 * SECOND


def test_a_forgotten_item_is_not_processed() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.answer("a", answered(500), 0)
    queue.add("a")

    queue.forget("a")

    assert queue.deadline().time_ns is None
    assert not queue.deadline().keeps_alive


def test_a_queue_with_due_items_is_not_settled() -> None:
    queue: WorkQueue[str] = WorkQueue()

    queue.add("a")

    assert queue.deadline().keeps_alive
