"""What would have to change for a pod to run: about nodes, and about the pod's own priority and policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from podium.api.policy import NEVER_PREEMPTS
from podium.app.explaining.decided import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacle_facts import facts
from podium.app.explaining.obstacles import NodeObstacles
from podium.cluster.pods import PodRecord
from podium.decide.preempting.eligibility import NOT_ELIGIBLE_YET

HIGHEST_USER_PRIORITY = 1_000_000_000
"""The highest priority that pods but the system's own can have (pkg/apis/scheduling/types.go)."""

_DESCRIBED = 200
_PREEMPTIBLE = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class NodeRemedy:
    """Nodes with the same obstacles, in words: with all of them out of the way, the pod fits there."""

    nodes: tuple[str, ...]
    obstacles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodRemedy:
    """What would happen were the pod different: with that priority (None: its own), and free to preempt.

    `from_never` says that its policy now forbids it to preempt.
    """

    priority: int | None
    from_never: bool
    then: Explanation


@dataclass(frozen=True, slots=True)
class ProtectionRemedy:
    """What would happen if `pods`, of lower priority, were not protected from preemption by their policy."""

    pods: tuple[PodRecord, ...]
    then: Explanation


@dataclass(frozen=True, slots=True)
class Remedies:
    """The nearest nodes first; `further` nodes are beyond those described. What is None would not help."""

    nodes: tuple[NodeRemedy, ...]
    further: int
    pod: PodRemedy | None
    protection: ProtectionRemedy | None


def find_remedies(explanation: Explanation, obstacles: Sequence[NodeObstacles]) -> Remedies:
    """What would have to change for a pod that fits nowhere to run, each of which is enough by itself.

    ``obstacles`` are those of all nodes, the nearest first.
    """
    cluster = explanation.runner.cluster
    alike: dict[tuple[str, ...], list[str]] = {}
    for obstacle in obstacles[:_DESCRIBED]:
        alike.setdefault(tuple(facts(cluster, explanation.record, obstacle)), []).append(obstacle.node)
    return Remedies(
        nodes=tuple(NodeRemedy(tuple(nodes), clauses) for clauses, nodes in alike.items()),
        further=len(obstacles[_DESCRIBED:]),
        pod=_pod_remedy(explanation),
        protection=_protection_remedy(explanation),
    )


def protected_pods(explanation: Explanation) -> list[PodRecord]:
    """The pods of lower priority that may not be preempted because of their policy, by key."""
    placed = explanation.runner.cluster.placed.values()
    lower = (pod for pod in placed if pod.priority < explanation.record.priority)
    return sorted((pod for pod in lower if not pod.is_preemptible and not pod.is_mirror), key=lambda pod: pod.key)


def _protection_remedy(explanation: Explanation) -> ProtectionRemedy | None:
    """Found by trying, with the protection taken from the pods and given back."""
    pods, cluster = protected_pods(explanation), explanation.runner.cluster
    if explanation.node or explanation.plan is None or not explanation.plan.eligible or not pods:
        return None
    try:
        for pod in pods:
            cluster.replace_pod(replace(pod, preemption_policy=_PREEMPTIBLE))
        then = explain_decision(explanation.runner, explanation.record)
    finally:
        for pod in pods:
            cluster.replace_pod(pod)
    if then.plan is None or then.plan.chosen is None:
        return None
    victims = {victim.key for victim in then.plan.chosen.victims}
    return ProtectionRemedy(tuple(pod for pod in pods if pod.key in victims), then)


def _pod_remedy(explanation: Explanation) -> PodRemedy | None:
    """The least of the priorities that count with which the pod would get a node, found by trying."""
    pod, plan = explanation.record, explanation.plan
    if explanation.node or plan is None or plan.reason in NOT_ELIGIBLE_YET:
        return None
    from_never = pod.preemption_policy in NEVER_PREEMPTS
    willing = replace(pod, preemption_policy=_PREEMPTIBLE)
    priorities = _priorities(explanation)
    if not from_never:
        priorities = priorities[1:]
    found: Explanation | None = None
    low, high = 0, len(priorities)
    while low < high:
        # The highest is tried first: where that does not help, none does.
        middle = (low + high) // 2 if found else high - 1
        tried = explain_decision(explanation.runner, replace(willing, priority=priorities[middle]))
        if tried.node:
            found, high = tried, middle
        elif found is None:
            return None
        else:
            low = middle + 1
    if found is None:
        return None
    priority = found.record.priority
    return PodRemedy(None if priority == pod.priority else priority, from_never, found)


def _priorities(explanation: Explanation) -> list[int]:
    """The pod's own priority, and those just above one that some placed or nominated pod has, ascending."""
    pod, cluster = explanation.record, explanation.runner.cluster
    others = {other.priority for other in cluster.placed.values()} | {
        nominated.priority for nominated, _ in cluster.nominations.all()
    }
    above = {priority + 1 for priority in others if pod.priority <= priority < HIGHEST_USER_PRIORITY}
    return [pod.priority, *sorted(above)]
