"""A trace whose GPUs are devices (Dynamic Resource Allocation), not one sum for each node.

Each GPU is a device that several pods may share, with a capacity of 1000; who wants a share claims so much of one, and
who wants whole ones claims all of as many. So a share has to fit into what one GPU has left, as it has in truth.
"""

from __future__ import annotations

from dataclasses import replace

from podium.api.meta import Raw
from podium.sim.traces.openb import GPU_MILLI, GPU_MODEL, MILLI_PER_GPU
from podium.sim.traces.trace import Trace

DRIVER = "gpu.podium.dev"
"""The driver of the devices."""

DEVICE_CLASS = "gpu"
"""The class of all of them."""

_CAPACITY = "milli"
_CLAIM = "gpu"


def with_devices(trace: Trace) -> Trace:
    """The same trace with ResourceSlices, a DeviceClass, and claims from one template for each size."""
    objects: list[Raw] = []
    slices: list[Raw] = []
    for raw in trace.objects:
        gpus = raw["status"]["allocatable"].get(GPU_MILLI, 0) if raw["kind"] == "Node" else 0
        if gpus:
            slices.append(_slice(raw, gpus // MILLI_PER_GPU))
        objects.append(_plain_node(raw) if gpus else raw)
    arrivals = [(time, _claiming(raw)) for time, raw in trace.arrivals]
    sizes = sorted({_asked(raw) for _, raw in trace.arrivals} - {0})
    return replace(trace, objects=[*objects, _class(), *slices, *map(_template, sizes)], arrivals=arrivals)


def _plain_node(node: Raw) -> Raw:
    allocatable = {name: amount for name, amount in node["status"]["allocatable"].items() if name != GPU_MILLI}
    return {**node, "status": {"capacity": allocatable, "allocatable": allocatable}}


def _slice(node: Raw, gpus: int) -> Raw:
    name = node["metadata"]["name"]
    model = node["metadata"]["labels"].get(GPU_MODEL, "")
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": model}},
            "capacity": {_CAPACITY: {"value": str(MILLI_PER_GPU)}},
            "allowMultipleAllocations": True,
        }
        for number in range(gpus)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _class() -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


def _template(milli: int) -> Raw:
    """What a pod claims that asks for so much: a share of one device, or all of several."""
    exactly = {
        "deviceClassName": DEVICE_CLASS,
        "count": max(1, milli // MILLI_PER_GPU),
        "capacity": {"requests": {_CAPACITY: str(min(milli, MILLI_PER_GPU))}},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": _template_name(milli), "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": _CLAIM, "exactly": exactly}]}}},
    }


def _template_name(milli: int) -> str:
    return f"gpu-{milli}m" if milli < MILLI_PER_GPU else f"gpus-{milli // MILLI_PER_GPU}"


def _asked(pod: Raw) -> int:
    """The thousandths of a GPU that a pod asks for."""
    (container,) = pod["spec"]["containers"]
    asked: int = container["resources"]["requests"].get(GPU_MILLI, 0)
    return asked


def _claiming(pod: Raw) -> Raw:
    """The pod with a claim for what it asked of the sum."""
    milli = _asked(pod)
    if not milli:
        return pod
    (container,) = pod["spec"]["containers"]
    resources = {}
    for part, amounts in container["resources"].items():
        left = {name: amount for name, amount in amounts.items() if name != GPU_MILLI}
        if left:
            resources[part] = left
    claimed = {**container, "resources": {**resources, "claims": [{"name": _CLAIM}]}}
    claims = [{"name": _CLAIM, "resourceClaimTemplateName": _template_name(milli)}]
    return {**pod, "spec": {**pod["spec"], "containers": [claimed], "resourceClaims": claims}}
