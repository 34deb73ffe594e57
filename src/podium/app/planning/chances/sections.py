"""How a plan may come out, as parts of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.api.times import format_duration
from podium.app.console import cells
from podium.app.console.cells import Name, Part
from podium.app.console.page import counted, listed
from podium.app.explaining.outcomes import Outcome
from podium.app.planning.answer import Section
from podium.app.planning.chances.draws import Draw
from podium.app.planning.chances.stories import Ending, Outcomes, Suffering

_MOST_ROWS = 12
_MOST_NAMES = 3
_SECOND = 10**9


def told_outcomes(outcomes: Outcomes | None) -> tuple[Section, ...]:
    """How often who suffers, and which decisions that hangs on; nothing where it was not asked for."""
    if outcomes is None:
        return ()
    if not outcomes.draws:
        rows: tuple[tuple[Part, ...], ...] = (("one: nothing is left to chance",),)
        return (Section("outcomes", "Outcomes", rows, data=outcomes.endings_dict()),)
    return (_endings(outcomes), _draws(outcomes))


def _endings(outcomes: Outcomes) -> Section:
    found, played = outcomes.endings, outcomes.played
    rows: list[tuple[Part, ...]] = [
        (f"{ending.stories:,} of {played:,}", _who(ending) + (" (as told here)" if not place else ""))
        for place, ending in enumerate(found[:_MOST_ROWS])
    ]
    if len(found) > _MOST_ROWS:
        rows.append(("", f"and {len(found) - _MOST_ROWS:,} more"))
    stories = "in the only story that was told" if played == 1 else f"in {played:,} stories with other draws"
    rest = f"who suffers {stories}; kube-scheduler leaves it to chance"
    return Section("outcomes", "Outcomes", tuple(rows), rest=rest, data=outcomes.endings_dict())


def _who(ending: Ending) -> str:
    return listed([_suffers(each) for each in ending.suffering], _MOST_NAMES) if ending.suffering else "nobody"


def _suffers(suffering: Suffering) -> str:
    parts = [
        f"{number:,} {what}"
        for number, what in ((suffering.disrupted, "disrupted"), (suffering.missing, "missing"))
        if number
    ]
    return f"{suffering.workload}: {' and '.join(parts)}"


def _draws(outcomes: Outcomes) -> Section:
    """The decisions that decide who suffers, and what was not followed."""
    rows: list[tuple[Part, ...]] = [
        (
            f"+{format_duration((draw.time_ns - outcomes.start_ns) // _SECOND * _SECOND)}",
            Name(draw.pod, cells.PODS),
            _choices(draw, followed),
        )
        for draw, followed in outcomes.named[:_MOST_ROWS]
    ]
    left = outcomes.deciding - len(rows)
    if left > 0:
        rows.append(("", "", f"and {counted(left, 'further decision')}"))
    others = outcomes.draws - outcomes.deciding
    if others:
        alone = counted(others, "further decision") if rows else counted(others, "decision")
        rows.append(("", "", f"{alone} between nodes that are equal, at nobody's cost"))
    rest = "what is equal in the plan as it is told"
    if outcomes.not_followed:
        rest += f"; {counted(outcomes.not_followed, 'outcome')} in no story"
    return Section("leftToChance", "Left to chance", tuple(rows), rest=rest, data=outcomes.draws_dict())


def _choices(draw: Draw, followed: Mapping[Outcome, bool]) -> str:
    found = [_choice(outcome, is_followed=followed[outcome]) for outcome in draw.outcomes]
    return f"preempts {_either(found)}"


def _choice(outcome: Outcome, *, is_followed: bool) -> str:
    whose = listed([f"{pods:,} of {workload}" for workload, pods in outcome.suffering], _MOST_NAMES)
    nodes = listed([node for node, _ in outcome.victims], _MOST_NAMES)
    return f"{whose} (on {nodes}{'' if is_followed else '; in no story'})"


def _either(found: Sequence[str]) -> str:
    shown = list(found[:_MOST_NAMES])
    if len(found) > _MOST_NAMES:
        shown.append(f"{len(found) - _MOST_NAMES:,} others")
    return " or ".join(shown)
