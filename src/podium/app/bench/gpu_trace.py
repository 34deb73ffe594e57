"""A made workload of the shape of the openb trace: GPU fleets, and jobs that arrive, run for a while, and end.

The fleets, the sizes of pods and their shares are the trace's most frequent ones, rounded; a median run takes eight
minutes and the longest more than a day. Arrivals are a Poisson process.
"""

from __future__ import annotations

import math
from bisect import bisect
from itertools import accumulate
from random import Random

from podium.api.meta import Raw
from podium.machines.kubelets.pod_annotations import DURATION
from podium.sim.traces.openb import GPU_MILLI, GPU_MODEL, PRIORITIES
from podium.sim.traces.trace import Trace

# Share of the nodes; cores, GiB of memory, GPUs and their model.
_FLEETS = (
    (36, 96, 384, 8, "G2"),
    (25, 104, 512, 2, "T4"),
    (11, 32, 256, 0, ""),
    (8, 96, 512, 0, ""),
    (7, 16, 120, 2, "P100"),
    (5, 64, 256, 2, "P100"),
    (4, 32, 128, 4, "V100M16"),
    (3, 128, 768, 8, "G3"),
    (1, 8, 32, 1, "V100M16"),
)
# Share of the pods; cpu in milli, MiB of memory, thousandths of a GPU.
_PODS = (
    (18, 3152, 5600, 810),
    (15, 11300, 49152, 1000),
    (10, 11400, 48128, 1000),
    (9, 12500, 57344, 0),
    (8, 3152, 5600, 1000),
    (7, 11908, 47104, 470),
    (6, 8000, 30517, 470),
    (6, 32000, 49152, 0),
    (5, 18708, 64512, 1000),
    (4, 11908, 47104, 650),
    (3, 9810, 41560, 1000),
    (3, 8000, 30517, 0),
    (3, 4000, 22888, 320),
    (2, 24200, 93184, 1000),
    (1, 88000, 327680, 8000),
)
_CLASSES = {"production": 57, "best-effort": 41, "mid": 2}
_GAP_SECONDS = 30
_MEDIAN_RUN_SECONDS = 480
_SPREAD_OF_RUNS = 1.7
_LONGEST_RUN_SECONDS = 100_000
_PODS_PER_NODE = 110


def make_trace(nodes: int, pods: int, seed: int = 0) -> Trace:
    """So many nodes, and pods that come; the same for the same seed."""
    chance = Random(seed)  # noqa: S311 - chance that repeats is what is wanted
    classes = [_priority_class(name) for name in PRIORITIES]
    shares = list(accumulate(share for share, *_ in _FLEETS))
    fleets = [bisect(shares, (index + 0.5) / nodes * shares[-1]) for index in range(nodes)]
    arrivals, time = [], 0.0
    for index in range(pods):
        time += chance.expovariate(1 / _GAP_SECONDS)
        arrivals.append((int(time), _pod(index, chance)))
    return Trace("gpu-trace", [*classes, *(_node(index, fleet) for index, fleet in enumerate(fleets))], arrivals)


def _priority_class(name: str) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": PRIORITIES[name],
    }


def _node(index: int, fleet: int) -> Raw:
    _, cores, memory_gib, gpus, model = _FLEETS[fleet]
    name = f"node-{index:05d}"
    labels = {"kubernetes.io/hostname": name}
    amounts: Raw = {"cpu": str(cores), "memory": f"{memory_gib}Gi", "pods": _PODS_PER_NODE}
    if gpus:
        labels[GPU_MODEL] = model
        amounts[GPU_MILLI] = gpus * 1000
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(index: int, chance: Random) -> Raw:
    ((_, cpu_milli, memory_mib, gpu_milli),) = chance.choices(_PODS, [share for share, *_ in _PODS])
    (priority_class,) = chance.choices(list(_CLASSES), list(_CLASSES.values()))
    run = chance.lognormvariate(math.log(_MEDIAN_RUN_SECONDS), _SPREAD_OF_RUNS)
    requests: Raw = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    resources: Raw = {"requests": requests}
    if gpu_milli:
        requests[GPU_MILLI] = gpu_milli
        resources["limits"] = {GPU_MILLI: gpu_milli}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{index:06d}",
            "labels": {"app": priority_class},
            "annotations": {DURATION: f"{min(int(run) + 1, _LONGEST_RUN_SECONDS)}s"},
        },
        "spec": {
            "priorityClassName": priority_class,
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "job", "resources": resources}],
        },
    }
