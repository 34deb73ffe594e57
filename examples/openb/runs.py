"""Runs of the experiment: Podium's scheduler gets the tasks of a workload one by one, and no task ever ends.

The scheduler is the controller that `podium scheduler` and `podium simulate` run. The driver of `podium bench` carries
out its requests at once, without an API server and without kubelets, which have no part in this experiment. A task that
fits nowhere is dropped, as in the published experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from examples.openb.bound import upper_bound
from examples.openb.gpu_sharing import GpuSharing
from examples.openb.repack import Place, Repacking
from examples.openb.report import Result
from examples.openb.workload import Task, Workload, node_object, pod_object, read_workload, requested_milli

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.reading import read
from podium.app.bench.scheduling import BenchDriver
from podium.controllers.observations import Changed
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.settings.configuration import Configuration, read_configuration

PLUGINS = "examples.openb.policies"
PERCENTAGES = range(10, 101, 10)
"""The requested percentages of the GPUs at which the allocated ones are stated. A run ends at the last one."""
AT = PERCENTAGES[-1]
BOUND = "Bound"
"""The row of the table with the upper bound, which is a policy for the command."""


class Policy(NamedTuple):
    """A policy's plugin, what it must know of the expected tasks, and whether running tasks move for others."""

    plugin: str
    needs_typical: bool = False
    needs_worth: bool = False
    moves: bool = False


POLICIES = {
    "Random": Policy("Random"),
    "DotProd": Policy("DotProd"),
    "GpuClustering": Policy("GpuClustering"),
    "GpuPacking": Policy("GpuPacking"),
    "BestFit": Policy("BestFit"),
    "FGD": Policy("FGD", needs_typical=True),
    "Scarcity": Policy("Scarcity", needs_typical=True, needs_worth=True),
    "Scarcity+moves": Policy("Scarcity", needs_typical=True, needs_worth=True, moves=True),
}
"""The policies, those of the published experiment first; the last one is a policy with a rescheduling pass."""


class Mark(NamedTuple):
    """The percentages of the GPUs that tasks requested and got, and the moves of tasks up to then."""

    requested: int
    allocated: float
    moves: int


def configuration(policy: str, arguments: Mapping[str, Any]) -> Configuration:
    """Return a configuration with a policy, in place of all default scores and preemption."""
    name = f"{PLUGINS}:{policy}"
    enabled, everything = [{"name": name}], [{"name": "*"}]
    profile = {
        "plugins": {
            "filter": {"enabled": enabled},
            "reserve": {"enabled": enabled},
            "postFilter": {"disabled": everything},
            "score": {"disabled": everything, "enabled": enabled},
        },
        "pluginConfig": [{"name": name, "args": arguments}],
    }
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return read_configuration(raw, "openb")


def arguments_for(policy: str, workload: Workload) -> dict[str, Any]:
    """Return the arguments of a policy's plugin, from the list of tasks of a workload."""
    found: dict[str, Any] = {}
    if POLICIES[policy].needs_typical:
        found["typical"] = [
            {
                "cpuMilli": task.cpu_milli,
                "gpus": task.gpus,
                "gpuMilli": task.gpu_milli,
                "models": task.models,
                "share": share,
            }
            for task, share in workload.typical()
        ]
    if POLICIES[policy].needs_worth:
        bound = upper_bound(workload.nodes, workload.tasks, workload.capacity_milli / requested_milli(workload.tasks))
        found["worth"] = {model: worth.tolist() for model, worth in bound.worth.items()}
        found["claims"] = workload.claims()
    return found


