"""Pods that no scheduler attempts for now: what holds them out of its queue."""

from __future__ import annotations

from podium.machines.scheduling.queue.queued_pod import Place, QueuedPod
from podium.machines.scheduling.scheduler import Scheduler
from podium.plugins.gang_scheduling import TOO_FEW
from podium.sim.simulation import Simulation


def held_pods(simulation: Simulation) -> dict[str, str]:
    """Why pods are held before any attempt at them, by key: for gates, or others of their group, or the group itself.

    Neither conditions nor Events tell of all of these.
    """
    found: dict[str, str] = {}
    for component in simulation.components:
        if isinstance(component.machine, Scheduler):
            for queued in component.machine.queue:
                if queued.place is Place.GATED:
                    found[queued.record.key] = _why(component.machine, queued)
    return dict(sorted(found.items()))


def _why(scheduler: Scheduler, queued: QueuedPod) -> str:
    groups = scheduler.cluster.pod_groups
    group = groups.of(queued.record)
    if group is None or queued.message != TOO_FEW:
        return queued.message
    return f"{queued.message}: {groups.live(group.key):,} of {group.min_count:,} of {group.key} are there"
