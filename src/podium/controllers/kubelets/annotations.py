"""The annotations of nodes and pods that define simulated behavior, and the resulting use of memory and cpu."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from podium.api.errors import InputError
from podium.api.node import MAINTENANCE_TIME, Node, maintenance_problem
from podium.api.pod import Pod, Quantity
from podium.api.quantity import CPU, MEMORY, milli_value, whole_value
from podium.api.resource_requests import node_allocatable, pod_requests, requests_of
from podium.api.selectors import EVERYTHING, Selector, parse_label_selector
from podium.api.times import parse_duration
from podium.api.use import Use
from podium.decide.kubelet import CPUWant, cpu_pressure, shared_cpu

TROUBLE = "podium.dev/trouble"
"""The annotation of a node on which containers fail: how long after each start, and of which pods.

`20s` is for all pods, `20s app=web` for those that a label selector matches; entries are separated by `;`. With `reject
20s` or `reject 20s app=web`, the kubelet rejects pods so long after their arrival.
"""

_REJECT = "reject "
_MOST = 100
_KEPT = 1_024


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault: containers of the selected pods fail so long after each start, or the pods are rejected."""

    after_ns: int
    pods: Selector = EVERYTHING
    is_rejection: bool = False


def read_trouble(text: str) -> tuple[Trouble, ...]:
    """Parse the annotation. Raises ValueError if it is invalid."""
    parts = text.split(";", _MOST)
    if len(parts) > _MOST:
        raise ValueError(f"more than {_MOST} kinds of trouble are too much for a node")
    troubles = []
    for part in map(str.strip, parts):
        is_rejection = part.startswith(_REJECT)
        duration, _, selector = part.removeprefix(_REJECT).strip().partition(" ")
        if not duration:
            raise ValueError('a time is missing; write it as in "20s app=web"')
        after_ns = _duration_ns(duration)
        if is_rejection and not after_ns:
            raise ValueError("pods that are turned away at once would come back at the same instant; 1s is long enough")
        try:
            troubles.append(Trouble(after_ns, parse_label_selector(selector.strip()), is_rejection))
        except InputError as error:
            raise ValueError(error.problem) from None
    return tuple(troubles)


def trouble_problem(annotations: Mapping[str, str]) -> str:
    """Return what is wrong with a node's annotation, which is then ignored; "" if nothing is."""
    if TROUBLE not in annotations:
        return ""
    try:
        read_trouble(annotations[TROUBLE])
    except ValueError as error:
        return str(error)
    return ""


def trouble_after_ns(annotations: Mapping[str, str], pod: Pod, *, is_rejection: bool = False) -> int | None:
    """Return how long after its start a pod fails on a node with these annotations, or None.

    With ``is_rejection``, how long after its arrival it is rejected.
    """
    text = annotations.get(TROUBLE)
    if text is None:
        return None
    of_kind = (each for each in _known_troubles(text) if each.is_rejection is is_rejection)
    return min((each.after_ns for each in of_kind if each.pods.matches(pod.metadata.labels)), default=None)


@lru_cache(maxsize=_KEPT)
def _known_troubles(text: str) -> tuple[Trouble, ...]:
    try:
        return read_trouble(text)
    except ValueError:
        return ()


