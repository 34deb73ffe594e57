"""The six policies of the published experiment, each a plugin of a few lines, and one that allocates more.

All filter and reserve as `GpuSharing` does; they differ in the score, and some in the choice of the GPU. The rules are
those of hkust-adsl/kubernetes-scheduler-simulator, truncation included: many nodes are equal, and the first by name is
taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from examples.openb.gpu_sharing import GPU_MODEL, WHOLE, Floats, GpuPolicy, Nodes, Request

from podium.plugin import Arguments, CycleState, Int64s, PluginContext, PodRecord, View, read_arguments

MOST_CPU_MILLI = 128_000
MOST_GPU_MILLI = 8_000
_IMPOSSIBLE = -1e9


class Random(GpuPolicy):
    """Takes any node, and any GPU; a hash of the seed and the pod's uid decides."""

    name = "Random"

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        scores = np.zeros(len(view), dtype=np.int64)
        scores[self._draw(pod, "node") % len(view)] = 1
        return scores

    def choose(self, pod: PodRecord, request: Request, row: int, left: Sequence[int]) -> tuple[int, ...]:
        suited = [device for device, milli in enumerate(left) if milli >= request.gpu_milli]
        if request.gpu_milli == WHOLE or not suited:
            return tuple(suited[: request.gpus])
        return (suited[self._draw(pod, "gpu") % len(suited)],)

    def _draw(self, pod: PodRecord, purpose: str) -> int:
        return crc32(f"{purpose}/{self.seed}/{pod.uid}".encode())


class BestFit(GpuPolicy):
    """Leaves as little cpu and GPU as possible on the node."""

    name = "BestFit"

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        cpu = (nodes.cpu - request.cpu_milli) / MOST_CPU_MILLI
        gpu = (nodes.free_milli - request.total_milli) / MOST_GPU_MILLI
        return _truncated((1 - (cpu * 0.5 + gpu * 0.5)) * 100)


class DotProd(GpuPolicy):
    """Takes the node that offers the least of what the pod needs most: the smallest dot product (Tetris)."""

    name = "DotProd"

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        cpu = nodes.cpu / MOST_CPU_MILLI * (request.cpu_milli / MOST_CPU_MILLI)
        gpu = nodes.free_milli / MOST_GPU_MILLI * (request.total_milli / MOST_GPU_MILLI)
        return _truncated((1 - (cpu + gpu) / 2) * 100)


