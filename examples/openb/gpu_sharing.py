"""GPU sharing: pods that need a part of one GPU, or several whole GPUs. A filter, a reservation, and a base for scores.

A node offers thousandths of GPUs as the extended resource `podium.dev/gpu-milli`, 1,000 for each GPU. A pod requests up
to 1,000, a part of one GPU, or a multiple of 1,000, several whole GPUs. Kubernetes' own plugins check the sum, cpu,
memory and GPU models (node affinity). `GpuSharing` checks the single GPUs: it accepts a node if enough GPUs have the
requested part free, and chooses the GPUs when the pod is reserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from podium.plugin import (
    CPU,
    SUCCESS,
    ActionType,
    Cluster,
    CycleState,
    EventResource,
    EventToRegister,
    Int64s,
    PluginContext,
    PodClass,
    PodRecord,
    Scope,
    Status,
    Verdicts,
    View,
    unresolvable,
    unschedulable,
)

GPU_MILLI = "podium.dev/gpu-milli"
"""The extended resource: thousandths of GPUs."""
GPU_MODEL = "podium.dev/gpu-model"
"""The node label with the model of a node's GPUs."""
GPU_INDEX = "podium.dev/gpu-index"
"""The pod annotation with the GPUs that the pod is to get, such as `0-3`, if they are free."""
WHOLE = 1000
"""The thousandths of a whole GPU."""

Floats = np.ndarray[Any, np.dtype[np.float64]]

_TOO_FEW = unschedulable("node(s) had too few free GPUs")
_ODD = unresolvable(f"more than {WHOLE} of {GPU_MILLI} must be a multiple of it: several whole GPUs")


class Request(NamedTuple):
    """What a pod requests: thousandths of a core, GPUs, and thousandths of each."""

    cpu_milli: int
    gpus: int
    gpu_milli: int

    @property
    def total_milli(self) -> int:
        """Return the thousandths of GPUs in all."""
        return self.gpus * self.gpu_milli

    @property
    def kind(self) -> int:
        """Return the number of whole GPUs, 0 for a part of one."""
        return self.gpus if self.gpu_milli == WHOLE else 0


class Nodes(NamedTuple):
    """Some nodes, an entry for each: free thousandths of cores `[n]`, and of each GPU `[n, gpus]`.

    A GPU that a node lacks has 0. ``gpus`` is the number of GPUs, ``model`` the code of their model, and ``kinds``
    `[n, kinds]` the number of pods of each `Request.kind`.
    """

    cpu: Int64s
    free: Int64s
    gpus: Int64s
    model: Int64s
    kinds: Int64s

    @property
    def free_milli(self) -> Int64s:
        """Return the free thousandths of all GPUs of each node."""
        total: Int64s = self.free.sum(axis=1)
        return total


