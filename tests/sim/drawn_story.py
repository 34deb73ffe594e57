"""The common parts of random stories."""

from random import Random
from typing import Self

from tests.store.objects import Raw


class DrawnStory:
    """``objects`` are there from the start; ``steps`` come in the order of their time; all drawn from ``random``."""

    random: Random
    objects: list[Raw]
    steps: list[Raw]

    def without(self, objects: frozenset[int], steps: frozenset[int]) -> Self:
        """Return the same story but for some objects and steps, by their number."""
        self.objects = [one for number, one in enumerate(self.objects) if number not in objects]
        self.steps = [one for number, one in enumerate(self.steps) if number not in steps]
        return self

    def chance(self, share: float) -> bool:
        """Return whether something happens that does with this probability."""
        return self.random.random() < share