def node_problems(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the annotations of a node, by name; invalid ones are ignored."""
    found = {MAINTENANCE_TIME: maintenance_problem(annotations), TROUBLE: trouble_problem(annotations)}
    return {name: problem for name, problem in found.items() if problem}


DURATION = "podium.dev/duration"
"""How long after the start the containers exit with success, whatever the restart policy."""

CRASH_AFTER = "podium.dev/crash-after"
"""How long after each start the containers fail. With restart policy Never the pod fails."""

TERMINATION = "podium.dev/termination"
"""How long a deleted pod takes to end, at most its grace period; or `never`.

With `never`, a pod ends only by forced deletion, or when its node's machine stops.
"""

READY_AFTER = "podium.dev/ready-after"
"""How long after each start the pod becomes ready; by default at once."""

MEMORY_USAGE = "podium.dev/memory-usage"
"""The memory that the pod uses while it runs, as a quantity."""

CPU_USAGE = "podium.dev/cpu-usage"
"""The cpu that the pod would use if it were alone, as a quantity; by default its request."""

NEVER = "never"


def _duration_ns(text: str) -> int:
    duration = parse_duration(text)
    if duration < 0:
        raise ValueError(f'"{text}" is negative; a duration is 0s or more')
    return duration


def _amount(text: str, read: Callable[[str], int], noun: str) -> int:
    amount = read(text)
    if amount < 0:
        raise ValueError(f'"{text}" is negative; an amount of {noun} is 0 or more')
    return amount


READERS: Mapping[str, Callable[[str], int | None]] = {
    DURATION: _duration_ns,
    CRASH_AFTER: _duration_ns,
    TERMINATION: lambda text: None if text == NEVER else _duration_ns(text),
    READY_AFTER: _duration_ns,
    MEMORY_USAGE: lambda text: _amount(text, whole_value, "memory"),
    CPU_USAGE: lambda text: _amount(text, milli_value, "cpu"),
}
"""The reader of each of these annotations; it raises ValueError for an invalid text."""


def pod_problems(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with the annotations of a pod, by name; invalid ones are ignored."""
    found = {}
    for name, read in READERS.items():
        try:
            if name in annotations:
                read(annotations[name])
        except ValueError as error:
            found[name] = str(error)
    return found


def stated(annotations: Mapping[str, str], name: str) -> int | None:
    """Return the nanoseconds, bytes or milli of cpu in an annotation; None if it is missing, invalid, or `never`."""
    try:
        return READERS[name](annotations[name]) if name in annotations else None
    except ValueError:
        return None


def memory_limit_bytes(pod: Pod) -> int | None:
    """Return the memory limit of a pod; None without one.

    All memory is used by its first container. The limit of the whole pod applies, too.
    """
    limits = [container.resources.limits for container in pod.spec.containers[:1]]
    if pod.spec.resources is not None:
        limits.append(pod.spec.resources.limits)
    amounts = (whole_value(limit.get(MEMORY, 0)) for limit in limits)
    return min(filter(None, amounts), default=None)


@dataclass(frozen=True, slots=True)
class PodUse:
    """The use of a pod, and the share of time in which it lacks cpu."""

    use: Use
    cpu_pressure: float


def says_use(pod: Pod) -> bool:
    """Return whether the pod has annotations about its use."""
    annotations = pod.metadata.annotations
    return CPU_USAGE in annotations or MEMORY_USAGE in annotations


def is_running(pod: Pod) -> bool:
    """Return whether the pod runs on a node, and so uses resources."""
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def pod_uses(node: Node | None, pods: Iterable[Pod]) -> dict[str, PodUse]:
    """Return the use of the running pods by uid; ``pods`` are all on the node. Without a node, cpu is unlimited."""
    running = [pod for pod in pods if is_running(pod)]
    wants = [cpu_want(pod) for pod in running]
    usable = [want.usable_milli for want in wants]
    got = usable if node is None else shared_cpu(wants, node_allocatable(node.status).get(CPU, 0))
    return {
        uid_of(pod): PodUse(Use(cpu, memory_used(pod)), cpu_pressure(want, cpu))
        for pod, want, cpu in zip(running, wants, got, strict=True)
    }


def uid_of(pod: Pod) -> str:
    """Return the uid of a pod, or its key without one."""
    return pod.metadata.uid or pod.key


def cpu_want(pod: Pod) -> CPUWant:
    """Return the cpu that a pod would use if it were alone."""
    said = stated(pod.metadata.annotations, CPU_USAGE)
    if said is None:
        said = sum(_cpu_milli(requests_of(container.resources)) for container in pod.spec.containers)
    return CPUWant(said, pod_requests(pod.spec).get(CPU, 0), limit_milli(pod))


def memory_used(pod: Pod) -> int:
    """Return the bytes that a pod uses."""
    said = stated(pod.metadata.annotations, MEMORY_USAGE)
    if said is not None:
        return said
    return sum(whole_value(requests_of(container.resources).get(MEMORY, 0)) for container in pod.spec.containers)


def limit_milli(pod: Pod) -> int | None:
    """Return the cpu limit of a pod; None if it or a container has none."""
    limits = [container.resources.limits for container in pod.spec.containers]
    if pod.spec.resources is not None and CPU in pod.spec.resources.limits:
        limits = [pod.spec.resources.limits]
    amounts = [_cpu_milli(limit) for limit in limits]
    return sum(amounts) if amounts and all(amounts) else None


def _cpu_milli(amounts: Mapping[str, Quantity]) -> int:
    return milli_value(amounts.get(CPU, 0))
