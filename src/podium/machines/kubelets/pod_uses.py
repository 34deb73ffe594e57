"""What the pods of a simulated node use.

A container uses what it requests, unless the pod says how much it uses (`podium.dev/memory-usage`,
`podium.dev/cpu-usage`). Of the node's cpu pods get no more than there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podium.api.node import Node
from podium.api.pod import Pod, Quantity
from podium.api.quantity import milli_value, whole_value
from podium.api.resource_requests import node_allocatable, pod_requests, requests_of
from podium.api.resources import CPU, MEMORY
from podium.api.use import Use
from podium.decide.cpu_sharing import CPUWant, cpu_pressure, shared_cpu
from podium.machines.kubelets.pod_annotations import CPU_USAGE, MEMORY_USAGE, cpu_usage, memory_usage, readable


@dataclass(frozen=True, slots=True)
class PodUse:
    """What a pod uses, and the share of the time in which it has no cpu though it could run."""

    use: Use
    cpu_pressure: float


def says_use(pod: Pod) -> bool:
    """Whether the pod says what it uses."""
    annotations = pod.metadata.annotations
    return CPU_USAGE in annotations or MEMORY_USAGE in annotations


def is_running(pod: Pod) -> bool:
    """Whether the pod uses anything: it runs on a node."""
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def pod_uses(node: Node | None, pods: Iterable[Pod]) -> dict[str, PodUse]:
    """What those pods use that run, by uid; ``pods`` are all that are on the node, of which None offers enough."""
    running = [pod for pod in pods if is_running(pod)]
    wants = [cpu_want(pod) for pod in running]
    usable = [want.usable_milli for want in wants]
    got = usable if node is None else shared_cpu(wants, node_allocatable(node.status).get(CPU, 0))
    return {
        uid_of(pod): PodUse(Use(cpu, memory_used(pod)), cpu_pressure(want, cpu))
        for pod, want, cpu in zip(running, wants, got, strict=True)
    }


def uid_of(pod: Pod) -> str:
    """The uid of a pod; one without is known by its key."""
    return pod.metadata.uid or pod.key


def cpu_want(pod: Pod) -> CPUWant:
    """How much cpu a pod would use if it were alone."""
    said = cpu_usage(readable(pod.metadata.annotations))
    if said is None:
        said = sum(_milli(requests_of(container.resources)) for container in pod.spec.containers)
    return CPUWant(said, pod_requests(pod.spec).get(CPU, 0), limit_milli(pod))


def memory_used(pod: Pod) -> int:
    """The bytes that a pod uses."""
    annotations = readable(pod.metadata.annotations)
    if MEMORY_USAGE in annotations:
        return memory_usage(annotations)
    return sum(_amount(requests_of(container.resources)) for container in pod.spec.containers)


def limit_milli(pod: Pod) -> int | None:
    """How much cpu a pod may use; None for any amount: where some container has no limit, and the pod has none."""
    limits = [container.resources.limits for container in pod.spec.containers]
    if pod.spec.resources is not None and CPU in pod.spec.resources.limits:
        limits = [pod.spec.resources.limits]
    amounts = [_milli(limit) for limit in limits]
    return sum(amounts) if amounts and all(amounts) else None


def _milli(amounts: Mapping[str, Quantity]) -> int:
    return milli_value(amounts.get(CPU, 0))


def _amount(amounts: Mapping[str, Quantity]) -> int:
    return whole_value(amounts.get(MEMORY, 0))
