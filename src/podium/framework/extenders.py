"""Extenders as a scheduler asks them: which nodes they refuse, how they rate the others, whose victims they agree to.

How an extender is reached is whoever's that brings it; what its answers mean is decided here.

Source: pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes), pkg/scheduler/extender.go,
staging/src/k8s.io/kube-scheduler/extender/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from podium.api.errors import PodiumError
from podium.cluster.pods import PodRecord
from podium.framework.plugin import MAX_NODE_SCORE
from podium.framework.status import Status, unresolvable, unschedulable

EXTENDER = "Extender"
"""Stands for the plugin that refused a node where an extender did (framework.ExtenderName); any event wakes."""

MAX_EXTENDER_PRIORITY = 10
_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
# What several extenders' scores may come to, so that their sum with all others' is exact.
_MOST_SCORE = 1 << 53


class ExtenderError(PodiumError):
    """An extender could not be asked, answered with an error, or with what is no answer."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The nodes that an extender leaves, and why it refused others; ``unresolvable``: preemption cannot help."""

    left: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that are to go from a node, most important first, and how many of them violate a budget."""

    pods: tuple[PodRecord, ...]
    budget_violations: int = 0


@dataclass(frozen=True, slots=True)
class VictimIds:
    """The same as an extender tells it: the uids of pods."""

    uids: tuple[str, ...]
    budget_violations: int = 0


class Extender(Protocol):
    """One extender. Each of its verbs raises ExtenderError where there is no answer."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling goes on without it where it does not answer."""
        ...

    @property
    def weight(self) -> int:
        """What its scores count."""
        ...

    @property
    def filters(self) -> bool:
        """Whether it refuses nodes."""
        ...

    @property
    def prioritizes(self) -> bool:
        """Whether it rates nodes."""
        ...

    @property
    def preempts(self) -> bool:
        """Whether it wants to be asked about victims."""
        ...

    def is_interested(self, pod: PodRecord) -> bool:
        """Whether it is asked about the pod at all."""
        ...

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer:
        """Which of some nodes it leaves."""
        ...

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Mapping[str, int]:
        """Scores of some nodes, as a rule from 0 to `MAX_EXTENDER_PRIORITY`."""
        ...

    def preempt(self, pod: PodRecord, victims: Mapping[str, Victims]) -> Mapping[str, VictimIds]:
        """By node, who is to go in its opinion; nodes that it leaves out are no candidates."""
        ...


@dataclass(frozen=True, slots=True)
class Filtered:
    """What extenders leave of some nodes, in the same order, and what they said of others. With ``error`` nothing."""

    left: tuple[str, ...]
    refused: Mapping[str, Status] = field(default_factory=dict)
    error: str = ""


class Extenders:
    """The extenders of a configuration, in its order."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self._extenders = tuple(extenders)

    def concern(self, pod: PodRecord) -> bool:
        """Whether any of them is asked about a pod."""
        return any(extender.is_interested(pod) for extender in self._extenders)

    def filter(self, pod: PodRecord, names: Sequence[str]) -> Filtered:
        """Ask one after the other, each about what those before it have left.

        One that does not answer ends it with an error, unless it is ignorable. One that leaves a node which it was not
        asked about has given no answer.
        """
        left, refused = tuple(names), dict[str, Status]()
        for extender in self._extenders:
            if not left:
                break
            if not extender.filters or not extender.is_interested(pod):
                continue
            try:
                answer = extender.filter(pod, left)
                kept = _known(extender, answer.left, left)
            except ExtenderError as error:
                if extender.is_ignorable:
                    continue
                return Filtered((), error=str(error))
            refused |= {name: unschedulable(*_reasons(reason)) for name, reason in answer.failed.items()}
            refused |= {name: unresolvable(*_reasons(reason)) for name, reason in answer.unresolvable.items()}
            left = tuple(name for name in left if name in kept)
        return Filtered(left, refused)

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> dict[str, int]:
        """What their scores add to those of nodes, by name: weighted, and brought to the range of plugins.

        One that does not answer rates nothing, ignorable or not.
        """
        totals: dict[str, int] = {}
        for extender in self._extenders:
            if not extender.prioritizes or not extender.is_interested(pod):
                continue
            try:
                scores = extender.prioritize(pod, names)
            except ExtenderError:
                continue
            weighted = {name: score * extender.weight * _SCALE for name, score in scores.items()}
            if all(abs(score) <= _MOST_SCORE for score in weighted.values()):
                for name, score in weighted.items():
                    totals[name] = totals.get(name, 0) + score
        return totals

    def preempting(self, pod: PodRecord) -> list[Extender]:
        """Those that want to be asked about a pod's victims."""
        return [extender for extender in self._extenders if extender.preempts and extender.is_interested(pod)]


def _known(extender: Extender, told: Sequence[str], asked: Sequence[str]) -> frozenset[str]:
    kept = frozenset(told)
    unknown = sorted(kept.difference(asked))
    if unknown:
        raise ExtenderError(f"extender {extender.name} leaves node {unknown[0]}, which it was not asked about")
    return kept


def _reasons(text: str) -> tuple[str, ...]:
    return (text,) if text else ()
