"""Reference implementation of preemption: one node and one pod at a time, in a fresh cluster for each question.

Source: SelectVictimsOnNode, filterPodsWithPDBViolation and pickOneNodeForPreemption of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from podium.api.disruption_policy import MAX_DISRUPTIONS
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_duration, parse_time
from podium.framework.handle import CycleState
from podium.framework.verdicts import SUCCESS, Status
from tests.builders import cluster_of, plain_runner

FOREVER = float("inf")
NO_VICTIMS = ("UnschedulableAndUnresolvable", ("No preemption victims found for incoming pod",))


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of preempting on one node: the victims, most important first, or why it does not help."""

    victims: tuple[str, ...] = ()
    violations: int = 0
    refused: tuple[str, tuple[str, ...]] | None = None


class Preemption:
    """Tries preemption for a pod; ``skipped`` are the plugins that had nothing to say of it in the whole cluster."""

    def __init__(self, surroundings: Iterable[Kubernetes], target: Pod, skipped: Collection[str]) -> None:
        self._objects = list(surroundings)
        self._target = target
        self._skipped = frozenset(skipped)
        self.now = 0

    def on(self, name: str) -> Trial:
        """Return the trial on a node."""
        potential = sorted(
            (one for one in self._pods if one.spec.node_name == name and one.priority < self._target.priority),
            key=importance,
        )
        if not potential:
            return Trial(refused=NO_VICTIMS)
        gone = {one.metadata.uid for one in potential}
        status = self.fits(name, gone)
        if not status.is_success:
            return Trial(refused=(status.code.value, status.reasons))
        violating = self.violating(potential)
        for one in sorted(potential, key=lambda one: one.metadata.uid not in violating):
            if self.fits(name, gone - {one.metadata.uid}).is_success:
                gone.discard(one.metadata.uid)
        victims = [one for one in potential if one.metadata.uid in gone]
        return Trial(tuple(one.key for one in victims), len(gone & violating))

    def fits(self, name: str, gone: Collection[str]) -> Status:
        """Return whether the pod fits a node when some pods are gone: beside the pods nominated there, and without
        them.
        """
        nominated = [
            replace(one, spec=replace(one.spec, node_name=name))
            for one in self._pods
            if not one.spec.node_name and one.nominated_node_name == name and one.priority >= self._target.priority
        ]
        left = [one for one in self._pods if one.spec.node_name and one.metadata.uid not in gone]
        beside = self._asked(name, [*left, *nominated]) if nominated else SUCCESS
        return self._asked(name, left) if beside.is_success else beside

    def _asked(self, name: str, pods: list[Pod]) -> Status:
        cluster = cluster_of(*(one for one in self._objects if not isinstance(one, Pod)), *pods)
        runner, state, record = plain_runner(cluster), CycleState(), cluster.read(self._target)
        runner.pre_filter(state, record)
        state.skip_filter = self._skipped
        row = cluster.nodes.row_of[name]
        return runner.filter(state, record, np.array([row], dtype=np.int64)).status(0)

    @cached_property
    def _pods(self) -> list[Pod]:
        return [one for one in self._objects if isinstance(one, Pod)]

    def violating(self, potential: list[Pod]) -> set[str]:
        """Return the uids of the pods whose disruption would take more of a budget than is left."""
        budgets = [one for one in self._objects if isinstance(one, PodDisruptionBudget)]
        left = {one.key: one.status.disruptions_allowed for one in budgets}
        tokens = {one.key: tokens_left(one, self.now) for one in budgets}
        violating = set()
        for pod in potential:
            for budget in budgets:
                if covers(budget, pod):
                    left[budget.key] -= 1
                if is_rated(budget, pod):
                    tokens[budget.key] -= 1
                if (covers(budget, pod) and left[budget.key] < 0) or (is_rated(budget, pod) and tokens[budget.key] < 0):
                    violating.add(pod.metadata.uid)
        return violating


def tokens_left(budget: PodDisruptionBudget, now: int) -> float:
    """Return how many tokens there are in the bucket of the budget's rate, counted one interval after the other."""
    rate, status = budget.metadata.annotations.get(MAX_DISRUPTIONS), budget.status.disruption_rate
    if rate is None:
        return FOREVER
    count, _, period = rate.partition("/")
    missing, full = 0, parse_time(status.full_time) if status and status.full_time else 0
    while full > now:
        full -= parse_duration(period) // int(count)
        missing += 1
    return max(0, int(count) - missing)


def is_rated(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Return whether disrupting a pod takes a token of a budget's rate: it is healthy, and the API server counts it."""
    ready = pod.status.condition("Ready")
    return (
        MAX_DISRUPTIONS in budget.metadata.annotations
        and budget.spec.selector is not None
        and budget.metadata.namespace == pod.metadata.namespace
        and compile_label_selector(budget.spec.selector).matches(pod.metadata.labels)
        and ready is not None
        and not pod.is_terminating
        and pod.metadata.name not in budget.status.disrupted_pods
    )


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Return whether disrupting a pod takes one from a budget."""
    selector = compile_label_selector(budget.spec.selector)
    return (
        budget.spec.selector is not None
        and bool(selector.requirements and pod.metadata.labels)
        and budget.metadata.namespace == pod.metadata.namespace
        and selector.matches(pod.metadata.labels)
        and pod.metadata.name not in budget.status.disrupted_pods
    )


def importance(pod: Pod) -> tuple[int, float, str, str]:
    """Return a key that is smallest for the most important pod: priority (descending), start, name."""
    return (-pod.priority, started(pod), pod.metadata.name, pod.metadata.namespace)


def started(pod: Pod) -> float:
    """Return when a pod started; a pod without a start counts as started last."""
    return parse_time(pod.status.start_time) if pod.status.start_time else FOREVER


def best_nodes(trials: Mapping[str, Trial], pods: Iterable[Pod]) -> list[str]:
    """Return the candidates that the ordered criteria leave, by name."""
    by_key = {one.key: one for one in pods}

    def rank(name: str) -> tuple[int, int, int, int, float]:
        victims = [by_key[key] for key in trials[name].victims]
        highest = max(one.priority for one in victims)
        return (
            trials[name].violations,
            highest,
            sum(one.priority + 2**31 for one in victims),
            len(victims),
            -min(started(one) for one in victims if one.priority == highest),
        )

    ranks = {name: rank(name) for name, trial in trials.items() if trial.refused is None}
    return sorted(name for name in ranks if ranks[name] == min(ranks.values()))
