"""A trace under pressure: fewer nodes, or pods that come faster."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import msgspec

from podium.api.meta import Raw
from podium.sim.traces.trace import Trace


def with_fewer_nodes(trace: Trace, share: float) -> Trace:
    """A share of the nodes, at least one, with each kind among them by its share (largest remainders).

    Nodes are of a kind that offer the same and have the same labels but for their names. Of a kind those stay that are
    written first.
    """
    kinds: defaultdict[bytes, list[str]] = defaultdict(list)
    for raw in trace.objects:
        if raw["kind"] == "Node":
            kinds[_kind_of(raw)].append(raw["metadata"]["name"])
    kept = {name for names, number in _shared_out(list(kinds.values()), share) for name in names[:number]}
    objects = [raw for raw in trace.objects if raw["kind"] != "Node" or raw["metadata"]["name"] in kept]
    return replace(trace, objects=objects)


def sped_up(trace: Trace, factor: float) -> Trace:
    """Everything comes so many times as fast, at whole seconds, and stays as long as before."""
    exact = Fraction(str(factor))
    return replace(trace, arrivals=[(int(time / exact), raw) for time, raw in trace.arrivals])


def _kind_of(node: Raw) -> bytes:
    name = node["metadata"]["name"]
    labels = {key: value for key, value in node["metadata"]["labels"].items() if value != name}
    return msgspec.json.encode((labels, node["status"]["allocatable"]), order="deterministic")


def _shared_out(groups: list[list[str]], share: float) -> list[tuple[list[str], int]]:
    """Each group with how many of it are kept; equal remainders in the order in which the groups were found."""
    exact = Fraction(str(share))
    quotas = [len(group) * exact for group in groups]
    numbers = [int(quota) for quota in quotas]
    total = max(1, round(sum(quotas))) if groups else 0
    by_remainder = sorted(range(len(groups)), key=lambda index: (numbers[index] - quotas[index], index))
    for index in by_remainder[: total - sum(numbers)]:
        numbers[index] += 1
    return list(zip(groups, numbers, strict=True))
