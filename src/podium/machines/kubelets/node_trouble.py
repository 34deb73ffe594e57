"""What is wrong with a simulated node, so that containers fail there: all of them, or those of some pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from podium.api.errors import InputError
from podium.api.maintenance import MAINTENANCE_TIME, maintenance_problem
from podium.api.pod import Pod
from podium.api.selectors import EVERYTHING, Selector, parse_label_selector
from podium.api.times import parse_duration

TROUBLE = "podium.dev/trouble"
"""The annotation of a node on which containers fail: how long after each start, and of which pods.

`20s` is for all pods, `20s app=web` for those that a label selector matches; several stand with `;` between them.
"""

_MOST = 100
_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class Trouble:
    """Containers of the pods that match fail so long after each start."""

    crash_after_ns: int
    pods: Selector = EVERYTHING


def read_trouble(text: str) -> tuple[Trouble, ...]:
    """What an annotation says. Raises ValueError for what cannot be read."""
    parts = text.split(";", _MOST)
    if len(parts) > _MOST:
        raise ValueError(f"more than {_MOST} kinds of trouble are too much for a node")
    return tuple(_read(part.strip()) for part in parts)


def trouble_problem(annotations: Mapping[str, str]) -> str:
    """What is wrong with a node's annotation, which then says nothing; "" if nothing is."""
    if TROUBLE not in annotations:
        return ""
    try:
        read_trouble(annotations[TROUBLE])
    except ValueError as error:
        return str(error)
    return ""


def crash_after_ns(annotations: Mapping[str, str], pod: Pod) -> int | None:
    """How long after their start a pod's containers fail on a node with these annotations; None: not for its sake."""
    text = annotations.get(TROUBLE)
    if text is None:
        return None
    concerned = (each.crash_after_ns for each in _known(text) if each.pods.matches(pod.metadata.labels))
    return min(concerned, default=None)


@lru_cache(maxsize=_KEPT)
def _known(text: str) -> tuple[Trouble, ...]:
    try:
        return read_trouble(text)
    except ValueError:
        return ()


def _read(part: str) -> Trouble:
    duration, _, selector = part.partition(" ")
    if not duration:
        raise ValueError('a time is missing; write it as in "20s app=web"')
    crash_after = parse_duration(duration)
    if crash_after < 0:
        raise ValueError(f'"{duration}" is negative; a duration is 0s or more')
    try:
        return Trouble(crash_after, parse_label_selector(selector.strip()))
    except InputError as error:
        raise ValueError(error.problem) from None


PROBLEMS: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    MAINTENANCE_TIME: maintenance_problem,
    TROUBLE: trouble_problem,
}
"""What is read of the annotations of nodes, and what finds what is wrong with it."""


def problems(annotations: Mapping[str, str]) -> list[str]:
    """What is wrong with the annotations of a node, which is then taken as if it did not say so."""
    found = ((name, problem_of(annotations)) for name, problem_of in PROBLEMS.items())
    return [f"metadata.annotations[{name}]: {problem}" for name, problem in found if problem]
