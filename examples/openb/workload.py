"""The workload of the published experiment on the openb trace: nodes, tasks, samples, and Kubernetes objects of them.

Source: section 6 of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023) and its simulator, hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from examples.openb.gpu_sharing import GPU_INDEX, GPU_MILLI, GPU_MODEL, WHOLE

from podium.plugin import InputError
from podium.sim.trace_import import Row, read_table

FILES = "gpu_nodes.csv, pods.csv, variants/pods_MIX.csv.gz and, for the published figures, published-allocation.csv"
DEFAULT_MIX = "default"
REQUESTED = 1.3
"""Tasks arrive until they request this share of all GPUs."""
POPULAR = 0.95
"""The share of the tasks that FGD's typical tasks represent."""

_MEBIBYTE = 1 << 20
_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
# Some mixes have no column gpu_spec: their tasks accept all models.
_POD_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
# As many as the simulator's nodes allow.
_PODS_PER_NODE = 1001


class Task(NamedTuple):
    """What a task requests: thousandths of a core, MiB, GPUs, thousandths of each, and the models that it accepts.

    Without GPUs, ``gpu_milli`` is 0; of several GPUs each is whole. No models means any model.
    """

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...] = ()

    @property
    def total_milli(self) -> int:
        """Return the thousandths of GPUs that the task requests in all."""
        return self.gpus * self.gpu_milli


