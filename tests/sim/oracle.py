"""Fits and preemptions computed by trying, one node and one pod at a time.

Rests on the twins of the filters (`tests.twins.filters`), which share no counting with Podium.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import NEVER_PREEMPTED, POLICY_ANNOTATION, PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time
from podium.cluster.ranking import NaturalName, natural
from tests.twins.filters import FILTERS, is_affinity_skipped
from tests.twins.plain import FITS, UNSCHEDULABLE, PlainCluster, Verdict
from tests.twins.victims import is_rated, tokens_left

_LAST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Way:
    """A way out: the node, the victims by name and the criteria, smaller is better."""

    node: str
    victims: tuple[str, ...]
    criteria: tuple[int, ...]


@dataclass(slots=True)
class Sight:
    """A cluster as a scheduler sees it: nodes, pods that hold room (each with its node), nominations, budgets.

    ``nominated_pods_repel``: their anti-affinity counts even if no placed pod has any. ``reach``: nominated pods count
    as if they were on their nodes, for other nodes too.
    ``group_priority`` is the priority of groups by key: their pods hold room by it if it is higher than their own.
    ``caps`` are the caps that are partly used: the namespace whose pods with a budget count ("" for any), how many of
    their disruptions are left, and the maximum.
    """

    nodes: dict[str, Node]
    placed: dict[str, Pod] = field(default_factory=dict)
    nominated: list[tuple[Pod, str]] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    now: int = 0
    caps: list[tuple[str, int, int]] = field(default_factory=list)
    nominated_pods_repel: bool = False
    reach: bool = False
    group_priority: Mapping[str, int] = field(default_factory=dict)

    def holds_by(self, pod: Pod) -> int:
        """Return the priority by which a pod holds its room, or that which it is nominated to."""
        return max(pod.priority, self.group_priority.get(group_of(pod), pod.priority))

    def plain(self, *, without: Iterable[str] = (), beside: Sequence[tuple[Pod, str]] = ()) -> PlainCluster:
        """Return the cluster for the twins, without some pods (uids) and with some nominated ones."""
        left = set(without)
        pods = [one for uid, one in self.placed.items() if uid not in left]
        return PlainCluster.of([*self.nodes.values(), *pods, *(on(pod, node) for pod, node in beside)])

    def verdict(self, pod: Pod, node: str, *, without: Iterable[str] = ()) -> Verdict:
        """Return the first refusal of a node: beside its nominated pods of equal or higher priority, then without
        them.
        """
        left = list(without)
        beside = [
            (one, where)
            for one, where in self.nominated
            if (where == node or self.reach) and self.holds_by(one) >= pod.priority
            if one.metadata.uid != pod.metadata.uid
        ]
        if beside:
            skipped = ["InterPodAffinity"] if self._is_affinity_skipped(pod) else []
            first = first_refusal(self.plain(without=left, beside=beside), pod, node, skipped)
            if first != FITS:
                return first
        return first_refusal(self.plain(without=left), pod, node)

    def fits(self, pod: Pod, node: str, *, without: Iterable[str] = ()) -> bool:
        """Return whether the pod may go to the node."""
        return self.verdict(pod, node, without=without) == FITS

    def is_heeded(self, waiting: Pod, pod: Pod) -> bool:
        """Return whether a nominated pod's anti-affinity, if it has any, is looked at when another is scheduled."""
        affinity = waiting.spec.affinity
        return not (affinity and affinity.pod_anti_affinity) or not self._is_affinity_skipped(pod)

    def feasible(self, pod: Pod) -> list[str]:
        """Return the nodes where the pod may go."""
        return [name for name in self.nodes if self.fits(pod, name)]

    def ways(self, pod: Pod, *, sparing: bool = False) -> list[Way]:
        """All ways out by preemption; ``sparing`` leaves out pods that count for a cap of which something is used."""
        hopeful = [name for name in self.nodes if self.verdict(pod, name).status == UNSCHEDULABLE]
        return [way for name in hopeful if (way := self._way(pod, name, sparing)) is not None]

    def best_ways(self, pod: Pod) -> list[Way]:
        """Return the ways that no criterion puts behind another."""
        ways = self.ways(pod)
        allowed = [way for way in ways if self._is_allowed(way)]
        if ways and not allowed:
            allowed = self.ways(pod, sparing=True)
        ways = allowed
        best = min((way.criteria for way in ways), default=())
        return [way for way in ways if way.criteria == best]

    def on_node(self, node: str) -> list[Pod]:
        """Return the pods on a node."""
        return [one for one in self.placed.values() if one.spec.node_name == node]

    def _is_affinity_skipped(self, pod: Pod) -> bool:
        return not (self.nominated_pods_repel or self.reach) and is_affinity_skipped(self.plain(), pod)

    def _is_allowed(self, way: Way) -> bool:
        victims = [one for one in self.on_node(way.node) if one.key in way.victims]
        return all(
            min(sum(self._counts(victim, namespace) for victim in victims), most) <= left
            for namespace, left, most in self.caps
        )

    def _counts(self, pod: Pod, namespace: str) -> bool:
        """Return whether the disruption of a pod counts for a cap on a namespace: it is healthy, and has a budget."""
        if namespace not in ("", pod.metadata.namespace):
            return False
        ready = pod.status.condition("Ready")
        is_healthy = ready is not None and ready.status == "True" and not pod.is_terminating
        return is_healthy and any(selects(budget, pod) for budget in self.budgets)

    def _is_capped(self, pod: Pod) -> bool:
        return any(self._counts(pod, namespace) for namespace, _, _ in self.caps)

    def _way(self, pod: Pod, node: str, sparing: bool) -> Way | None:
        there = (
            one
            for one in self.on_node(node)
            if policy_of(one) not in NEVER_PREEMPTED and not (sparing and self._is_capped(one))
        )
        lower = sorted((one for one in there if self.holds_by(one) < pod.priority), key=_importance)
        gone = {one.metadata.uid for one in lower}
        if not lower or not self.fits(pod, node, without=gone):
            return None
        violating = self._violating(lower)
        order = [one for one in lower if one.metadata.uid in violating]
        order += [one for one in lower if one.metadata.uid not in violating]
        for one in order:
            if self.fits(pod, node, without=gone - {one.metadata.uid}):
                gone.discard(one.metadata.uid)
        victims = [one for one in lower if one.metadata.uid in gone]
        top = [one for one in victims if one.priority == victims[0].priority]
        criteria = (
            sum(one.metadata.uid in violating for one in victims),
            victims[0].priority,
            sum(one.priority + 2**31 for one in victims),
            len(victims),
            -min(_start(one) for one in top),
        )
        return Way(node, tuple(one.key for one in victims), criteria)

    def _violating(self, pods: Sequence[Pod]) -> set[str]:
        found: set[str] = set()
        for budget in self.budgets:
            left, tokens = budget.status.disruptions_allowed, tokens_left(budget, self.now)
            for one in pods:
                if selects(budget, one) and one.metadata.name not in budget.status.disrupted_pods:
                    left -= 1
                    tokens -= is_rated(budget, one)
                    if left < 0 or (tokens < 0 and is_rated(budget, one)):
                        found.add(one.metadata.uid)
        return found


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Return whether a budget is about a pod."""
    selector = compile_label_selector(budget.spec.selector)
    return pod.metadata.namespace == budget.metadata.namespace and selector.matches(pod.metadata.labels)


def policy_of(pod: Pod) -> str:
    """Return the preemption policy of a pod; its annotation goes before its spec."""
    return pod.metadata.annotations.get(POLICY_ANNOTATION) or pod.spec.preemption_policy or "PreemptLowerPriority"


def group_of(pod: Pod) -> str:
    """Return the key of the group that a pod names; "" for none."""
    group = pod.spec.scheduling_group
    return "" if group is None else f"{pod.metadata.namespace}/{group.pod_group_name}"


def on(pod: Pod, node: str) -> Pod:
    """Return the pod as if it were on a node."""
    return pod if pod.spec.node_name == node else replace(pod, spec=replace(pod.spec, node_name=node))


def first_refusal(cluster: PlainCluster, pod: Pod, node: str, skipped: Sequence[str] = ()) -> Verdict:
    """Return the refusal of the first filter that is not skipped."""
    pending = on(pod, "")
    asked = [one for name, one in FILTERS.items() if name not in skipped]
    return next((found for one in asked if (found := one(cluster, pending, node)) != FITS), FITS)


def _importance(pod: Pod) -> tuple[int, int, NaturalName]:
    return (-pod.priority, _start(pod), natural(pod.metadata.name))


def _start(pod: Pod) -> int:
    return parse_time(pod.status.start_time) if pod.status.start_time else _LAST
