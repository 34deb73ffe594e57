"""What NodeResourcesFit and NodeResourcesBalancedAllocation say of one node together, so that it is read once.

Nearly all profiles have both, and after each placement every class in use has a few nodes to be judged anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from podium.cluster.nodes import CPU, MEMORY, Entries, RowLoad
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.plugin import MAX_NODE_SCORE, NO_FIT, TotalOfRow

_HALF = MAX_NODE_SCORE // 2


class JoinedScores(msgspec.Struct, frozen=True):
    """How the two rate: the fullest node best where it ``is_most``, by the weights of resources and of plugins."""

    is_most: bool
    cpu_weight: int
    memory_weight: int
    fit_weight: int
    balance_weight: int


def joined_row(
    entries: Entries,
    pod_class: PodClass,
    checked: Sequence[tuple[int, int]],
    is_backed: Callable[[int], bool],
    scores: JoinedScores,
    of_nodes: memoryview,
    apart: TotalOfRow,
) -> TotalOfRow:
    """Whether a row has room for a pod, and what the two plugins say of it where it has: as a function.

    ``of_nodes`` is by row what to add to that, negative where the pod does not fit in any case. ``checked`` are the
    resources that must be there, with the amounts that the class wants of them. ``apart`` asks each plugin by itself,
    for the rare rows of which this does not know: those that have no cpu or no memory, or less than is taken of what
    the class does not ask for.
    """
    wanted = dict(checked)
    cpu_wanted, memory_wanted = wanted.pop(CPU, 0), wanted.pop(MEMORY, 0)
    others = [(entries.allocatable[index], entries.requested[index], index, amount) for index, amount in wanted.items()]
    cpu_rated, memory_rated = pod_class.nonzero_of_containers
    loads = entries.loads
    is_most, cpu_weight, memory_weight = scores.is_most, scores.cpu_weight, scores.memory_weight
    weights, fit_weight, balance_weight = cpu_weight + memory_weight, scores.fit_weight, scores.balance_weight

    def total_of_row(pod: PodRecord, row: int) -> int:
        found: int = of_nodes[row]
        if found < 0:
            return NO_FIT
        load = loads[row] or _load(entries, row)
        has_room, cpu, memory, cpu_taken, memory_taken, cpu_used, memory_used, evenness = load
        if not has_room:
            return NO_FIT
        cpu_taken += cpu_wanted
        memory_taken += memory_wanted
        if cpu_taken > cpu or memory_taken > memory or evenness is None:
            return apart(pod, row) if not (cpu_wanted and memory_wanted) else NO_FIT
        for offered, requested, index, amount in others:
            if offered[row] - requested[row] < amount and (offered[row] or not is_backed(index)):
                return NO_FIT
        cpu_used += cpu_rated
        memory_used += memory_rated
        if is_most:
            cpu_used = cpu - cpu_used if cpu_used < cpu else 0
            memory_used = memory - memory_used if memory_used < memory else 0
        liking = cpu_weight * ((cpu - cpu_used) * MAX_NODE_SCORE // cpu) if cpu_used < cpu else 0
        if memory_used < memory:
            liking += memory_weight * ((memory - memory_used) * MAX_NODE_SCORE // memory)
        gain = int((1 - abs((1.0 * cpu_taken / cpu - 1.0 * memory_taken / memory) / 2)) * MAX_NODE_SCORE) - evenness
        return found + fit_weight * (liking // weights) + balance_weight * (_HALF + (_HALF + gain) // 2)

    return total_of_row


def _load(entries: Entries, row: int) -> RowLoad:
    """Read a row, for all classes until it changes."""
    cpu, memory = entries.allocatable[CPU][row], entries.allocatable[MEMORY][row]
    cpu_taken, memory_taken = entries.requested[CPU][row], entries.requested[MEMORY][row]
    evenness = None
    if cpu and memory:
        evenness = int((1 - abs((1.0 * cpu_taken / cpu - 1.0 * memory_taken / memory) / 2)) * MAX_NODE_SCORE)
    cpu_rated, memory_rated = entries.nonzero_requested[CPU][row], entries.nonzero_requested[MEMORY][row]
    has_room = entries.pod_count[row] < entries.allowed_pods[row]
    load = entries.loads[row] = has_room, cpu, memory, cpu_taken, memory_taken, cpu_rated, memory_rated, evenness
    return load
