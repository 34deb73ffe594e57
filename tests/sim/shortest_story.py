"""Shrinking a story that breaks an invariant, by leaving out one piece at a time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import yaml

from podium.api.errors import InputError, PodiumError
from tests.fuzzing import FAULT_HOURS, FUZZ_RUNS, FUZZ_SEED
from tests.sim.faults import DrawnFaults
from tests.sim.omitted import NOTHING, Omitted
from tests.store.objects import Raw

Piece = TypeVar("Piece")
MOST_RUNS = 150


class PlayableStory(Protocol):
    """A story, as files that `podium simulate` takes."""

    objects: list[Raw]
    steps: list[Raw]

    @property
    def files(self) -> list[Raw]: ...


class Run(Protocol):
    """A random run; `play` raises for a broken invariant."""

    options: str
    faults: DrawnFaults

    @property
    def story(self) -> PlayableStory: ...

    @property
    def fault_hours(self) -> float: ...

    def play(self) -> None: ...


RecordProperty = Callable[[str, object], None]
MakeRun = Callable[[int, bool, Omitted], Run]


class Shortening:
    """Runs a seed again and again, each time without some more of what it consists of."""

    def __init__(self, make: MakeRun, seed: int, *, is_faulty: bool) -> None:
        self.make = make
        self.seed = seed
        self.is_faulty = is_faulty
        self.omitted = NOTHING
        self.runs = 0

    def shorten(self) -> Run:
        """Return the shortest run found. The seed fails with everything in it."""
        whole = self.make(self.seed, self.is_faulty, self.omitted)
        self._try(replace(self.omitted, meddling=True))
        self._drop(list(whole.faults.rates), lambda left_out: replace(self.omitted, faults=left_out))
        self._drop(range(len(whole.story.steps)), lambda left_out: replace(self.omitted, steps=left_out))
        self._drop(range(len(whole.story.objects)), lambda left_out: replace(self.omitted, objects=left_out))
        return self.make(self.seed, self.is_faulty, self.omitted)

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
        """Return whether the run still breaks an invariant without all that."""
        self.runs += 1
        if self.runs > MOST_RUNS or not _fails(self.make, self.seed, self.is_faulty, omitted):
            return False
        self.omitted = omitted
        return True


def play_all(make: MakeRun, is_faulty: Callable[[int], bool], record_property: RecordProperty) -> None:
    """Play as many seeds as fuzzing was asked for, and record for how many simulated hours faults happened."""
    hours = 0.0
    try:
        for seed in range(FUZZ_SEED, FUZZ_SEED + FUZZ_RUNS):
            hours += play_or_tell(make, seed, is_faulty=is_faulty(seed)).fault_hours
    finally:
        record_property(FAULT_HOURS, hours)


def play_or_tell(make: MakeRun, seed: int, *, is_faulty: bool) -> Run:
    """Play a run; one that fails tells how to play it again, and the shortest story that still does."""
    run = make(seed, is_faulty, NOTHING)
    try:
        run.play()
    except (AssertionError, PodiumError) as error:
        error.add_note(_shortest(make, seed, is_faulty=is_faulty))
        raise
    return run


def _shortest(make: MakeRun, seed: int, *, is_faulty: bool) -> str:
    run = Shortening(make, seed, is_faulty=is_faulty).shorten()
    files = yaml.safe_dump_all(run.story.files, sort_keys=False, default_flow_style=None, width=120)
    return f"replay: make fuzz SEED={seed} RUNS=1\nshortest story: {run.options}\n{files}"


def _fails(make: MakeRun, seed: int, is_faulty: bool, omitted: Omitted) -> bool:
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
