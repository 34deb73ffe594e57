"""Pods that no part of a question tells apart: how many of them go where is all that counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence

from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.linear import LinearForm, Movables, Pair, Rule


def alike(
    movables: Movables, forms: Sequence[LinearForm], rules: Sequence[Rule], limited: Sequence[Collection[str]]
) -> list[tuple[PodRecord, ...]]:
    """The pods that may move in groups: of one row, with the same rows to go to, that all parts weigh alike.

    In the order of their first pods, and in each the pods in theirs.
    """
    marks: defaultdict[str, list[Hashable]] = defaultdict(list)
    for number, weights in enumerate(_weights(forms, rules)):
        for (uid, row), weight in weights:
            marks[uid].append((number, row, weight))
    for number, pods in enumerate(limited):
        for uid in pods:
            marks[uid].append(("limit", number))
    for form in forms:
        for contents in form.contents:
            for uid, kind in contents.kinds.items():
                marks[uid].append((contents.row, kind))
    groups: defaultdict[Hashable, list[PodRecord]] = defaultdict(list)
    for pod in movables.pods:
        groups[pod.row, tuple(movables.rows[pod.uid]), frozenset(marks[pod.uid])].append(pod)
    return [tuple(group) for group in groups.values()]


def _weights(forms: Sequence[LinearForm], rules: Sequence[Rule]) -> Iterable[Iterable[tuple[Pair, float]]]:
    for form in forms:
        yield form.prices.items()
        for cost in form.costs:
            yield cost.added.items()
        for use in form.uses:
            yield ((pair, 1.0) for pair in use.pairs)
    for rule in rules:
        yield rule.weights.items()
