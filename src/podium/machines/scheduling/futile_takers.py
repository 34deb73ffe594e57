"""Who took the room that a preemption had made: pods of other owners that came since, and are not more important."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.fitting import fits_without
from podium.decide.preempting.wide.in_the_way import in_the_way_elsewhere
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner
from podium.machines.scheduling.futile_notes import Round
from podium.machines.scheduling.queue.queued_pod import SECOND_NS


class FutileTakers:
    """Tells owners apart, who is in a pod's way when a preemption begins, and who came into it until it ended."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def owner(self, pod: PodRecord) -> str:
        """For whom a pod's preemptions count: its group, where groups are placed together, or else its owner."""
        return self.owner_of(pod.pod_class.pod_group, pod.owner_uid)

    def owner_of(self, group: str, owner_uid: str) -> str:
        """The same by the key of the pod's group ("" for none), and by the uid of its owner."""
        return f"PodGroup/{group}" if group and self._cluster.pod_groups.are_scheduled else owner_uid

    def present(self, runner: Runner, state: CycleState, pod: PodRecord, row: int, now: int) -> list[PodRecord]:
        """The pods on a row, and those elsewhere that keep ``pod`` off it and have just started.

        ``state`` is that of an attempt at the pod.
        """
        return [*self._cluster.pods_on(row), *self._come_elsewhere(runner, state, pod, row, now)]

    def of(self, runner: Runner, pod: PodRecord, ended: Round) -> list[str]:
        """The keys of the pods that took the room which a preemption had made for ``pod``; none where it is not so."""
        row = self._cluster.nodes.row_of.get(ended.node_name)
        state = CycleState()
        if row is None or not runner.pre_filter(state, pod).status.is_success:
            return []
        come = self.present(runner, state, pod, row, ended.began_ns)
        takers = self._others(pod, come, ended.present, pod.priority)
        return [other.key for other in takers] if takers and fits_without(runner, pod, row, takers) else []

    def on_nodes(self, pod: PodRecord, rounds: Iterable[Round], priority: int) -> list[PodRecord]:
        """Pods of other owners than ``pod``'s that came to the nodes of some rounds, of no more than a priority."""
        present: dict[str, frozenset[str]] = {}
        for each in rounds:
            present[each.node_name] = present.get(each.node_name, frozenset()) | each.present
        rows = self._cluster.nodes.row_of
        return [
            other
            for name in sorted(present)
            if name in rows
            for other in self._others(pod, self._cluster.pods_on(rows[name]), present[name], priority)
        ]

    def _others(
        self, pod: PodRecord, come: Iterable[PodRecord], present: frozenset[str], priority: int
    ) -> list[PodRecord]:
        owner = self.owner(pod)
        return [
            other
            for other in come
            if other.uid not in present and other.priority <= priority and self.owner(other) != owner
        ]

    def _come_elsewhere(
        self, runner: Runner, state: CycleState, pod: PodRecord, row: int, since_ns: int
    ) -> list[PodRecord]:
        """The pods on other nodes that keep ``pod`` off a row, but for those that had started before a time.

        There may be thousands of these, more than can be noted. Start times are in whole seconds.
        """
        if runner.is_row_local(state):
            return []
        second_ns = since_ns - since_ns % SECOND_NS
        found = in_the_way_elsewhere(self._cluster, runner.reaches(state, pod), row)
        return [other for other in found if other.start_ns >= second_ns]