def request_of(cluster: Cluster, pod: PodRecord) -> Request:
    """Return what a pod requests."""
    requests = pod.pod_class.requests
    index = cluster.nodes.resource_index.get(GPU_MILLI, -1)
    milli = requests.get(index, 0)
    return Request(requests.get(CPU, 0), -(-milli // WHOLE), min(milli, WHOLE))


class GpuTable:
    """The free part of each GPU, by row, updated for rows that changed. ``devices`` has each pod's GPUs, by uid."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.devices: dict[str, tuple[int, ...]] = {}
        self._free: Int64s = np.zeros((0, 1), dtype=np.int64)
        self._kinds: Int64s = np.zeros((0, 2), dtype=np.int64)
        self._position = -1

    @property
    def free(self) -> Int64s:
        """`[rows, gpus]`: the free thousandths of each GPU, 0 where a node has fewer GPUs."""
        self._refresh()
        return self._free

    @property
    def kinds(self) -> Int64s:
        """`[rows, kinds]`: how many pods there are of each kind of `Request.kind`."""
        self._refresh()
        return self._kinds

    def left(self, row: int, pods: Iterable[PodRecord]) -> list[int]:
        """Return the free thousandths of each GPU of a node that has these pods.

        A pod without known GPUs, such as one that ran before the scheduler started, counts on those of its annotation,
        or else on those that it fits best.
        """
        left = [WHOLE] * self.count(row)
        unknown: list[PodRecord] = []
        for pod in pods:
            devices = self.devices.get(pod.uid)
            if devices is None:
                unknown.append(pod)
            else:
                self.take(left, devices, request_of(self.cluster, pod).gpu_milli)
        for pod in unknown:
            request = request_of(self.cluster, pod)
            self.take(left, wished(pod, request, left) or best_fit(request, left), request.gpu_milli)
        return left

    def count(self, row: int) -> int:
        """Return the number of GPUs of a node."""
        nodes = self.cluster.nodes
        index = nodes.resource_index.get(GPU_MILLI)
        return 0 if index is None else int(nodes.allocatable[index, row]) // WHOLE

    @staticmethod
    def take(left: list[int], devices: Sequence[int], milli: int) -> None:
        """Take a part of some GPUs."""
        for device in devices:
            left[device] -= milli

    def assign(self, pod: PodRecord, row: int, devices: tuple[int, ...]) -> None:
        """Record the GPUs of a pod on a node."""
        self.devices[pod.uid] = devices
        if len(self.devices) > 2 * len(self.cluster.placed) + 64:
            self.devices = {uid: known for uid, known in self.devices.items() if uid in self.cluster.placed}
        self._write(row)

    def release(self, pod: PodRecord) -> None:
        """Forget the GPUs of a pod."""
        self.devices.pop(pod.uid, None)

    def _refresh(self) -> None:
        """Update the rows that changed since the last call, or all if the cluster no longer knows which."""
        nodes = self.cluster.nodes
        if self._position == nodes.changes.position:
            return
        rows = nodes.changes.since(self._position) if len(self._free) == nodes.count else None
        self._position = nodes.changes.position
        if rows is None:
            most = max((self.count(row) for row in range(nodes.count)), default=0)
            self._free = np.zeros((nodes.count, most), dtype=np.int64)
            self._kinds = np.zeros((nodes.count, most + 1), dtype=np.int64)
        for row in range(nodes.count) if rows is None else rows.tolist():
            self._write(row)

    def _write(self, row: int) -> None:
        pods = self.cluster.pods_on(row)
        left = self.left(row, pods)
        if len(left) > self._free.shape[1]:
            more = len(left) - self._free.shape[1]
            self._free = np.pad(self._free, ((0, 0), (0, more)))
            self._kinds = np.pad(self._kinds, ((0, 0), (0, more)))
        self._free[row] = 0
        self._free[row, : len(left)] = left
        requests = [request_of(self.cluster, pod) for pod in pods]
        self._kinds[row] = np.bincount(
            [request.kind for request in requests if request.gpus], minlength=self._kinds.shape[1]
        )


def fits(request: Request, free: Int64s) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where enough GPUs have the requested part free; ``free`` is `[n, gpus]`."""
    enough: np.ndarray[Any, np.dtype[np.bool_]] = (free >= request.gpu_milli).sum(axis=1) >= request.gpus
    return enough


def best_fit(request: Request, left: Sequence[int]) -> tuple[int, ...]:
    """Return the GPUs with the least left that suffices, of equals the first; too few if there are too few."""
    suited = [device for device, milli in enumerate(left) if milli >= request.gpu_milli]
    return tuple(sorted(suited, key=lambda device: (left[device], device))[: request.gpus])


def wished(pod: PodRecord, request: Request, left: Sequence[int]) -> tuple[int, ...]:
    """Return the GPUs that the pod's annotation names; none if their number is wrong or they lack the free part."""
    written = pod.annotations.get(GPU_INDEX, "").split("-")
    devices = sorted({int(device) for device in written if device.isascii() and device.isdigit()})
    suit = all(device < len(left) and left[device] >= request.gpu_milli for device in devices)
    return tuple(devices) if suit and len(devices) == request.gpus else ()


class GpuSharing:
    """Accepts the nodes that have enough free GPUs for the pod, and reserves GPUs for it, where they fit best."""

    name = "GpuSharing"
    scope = Scope.ROW

    def __init__(self, context: PluginContext) -> None:
        self.cluster = context.cluster
        self.seed = context.seed
        self.gpus = GpuTable(context.cluster)

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Refuse nodes on which too few GPUs have the requested part free."""
        request = request_of(self.cluster, pod)
        if not request.gpus:
            return Verdicts.none(len(view))
        index = self.cluster.nodes.resource_index[GPU_MILLI]
        if pod.pod_class.requests[index] != request.total_milli:
            return Verdicts.where(np.ones(len(view), dtype=np.bool_), _ODD)
        if type(view) is View:
            return Verdicts.where(~fits(request, self.gpus.free[view.rows]), _TOO_FEW)
        lefts = [self.gpus.left(row, view.pods(position)) for position, row in enumerate(view.rows.tolist())]
        enough = [sum(milli >= request.gpu_milli for milli in left) >= request.gpus for left in lefts]
        return Verdicts.where(~np.array(enough, dtype=np.bool_), _TOO_FEW)

    def reserve(self, state: CycleState, pod: PodRecord, node_name: str) -> Status:
        """Choose the GPUs. The pod counts among the pods of the node already."""
        request = request_of(self.cluster, pod)
        if not request.gpus:
            return SUCCESS
        row = self.cluster.nodes.row_of[node_name]
        left = self.gpus.left(row, [other for other in self.cluster.pods_on(row) if other.uid != pod.uid])
        devices = wished(pod, request, left) or self.choose(pod, request, row, left)
        if len(devices) < request.gpus:
            return _TOO_FEW
        self.gpus.assign(pod, row, devices)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodRecord, node_name: str) -> None:
        """Forget the pod's GPUs."""
        self.gpus.release(pod)

    def choose(self, pod: PodRecord, request: Request, row: int, left: Sequence[int]) -> tuple[int, ...]:
        """Return the GPUs for a pod, as few as there are if they do not suffice; ``left`` is what each has free."""
        return best_fit(request, left)

    def events_to_register(self) -> Sequence[EventToRegister]:
        """Return the events that may free GPUs."""
        return (
            EventToRegister(EventResource.ASSIGNED_POD, ActionType.DELETE),
            EventToRegister(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE),
        )


class GpuPolicy(GpuSharing):
    """GPU sharing, and a score by cpu and GPUs. A subclass implements `rate`.

    Scores are kept for each class of pods, and recomputed for nodes that changed. The best node, of equals the first by
    name, gets 100; `explain` shows the raw scores too.
    """

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context)
        self._kept: WeakKeyDictionary[PodClass, tuple[int, Int64s]] = WeakKeyDictionary()

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        """Return the scores of some nodes that the pod fits, as integers of any size; higher is better."""
        raise NotImplementedError

    def nodes(self, rows: Int64s) -> Nodes:
        """Return what a policy may know of some rows."""
        columns, free, kinds = self.cluster.nodes, self.gpus.free, self.gpus.kinds
        cpu = columns.allocatable[CPU, rows] - columns.requested[CPU, rows]
        index = columns.resource_index[GPU_MILLI]
        gpus = columns.allocatable[index, rows] // WHOLE
        return Nodes(cpu, free[rows], gpus, columns.labels(GPU_MODEL).codes[rows].astype(np.int64), kinds[rows])

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Return the raw scores, rated anew for the rows that changed since the last pod of the class."""
        changes, count = self.cluster.nodes.changes, self.cluster.nodes.count
        position, scores = self._kept.get(pod.pod_class, (-1, np.empty(0, dtype=np.int64)))
        changed = changes.since(position) if len(scores) == count else None
        if changed is None:
            scores = np.full(count, _UNRATED, dtype=np.int64)
        else:
            scores[changed] = _UNRATED
        missing = view.rows[scores[view.rows] == _UNRATED]
        if len(missing):
            scores[missing] = self.rate(request_of(self.cluster, pod), self.nodes(missing))
        self._kept[pod.pod_class] = changes.position, scores
        found: Int64s = scores[view.rows]
        return found

    def normalize(self, state: CycleState, pod: PodRecord, scores: Int64s, feasible: View) -> Int64s:
        """Scale the scores to 0..99; 100 for the best node, of equals the first by name."""
        lowest, highest = int(scores.min()), int(scores.max())
        scaled: Int64s = (scores - lowest) * 99 // max(highest - lowest, 1)
        best = np.flatnonzero(scores == highest).tolist()
        name = self.cluster.nodes.name
        scaled[min(best, key=lambda position: name(int(feasible.rows[position])))] = 100
        return scaled


_UNRATED = np.iinfo(np.int64).min
