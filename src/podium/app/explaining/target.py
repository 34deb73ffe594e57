"""Whom a question is about, as people write it: a pod, or a workload as kubectl names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.api.errors import PodiumError, shown
from podium.api.kinds import KINDS, WORKLOADS

POD = "Pod"
_LONGEST = 3


@dataclass(frozen=True, slots=True)
class Target:
    """An object of a kind, by `namespace/name`."""

    kind: str
    key: str


KIND_OF_WORD = {
    word: kind.name for kind in KINDS.values() if kind.name == POD or kind.name in WORKLOADS for word in kind.words
}
"""The kinds of pods and of what makes them, by each of the words that kubectl knows for them."""


def read_target(text: str, namespace: str, is_pod: Callable[[str], bool]) -> Target:
    """Whom ``text`` means: `name`, `namespace/name`, `kind/name` or `kind/namespace/name`.

    ``namespace`` is that of what is given without one. Where a namespace is called like a kind, a pod that is there, as
    ``is_pod`` says of its key, goes before a workload. Raises PodiumError for text of another form.
    """
    first, *rest = parts = text.split("/")
    if len(parts) > _LONGEST or not all(parts):
        raise PodiumError(f"{shown(text)} is neither a pod, as in shop/web, nor a workload, as in deploy/web")
    if not rest:
        return Target(POD, f"{namespace}/{first}")
    kind = KIND_OF_WORD.get(first.lower().partition(".")[0])
    if len(parts) == _LONGEST:
        if kind is None:
            known = ", ".join(("pod", *map(str.lower, WORKLOADS)))
            raise PodiumError(f"{shown(text)} begins with no kind that has pods; known are {known}")
        return Target(kind, "/".join(rest))
    if kind is None or is_pod(text):
        return Target(POD, text)
    return Target(kind, f"{namespace}/{rest[0]}")