class Node(NamedTuple):
    """A node of the trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True)
class Workload:
    """The nodes with GPUs and the list of tasks of one mix."""

    mix: str
    nodes: tuple[Node, ...]
    tasks: tuple[Task, ...]

    @cached_property
    def capacity_milli(self) -> int:
        """Return the thousandths of GPUs of all nodes."""
        return WHOLE * sum(node.gpus for node in self.nodes)

    def sample(self, seed: int) -> list[Task]:
        """Return the tasks in the order of arrival.

        The whole list arrives once, shuffled. Then follow tasks drawn from the list, until all request 130 % of the
        GPUs. A list that requests more loses random tasks instead. (The simulator's TunePodsByNodeTotalResource.)
        """
        random, wanted = Random(seed), REQUESTED * self.capacity_milli
        tasks = list(self.tasks)
        random.shuffle(tasks)
        requested = sum(task.total_milli for task in tasks)
        while requested > wanted:
            requested -= tasks.pop(random.randrange(len(tasks))).total_milli
        while len(tasks) >= len(self.tasks):
            drawn = self.tasks[random.randrange(len(self.tasks))]
            if requested + drawn.gpu_milli > wanted:
                break
            requested += drawn.total_milli
            tasks.append(drawn)
        return tasks

    def named(self, seed: int) -> list[Node]:
        """Return the nodes with a random number before each name, in the order of these names.

        Many nodes are equal for a policy. The first by name is taken, so that the numbers decide. (The simulator's
        syncClusterResourceList.)
        """
        numbers = list(range(len(self.nodes)))
        Random(f"nodes/{seed}").shuffle(numbers)
        return sorted(
            node._replace(name=f"{number:04}-{node.name}") for number, node in zip(numbers, self.nodes, strict=True)
        )

    def typical(self) -> list[tuple[Task, float]]:
        """Return the most frequent kinds of tasks, memory aside, with their shares: 95 % of the tasks in all."""
        counts = Counter(task._replace(memory_mib=0) for task in self.tasks)
        found: list[tuple[Task, int]] = []
        covered = 0
        for task, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            if covered >= POPULAR * len(self.tasks):
                break
            found.append((task, number))
            covered += number
        return [(task, number / covered) for task, number in found]

    def claims(self) -> dict[str, float]:
        """Return by model the share of its GPUs that tasks request which accept only certain models.

        All tasks together count as if they requested all GPUs. A task that accepts several models claims each of them
        in proportion to its GPUs.
        """
        gpus = Counter[str]()
        for node in self.nodes:
            gpus[node.model] += node.gpus
        scale = self.capacity_milli / max(requested_milli(self.tasks), 1)
        found = dict.fromkeys(sorted(model for model in gpus if gpus[model]), 0.0)
        for task in self.tasks:
            accepted = found.keys() & task.models
            suited = WHOLE * sum(gpus[model] for model in accepted)
            for model in accepted:
                found[model] += task.total_milli * scale / suited
        return found


def read_workload(folder: Path, mix: str = DEFAULT_MIX) -> Workload:
    """Return the nodes and one mix of tasks from a folder with the trace. Raises InputError for what is missing."""
    nodes = tuple(
        Node(row.values["sn"], row.whole("cpu_milli"), row.whole("memory_mib"), row.whole("gpu"), row.values["model"])
        for row in read_table(_present(folder / "gpu_nodes.csv"), _NODE_COLUMNS)[1]
    )
    return Workload(mix, nodes, tuple(map(_task, _rows(folder, mix))))


def mixes(folder: Path) -> list[str]:
    """Return the names of the mixes in a folder, the default first."""
    names = {file.name for file in (folder / "variants").glob("pods_*.csv*")}
    return [DEFAULT_MIX, *sorted(name.removeprefix("pods_").partition(".")[0] for name in names)]


def _rows(folder: Path, mix: str) -> Iterable[Row]:
    if mix == DEFAULT_MIX:
        return read_table(_present(folder / "pods.csv"), _POD_COLUMNS)[1]
    plain = folder / "variants" / f"pods_{mix}.csv"
    return read_table(plain if plain.is_file() else _present(plain.with_suffix(".csv.gz")), _POD_COLUMNS)[1]


def _present(file: Path) -> Path:
    if not file.is_file():
        raise InputError(f"does not exist; the folder of the openb trace must contain {FILES}", source=str(file))
    return file


def _task(row: Row) -> Task:
    gpus = row.whole("num_gpu")
    milli = row.whole("gpu_milli") if gpus == 1 else WHOLE * (gpus > 0)
    if gpus == 1 and not 0 < milli <= WHOLE:
        raise row.error("gpu_milli", f"{milli} is no share of one GPU; it is from 1 to {WHOLE}")
    accepted = row.values.get("gpu_spec", "")
    models = tuple(accepted.split("|")) if gpus and accepted else ()
    return Task(row.whole("cpu_milli"), row.whole("memory_mib"), gpus, milli, models)


def node_object(node: Node) -> dict[str, Any]:
    """Return a Kubernetes Node."""
    amounts = {"cpu": f"{node.cpu_milli}m", "memory": f"{node.memory_mib}Mi", "pods": _PODS_PER_NODE}
    allocatable = {**amounts, GPU_MILLI: node.gpus * WHOLE}
    labels = {"kubernetes.io/hostname": node.name, GPU_MODEL: node.model}
    status = {"capacity": allocatable, "allocatable": allocatable}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}, "status": status}


def pod_object(name: str, uid: str, task: Task, node: str = "", devices: Sequence[int] = ()) -> dict[str, Any]:
    """Return a pending Pod that requests what the task does; ``node`` and GPUs are tried first if they are given."""
    requests: dict[str, Any] = {"cpu": f"{task.cpu_milli}m", "memory": f"{task.memory_mib}Mi"}
    limits = {GPU_MILLI: task.total_milli} if task.gpus else {}
    container = {"name": "main", "image": "openb", "resources": {"requests": {**requests, **limits}, "limits": limits}}
    spec: dict[str, Any] = {"containers": [container]}
    if task.models:
        terms = [{"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": list(task.models)}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid}
    if devices:
        metadata["annotations"] = {GPU_INDEX: "-".join(map(str, devices))}
    status = {"nominatedNodeName": node} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def requested_milli(tasks: Sequence[Task]) -> int:
    """Return the thousandths of GPUs that tasks request together."""
    return sum(task.total_milli for task in tasks)
