"""The meaning of API answers for the requesting controller."""

import pytest

from podium.controllers.actions import Action, CreateObject, DeleteObject, Evict, PatchObject, ReportStatus
from podium.controllers.observations import ActionFinished, Answer, Problem

CREATE = CreateObject({"kind": "Pod"}, "test")
DELETE = DeleteObject("Pod", "default/p", "u", "test")
EVICT = Evict("default/p", "u", "test", "drain")
MARK = ReportStatus("Pod", "default/p", "u", "test")
PATCH = PatchObject("Node", "n", "u", {}, "test")


@pytest.mark.parametrize(
    ("action", "problem", "answer"),
    [
        (DELETE, None, Answer.DONE),
        (DELETE, Problem(404, "NotFound", ""), Answer.GONE),
        (DELETE, Problem(409, "Conflict", "another uid"), Answer.REPLACED),
        (EVICT, Problem(409, "Conflict", "another uid"), Answer.REPLACED),
        (CREATE, Problem(409, "AlreadyExists", ""), Answer.REPLACED),
        (MARK, Problem(409, "Conflict", ""), Answer.STALE),
        (PATCH, Problem(409, "Conflict", ""), Answer.STALE),
        (EVICT, Problem(429, "TooManyRequests", ""), Answer.FULL),
        (DELETE, Problem(429, "TooManyRequests", ""), Answer.PASSING),
        (CREATE, Problem(403, "Forbidden", "Pod a is forbidden: exceeded quota: q"), Answer.FULL),
        (CREATE, Problem(403, "Forbidden", "no PriorityClass"), Answer.REFUSED),
        (PATCH, Problem(400, "BadRequest", ""), Answer.REFUSED),
        (PATCH, Problem(422, "Invalid", ""), Answer.REFUSED),
        (PATCH, Problem(500, "InternalError", ""), Answer.PASSING),
        (PATCH, Problem(503, "ServiceUnavailable", ""), Answer.PASSING),
        (PATCH, Problem(504, "Timeout", ""), Answer.UNKNOWN),
        (PATCH, Problem(0, "", "no answer came"), Answer.UNKNOWN),
    ],
)
def test_an_answer_is_one_of_eight(action: Action, problem: Problem | None, answer: Answer) -> None:
    assert ActionFinished(action, problem).answer is answer


def test_nothing_is_left_to_ask_for_once_it_is_done_or_its_object_is_gone() -> None:
    assert {one for one in Answer if one.is_over} == {Answer.DONE, Answer.GONE}


def test_only_full_and_rejected_answers_last() -> None:
    assert {one for one in Answer if one.lasts} == {Answer.FULL, Answer.REFUSED}
