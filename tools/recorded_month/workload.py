"""What happens in a cluster: tasks of the openb trace that come and go, scaling by day, rollouts and failing nodes.

All of it is drawn from a seed, an hour at a time. The steps of an hour depend on that hour, and on the nodes and
replicas that the hours before have left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from podium.api.meta import Raw
from podium.api.quantity import milli_value
from podium.controllers.kubelets.pod_run import DURATION
from podium.sim.trace_import import Row, read_table

HOUR = 3_600
_DAY_HOURS = 24
_DAY_S = _DAY_HOURS * HOUR
_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu")
# The trace's nodes have 96 cores and 512 GiB at most, the cluster's mostly 16 and 60.
_SHRINK = 4
# The trace's cluster has GPUs on most nodes, this one on one of 20.
_WITH_GPU = 0.125
_LONGEST_S = 3 * 86_400
# Without times in the file, tasks run for the trace's median and spread.
_MEDIAN_S, _SPREAD = 540, 1.6
_CLASS_OF_QOS = {"LS": "batch", "BE": "", "Burstable": "prod", "Guaranteed": "prod"}
_NAMESPACES = ("analytics", "ml", "team-a", "team-b", "team-c")
_JOB_SHARE, _JOB_SIZES = 0.1, (2, 4, 8, 16)
_KEPT_FOR_S = 600
# Of the Deployments, how many follow the day, and by how much.
_WITH_RHYTHM, _SWING = 0.2, 0.4
_BUSIEST_HOUR = 14
_ROLLOUTS_PER_DAY = 1 / 15
# For each node and day.
_FAILURES, _UPGRADES = 1 / 60, 1 / 100
_REPLACED = 0.3


class Task(NamedTuple):
    """What a task of the trace requests, its class, and how long it runs."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    priority_class: str
    seconds: int


def read_tasks(file: Path) -> list[Task]:
    """Return the tasks of the trace's pods.csv. Raises InputError."""
    draw = Random(0)
    return [_task(row, draw) for row in read_table(file, _COLUMNS)[1]]


