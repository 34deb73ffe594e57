"""What passes, and what is refused for good."""

import pytest

from podium.machines.observations import Problem
from podium.machines.retry_queue import RetryQueue

SECOND = 10**9


@pytest.mark.parametrize("code", [0, 404, 409, 429, 500])
@pytest.mark.parametrize("refusal", [400, 403, 422])
def test_what_was_refused_is_tried_again_and_is_nothing_to_wait_for(code: int, refusal: int) -> None:
    queue: RetryQueue[str] = RetryQueue()

    queue.answer("a", Problem(code, "", ""), 0)
    assert not queue.is_settled()
    queue.answer("a", Problem(refusal, "", ""), SECOND)
    assert queue.is_settled()

    assert queue.take(SECOND) == "a"
    assert queue.take(3 * SECOND - 1) is None
    assert queue.take(3 * SECOND) == "a"


def test_after_a_success_nothing_is_left() -> None:
    queue: RetryQueue[str] = RetryQueue()

    queue.answer("a", Problem(500, "", ""), 0)
    queue.answer("a", None, 0)

    assert queue.is_settled()
    queue.answer("a", Problem(500, "", ""), 0)
    assert queue.take(SECOND) == "a"


def test_what_is_to_be_looked_at_is_not_settled() -> None:
    queue: RetryQueue[str] = RetryQueue()

    queue.add("a")

    assert not queue.is_settled()
