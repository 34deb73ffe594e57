"""The annotations of simulated nodes: faults that make containers fail or pods be rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from podium.api.errors import InputError
from podium.api.node import MAINTENANCE_TIME, maintenance_problem
from podium.api.pod import Pod
from podium.api.selectors import EVERYTHING, Selector, parse_label_selector
from podium.api.times import parse_duration

TROUBLE = "podium.dev/trouble"
"""The annotation of a node on which containers fail: how long after each start, and of which pods.

`20s` is for all pods, `20s app=web` for those that a label selector matches; entries are separated by `;`. With `reject
20s` or `reject 20s app=web`, the kubelet rejects pods so long after their arrival.
"""

_REJECT = "reject "
_MOST = 100
_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault: containers of the selected pods fail so long after each start, or the pods are rejected."""

    after_ns: int
    pods: Selector = EVERYTHING
    is_rejection: bool = False


def read_trouble(text: str) -> tuple[Trouble, ...]:
    """Parse the annotation. Raises ValueError if it is invalid."""
    parts = text.split(";", _MOST)
    if len(parts) > _MOST:
        raise ValueError(f"more than {_MOST} kinds of trouble are too much for a node")
    return tuple(_read_trouble(part.strip()) for part in parts)


def trouble_problem(annotations: Mapping[str, str]) -> str:
    """Return what is wrong with a node's annotation, which is then ignored; "" if nothing is."""
    if TROUBLE not in annotations:
        return ""
    try:
        read_trouble(annotations[TROUBLE])
    except ValueError as error:
        return str(error)
    return ""


def crash_after_ns(annotations: Mapping[str, str], pod: Pod) -> int | None:
    """Return how long after its start a pod fails on a node with these annotations, or None."""
    return _after_ns(annotations, pod, is_rejection=False)


def reject_after_ns(annotations: Mapping[str, str], pod: Pod) -> int | None:
    """Return how long after its arrival a pod is rejected, or None."""
    return _after_ns(annotations, pod, is_rejection=True)


def _after_ns(annotations: Mapping[str, str], pod: Pod, *, is_rejection: bool) -> int | None:
    text = annotations.get(TROUBLE)
    if text is None:
        return None
    of_kind = (each for each in _known_troubles(text) if each.is_rejection is is_rejection)
    return min((each.after_ns for each in of_kind if each.pods.matches(pod.metadata.labels)), default=None)


@lru_cache(maxsize=_KEPT)
def _known_troubles(text: str) -> tuple[Trouble, ...]:
    try:
        return read_trouble(text)
    except ValueError:
        return ()


def _read_trouble(part: str) -> Trouble:
    is_rejection = part.startswith(_REJECT)
    duration, _, selector = part.removeprefix(_REJECT).strip().partition(" ")
    if not duration:
        raise ValueError('a time is missing; write it as in "20s app=web"')
    after_ns = parse_duration(duration)
    if after_ns < 0:
        raise ValueError(f'"{duration}" is negative; a duration is 0s or more')
    if is_rejection and not after_ns:
        raise ValueError("pods that are turned away at once would come back at the same instant; 1s is long enough")
    try:
        return Trouble(after_ns, parse_label_selector(selector.strip()), is_rejection)
    except InputError as error:
        raise ValueError(error.problem) from None


def node_problems(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the annotations of a node, by name; invalid ones are ignored."""
    found = {MAINTENANCE_TIME: maintenance_problem(annotations), TROUBLE: trouble_problem(annotations)}
    return {name: problem for name, problem in found.items() if problem}