def _task(row: Row, draw: Random) -> Task:
    if row.values.get("deletion_time"):
        began = row.whole("scheduled_time" if row.values["scheduled_time"] else "creation_time")
        seconds = row.whole("deletion_time") - began
    else:
        seconds = int(draw.lognormvariate(math.log(_MEDIAN_S), _SPREAD))
    cpu_milli, memory_mib = (max(1, row.whole(column) // _SHRINK) for column in ("cpu_milli", "memory_mib"))
    name = _CLASS_OF_QOS.get(row.values.get("qos", "LS"), "")
    return Task(cpu_milli, memory_mib, row.whole("num_gpu"), name, min(max(seconds, 1), _LONGEST_S))


@dataclass(slots=True)
class _Deployment:
    """A Deployment, its replicas at the start, and whether it follows the day."""

    namespace: str
    name: str
    usual: int
    has_rhythm: bool
    replicas: int
    version: int = 1


class Workload:
    """The generator of steps for a cluster of the given objects: so many tasks per day on average.

    Durations are multiplied so that the tasks take the share ``load`` of the cpu that Deployments and the like leave.
    """

    def __init__(self, objects: list[Raw], tasks: list[Task], pods_per_day: float, load: float, seed: int) -> None:
        busy_s = pods_per_day / _DAY_S * sum(task.cpu_milli * task.seconds for task in tasks) / len(tasks)
        factor = load * _free_milli(objects) / busy_s
        self._tasks = [task._replace(seconds=max(1, round(task.seconds * factor))) for task in tasks]
        self._pods_per_hour, self._seed = pods_per_day / _DAY_HOURS, seed
        draw = Random(seed)
        self._nodes: dict[str, Raw] = {}
        self._deployments: list[_Deployment] = []
        for raw in objects:
            metadata = raw["metadata"]
            if raw["kind"] == "Node":
                self._nodes[metadata["name"]] = raw
            elif raw["kind"] == "Deployment":
                usual = raw["spec"]["replicas"]
                name = metadata["namespace"], metadata["name"]
                self._deployments.append(_Deployment(*name, usual, draw.random() < _WITH_RHYTHM, usual))
        self._replacements = 0
        # What follows later than its hour, by second and number.
        self._later: list[tuple[float, int, Raw]] = []
        self._number = 0

    def steps(self, hour: int) -> list[tuple[float, Raw]]:
        """Return the steps of an hour with their seconds since the start, by time. Hours are asked for in order."""
        draw = Random(f"{self._seed}/{hour}")
        self._add_tasks(hour, draw)
        self._scale(hour, draw)
        self._roll_out(hour, draw)
        self._break_nodes(hour, draw)
        found: list[tuple[float, Raw]] = []
        while self._later and self._later[0][0] < (hour + 1) * HOUR:
            at, _, step = heappop(self._later)
            found.append((at, step))
        return found

    def _at(self, seconds: float, **step: Any) -> None:
        self._number += 1
        heappush(self._later, (seconds, self._number, step))

    def _add_tasks(self, hour: int, draw: Random) -> None:
        left = self._pods_per_hour * _busyness(hour, 0.6)
        # The fraction decides by chance, so that small numbers are right on average.
        count = int(left) + (draw.random() < left % 1)
        number = 0
        while count > 0:
            task = draw.choice(self._tasks)
            at = hour * HOUR + draw.random() * HOUR
            namespace, name = draw.choice(_NAMESPACES), f"task-{hour}-{number}"
            size = min(draw.choice(_JOB_SIZES), count) if draw.random() < _JOB_SHARE else 0
            template = _pod(task, has_gpu=draw.random() < _WITH_GPU)
            metadata = {"name": name, "namespace": namespace}
            if size:
                spec = {"parallelism": size, "completions": size, "ttlSecondsAfterFinished": _KEPT_FOR_S}
                job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
                self._at(at, apply=[{**job, "spec": {**spec, "template": template}}])
            else:
                own = {**metadata, **template["metadata"]}
                self._at(at, apply=[{"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template["spec"]}])
                # Users clean up after a while, and give up on what waits for hours.
                gone_at = at + task.seconds + _KEPT_FOR_S + draw.random() * 2 * HOUR
                self._at(gone_at, delete={"kind": "Pod", **metadata, "outright": True})
            count -= max(size, 1)
            number += 1

    def _scale(self, hour: int, draw: Random) -> None:
        for found in self._deployments:
            wanted = max(1, round(found.usual * _busyness(hour, _SWING))) if found.has_rhythm else found.replicas
            at = hour * HOUR + draw.random() * HOUR
            if wanted != found.replicas:
                found.replicas = wanted
                where = {"kind": "Deployment", "namespace": found.namespace, "name": found.name}
                self._at(at, scale={**where, "replicas": wanted})

    def _roll_out(self, hour: int, draw: Random) -> None:
        for found in self._deployments:
            if draw.random() < _ROLLOUTS_PER_DAY / _DAY_HOURS:
                found.version += 1
                image = f"registry.example.com/{found.name}:{found.version}"
                spec = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}
                where = {"kind": "Deployment", "namespace": found.namespace, "name": found.name}
                self._at(hour * HOUR + draw.random() * HOUR, patch={**where, "patch": {"spec": spec}})

    def _break_nodes(self, hour: int, draw: Random) -> None:
        for name in list(self._nodes):
            chance, at = draw.random() * _DAY_HOURS, hour * HOUR + draw.random() * HOUR
            if chance < _FAILURES:
                self._at(at, nodeDown={"name": name})
                if draw.random() < _REPLACED:
                    self._at(at + 400, delete={"kind": "Node", "name": name})
                    self._replace(name, at + 600)
                else:
                    self._at(at + draw.uniform(120, 2_400), nodeUp={"name": name})
            elif chance < _FAILURES + _UPGRADES:
                self._at(at, drain={"name": name, "force": True, "timeout": "20m", "removeNode": True})
                # A budget may have kept some pods: the machine goes in any case.
                self._at(at + 1_500, delete={"kind": "Node", "name": name})
                self._replace(name, at + 1_800)

    def _replace(self, name: str, at: float) -> None:
        """Let another node of the pool join."""
        raw = self._nodes.pop(name)
        self._replacements += 1
        new = f"ip-10-250-{self._replacements // 250}-{self._replacements % 250}.eu-west-1.compute.internal"
        metadata = raw["metadata"]
        labels = {**metadata["labels"], "kubernetes.io/hostname": new}
        fresh = {**raw, "metadata": {"name": new, "labels": labels}}
        self._nodes[new] = fresh
        self._at(at, apply=[fresh])


def _free_milli(objects: Iterable[Raw]) -> int:
    """Return the cpu of the nodes that pods do not request."""
    free = 0
    for raw in objects:
        if raw["kind"] == "Node":
            free += milli_value(raw["status"]["allocatable"]["cpu"])
        elif raw["kind"] == "Pod" and raw["spec"].get("nodeName"):
            free -= sum(milli_value(each["resources"]["requests"]["cpu"]) for each in raw["spec"]["containers"])
    return free


def _busyness(hour: int, swing: float) -> float:
    """Return the activity in an hour of the day, on average 1."""
    return 1 + swing * math.cos((hour % _DAY_HOURS - _BUSIEST_HOUR) / _DAY_HOURS * 2 * math.pi)


def _pod(task: Task, *, has_gpu: bool) -> Raw:
    requests = {"cpu": f"{task.cpu_milli}m", "memory": f"{task.memory_mib}Mi"}
    gpus = {"nvidia.com/gpu": str(task.gpus)} if has_gpu and task.gpus else {}
    container = {"name": "main", "image": "registry.example.com/task:1", "resources": {}}
    container["resources"] = {"requests": {**requests, **gpus}, "limits": gpus}
    spec: Raw = {"restartPolicy": "Never", "containers": [container]}
    if gpus:
        spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    if task.priority_class:
        spec["priorityClassName"] = task.priority_class
    return {"metadata": {"annotations": {DURATION: f"{task.seconds}s"}}, "spec": spec}