class GpuPacking(GpuPolicy):
    """Fills shared GPUs first, then free GPUs of nodes in use, then empty nodes."""

    name = "GpuPacking"

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        if not request.gpus:
            return np.zeros(len(nodes.cpu), dtype=np.int64)
        unused = (nodes.free == WHOLE).sum(axis=1)
        suited = np.sort(np.where(nodes.free >= request.gpu_milli, nodes.free, 1 << 20), axis=1)[:, : request.gpus]
        opened = (suited == WHOLE).sum(axis=1)
        shared = np.maximum(100 - (suited * 100 // WHOLE).sum(axis=1) // 10, 50)
        in_use = np.where(opened > 0, np.maximum(50 - opened, 33), shared)
        found: Int64s = np.where(unused == nodes.gpus, np.maximum(33 - unused, unused), in_use)
        return found


class GpuClustering(GpuPolicy):
    """Keeps pods of one kind together: those that share a GPU, those with one GPU, with two, and so on."""

    name = "GpuClustering"

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        if not request.gpus:
            return np.zeros(len(nodes.cpu), dtype=np.int64)
        others = (nodes.kinds > 0).sum(axis=1)
        has_kind = nodes.kinds[:, request.kind] > 0
        base = np.where(has_kind, np.where(others == 1, 75, 50), np.where(others == 0, 25, 0))
        return base + 25 * (MOST_GPU_MILLI - nodes.free_milli) // MOST_GPU_MILLI


class TypicalTask(Arguments, frozen=True, kw_only=True):
    """A kind of task that is expected: what it requests, and its share of all tasks. No models means any."""

    cpu_milli: int
    gpus: int = 0
    gpu_milli: int = 0
    models: tuple[str, ...] = ()
    share: float


class FGDArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: the expected tasks."""

    typical: tuple[TypicalTask, ...] = ()


class FGD(GpuPolicy):
    """Fragmentation gradient descent: adds as little fragmentation as possible.

    A node's fragmentation is the free part of its GPUs that a typical task cannot use, on average over typical tasks:
    all of it if the task does not fit the node, else the parts that are too small for it.
    """

    name = "FGD"

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context)
        self._read(context)

    def _read(self, context: PluginContext) -> None:
        self._learn(read_arguments(context.args, FGDArgs, self.name).typical)

    def _learn(self, typical: Sequence[TypicalTask]) -> None:
        self._typical = typical
        self._cpu = np.array([task.cpu_milli for task in typical])
        self._number = np.array([task.gpus for task in typical])
        self._milli = np.array([task.gpu_milli for task in typical])
        self._share = np.array([task.share for task in typical])

    def loss(self, nodes: Nodes) -> Floats:
        """Return `[n]` the fragmentation of nodes."""
        # Many nodes are alike at first.
        alike = np.column_stack((nodes.cpu, nodes.model, nodes.free))
        _, first, number = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        found: Floats = self._fragmentation(Nodes(*(column[first] for column in nodes)))[number]
        return found

    def _fragmentation(self, nodes: Nodes) -> Floats:
        usable = (nodes.free[:, None, :] >= self._milli[:, None]) & (nodes.free[:, None, :] > 0)
        fits = (usable.sum(axis=2) >= self._number) & (nodes.cpu[:, None] >= self._cpu) & (self._milli > 0)
        fits &= self._accepts()[nodes.model]
        too_small = np.where(usable, 0, nodes.free[:, None, :]).sum(axis=2)
        found: Floats = np.where(fits, too_small, nodes.free_milli[:, None]) @ self._share
        return found

    def grade(self, gain: Floats, nodes: Nodes) -> Int64s:
        """Return the score for a gain: a loss that is avoided."""
        return _truncated(100 / (1 + np.exp(np.minimum(-gain / WHOLE, 700))))

    def rate(self, request: Request, nodes: Nodes) -> Int64s:
        gains = self._gains(request, nodes).max(axis=1)
        return self.grade(gains, nodes)

    def choose(self, pod: PodRecord, request: Request, row: int, left: Sequence[int]) -> tuple[int, ...]:
        """Return the GPU with the highest score: the part is taken where it does the least harm."""
        if request.gpu_milli == WHOLE or max(left, default=0) < request.gpu_milli:
            return super().choose(pod, request, row, left)
        nodes = self.nodes(np.array([row]))
        free = np.zeros_like(nodes.free)
        free[0, : len(left)] = left
        before = nodes._replace(cpu=nodes.cpu + request.cpu_milli, free=free)
        return (int(self.grade(self._gains(request, before)[0], before).argmax()),)

    def _gains(self, request: Request, nodes: Nodes) -> Floats:
        """Return `[n, gpus]` by how much the loss falls if the pod gets each GPU; `[n, 1]` for whole GPUs and none."""
        before, cpu = self.loss(nodes), nodes.cpu - request.cpu_milli
        if not request.gpus or request.gpu_milli == WHOLE:
            whole = (nodes.free == WHOLE) & ((nodes.free == WHOLE).cumsum(axis=1) <= request.gpus)
            after = self.loss(nodes._replace(cpu=cpu, free=np.where(whole, 0, nodes.free)))
            return (before - after)[:, None]
        gains = np.full(nodes.free.shape, _IMPOSSIBLE)
        rows, devices = np.nonzero(nodes.free >= request.gpu_milli)
        free = nodes.free[rows]
        free[np.arange(len(rows)), devices] -= request.gpu_milli
        after = self.loss(Nodes(cpu[rows], free, nodes.gpus[rows], nodes.model[rows], nodes.kinds[rows]))
        gains[rows, devices] = before[rows] - after
        return gains

    def _accepts(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Return `[models, typical]`: whether a typical task accepts a model, by the code of the model."""
        models = self.cluster.nodes.labels(GPU_MODEL).values
        return np.array([[not task.models or model in task.models for task in self._typical] for model in models])


class ScarcityArgs(FGDArgs, frozen=True, kw_only=True):
    """Arguments: the expected tasks, the worth of free parts, and the claims on models.

    Both are by model: `worth` by the free thousandths of a GPU (`bound.py`), `claims` the share of the GPUs that tasks
    request which accept only certain models (`workload.py`).
    """

    worth: Mapping[str, tuple[float, ...]] = {}
    claims: Mapping[str, float] = {}


class Scarcity(FGD):
    """FGD, with prices: gives up as little as possible of what free parts of GPUs are worth to all expected tasks.

    FGD asks for each expected task alone whether it could use a free part. But many tasks compete for the same part,
    and a part that two tasks fill exactly is worth more than one that they do not fill. The prices come from a linear
    program that fills the cluster's GPUs with the expected tasks as well as possible. Of two equal nodes, the one with
    less left is better.

    The program knows all tasks at once, and places those that accept any model after the others. Here they arrive in
    any order, so that a free part costs more the more tasks will claim its model.
    """

    name = "Scarcity"
    _PRICES = 10.0
    _CLAIMS = 0.1
    _LEFT_OVER = 20.0

    def _read(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, ScarcityArgs, self.name)
        self._learn(arguments.typical)
        self._values = {
            model: self._PRICES * np.array(worth)
            + self._CLAIMS * arguments.claims.get(model, 0.0) * np.arange(WHOLE + 1)
            for model, worth in arguments.worth.items()
        }

    def loss(self, nodes: Nodes) -> Floats:
        none = np.zeros(WHOLE + 1)
        models = self.cluster.nodes.labels(GPU_MODEL).values
        values = np.array([none if model is None else self._values.get(model, none) for model in models])
        found: Floats = super().loss(nodes) - values[nodes.model[:, None], nodes.free].sum(axis=1)
        return found

    def grade(self, gain: Floats, nodes: Nodes) -> Int64s:
        left = nodes.cpu / MOST_CPU_MILLI + nodes.free_milli / MOST_GPU_MILLI
        return _truncated((gain - self._LEFT_OVER * left) * WHOLE)


def _truncated(scores: Floats) -> Int64s:
    found: Int64s = np.trunc(scores).astype(np.int64)
    return found
