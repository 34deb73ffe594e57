"""Reference implementation of preemption across nodes: every set of pods, in a fresh cluster without it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.arrays import stable_hash
from podium.framework.handle import CycleState
from tests.builders import cluster_of, plain_runner
from tests.twins.filters import keeps_off, partners, required_terms, spread_selector
from tests.twins.plain import PlainCluster
from tests.twins.stated_costs import StatedCost
from tests.twins.victims import Preemption, started

Cost = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of preemption across nodes.

    With ``dependents``, pods that depend on a set are evicted with it. With ``keeps_partners``, a set that leaves no
    required affinity partner costs more than any other. Without ``across``, only pods of the preemptor's node and their
    dependents may be evicted, and nominated pods count for their own nodes only. With a ``cost``, sets of which a part
    suffices do not count. With ``requires_budgets``, sets that violate a budget do not count. Pods of ``spared`` uids
    are never evicted. ``together`` has the pods (names) of each group that is evicted as a whole.
    """

    dependents: bool = False
    keeps_partners: bool = False
    across: bool = True
    cost: StatedCost | None = None
    requires_budgets: bool = False
    spared: Collection[str] = ()
    now: int = 0
    together: Collection[Collection[str]] = ()


class WidePreemption:
    """A search of all sets of pods of lower priority; ``skipped`` are the plugins that PreFilter skipped."""

    def __init__(
        self, objects: Iterable[Kubernetes], target: Pod, skipped: Collection[str], rules: Rules | None = None
    ) -> None:
        self._objects = list(objects)
        self._target = target
        self._skipped = frozenset(skipped)
        self._rules = rules = rules or Rules()
        self._one_node = Preemption(self._objects, target, skipped)
        self._one_node.now = rules.now
        self._plain = PlainCluster.of(self._objects)
        pods = (one for others in self._plain.pods_on.values() for one in others)
        self.placed = sorted(pods, key=importance)
        self.takeable = [
            one for one in self.placed if one.priority < target.priority and one.metadata.uid not in rules.spared
        ]

    def best(self, nodes: Collection[str]) -> dict[str, Cost]:
        """Return the lowest cost of all there are, with each node where a set has it; empty where no set is enough."""
        found: dict[str, Cost] = {}
        for name, sets in self._enough(nodes).items():
            for victims in sets:
                cost = self.cost(victims, name)
                found[name] = min(cost, found.get(name, cost))
        lowest = min(found.values(), default=())
        return {name: cost for name, cost in found.items() if cost == lowest}

    def _enough(self, nodes: Collection[str]) -> dict[str, list[list[Pod]]]:
        """By node, the sets that are enough; those alone that have no other in them where a cost is stated."""
        found: dict[str, list[list[Pod]]] = {}
        for some, victims in self._sets():
            if self._rules.requires_budgets and self._one_node.violating(victims):
                continue
            for name in self.fitting({one.metadata.uid for one in victims}):
                reaches = self._rules.across or all(one.spec.node_name == name for one in some)
                if name in nodes and reaches and not self._becomes_first(some, victims, name):
                    found.setdefault(name, []).append(victims)
        return found if self._rules.cost is None else {name: _without_need(sets) for name, sets in found.items()}

    def fitting(self, gone: Collection[str]) -> list[str]:
        """Return the nodes that the pod fits without some pods: beside all nominated pods that count, and without
        them.
        """
        others = [one for one in self._objects if not isinstance(one, Pod)]
        left = [*others, *(one for one in self.placed if one.metadata.uid not in gone)]
        nominated = [
            replace(one, spec=replace(one.spec, node_name=one.nominated_node_name))
            for one in self._objects
            if isinstance(one, Pod) and not one.spec.node_name and one.nominated_node_name
            if one.priority >= self._target.priority
        ]
        without = self._asked(left)
        if self._rules.across:
            beside_all = self._asked([*left, *nominated])
            return [name for name in without if name in beside_all]
        beside = {name: [one for one in nominated if one.spec.node_name == name] for name in without}
        return [name for name in without if not beside[name] or name in self._asked([*left, *beside[name]])]

    def _asked(self, objects: list[Kubernetes]) -> list[str]:
        cluster = cluster_of(*objects)
        runner, state, record = plain_runner(cluster), CycleState(), cluster.read(self._target)
        runner.pre_filter(state, record)
        state.skip_filter = self._skipped
        return [cluster.nodes.name(int(row)) for row in runner.filter(state, record).feasible]

    def cost(self, victims: list[Pod], name: str) -> Cost:
        """Return what a set costs, by the criteria in their order."""
        highest = victims[0].priority
        lonely = (int(self._is_lonely(victims, name)),) if self._rules.keeps_partners else ()
        if self._rules.cost is not None:
            return (*lonely, *self._rules.cost.of(victims))
        return (
            *lonely,
            len(self._one_node.violating(victims)),
            highest,
            sum(one.priority + 2**31 for one in victims),
            len(victims),
            -min(started(one) for one in victims if one.priority == highest),
        )

    def closed(self, victims: Iterable[Pod]) -> list[Pod] | None:
        """Pods with all that depend on them; None where one of these may not be a victim."""
        gone = {one.metadata.uid: one for one in victims}
        known = {one.metadata.name for one in self.placed}
        elsewhere = {one.metadata.name for one in self._objects if isinstance(one, Pod) and one.spec.node_name} - known
        while True:
            names = {one.metadata.name for one in gone.values()}
            if any(not names.isdisjoint(group) and not elsewhere.isdisjoint(group) for group in self._rules.together):
                # A pod of the group is bound to an unknown node.
                return None
            further = [one for one in self.placed if one.metadata.uid not in gone and self._goes_along(one, gone)]
            if not further:
                return sorted(gone.values(), key=importance)
            if any(one not in self.takeable for one in further):
                return None
            gone |= {one.metadata.uid: one for one in further}

    def _sets(self) -> Iterator[tuple[Sequence[Pod], list[Pod]]]:
        """All sets of takeable pods, and each with all that depend on it."""
        for number in range(1, len(self.takeable) + 1):
            for some in combinations(self.takeable, number):
                goes_along = self._rules.dependents or self._rules.together
                victims = self.closed(some) if goes_along else list(some)
                if victims is not None:
                    yield some, victims

    def _goes_along(self, pod: Pod, gone: Mapping[str, Pod]) -> bool:
        """Return whether a pod is evicted with others: with a pod that it requires, or with its group."""
        names = {one.metadata.name for one in gone.values()}
        if any(pod.metadata.name in group and not names.isdisjoint(group) for group in self._rules.together):
            return True
        return self._rules.dependents and self._holds(pod, ()) and not self._holds(pod, gone)

    def _holds(self, pod: Pod, gone: Collection[str]) -> bool:
        """Return whether others that are left satisfy the required affinity of a placed pod, or it has none of
        these.
        """
        terms = required_terms(pod, near=True)
        return all(partners(self._plain, pod, term.topology_key, pod.spec.node_name, gone) for term in terms) or (
            all(self._plain.selects(term, pod, pod, is_scheduled=True) for term in terms)
        )

    def _becomes_first(self, some: Collection[Pod], victims: Iterable[Pod], name: str) -> bool:
        """Return whether a set removes all required partners near a node, and partners in other domains only for that.

        A plan evicts no pods of other domains only to make the pod the first of its group; dependents of other victims
        may be evicted. A partner is near if it is by all keys. Pods that are in the way by other rules do not count.
        """
        gone = {one.metadata.uid for one in victims}
        terms = required_terms(self._target, near=True)
        keys = {term.topology_key for term in terms}
        if all(partners(self._plain, self._target, key, name, gone) for key in keys):
            return False
        near = [{one.metadata.uid for one in partners(self._plain, self._target, key, name, ())} for key in keys]
        return any(
            all(self._plain.selects(term, self._target, one, is_scheduled=True) for term in terms)
            and not all(one.metadata.uid in around for around in near)
            and not self._is_in_the_way(one, name)
            for one in some
        )

    def _is_in_the_way(self, pod: Pod, name: str) -> bool:
        """Return whether a placed pod may have to go, wherever it is, by its anti-affinity or the target's, or by
        spread.
        """
        apart = required_terms(self._target, near=False)
        return (
            keeps_off(self._plain, pod, self._target, name)
            or any(
                self._plain.selects(term, self._target, pod, is_scheduled=True)
                and pod in self._plain.pods_in_domain(name, term.topology_key)
                for term in apart
            )
            or any(
                spread_selector(constraint, self._target)(pod)
                and pod in self._plain.pods_in_domain(name, constraint.topology_key)
                for constraint in self._target.spec.topology_spread_constraints
                if constraint.when_unsatisfiable == "DoNotSchedule"
            )
        )

    def _is_lonely(self, victims: Iterable[Pod], name: str) -> bool:
        gone = {one.metadata.uid for one in victims}
        keys = {term.topology_key for term in required_terms(self._target, near=True)}
        return any(
            partners(self._plain, self._target, key, name, ())
            and not partners(self._plain, self._target, key, name, gone)
            for key in keys
        )


def _without_need(sets: list[list[Pod]]) -> list[list[Pod]]:
    """Return the sets that have no other in them."""
    uids = [frozenset(one.metadata.uid for one in found) for found in sets]
    return [found for found, own in zip(sets, uids, strict=True) if not any(other < own for other in uids)]


def importance(pod: Pod) -> tuple[int, float, int, str, str]:
    """Return a key that is smallest for the most important pod: priority (descending), start, the node's hash, name."""
    node = stable_hash(pod.spec.node_name)
    return (-pod.priority, started(pod), node, pod.metadata.name, pod.metadata.namespace)
