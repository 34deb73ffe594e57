"""`podium plan fail`: nodes, a rack or a zone stop; who comes back, where, and who does not."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.meta import Raw
from podium.api.times import format_duration
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.answering import answer_of, outcome
from podium.app.planning.nodes import named
from podium.app.planning.question import Played, Question, step


def fail_question(nodes: Sequence[str], for_ns: int | None = None) -> Question:
    """The question what happens when the machines of nodes stop at once, for so long, None: for good."""
    steps: list[Raw] = [step("nodeDown", {"name": node}) for node in nodes]
    if for_ns is not None:
        steps += [step("nodeUp", {"name": node}, format_duration(for_ns)) for node in nodes]
    return Question("fail", tuple(steps))


def fail_answer(played: Played, nodes: Sequence[str], labels: str = "") -> PlanAnswer:
    """The answer; `labels` are those by which all of the nodes were chosen."""
    what = f"failure of {named(nodes, labels=labels)}"
    return answer_of(played, f"{what}: {outcome(played.impact)}")
