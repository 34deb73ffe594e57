"""Which pod a node evicts when it is short of memory.

Source: pkg/kubelet/eviction/helpers.go (rankMemoryPressure, evictionMessage).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.pod import Pod
from podium.api.quantity import format_quantity
from podium.api.resources import MEMORY
from podium.decide.critical_pods import is_critical


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """A pod that runs, what it uses and what it has requested, in bytes."""

    pod: Pod
    used: int
    requested: int


def memory_ranking(uses: Iterable[MemoryUse]) -> list[MemoryUse]:
    """The pods that may be evicted, the first to go first.

    Those that use more than they requested; of these and of the others, the lowest priority; then the most used beyond
    the request; then the key. Critical pods never go.
    """
    return sorted((use for use in uses if not is_critical(use.pod)), key=_place)


def eviction_message(use: MemoryUse, threshold_bytes: int, available_bytes: int) -> str:
    """What an evicted pod's status says."""
    threshold, available = (format_quantity(amount, MEMORY) for amount in (threshold_bytes, available_bytes))
    message = f"The node was low on resource: {MEMORY}. Threshold quantity: {threshold}, available: {available}."
    if use.used <= use.requested:
        return message
    used, requested = (format_quantity(amount, MEMORY) for amount in (use.used, use.requested))
    names = ", ".join(container.name for container in use.pod.spec.containers)
    return f"{message} Container {names} was using {used}, request is {requested}, has larger consumption of {MEMORY}."


def _place(use: MemoryUse) -> tuple[bool, int, int, str]:
    return use.used <= use.requested, use.pod.priority, use.requested - use.used, use.pod.key
