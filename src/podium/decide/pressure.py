"""Which pod a node evicts when it is short of memory.

Source: pkg/kubelet/eviction/helpers.go (rankMemoryPressure, evictionMessage); pod-preemption.md, "Preemption - Eviction
workflow", for the order by percentage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from podium.api.pod import Pod
from podium.api.quantity import format_quantity
from podium.api.resources import MEMORY
from podium.decide.critical_pods import is_critical

EvictionOrder = Literal["BytesOverRequest", "PercentageOfRequest"]
"""By what pods of one priority are told apart: how many bytes they use beyond their request, or how much of it."""

EVICTION_ORDERS: tuple[EvictionOrder, ...] = get_args(EvictionOrder)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A pod that runs, what it uses and what it has requested, in bytes."""

    pod: Pod
    used: int
    requested: int


def memory_ranking(uses: Iterable[MemoryUse], order: EvictionOrder = "BytesOverRequest") -> list[MemoryUse]:
    """The pods that may be evicted, the first to go first.

    Those that use more than they requested; of these and of the others, the lowest priority; then the most used beyond
    the request, in bytes or in proportion to it; then the key. Critical pods never go. In proportion, what a pod uses
    without a request is more than any multiple of one; of two such pods the one goes first that uses more.
    """
    place = _place if order == "BytesOverRequest" else _place_in_proportion
    return sorted((use for use in uses if not is_critical(use.pod)), key=place)


def eviction_message(use: MemoryUse, threshold_bytes: int, available_bytes: int) -> str:
    """What an evicted pod's status says."""
    threshold, available = (format_quantity(amount, MEMORY) for amount in (threshold_bytes, available_bytes))
    message = f"The node was low on resource: {MEMORY}. Threshold quantity: {threshold}, available: {available}."
    if use.used <= use.requested:
        return message
    used, requested = (format_quantity(amount, MEMORY) for amount in (use.used, use.requested))
    names = ", ".join(container.name for container in use.pod.spec.containers)
    return f"{message} Container {names} was using {used}, request is {requested}, has larger consumption of {MEMORY}."


def _place_in_proportion(use: MemoryUse) -> tuple[bool, int, bool, Fraction, int, str]:
    is_more, priority, beyond, key = _place(use)
    share = Fraction(use.used, use.requested) if use.requested else Fraction(0)
    return is_more, priority, bool(use.requested), -share, beyond, key


def _place(use: MemoryUse) -> tuple[bool, int, int, str]:
    return use.used <= use.requested, use.pod.priority, use.requested - use.used, use.pod.key
