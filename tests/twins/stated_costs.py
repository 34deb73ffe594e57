"""Reference implementation of victim costs by stated criteria: one set and one pod at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.resource_requests import pod_requests, qos_class
from tests.builders import cluster_of, plain_runner
from tests.twins.plain import PlainCluster
from tests.twins.victims import FOREVER, Preemption, is_rated, started, tokens_left


class StatedCost:
    """The criteria of these names, over the objects as they are at a time."""

    def __init__(self, objects: Iterable[Kubernetes], target: Pod, names: Sequence[str], now: int) -> None:
        self._objects = list(objects)
        self._names = names
        self._now = now
        self._plain = PlainCluster.of(self._objects)
        self._one_node = Preemption(self._objects, target, ())
        self._one_node.now = now
        self._placed = [one for others in self._plain.pods_on.values() for one in others]

    def violations(self, victims: list[Pod]) -> int:
        """Return how many of them would be more than budgets allow."""
        return len(self._one_node.violating(victims))

    def of(self, victims: list[Pod]) -> tuple[float, ...]:
        """Return what a set costs; the most important victim is the first."""
        return tuple(getattr(self, f"_{name}")(victims) for name in self._names)

    def _BudgetViolations(self, victims: list[Pod]) -> float:  # noqa: N802 - as the criterion is called
        return self.violations(victims)

    def _RatesLeft(self, victims: list[Pod]) -> float:  # noqa: N802
        left = [FOREVER]
        for budget in (one for one in self._objects if isinstance(one, PodDisruptionBudget)):
            taken = sum(is_rated(budget, one) for one in victims)
            left += [tokens_left(budget, self._now) - taken] if taken else []
        return -min(left)

    def _HighestPriority(self, victims: list[Pod]) -> float:  # noqa: N802
        return max(one.priority for one in victims)

    def _SumOfPriorities(self, victims: list[Pod]) -> float:  # noqa: N802
        return sum(one.priority for one in victims)

    def _QualityOfService(self, victims: list[Pod]) -> float:  # noqa: N802
        weights = {"Guaranteed": 10**6, "Burstable": 1, "BestEffort": 0}
        return sum(weights[qos_class(one.spec)] for one in victims)

    def _Victims(self, victims: list[Pod]) -> float:  # noqa: N802
        return len(victims)

    def _WorkLost(self, victims: list[Pod]) -> float:  # noqa: N802
        total = 0
        for one in victims:
            has = self._plain.allocatable(one.spec.node_name)
            requests = pod_requests(one.spec)
            share = min(1.0, max([0.0, *(amount / has[name] for name, amount in requests.items() if has.get(name))]))
            ran_ns = max(0.0, self._now - started(one))
            total += int(int(ran_ns) // 10**6 * share)
        return total

    def _ReplacementsWithoutPlace(self, victims: list[Pod]) -> float:  # noqa: N802
        return sum(bool(one.metadata.owner_references) and not self._others(one) for one in victims)

    def _DisruptedLately(self, victims: list[Pod]) -> float:  # noqa: N802
        """Return the same for all: no workload in these objects was disrupted."""
        return 0

    def _others(self, pod: Pod) -> set[str]:
        """Return the nodes but its own that another pod such as this one could go to."""
        cluster = cluster_of(*self._objects)
        rows = plain_runner(cluster).feasible_rows(cluster.read(pod))
        return {cluster.nodes.name(int(row)) for row in rows} - {pod.spec.node_name}

    def _GracePeriod(self, victims: list[Pod]) -> float:  # noqa: N802
        return max(one.spec.termination_grace_period_seconds for one in victims)

    def _OwnerShare(self, victims: list[Pod]) -> float:  # noqa: N802
        shares = []
        for owner in set(map(owner_of, victims)):
            taken, all_of_it = (sum(owner_of(one) == owner for one in some) for some in (victims, self._placed))
            shares.append(10**6 * taken // all_of_it)
        return max(shares)

    def _NamespaceShare(self, victims: list[Pod]) -> float:  # noqa: N802
        total: dict[str, int] = {}
        for name in self._plain.nodes:
            for resource, amount in self._plain.allocatable(name).items():
                total[resource] = total.get(resource, 0) + amount
        return -min(self._share(one.metadata.namespace, total) for one in victims)

    def _share(self, namespace: str, total: dict[str, int]) -> int:
        asked: dict[str, int] = {}
        for one in self._placed:
            if one.metadata.namespace == namespace:
                for resource, amount in pod_requests(one.spec).items():
                    asked[resource] = asked.get(resource, 0) + amount
        shares = [amount / total[name] if total.get(name) else 0.0 for name, amount in asked.items()]
        return int(max(shares, default=0.0) * 10**6)

    def _LatestStart(self, victims: list[Pod]) -> float:  # noqa: N802
        highest = max(one.priority for one in victims)
        return -min(started(one) for one in victims if one.priority == highest)


def owner_of(pod: Pod) -> str:
    """Return the owner of a pod."""
    owners = pod.metadata.owner_references
    return owners[0].uid if owners else pod.metadata.uid
