"""Room on nodes that opens or is taken, and those who wait for it."""

from __future__ import annotations

from collections.abc import Mapping

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.nominations import unfit_nominations
from podium.framework.events import Action as Change
from podium.framework.events import ClusterEvent, Resource
from podium.framework.runner import Runner
from podium.machines.actions import Action, ClearNomination
from podium.machines.scheduling.pod_reports import PodReports
from podium.machines.scheduling.queue import SchedulingQueue


class Room:
    """Wakes the pods in the queue that a change of room concerns, and ends nominations that lose theirs."""

    def __init__(
        self, cluster: Cluster, runners: Mapping[str, Runner], queue: SchedulingQueue, reports: PodReports
    ) -> None:
        self._cluster = cluster
        self._runners = runners
        self._queue = queue
        self._reports = reports

    def opened(self, pod: PodRecord, now: int) -> None:
        """``pod`` no longer takes, or no longer claims, room on some node."""
        self._queue.move(ClusterEvent(Resource.ASSIGNED_POD, Change.DELETE, pod, None, "AssignedPodDelete"), now)

    def left(self, node_name: str, pod: PodRecord, now: int) -> None:
        """Try those at once who wait for a node that a less important pod has left, though they may have to back off.

        Or an equal that had to go for one of them. Or else others are tried first, the replacement of a victim above
        all.
        """
        least = pod.priority if pod.preempted else pod.priority + 1
        waiting = self._cluster.nominations.on(node_name)
        self._queue.activate([one.uid for one in waiting if one.priority >= least], now)

    def taken(
        self, node_name: str, priority: int, cause: str, now: int, leaving: frozenset[str] = frozenset()
    ) -> list[Action]:
        """Clear the nominations to a node, below ``priority``, that it can no longer keep, and try their pods again.

        ``leaving`` are pods (uids) that are about to go.
        """
        if not self._cluster.nominations.on(node_name):
            return []
        actions: list[Action] = []
        for pod in unfit_nominations(self._cluster, self._runners, node_name, priority, leaving):
            actions.append(ClearNomination(pod.key, pod.uid, cause))
            self._reports.write(pod.uid, "")
            self._queue.activate([pod.uid], now)
        return actions
