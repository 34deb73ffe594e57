"""Room on nodes that opens or is claimed, and those who wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.nominations import lower_nominations, unfit_nominations
from podium.framework.events import ActionType, ClusterEvent, EventResource
from podium.framework.runner import Runner
from podium.framework.settings.configuration import NominationClearing
from podium.machines.actions import Action, Nominate
from podium.machines.scheduling.pod_reports import PodReports
from podium.machines.scheduling.queue.queue import SchedulingQueue

ASSIGNED_POD_DELETE = "AssignedPodDelete"
# At hand, as asking an enumeration for a member takes longer than calling a function does.
_ASSIGNED_POD, _DELETE = EventResource.ASSIGNED_POD, ActionType.DELETE


class Room:
    """Wakes the pods in the queue that a change of room concerns, and ends nominations that have to give way.

    Which these are, the configuration says (`Configuration.nomination_clearing`).

    Source: pkg/scheduler/eventhandlers.go (deleteAssignedPodFromCache, hasNominatedNodeNameChanged),
    framework/preemption/executor.go (getLowerPriorityNominatedPods).
    """

    def __init__(
        self,
        cluster: Cluster,
        runners: Mapping[str, Runner],
        queue: SchedulingQueue,
        reports: PodReports,
        clearing: NominationClearing,
        is_in_gang: Callable[[PodRecord], bool] = lambda _: False,
    ) -> None:
        """``is_in_gang``: whether a pod is placed with others of its group, whose nominations end with its own."""
        self._cluster = cluster
        self._runners = runners
        self._queue = queue
        self._reports = reports
        self._only_unfit = clearing == "Unfit"
        self._is_in_gang = is_in_gang

    def opened(self, pod: PodRecord, now: int) -> None:
        """``pod`` no longer takes room on its node: it is gone."""
        self._queue.move(_left(pod), now)

    def turned_back(self, pod: PodRecord, now: int) -> None:
        """``pod`` no longer takes room on a node on its way to which it failed: that is for others, not for itself."""
        self._queue.move(_left(pod), now, lambda other: other.uid != pod.uid)

    def given_up(self, pod: PodRecord, node_name: str, now: int) -> None:
        """``pod`` no longer claims room on a node: those may have it whom its claim kept off, and it may try again."""
        claim = replace(pod, nominated_node_name=node_name)
        priority = self._cluster.nominations.priority(pod)
        self._queue.move(_left(claim), now, lambda other: other.priority <= priority)

    def went_elsewhere(self, pod: PodRecord, node_name: str, now: int) -> None:
        """``pod``, nominated to a node, is placed on another one. kube-scheduler tells nobody (k/k#134859)."""
        if self._only_unfit:
            self.given_up(pod, node_name, now)

    def nominated(self, pod: PodRecord, victims: Iterable[PodRecord], now: int) -> list[Action]:
        """``pod`` is nominated to a node that ``victims`` are to leave: clear the nominations that have to give way."""
        node_name = pod.nominated_node_name
        if self._only_unfit:
            leaving = frozenset(victim.uid for victim in victims)
            return self.taken(node_name, pod.priority, pod.key, now, leaving)
        if all(victim.terminating for victim in victims):
            return []
        return self._clear(lower_nominations(self._cluster, node_name, pod.priority), node_name, pod.key, now)

    def taken(
        self, node_name: str, priority: int, cause: str, now: int, leaving: frozenset[str] = frozenset()
    ) -> list[Action]:
        """A node has less room for pods below ``priority`` that are nominated to it, or is gone.

        Clears the nominations that no longer fit, if those are what is cleared. ``leaving`` are pods (uids) that are
        about to go.
        """
        nominations = self._cluster.nominations
        if not self._only_unfit or not nominations.uids or not nominations.on(node_name):
            return []
        unfit = unfit_nominations(self._cluster, self._runners, node_name, priority, leaving)
        return self._clear(unfit, node_name, cause, now)

    def plan_ended(self, key: str, now: int) -> list[Action]:
        """The plan of a gang holds no more, and no other will be made for now: clear the nominations of its pods."""
        nominations = self._cluster.nominations
        if not nominations.uids:
            return []
        members = self._cluster.pod_groups.members(key)
        pods = [pod for uid, pod in members.items() if uid in nominations and self._is_in_gang(pod)]
        return self._clear(pods, "", key, now)

    def _clear(self, pods: list[PodRecord], node_name: str, cause: str, now: int) -> list[Action]:
        actions: list[Action] = []
        if not pods:
            return actions
        nominations = self._cluster.nominations
        pods = self._with_gangs(pods)
        claims = [(pod, nominations.remove(pod.uid) or node_name) for pod in pods]
        for pod, claimed in claims:
            actions.append(Nominate(pod.key, pod.uid, "", cause))
            self._reports.write(pod.uid, "")
            self.given_up(pod, claimed, now)
            if self._only_unfit:
                self._queue.activate([pod.uid], now)
        return actions

    def _with_gangs(self, pods: list[PodRecord]) -> list[PodRecord]:
        """The pods, and the others of their gangs that are nominated: a plan that lost a part is none."""
        found = {pod.uid: pod for pod in pods}
        for key in dict.fromkeys(pod.pod_class.pod_group for pod in pods if self._is_in_gang(pod)):
            for uid, other in self._cluster.pod_groups.members(key).items():
                if uid in self._cluster.nominations:
                    found.setdefault(uid, other)
        return list(found.values())


def _left(pod: PodRecord) -> ClusterEvent:
    return ClusterEvent(_ASSIGNED_POD, _DELETE, pod, None, ASSIGNED_POD_DELETE)
