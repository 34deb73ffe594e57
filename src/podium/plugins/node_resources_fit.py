"""NodeResourcesFit: filter by the pod's requests, and score by what is left.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np

from podium.api.node import Node
from podium.api.resource_requests import node_allocatable
from podium.api.versions.release import Behavior
from podium.cluster.arrays import Int64s
from podium.cluster.nodes import FIRST_RESOURCES
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister
from podium.framework.handle import CycleState
from podium.framework.plugin import FitsRow, PluginContext, Scope, ScoreRow
from podium.framework.settings.arguments import read_arguments
from podium.framework.verdicts import Code, Status, Verdicts
from podium.plugins import resource_scores

_TOO_MANY_PODS = 1
_UNRESOLVABLE = 1 << 31
_MOST_BITS = 30
# The number of combinations of missing resources whose messages are cached.
_MOST_EXPLAINED = 256


class NodeResourcesFitArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments: extended resources to ignore, and the scoring strategy."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: resource_scores.ScoringStrategy = resource_scores.ScoringStrategy()


class NodeResourcesFit:
    """Compares requests with allocatable amounts, regardless of actual use."""

    name = "NodeResourcesFit"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self._args = read_arguments(context.args, NodeResourcesFitArgs, self.name)
        self._cluster = context.cluster
        release = context.cluster.release
        resource_scores.check_strategy(self._args.scoring_strategy, self.name, release)
        self._unresolvable = _UNRESOLVABLE if release.has(Behavior.TOO_SMALL_IS_UNRESOLVABLE) else 0
        self._watch = resource_scores.ResourceWatch(self._args.scoring_strategy.resources, with_defaults=True)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Reject nodes that lack something; the code has a bit for each missing resource.

        Since 1.34 preemption cannot help if the pod requests more than the node has in total.
        """
        checked = self._checked(pod.pod_class)
        # With more resources than bits, Python's integers hold them, and every combination that occurs gets a number.
        has_bits = len(checked) <= _MOST_BITS
        kind = np.dtype(np.int64 if has_bits else object)
        codes = (view.pod_count() + 1 > view.take(view.cluster.nodes.allowed_pods)).astype(kind)
        for number, (resource, wanted) in enumerate(checked):
            allocatable = view.allocatable(resource)
            lacking = wanted > allocatable - view.requested(resource)
            if self._is_backed(resource):
                # If a node has none of it, DynamicResources decides (shouldDelegateResourceToDRA).
                lacking &= allocatable != 0
            if lacking.any():
                codes |= lacking.astype(kind) << _bit(number)
                codes |= np.where(lacking & (wanted > allocatable), self._unresolvable, 0)
        if not has_bits:
            codes = np.array([_number(pod.pod_class, int(bits)) for bits in codes], dtype=np.int64)
        return Verdicts(codes, self.explain(pod))

    def filter_row(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], joined: Sequence[PodRecord]) -> int:
        """Return the same for one row, without some pods and with others."""
        entries = self._cluster.nodes.entries
        checked = pod.pod_class.memo.get(self) or self._checked(pod.pod_class)
        offered, requested = entries.allocatable, entries.requested
        bits = 1 if entries.pod_count[row] + 1 + len(joined) - len(gone) > entries.allowed_pods[row] else 0
        for resource, wanted in checked:
            allocatable = offered[resource][row]
            free = allocatable - requested[resource][row]
            if gone:
                for other in gone:
                    free += other.pod_class.requests.get(resource, 0)
            if joined:
                for other in joined:
                    free -= other.pod_class.requests.get(resource, 0)
            if wanted > free and (allocatable or not self._is_backed(resource)):
                number = checked.index((resource, wanted))
                bits |= 1 << _bit(number) | self._unresolvable * (wanted > allocatable)
        return _number(pod.pod_class, bits) if bits and len(checked) > _MOST_BITS else bits

    def explain(self, pod: PodRecord) -> Callable[[int], Status]:
        """Return the function that translates codes to statuses for a class."""
        key = (self, "explained")
        known: Callable[[int], Status] | None = pod.pod_class.memo.get(key)
        if known is None:
            checked = self._checked(pod.pod_class)
            known = self._explain([resource for resource, _ in checked])
            if len(checked) > _MOST_BITS:
                known = _by_number(known, _numbers(pod.pod_class))
            pod.pod_class.memo[key] = known
        return known

    def row_filter(self, pod_class: PodClass) -> FitsRow:
        entries = self._cluster.nodes.entries
        pod_count, allowed_pods = entries.pod_count, entries.allowed_pods
        checked = [
            (entries.allocatable[resource], entries.requested[resource], wanted, resource)
            for resource, wanted in self._checked(pod_class)
        ]

        def fits(_: PodRecord, row: int) -> bool:
            if pod_count[row] >= allowed_pods[row]:
                return False
            for offered, requested, wanted, resource in checked:
                allocatable = offered[row]
                if wanted > allocatable - requested[row] and (allocatable or not self._is_backed(resource)):
                    return False
            return True

        return fits

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        return resource_scores.score_by_strategy(self._args.scoring_strategy, self._watch.usage(view, pod))

    def row_score(self, pod_class: PodClass) -> ScoreRow:
        return resource_scores.row_score_by_strategy(
            self._args.scoring_strategy, self._watch.by_row(self._cluster.nodes, pod_class)
        )

    def events_to_register(self) -> Sequence[EventToRegister]:
        return (
            EventToRegister(
                EventResource.ASSIGNED_POD,
                ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN,
                self._frees_something_wanted,
            ),
            EventToRegister(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE, self._could_hold),
        )

    def _checked(self, pod_class: PodClass) -> list[tuple[int, int]]:
        """Return the resources to compare: cpu, memory, ephemeral storage, then others by name."""
        known: list[tuple[int, int]] | None = pod_class.memo.get(self)
        if known is None:
            known = pod_class.memo[self] = self._sorted(pod_class)
        return known

    def _sorted(self, pod_class: PodClass) -> list[tuple[int, int]]:
        names = self._cluster.nodes.resources
        wanted = [(index, amount) for index, amount in pod_class.requests.items() if not self.ignores(names[index])]
        return sorted(
            wanted, key=lambda entry: (entry[0], "") if entry[0] < len(FIRST_RESOURCES) else (99, names[entry[0]])
        )

    def _is_backed(self, resource: int) -> bool:
        """Return whether a device class provides the resource."""
        return self._cluster.nodes.resources[resource] in self._cluster.devices.backed

    def ignores(self, name: str) -> bool:
        """Return whether the profile ignores the requests of a resource."""
        if "/" not in name:
            return False
        return name in self._args.ignored_resources or name.partition("/")[0] in self._args.ignored_resource_groups

    def _explain(self, resources: list[int]) -> Callable[[int], Status]:
        names = [self._cluster.nodes.resources[resource] for resource in resources]

        def status(code: int) -> Status:
            reasons = ["Too many pods"] if code & _TOO_MANY_PODS else []
            reasons += [f"Insufficient {name}" for number, name in enumerate(names) if code >> _bit(number) & 1]
            hopeless = bool(code & _UNRESOLVABLE)
            return Status(
                Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE, tuple(reasons), self.name
            )

        return lru_cache(_MOST_EXPLAINED)(status)

    def _frees_something_wanted(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether the pod is gone, which frees at least its place, or released a requested resource."""
        if event.new is None:
            return True
        before, after = event.old.pod_class.requests, event.new.pod_class.requests
        return any(before.get(index, 0) > after.get(index, 0) for index in pod.pod_class.requests)

    def _could_hold(self, pod: PodRecord, event: ClusterEvent) -> bool:
        """Return whether the pod would fit the empty node, and a changed node offers more than before."""
        node: Node = event.new
        amounts = node_allocatable(node.status)
        names = self._cluster.nodes.resources
        wanted = {"pods": 1, **{names[index]: amount for index, amount in self._checked(pod.pod_class)}}
        backed = self._cluster.devices.backed
        if any(
            amount > amounts.get(name, 0) and (amounts.get(name, 0) or name not in backed)
            for name, amount in wanted.items()
        ):
            return False
        before = {} if event.old is None else node_allocatable(event.old.status)
        return any(
            amounts.get(name, 0) > before.get(name, 0) or (name in backed and not amounts.get(name)) for name in wanted
        )


def _by_number(explain: Callable[[int], Status], numbers: dict[int, int]) -> Callable[[int], Status]:
    """Return a function that translates the numbers of combinations."""
    return lambda number: explain(list(numbers)[number - 1])


def _numbers(pod_class: PodClass) -> dict[int, int]:
    """Return the numbers of the combinations of missing resources of a class, so that cached codes stay valid."""
    numbers: dict[int, int] = pod_class.memo.setdefault((NodeResourcesFit.name, "numbers"), {})
    return numbers


def _number(pod_class: PodClass, bits: int) -> int:
    numbers = _numbers(pod_class)
    return numbers.setdefault(bits, len(numbers) + 1) if bits else 0


def _bit(number: int) -> int:
    """Return the position of a resource's bit."""
    return number + 1 if number < _MOST_BITS else number + 2
