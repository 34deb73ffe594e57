"""Steps that are played again and again, as they are written.

- at: 0s
  repeat: {every: 10m, times: 6}
  scale: {name: web, replicas: 5}
"""

from __future__ import annotations

from podium.api.errors import InputError
from podium.sim.scenario.fields import Fields

MOST_TIMES = 100_000
"""How often a step may be repeated."""

MOST_STEPS = 1_000_000
"""How many things may happen in a scenario."""


def read_repeat(step: Fields, at_ns: int, until_ns: int | None) -> list[int]:
    """The times at which a step is played. Without a number of times it goes on until the scenario ends.

    Raises InputError with the field's path for what is wrong, and for what would have no end.
    """
    if not step.has("repeat"):
        return [at_ns]
    given = step.fields("repeat")
    every_ns = given.duration_ns("every")
    if every_ns <= 0:
        raise InputError("is 0s; write how long after each time the next one is", path=f"{given.path}.every")
    if given.has("times"):
        times = given.number("times", least=1)
    elif until_ns is None:
        raise InputError("has no end; give times, or the scenario's until", path=given.path)
    else:
        times = max(0, (until_ns - at_ns) // every_ns) + 1
    given.refuse_others()
    if times > MOST_TIMES:
        raise InputError(f"is played {times:,} times; at most {MOST_TIMES:,} are taken", path=given.path)
    return [at_ns + number * every_ns for number in range(times)]