class Run(BenchDriver):
    """One run: nodes, a scheduler, and the tasks that arrived."""

    def __init__(self, workload: Workload, policy: str, arguments: Mapping[str, Any], seed: int) -> None:
        chosen = POLICIES[policy]
        super().__init__(Scheduler(configuration(chosen.plugin, arguments), seed=seed))
        self.workload = workload
        self.placed: dict[str, Task] = {}
        self.allocated_milli = self.requested_milli = self.moves = 0
        for node in workload.named(seed):
            self.scheduler.handle(Changed(read(node_object(node), Node)), self.now)
        (runner,) = self.scheduler.runners.values()
        self.gpus = next(plugin.gpus for plugin in runner.profile.filter if isinstance(plugin, GpuSharing))
        self._repacking = Repacking(self.gpus, self.placed) if chosen.moves else None

    def arrive(self, number: int, task: Task) -> bool:
        """Let a task arrive; return whether it was placed."""
        uid = f"task-{number}"
        self.requested_milli += task.total_milli
        if self._schedule(uid, task):
            return True
        places = self._repacking.plan(uid, task) if self._repacking and task.gpus else None
        if places is None:
            return False
        moved = {other: self.placed[other] for other in places if other != uid}
        for other in moved:
            self._leave(other)
        self.moves += len(moved)
        was_placed = self._schedule(uid, task, places[uid])
        for other, its in moved.items():
            self._schedule(f"{other}-m", its, places[other])
        return was_placed

    def _schedule(self, uid: str, task: Task, place: Place | None = None) -> bool:
        """Let the scheduler place a new pod, at a place if it fits there; drop it if it fits nowhere."""
        node, devices = ("", ()) if place is None else (self.scheduler.cluster.nodes.name(place.row), place.devices)
        self.show(read(pod_object(uid, uid, task, node, devices), Pod))
        while self.attempt():
            pass
        if not self.pods[uid].spec.node_name:
            self.end(uid)
            return False
        self.placed[uid] = task
        self.allocated_milli += task.total_milli
        return True

    def _leave(self, uid: str) -> None:
        self.end(uid)
        self.allocated_milli -= self.placed.pop(uid).total_milli

    def play(self, tasks: Sequence[Task]) -> list[Mark]:
        """Let tasks arrive; return the marks, at each multiple of 10 % of the GPUs requested.

        The mark at 100 % is the mean over the arrivals after which 99.5 to 100.5 % are requested, as published. In a
        small cluster there may be none: then the last arrival before counts.
        """
        capacity = self.workload.capacity_milli
        allocated: dict[int, list[float]] = {0: [0.0]}
        moves = {0: 0}
        for number, task in enumerate(tasks):
            requested = round(100 * (self.requested_milli + task.total_milli) / capacity)
            if requested > AT:
                break
            self.arrive(number, task)
            allocated.setdefault(requested, []).append(100 * self.allocated_milli / capacity)
            moves[requested] = self.moves
        last = {at: max(requested for requested in allocated if requested <= at) for at in PERCENTAGES}
        return [Mark(at, fmean(allocated[last[at]]), moves[last[at]]) for at in PERCENTAGES]


def play(folder: Path, mix: str, policy: str, seed: int) -> list[Result]:
    """Return the results of one run, or the upper bound of what any run with this seed can allocate."""
    workload = _workload(folder, mix)
    tasks = workload.sample(seed)
    if policy != BOUND:
        marks = Run(workload, policy, _arguments(folder, mix, policy), seed).play(tasks)
        return [Result(mix, policy, seed, mark.requested, round(mark.allocated, 4), mark.moves) for mark in marks]
    # The tasks that have arrived at the end of what counts as 100 % requested.
    arrived: list[Task] = []
    requested = 0
    for task in tasks:
        requested += task.total_milli
        if round(100 * requested / workload.capacity_milli) > AT:
            break
        arrived.append(task)
    percentage = 100 * upper_bound(workload.nodes, arrived).total_milli / workload.capacity_milli
    return [Result(mix, policy, seed, AT, percentage, 0)]


# A process plays many runs of one mix.
_workload = lru_cache(read_workload)


@lru_cache
def _arguments(folder: Path, mix: str, policy: str) -> Mapping[str, Any]:
    return arguments_for(policy, _workload(folder, mix))
