"""The pods of a gang that are ready for their bindings: no binding is asked for before enough of them are.

In kube-scheduler pods of a gang wait at Permit for one another (GangScheduling, Permit). Here they wait right before
their bindings: what may fail before, such as volumes and devices, has not failed for any that is bound.
"""

from __future__ import annotations

from podium.cluster.pod_groups import PodGroups
from podium.decide.gangs.group_placement import UNSCHEDULABLE, WAITING
from podium.framework.status import Code, Status
from podium.machines.actions import Action
from podium.machines.parts.deadlines import Deadlines
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
        for key in self._waiting_groups():
            actions += self._settle(key, attempting, now)
        self._looked_at = (self._bindings.moves, self._groups.version)
        return actions

    def give_up(self, attempting: Attempting, now: int) -> list[Action]:
        """Turn back the pods of gangs whose time is over."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            actions += self._turn_back(key, attempting, now)
        return actions

    def next_deadline(self) -> int | None:
        """When the first gang's time is over; None where none waits."""
        return self._deadlines.next_time()

    def _waiting_groups(self) -> list[str]:
        """The groups some of whose pods wait, in the order in which these began to."""
        found: dict[str, None] = {}
        for uid in self._bindings.gathered:
            cycle = self._bindings.find(uid)
            if cycle is not None:
                found[cycle.queued.record.pod_class.pod_group] = None
        return list(found)

    def _settle(self, key: str, attempting: Attempting, now: int) -> list[Action]:
        group = self._state.group(key)
        ready = self._gathered(key)
        sure = len(self._state.bound(key)) + len(ready)
        if group is None or sure + self._state.coming(key) < group.min_count:
            return self._turn_back(key, attempting, now)
        if sure < group.min_count:
            if key not in self._deadlines.times:
                self._deadlines.set(key, now + self._timeout_ns(key))
            return []
        self._deadlines.set(key, None)
        actions: list[Action] = []
        for uid in ready:
            actions += attempting.on_its_way(uid, self._bindings.set_out(uid, now), now)
        return [*actions, *self._reports.report(group, "True", "Scheduled", "", now)]

    def _turn_back(self, key: str, attempting: Attempting, now: int) -> list[Action]:
        self._deadlines.set(key, None)
        status = Status(Code.UNSCHEDULABLE, (f"{UNSCHEDULABLE}, {WAITING}",), NAME)
        actions: list[Action] = []
        for uid in self._gathered(key):
            actions += attempting.put_back(self._bindings.cancel(uid, status), now, is_error=False)
        return actions

    def _gathered(self, key: str) -> list[str]:
        """The pods (uids) of a group that wait, in the order in which they began to."""
        cycles = ((uid, self._bindings.find(uid)) for uid in self._bindings.gathered)
        return [uid for uid, cycle in cycles if cycle is not None and cycle.queued.record.pod_class.pod_group == key]

    def _timeout_ns(self, key: str) -> int:
        group = self._state.group(key)
        own = None if group is None else group.schedule_timeout_ns
        if own is not None:
            return own
        uid = self._gathered(key)[0]
        cycle = self._bindings.find(uid)
        if cycle is None:
            raise AssertionError(f"pod {uid} waits for its gang, and is on no way")
        return self._state.plugin(cycle.queued.record.scheduler_name).schedule_timeout_ns
