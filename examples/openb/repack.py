"""A rescheduling pass: when a task fits nowhere, a few running tasks move so that it does.

The search is bounded. It takes a node that the task could use, and a few tasks there that are in its way. Each of these
must find another place, directly or, one level deeper, by the same means. The result is a set of placements that holds
together. The scheduler still decides: each moved task is a new pod with the planned node as its nominated node and with
the planned GPUs in an annotation, and it must pass all filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from examples.openb.gpu_sharing import GPU_MILLI, GPU_MODEL, WHOLE, GpuTable, Request, best_fit
from examples.openb.workload import Task

from podium.plugin import CPU, MEMORY, Int64s

MOST_MOVES = 6
"""How many tasks may move for one that fits nowhere."""
_DEPTH = 2
# How many nodes are tried for the new task, and for each task in its way.
_NODES = (30, 12)
_MEBIBYTE = 1 << 20


class Place(NamedTuple):
    """A node's row, and GPUs of it."""

    row: int
    devices: tuple[int, ...]


class _Held(NamedTuple):
    task: Task
    devices: tuple[int, ...]


class Repacking:
    """The search on a copy of the cluster's free resources; every change of it is undone unless the search succeeds."""

    def __init__(self, gpus: GpuTable, tasks: Mapping[str, Task]) -> None:
        """``tasks`` are those on nodes, by the uid of their pods."""
        self._gpus, self._tasks, self._cluster = gpus, tasks, gpus.cluster
        self._hopeless: set[Task] = set()

    def plan(self, uid: str, task: Task) -> dict[str, Place] | None:
        """Return a place for a task that fits nowhere and one for each task that moves; None if none was found."""
        # More tasks on nodes do not help; only moves may.
        if task in self._hopeless:
            return None
        nodes, index = self._cluster.nodes, self._cluster.nodes.resource_index[GPU_MILLI]
        count = nodes.count
        free = nodes.allocatable[:, :count] - nodes.requested[:, :count]
        self._cpu, self._memory, self._free = free[CPU], free[MEMORY] // _MEBIBYTE, self._gpus.free.copy()
        self._count = nodes.allocatable[index, :count] // WHOLE
        self._held: dict[int, dict[str, _Held]] = {}
        self._rows: dict[Task, tuple[Int64s, frozenset[int]]] = {}
        self._touched: set[int] = set()
        self._log: list[tuple[str, int, _Held, bool]] = []
        for depth in range(1, _DEPTH + 1):
            if self._place(uid, task, depth, MOST_MOVES):
                self._hopeless.clear()
                return {uid: Place(row, held.devices) for uid, row, held, is_placed in self._log if is_placed}
        self._hopeless.add(task)
        return None

    def _place(self, uid: str, task: Task, depth: int, budget: int) -> bool:
        row = self._direct(task)
        if row is not None:
            self._put(uid, row, self._fitting(task, row))
            return True
        if depth == 0 or budget <= 0:
            return False
        found = [(row, self._in_the_way(task, row, budget)) for row in self._promising(task, _NODES[_DEPTH - depth])]
        options = [(row, uids) for row, uids in found if uids]
        for row, uids in sorted(options, key=lambda option: self._cost(*option)):
            if self._clear(uid, task, (row, uids), depth, budget):
                return True
        return False

    def _clear(self, uid: str, task: Task, option: tuple[int, Sequence[str]], depth: int, budget: int) -> bool:
        """Put the task on a row whose ``uids`` leave, if all of these find a place; else undo everything."""
        row, uids = option
        mark, before = len(self._log), self._moves()
        leaving = [(other, self._take(other, row)) for other in uids]
        self._put(uid, row, self._fitting(task, row))
        for other, held in sorted(leaving, key=lambda left: (-left[1].task.total_milli, left[0])):
            if not self._place(other, held.task, depth - 1, budget - (self._moves() - before)):
                self._undo(mark)
                return False
        return True

    def _moves(self) -> int:
        return sum(not is_placed for *_, is_placed in self._log)

    def _cost(self, row: int, uids: Sequence[str]) -> tuple[int, int, int]:
        return len(uids), sum(self._on(row)[uid].task.total_milli for uid in uids), row

    def _on(self, row: int) -> dict[str, _Held]:
        """Return the tasks on a row, with their GPUs."""
        held = self._held.get(row)
        if held is None:
            pods = self._cluster.pods_on(row)
            held = {pod.uid: _Held(self._tasks[pod.uid], self._gpus.devices.get(pod.uid, ())) for pod in pods}
            self._held[row] = held
        return held

    def _put(self, uid: str, row: int, held: _Held) -> None:
        self._change(uid, row, held, is_placed=True)
        self._log.append((uid, row, held, True))

    def _take(self, uid: str, row: int) -> _Held:
        held = self._on(row)[uid]
        self._change(uid, row, held, is_placed=False)
        self._log.append((uid, row, held, False))
        return held

    def _undo(self, mark: int) -> None:
        while len(self._log) > mark:
            uid, row, held, is_placed = self._log.pop()
            self._change(uid, row, held, is_placed=not is_placed)

    def _change(self, uid: str, row: int, held: _Held, *, is_placed: bool) -> None:
        sign = -1 if is_placed else 1
        on_row = self._on(row)
        if is_placed:
            on_row[uid] = held
        else:
            del on_row[uid]
        self._cpu[row] += sign * held.task.cpu_milli
        self._memory[row] += sign * held.task.memory_mib
        for device in held.devices:
            self._free[row, device] += sign * held.task.gpu_milli
        self._touched.add(row)

    def _fitting(self, task: Task, row: int) -> _Held:
        request = Request(task.cpu_milli, task.gpus, task.gpu_milli)
        left = self._free[row, : self._count[row]].tolist()
        return _Held(task, best_fit(request, left) if task.gpus else ())

    def _direct(self, task: Task) -> int | None:
        """Return the row where the task fits with the least left over, None for none."""
        if task not in self._rows:
            self._rows[task] = self._ordered(task, np.arange(len(self._cpu)))[:30], frozenset(self._touched)
        rows, touched = self._rows[task]
        changed = self._touched | touched
        unchanged = next((row for row in rows.tolist() if row not in changed), None)
        candidates = sorted(changed) if unchanged is None else sorted({*changed, unchanged})
        best = self._ordered(task, np.array(candidates, dtype=np.int64))
        return int(best[0]) if len(best) else None

    def _ordered(self, task: Task, rows: Int64s) -> Int64s:
        """Return the rows where the task fits, the one with the least left over first."""
        free = self._free[rows]
        fits = (self._cpu[rows] >= task.cpu_milli) & (self._memory[rows] >= task.memory_mib)
        if task.gpus:
            fits &= ((free >= task.gpu_milli).sum(axis=1) >= task.gpus) & self._accepted(task)[rows]
        rows, free = rows[fits], free[fits]
        if not task.gpus:
            left = free.sum(axis=1)
        elif task.gpu_milli < WHOLE:
            left = np.where(free >= task.gpu_milli, free, 2 * WHOLE).min(axis=1)
        else:
            left = (free == WHOLE).sum(axis=1)
        found: Int64s = rows[np.lexsort((rows, self._cpu[rows], left))]
        return found

    def _accepted(self, task: Task) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        column = self._cluster.nodes.labels(GPU_MODEL)
        accepts = np.array([not task.models or model in task.models for model in column.values])
        return accepts[column.codes[: len(self._cpu)]]

    def _promising(self, task: Task, number: int) -> list[int]:
        """Return the rows where the least is in the task's way, by a rough measure."""
        rows = np.flatnonzero((self._count >= task.gpus) & (self._accepted(task) if task.gpus else True))
        way = np.maximum(task.cpu_milli - self._cpu[rows], 0) / 10
        way += np.maximum(task.memory_mib - self._memory[rows], 0) / 100
        if task.gpus:
            devices = np.arange(self._free.shape[1]) < self._count[rows, None]
            missing = np.where(devices, np.maximum(task.gpu_milli - self._free[rows], 0), 1 << 20)
            way += np.sort(missing, axis=1)[:, : task.gpus].sum(axis=1)
        found: list[int] = rows[np.argsort(way, kind="stable")[:number]].tolist()
        return found

    def _in_the_way(self, task: Task, row: int, budget: int) -> list[str]:
        """Return a few tasks without which ``task`` fits the row; none if there are more than ``budget``."""
        on_row = dict(self._on(row))
        left = self._free[row, : self._count[row]].tolist()
        cpu, memory = task.cpu_milli - int(self._cpu[row]), task.memory_mib - int(self._memory[row])
        gone: list[str] = []

        def leave(uid: str) -> None:
            nonlocal cpu, memory
            held = on_row.pop(uid)
            gone.append(uid)
            GpuTable.take(left, held.devices, -held.task.gpu_milli)
            cpu, memory = cpu - held.task.cpu_milli, memory - held.task.memory_mib

        for device in self._cheapest(task, left, on_row):
            while left[device] < task.gpu_milli and len(gone) <= budget:
                short = task.gpu_milli - left[device]
                leave(_one_of({uid: held for uid, held in on_row.items() if device in held.devices}, short))
        while (cpu > 0 or memory > 0) and on_row and len(gone) <= budget:
            enough = [
                uid for uid, held in on_row.items() if held.task.cpu_milli >= cpu and held.task.memory_mib >= memory
            ]
            if enough:
                leave(min(enough, key=lambda uid: (on_row[uid].task.total_milli, on_row[uid].task.cpu_milli, uid)))
            else:
                leave(max(on_row, key=lambda uid: (not on_row[uid].task.gpus, on_row[uid].task.cpu_milli, uid)))
        return gone if len(gone) <= budget and cpu <= 0 and memory <= 0 else []

    def _cheapest(self, task: Task, left: Sequence[int], on_row: Mapping[str, _Held]) -> list[int]:
        """Return the GPUs of a row that the task would use: those from which the least must leave."""

        def cost(device: int) -> tuple[int, int, int]:
            short = task.gpu_milli - left[device]
            if short <= 0:
                return 0, left[device], device
            there = [held.task for held in on_row.values() if device in held.devices]
            enough = [one.total_milli for one in there if one.gpu_milli >= short]
            return min(enough) if enough else sum(one.total_milli for one in there), 0, device

        return sorted(range(len(left)), key=cost)[: task.gpus]


def _one_of(held: Mapping[str, _Held], short: int) -> str:
    """Return the smallest task that frees enough, or else the largest."""
    enough = [uid for uid, one in held.items() if one.task.gpu_milli >= short]
    if enough:
        return min(enough, key=lambda uid: (held[uid].task.total_milli, -held[uid].task.cpu_milli, uid))
    return max(held, key=lambda uid: (held[uid].task.gpu_milli, uid))
