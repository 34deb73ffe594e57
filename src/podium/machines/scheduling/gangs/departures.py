"""The pods of a gang that are ready for their bindings: no binding is asked for before enough of them are.

In kube-scheduler pods of a gang wait at Permit for one another (GangScheduling, Permit). Here they wait right before
their bindings: what may fail before, such as volumes and devices, has not failed for any that is bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.pod_group import PodGroup
from podium.cluster.pod_groups import PodGroups
from podium.decide.gangs.group_placement import UNSCHEDULABLE, WAITING
from podium.framework.status import Code, Status
from podium.machines.actions import Action
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.binding.cycle import BindingCycle
from podium.machines.scheduling.binding.cycles import BindingCycles
from podium.machines.scheduling.gangs.attempting import Attempting
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.gangs.group_reports import GroupReports
from podium.plugins.gang_scheduling import NAME


class Departures:
    """Lets the pods of a gang go together, or turns them back when too few are left or the time for that is over."""

    def __init__(self, groups: PodGroups, bindings: BindingCycles, state: GangState, reports: GroupReports) -> None:
        self._groups = groups
        self._bindings = bindings
        self._state = state
        self._reports = reports
        # By the group's key, until when pods wait for others.
        self._deadlines: Deadlines[str] = Deadlines()
        self._looked_at = (0, 0)

    def settle(self, attempting: Attempting, now: int) -> list[Action]:
        """Look after the gangs some of whose pods wait, where anything has changed."""
        if not self._bindings.gathered or self._looked_at == (self._bindings.moves, self._groups.version):
            return []
        actions: list[Action] = []
        for key, ready in self._waiting().items():
            actions += self._settle(key, ready, attempting, now)
        self._looked_at = (self._bindings.moves, self._groups.version)
        return actions

    def give_up(self, attempting: Attempting, now: int) -> list[Action]:
        """Turn back the pods of gangs whose time is over."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            actions += self._turn_back(key, self._waiting().get(key, []), attempting, now)
        return actions

    def next_deadline(self) -> int | None:
        """When the first gang's time is over; None where none waits."""
        return self._deadlines.next_time()

    def _waiting(self) -> dict[str, list[BindingCycle]]:
        """By the group's key, the ways of its pods that wait; both in the order in which they began to."""
        found: dict[str, list[BindingCycle]] = {}
        for cycle in map(self._bindings.find, self._bindings.gathered):
            if cycle is not None:
                found.setdefault(cycle.queued.record.pod_class.pod_group, []).append(cycle)
        return found

    def _settle(self, key: str, ready: Sequence[BindingCycle], attempting: Attempting, now: int) -> list[Action]:
        group = self._state.group(key)
        sure = len(self._state.bound(key)) + len(ready)
        if group is None or sure + self._state.coming(key) < group.min_count:
            return self._turn_back(key, ready, attempting, now)
        if sure < group.min_count:
            if key not in self._deadlines.times:
                self._deadlines.set(key, now + self._timeout_ns(group, ready[0]))
            return []
        self._deadlines.set(key, None)
        actions: list[Action] = []
        for cycle in ready:
            uid = cycle.queued.record.uid
            actions += attempting.on_its_way(uid, self._bindings.set_out(uid, now), now)
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _turn_back(self, key: str, waiting: Sequence[BindingCycle], attempting: Attempting, now: int) -> list[Action]:
        self._deadlines.set(key, None)
        status = Status(Code.UNSCHEDULABLE, (f"{UNSCHEDULABLE}, {WAITING}",), NAME)
        actions: list[Action] = []
        for cycle in waiting:
            actions += attempting.put_back(self._bindings.cancel(cycle.queued.record.uid, status), now, is_error=False)
        return actions

    def _timeout_ns(self, group: PodGroup, first: BindingCycle) -> int:
        """How long pods wait for others, as the group says, or the profile of the first that waits."""
        if group.schedule_timeout_ns is not None:
            return group.schedule_timeout_ns
        return self._state.plugin(first.queued.record.scheduler_name).schedule_timeout_ns
