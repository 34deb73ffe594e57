"""A cluster on which changes are supposed, one after the other, and taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from podium.api.meta import Kubernetes
from podium.api.policy import PodDisruptionBudget
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement
from podium.decide.scratch import Scratch
from podium.framework.runner import Runner


class SupposedCluster:
    """A cluster with its schedulers' runners. Between `supposing` and its end nobody else may look at it."""

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner], objects: Sequence[Kubernetes]) -> None:
        self.cluster = cluster
        self.runners = runners
        self.objects = objects
        self.scratch = Scratch(cluster, runners)
        self._budgets = {item.key: item for item in objects if isinstance(item, PodDisruptionBudget)}
        self._supposed: list[Kubernetes] = []

    @property
    def budgets(self) -> Mapping[str, PodDisruptionBudget]:
        """The budgets by key, as they are after what was decided so far."""
        return self._budgets

    def in_order(self, pods: Iterable[PodRecord]) -> tuple[PodRecord, ...]:
        """The pods in the order of the queue: the more important first, then the older, then by key."""
        runner = next(iter(self.runners.values()))
        return tuple(sorted(pods, key=lambda pod: (*runner.sort_key(pod, pod.created_ns), pod.key)))

    @contextmanager
    def supposing(self) -> Iterator[Scratch]:
        """What is changed and decided within is taken back at its end."""
        mark = self.scratch.mark()
        try:
            yield self.scratch
        finally:
            self.scratch.roll_back(mark)

    @property
    def supposed(self) -> tuple[Kubernetes, ...]:
        """The objects that are supposed to be there and are no nodes and no pods, in the order in which they came."""
        return tuple(self._supposed)

    def put(self, item: Kubernetes) -> None:
        """Suppose that an object that is no node and no pod is there, in place of the one of its name."""
        before = self._budgets.get(item.key) if isinstance(item, PodDisruptionBudget) else self.cluster.find(item)
        self._put(item)
        self.scratch.taken_back_by(lambda: self._remove(item) if before is None else self._put(before))
        self._supposed.append(item)
        self.scratch.taken_back_by(self._supposed.pop)

    def reserve(self, runner: Runner, placement: Placement, pod: PodRecord, node: str) -> bool:
        """Let volumes and devices be kept for the pod, as its scheduler does; whether that works."""
        mark = self.scratch.mark()
        for plugin in runner.profile.reserve:
            self.scratch.taken_back_by(partial(plugin.unreserve, placement.state, pod, node))
            if not plugin.reserve(placement.state, pod, node).is_success:
                self.scratch.roll_back(mark)
                return False
        return True

    def take(self, pod: PodRecord, row: int) -> None:
        """Let the pod be on the node in a row, and be nominated to none."""
        nominations = self.cluster.nominations
        node = nominations.remove(pod.uid)
        if node:
            self.scratch.taken_back_by(lambda: nominations.put(pod, node))
        self.scratch.place(pod, row)

    def take_off(self, victims: Sequence[PodRecord]) -> None:
        """Let the victims be gone, and count them."""
        self._count(victims)
        for victim in victims:
            self.scratch.take_off(victim.uid)
            self.scratch.leave_group(victim)

    def _count(self, victims: Sequence[PodRecord]) -> None:
        """Count the victims where disruptions are counted: in the caps on schedulers, and in the budgets."""
        caps, budgets = self.cluster.caps, self.cluster.budgets
        before = dict(caps.known())
        counted = Counter(
            victim.namespace for victim in victims if victim.is_healthy and budgets.counts(victim.pod_class)
        )
        needs = caps.needs(counted)
        if needs and caps.shortage(needs) is None:
            caps.take(needs)
            self.scratch.taken_back_by(lambda: caps.assume(before))
        for victim in victims:
            for budget in list(budgets.over(victim.pod_class)):
                known = self._budgets.get(budget.key)
                if victim.ready and known is not None and known.status.disruptions_allowed > 0:
                    allowed = known.status.disruptions_allowed - 1
                    status = msgspec.structs.replace(known.status, disruptions_allowed=allowed)
                    self.put(msgspec.structs.replace(known, status=status))

    def _put(self, item: Kubernetes) -> None:
        if isinstance(item, PodDisruptionBudget):
            self._budgets[item.key] = item
        self.cluster.put(item)

    def _remove(self, item: Kubernetes) -> None:
        if isinstance(item, PodDisruptionBudget):
            del self._budgets[item.key]
        self.cluster.remove(item)
