"""The progress of the pods of each PodGroup."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.pod_group import PodGroup
from podium.cluster.cluster import Cluster
from podium.cluster.nominations import PodGroups
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.binding_stages import BindingStage
from podium.framework.runner import Runner
from podium.plugins.gang_scheduling import GangScheduling


class GangState:
    """Which pods of a group are placed, bound, or in a binding cycle.

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
        """Return whether any profile schedules groups."""
        return bool(self._plugins)

    def concerns(self, pod: PodRecord) -> bool:
        """Return whether a pod is scheduled with the others of its group."""
        return bool(self._plugins) and bool(pod.pod_class.pod_group) and pod.scheduler_name in self._plugins

    def plugin(self, scheduler_name: str) -> GangScheduling:
        """Return the plugin of a profile that has it."""
        return self._plugins[scheduler_name]

    def group(self, key: str) -> PodGroup | None:
        return self._cluster.pod_groups.by_key.get(key)

    def placed(self, key: str) -> list[PodRecord]:
        """Return the pods that are on a node or assumed there, and not terminating."""
        placed = self._cluster.placed
        members = self._cluster.pod_groups.members(key)
        return [placed[uid] for uid, pod in members.items() if uid in placed and not pod.terminating]

    def bound(self, key: str) -> list[PodRecord]:
        """Return the placed pods that are bound, or whose binding was requested."""
        cycles = ((pod, self._bindings.find(pod.uid)) for pod in self.placed(key))
        return [pod for pod, cycle in cycles if cycle is None or cycle.stage.is_sent]

    def coming(self, key: str) -> int:
        """Return the number of pods in earlier stages of a binding cycle."""
        stages = map(self._bindings.stage, self._cluster.pod_groups.members(key))
        return sum(stage in (BindingStage.PERMIT, BindingStage.PRE_BIND, BindingStage.PREPARE) for stage in stages)


def is_short(groups: PodGroups, group: PodGroup) -> bool:
    """Return whether too few pods of a gang exist for an attempt."""
    return group.is_gang and groups.live(group.key) < group.min_count
