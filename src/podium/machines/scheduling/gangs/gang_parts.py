"""The parts of a scheduler by which PodGroups are placed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podium.cluster.cluster import Cluster
from podium.framework.runner import Runner
from podium.machines.scheduling.binding.cycles import BindingCycles
from podium.machines.scheduling.cap_waits import CapWaits
from podium.machines.scheduling.futile_preemptions import FutilePreemptions
from podium.machines.scheduling.known_failures import KnownFailures
from podium.machines.scheduling.preemptions import Preemptions
from podium.machines.scheduling.queue.queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class GangParts:
    """What belongs to the scheduler, and groups are placed with."""

    cluster: Cluster
    runners: Mapping[str, Runner]
    queue: SchedulingQueue
    bindings: BindingCycles
    preemptions: Preemptions
    cap: CapWaits
    futile: FutilePreemptions
    known: KnownFailures
