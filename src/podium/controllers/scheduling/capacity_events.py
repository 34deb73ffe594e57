"""Capacity on nodes that becomes free or is claimed, and the pods that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Nominate
from podium.controllers.scheduling.pod_reports import PodReports
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.decide.placement import lower_nominations, unfit_nominations
from podium.framework.plugin import ActionType, ClusterEvent, EventResource
from podium.framework.runner import Runner
from podium.framework.settings.configuration import NominationClearing
from podium.framework.verdicts import PluginError

ASSIGNED_POD_DELETE = "AssignedPodDelete"
# Module constants, because member access of an Enum is slow.
_ASSIGNED_POD, _DELETE = EventResource.ASSIGNED_POD, ActionType.DELETE


@dataclass(frozen=True, slots=True)
class CapacityEvents:
    """Wakes the pods that a change of capacity concerns, and clears nominations that no longer hold.

    `Configuration.nomination_clearing` selects these. With ``always_clears``, a preemptor clears lower nominations even
    if all its victims terminate already. The nomination of a pod that ``is_in_gang`` ends with those of its group.
    Source: pkg/scheduler/eventhandlers.go (deleteAssignedPodFromCache, hasNominatedNodeNameChanged),
    framework/preemption/executor.go (getLowerPriorityNominatedPods).
    """

    cluster: Cluster
    runners: Mapping[str, Runner]
    queue: SchedulingQueue
    reports: PodReports
    clearing: NominationClearing
    is_in_gang: Callable[[PodRecord], bool] = lambda _: False
    always_clears: bool = False

    def capacity_freed(self, pod: PodRecord, now: int) -> None:
        """Handle that ``pod`` no longer uses its node."""
        self.queue.move(_left(pod), now)

    def binding_failed(self, pod: PodRecord, now: int) -> None:
        """Handle that ``pod`` failed on the way to a node: its capacity is free for other pods."""
        self.queue.move(_left(pod), now, lambda other: other.uid != pod.uid)

    def nomination_ended(self, pod: PodRecord, node_name: str, now: int) -> None:
        """Wake the pods that the ended nomination of ``pod`` kept off a node, and ``pod`` itself."""
        claim, counts_for = replace(pod, nominated_node_name=node_name), self.cluster.nominations.counts_for

        def was_kept_off(other: PodRecord) -> bool:
            try:
                return other.uid == pod.uid or counts_for(pod, other)
            except PluginError:
                return True

        self.queue.move(_left(claim), now, was_kept_off)

    def bound_elsewhere(self, pod: PodRecord, node_name: str, now: int) -> None:
        """Handle that ``pod`` is placed on another node than it was nominated to (k/k#134859)."""
        if self.clearing == "Unfit":
            self.nomination_ended(pod, node_name, now)

    def pod_nominated(self, pod: PodRecord, victims: Iterable[PodRecord], now: int) -> list[Action]:
        """Clear the nominations that must give way to ``pod``, which is nominated to the node of ``victims``."""
        node_name = pod.nominated_node_name
        if self.clearing == "Unfit":
            leaving = frozenset(victim.uid for victim in victims)
            return self.capacity_taken(node_name, pod, pod.key, now, leaving)
        if not self.always_clears and all(victim.terminating for victim in victims):
            return []
        return self._clear(lower_nominations(self.cluster, node_name, pod), node_name, pod.key, now)

    def capacity_taken(
        self, node_name: str, taker: PodRecord | None, cause: str, now: int, leaving: frozenset[str] = frozenset()
    ) -> list[Action]:
        """Clear the nominations to a node that no longer fit, if the configuration clears only those.

        ``taker`` is the pod that takes capacity, None if the node is gone. ``leaving`` are the uids of pods that are
        about to end.
        """
        nominations = self.cluster.nominations
        if self.clearing != "Unfit" or not nominations.uids or not nominations.on(node_name):
            return []
        unfit = unfit_nominations(self.cluster, self.runners, node_name, taker, leaving)
        return self._clear(unfit, node_name, cause, now)

    def gang_plan_ended(self, key: str, now: int) -> list[Action]:
        """Clear the nominations of a gang whose plan no longer holds."""
        nominations = self.cluster.nominations
        if not nominations.uids:
            return []
        members = self.cluster.pod_groups.members(key)
        pods = [pod for uid, pod in members.items() if uid in nominations and self.is_in_gang(pod)]
        return self._clear(pods, "", key, now)

    def _clear(self, pods: list[PodRecord], node_name: str, cause: str, now: int) -> list[Action]:
        actions: list[Action] = []
        if not pods:
            return actions
        nominations = self.cluster.nominations
        pods = self._with_gangs(pods)
        claims = [(pod, nominations.remove(pod.uid) or node_name) for pod in pods]
        for pod, claimed in claims:
            actions.append(Nominate(pod.key, pod.uid, "", cause))
            self.reports.write(pod.uid, "")
            self.nomination_ended(pod, claimed, now)
            if self.clearing == "Unfit":
                self.queue.activate([pod.uid], now)
        return actions

    def _with_gangs(self, pods: list[PodRecord]) -> list[PodRecord]:
        """Return the pods and the other nominated pods of their gangs."""
        found = {pod.uid: pod for pod in pods}
        for key in dict.fromkeys(pod.pod_class.pod_group for pod in pods if self.is_in_gang(pod)):
            for uid, other in self.cluster.pod_groups.members(key).items():
                if uid in self.cluster.nominations:
                    found.setdefault(uid, other)
        return list(found.values())


def _left(pod: PodRecord) -> ClusterEvent:
    return ClusterEvent(_ASSIGNED_POD, _DELETE, pod, None, ASSIGNED_POD_DELETE)
