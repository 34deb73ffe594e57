"""How far the pods of each PodGroup are, as the scheduler knows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.api.pod_group import PodGroup
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.runner import Runner
from podium.machines.scheduling.binding.cycles import BindingCycles
from podium.machines.scheduling.binding.stages import Stage
from podium.plugins.gang_scheduling import GangScheduling


class GangState:
    """Which pods of a group have a node, are about to be bound to one, or are on their way there.

    ``leaders`` are, by the group's key, the pods (uids) for which the group's victims are being deleted.
    """

    def __init__(self, cluster: Cluster, bindings: BindingCycles, runners: Mapping[str, Runner]) -> None:
        self._cluster = cluster
        self._bindings = bindings
        self.leaders: dict[str, str] = {}
        self._plugins: dict[str, GangScheduling] = {
            name: plugin
            for name, runner in runners.items()
            for plugin in runner.profile.pre_enqueue
            if isinstance(plugin, GangScheduling)
        }

    @property
    def is_on(self) -> bool:
        """Whether any profile schedules groups."""
        return bool(self._plugins)

    def concerns(self, pod: PodRecord) -> bool:
        """Whether a pod is scheduled with the others of its group."""
        return bool(self._plugins) and bool(pod.pod_class.pod_group) and pod.scheduler_name in self._plugins

    def plugin(self, scheduler_name: str) -> GangScheduling:
        """The plugin of a profile that has it."""
        return self._plugins[scheduler_name]

    def group(self, key: str) -> PodGroup | None:
        """The group of that key, None where there is none."""
        return self._cluster.pod_groups.by_key.get(key)

    def placed(self, key: str) -> list[PodRecord]:
        """The pods that have a node, or are assumed on one, and are not on their way out."""
        placed = self._cluster.placed
        return [placed[uid] for uid, pod in self._members(key) if uid in placed and not pod.terminating]

    def bound(self, key: str) -> list[PodRecord]:
        """Those of them whose binding was asked for, or that are bound."""
        return [pod for pod in self.placed(key) if self._is_sent(pod.uid)]

    def coming(self, key: str) -> int:
        """How many pods are on their way to that point."""
        stages = (self._bindings.stage(uid) for uid, _ in self._members(key))
        return sum(stage in (Stage.PERMIT, Stage.PRE_BIND, Stage.PREPARE) for stage in stages)

    def _is_sent(self, uid: str) -> bool:
        cycle = self._bindings.find(uid)
        return cycle is None or cycle.stage.is_sent

    def _members(self, key: str) -> Iterator[tuple[str, PodRecord]]:
        yield from self._cluster.pod_groups.members(key).items()
