"""The same plan told again with other draws: how it may come out, by who suffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.explaining.outcomes import MOST_OUTCOMES, Outcome
from podium.app.planning.bounds import MOST_STORIES
from podium.app.planning.chances.draws import Draw, Draws


@dataclass(frozen=True, slots=True, order=True)
class Suffering:
    """What a workload suffers in a story: how many of its pods are disrupted, and how many are missing at its end."""

    workload: str
    disrupted: int
    missing: int

    def to_dict(self) -> dict[str, Any]:
        """The fact as JSON shows it."""
        return {"workload": self.workload, "disrupted": self.disrupted, "missing": self.missing}


@dataclass(frozen=True, slots=True)
class Story:
    """How a plan came out once: who suffers, and which pods went to, or made room on, which nodes."""

    suffering: tuple[Suffering, ...]
    went: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Ending:
    """So many stories in which the same workloads suffer the same."""

    suffering: tuple[Suffering, ...]
    stories: int

    def to_dict(self) -> dict[str, Any]:
        """The ending as JSON shows it."""
        return {"suffering": [each.to_dict() for each in self.suffering], "stories": self.stories}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How a plan may come out.

    ``endings`` are those that were seen, that of the plan itself first, then those of the most stories; ``played`` is
    how many stories were told, and ``start_ns`` when they begin. Of the plan as it is told, ``draws`` is how many of
    its decisions are left to chance, ``deciding`` how many of these decide who suffers, and ``named`` are the first of
    those, each with whether some story follows each of its outcomes.
    """

    endings: tuple[Ending, ...]
    played: int
    draws: int
    deciding: int
    named: tuple[tuple[Draw, Mapping[Outcome, bool]], ...]
    start_ns: int

    @property
    def not_followed(self) -> int:
        """How many outcomes of the draws that are named no story follows."""
        return sum(not is_followed for _, followed in self.named for is_followed in followed.values())

    def endings_dict(self) -> dict[str, Any]:
        """The endings as JSON shows them, the first hundred, and how many more there are."""
        return {
            "stories": self.played,
            "endings": [ending.to_dict() for ending in self.endings[:MOST_OUTCOMES]],
            "furtherEndings": max(0, len(self.endings) - MOST_OUTCOMES),
        }

    def draws_dict(self) -> dict[str, Any]:
        """What is left to chance, as JSON shows it."""
        return {
            "decisions": self.draws,
            "deciding": self.deciding,
            "named": [draw.to_dict(self.start_ns, followed) for draw, followed in self.named],
            "notFollowed": self.not_followed,
        }


def outcomes_of(first: Story, draws: Draws, tell: Callable[[int], Story], most: int, start_ns: int) -> Outcomes:
    """Tell a story again with other seeds, until so many are told; once, where nothing is left to chance.

    At first seeds are looked for that lead to outcomes of the draws that no story follows yet; then come any.
    """
    stories = [first]
    tried: set[int] = {0}
    directed: set[tuple[int, Outcome]] = set()
    while draws.number and len(stories) < min(most, MOST_STORIES):
        went = frozenset().union(*(story.went for story in stories))
        seed = next(_leading(draws.named, went, tried, directed), None)
        if seed is None:
            seed = next(number for number in range(1, len(tried) + 2) if number not in tried)
        tried.add(seed)
        stories.append(tell(seed))
    went = frozenset().union(*(story.went for story in stories))
    named = tuple((draw, {each: _is_followed(draw, each, went) for each in draw.outcomes}) for draw in draws.named)
    return Outcomes(_endings(stories), len(stories), draws.number, draws.deciding, named, start_ns)


def _leading(
    draws: Sequence[Draw], went: frozenset[tuple[str, str]], tried: set[int], directed: set[tuple[int, Outcome]]
) -> Iterator[int]:
    """Seeds that were not tried and may lead to what no story follows. Each outcome is aimed at once."""
    for place, draw in enumerate(draws):
        for outcome in draw.outcomes:
            if (place, outcome) not in directed and not _is_followed(draw, outcome, went):
                directed.add((place, outcome))
                seed = draw.seed_for(outcome)
                if seed is not None and seed not in tried:
                    yield seed


def _is_followed(draw: Draw, outcome: Outcome, went: frozenset[tuple[str, str]]) -> bool:
    return any((draw.pod, node) in went for node, _ in outcome.victims)


def _endings(stories: Sequence[Story]) -> tuple[Ending, ...]:
    counts: dict[tuple[Suffering, ...], int] = {}
    for story in stories:
        counts[story.suffering] = counts.get(story.suffering, 0) + 1
    first = stories[0].suffering
    order = sorted(counts, key=lambda suffering: (suffering != first, -counts[suffering], suffering))
    return tuple(Ending(suffering, counts[suffering]) for suffering in order)
