"""The shortest story that still breaks an invariant: what is not needed for that is left out, piece by piece."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import yaml

from podium.api.errors import InputError, PodiumError
from tests.sim.fleet_run import FleetRun, Omitted

Piece = TypeVar("Piece")
MOST_RUNS = 150


class Shortening:
    """Runs a seed again and again, each time without some more of what it consists of."""

    def __init__(self, seed: int, *, is_faulty: bool) -> None:
        self.seed = seed
        self.is_faulty = is_faulty
        self.omitted = Omitted()
        self.runs = 0

    def shorten(self) -> FleetRun:
        """The shortest run found. The seed fails with everything in it."""
        whole = FleetRun(self.seed, self.is_faulty)
        self._try(replace(self.omitted, meddling=True))
        self._drop(list(whole.faults.rates), lambda left_out: replace(self.omitted, faults=left_out))
        self._drop(range(len(whole.story.steps)), lambda left_out: replace(self.omitted, steps=left_out))
        self._drop(range(len(whole.story.objects)), lambda left_out: replace(self.omitted, objects=left_out))
        return FleetRun(self.seed, self.is_faulty, self.omitted)

    def _drop(self, pieces: Sequence[Piece], omit: Callable[[frozenset[Piece]], Omitted]) -> None:
        """Leave out as many pieces as possible: first halves of them, in the end single ones."""
        dropped: frozenset[Piece] = frozenset()
        size = len(pieces)
        while size:
            left = [one for one in pieces if one not in dropped]
            for chunk in _chunks(left, size):
                if self._try(omit(dropped | frozenset(chunk))):
                    dropped |= frozenset(chunk)
            size //= 2

    def _try(self, omitted: Omitted) -> bool:
        """Whether the run still breaks an invariant without all that."""
        self.runs += 1
        if self.runs > MOST_RUNS or not _fails(FleetRun, self.seed, self.is_faulty, omitted):
            return False
        self.omitted = omitted
        return True


def told_shortest(seed: int, *, is_faulty: bool) -> str:
    """The shortest story that fails with a seed, as files that `podium simulate` takes, and how to play it again."""
    shortening = Shortening(seed, is_faulty=is_faulty)
    run = shortening.shorten()
    files = yaml.safe_dump_all(run.story.files, sort_keys=False, default_flow_style=None, width=120)
    return f"replay: make fuzz SEED={seed} RUNS=1\nshortest story: {run.options}\n{files}"


def _fails(make: Callable[[int, bool, Omitted], FleetRun], seed: int, is_faulty: bool, omitted: Omitted) -> bool:
    try:
        make(seed, is_faulty, omitted).play()
    except InputError:
        # A step speaks of what was left out.
        return False
    except (AssertionError, PodiumError):
        return True
    return False


def _chunks(pieces: Sequence[Piece], size: int) -> Iterable[Sequence[Piece]]:
    return [pieces[start : start + size] for start in range(0, len(pieces), size)]
