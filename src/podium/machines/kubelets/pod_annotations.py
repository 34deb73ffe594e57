"""What pods say in their annotations about how they will run, for kubelets that run nothing.

What runs inside a pod is not simulated; only when it starts, is ready, fails and ends, and how much memory and cpu it
uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.pod import Pod
from podium.api.quantity import milli_value, whole_value
from podium.api.resources import MEMORY
from podium.api.times import parse_duration

DURATION = "podium.dev/duration"
"""How long the pod runs after its containers started, until they exit by themselves, with success.

The pod has then succeeded, whatever its restart policy.
"""

CRASH_AFTER = "podium.dev/crash-after"
"""How long after each start the containers exit with failure.

The restart policies Always and OnFailure have them started again after a back-off; with Never the pod fails.
"""

TERMINATION = "podium.dev/termination"
"""How long the pod takes to end when it is deleted, its grace period at most; or `never`.

`never` is a container runtime that hangs: the pod ends when it is deleted by force (with no grace period), or when its
node's machine stops.
"""

READY_AFTER = "podium.dev/ready-after"
"""How long after each start the pod becomes ready; at once where it is not given."""

MEMORY_USAGE = "podium.dev/memory-usage"
"""How much memory the pod uses while it runs, as a quantity; where it is not given, none that matters."""

CPU_USAGE = "podium.dev/cpu-usage"
"""How much cpu the pod would use if it were alone, as a quantity; where it is not given, as much as it requests."""

READ = (DURATION, CRASH_AFTER, TERMINATION, READY_AFTER, MEMORY_USAGE, CPU_USAGE)
"""All of them."""

_NAMES = frozenset(READ)
_NEVER = "never"


def problems(annotations: Mapping[str, str]) -> list[str]:
    """What is wrong with the annotations of a pod, which is then taken as if it did not say so."""
    found = []
    for name in READ:
        if name not in annotations:
            continue
        try:
            _read_strictly(annotations, name)
        except ValueError as error:
            found.append(f"metadata.annotations[{name}]: {error}")
    return found


def _read_strictly(annotations: Mapping[str, str], name: str) -> None:
    if name == MEMORY_USAGE:
        memory_usage(annotations)
    elif name == CPU_USAGE:
        cpu_usage(annotations)
    elif name == TERMINATION:
        termination_ns(annotations)
    else:
        duration_ns(annotations, name)


def readable(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """The annotations without those of a pod's own that cannot be read."""
    if _NAMES.isdisjoint(annotations) or not problems(annotations):
        return annotations
    wrong = {name for name in READ if name in annotations and problems({name: annotations[name]})}
    return {name: value for name, value in annotations.items() if name not in wrong}


def duration_ns(annotations: Mapping[str, str], name: str) -> int | None:
    """The annotation's duration; None where it is not given. Raises ValueError for what is none."""
    text = annotations.get(name)
    if text is None:
        return None
    duration = parse_duration(text)
    if duration < 0:
        raise ValueError(f'"{text}" is negative; a duration is 0s or more')
    return duration


def never_terminates(annotations: Mapping[str, str]) -> bool:
    """Whether the pod's containers cannot be killed."""
    return annotations.get(TERMINATION) == _NEVER


def termination_ns(annotations: Mapping[str, str], default_ns: int | None = None) -> int | None:
    """How long the pod takes to end, ``default_ns`` where it is not said. Raises ValueError for what is no duration.

    None stands for as long as it may take, and for one that is said to take for ever.
    """
    if never_terminates(annotations):
        return None
    return default_ns if TERMINATION not in annotations else duration_ns(annotations, TERMINATION)


def memory_usage(annotations: Mapping[str, str]) -> int:
    """The bytes that the pod uses; 0 where it says nothing. Raises ValueError for what is no amount of memory."""
    return _amount(annotations, MEMORY_USAGE, whole_value, "memory") or 0


def cpu_usage(annotations: Mapping[str, str]) -> int | None:
    """The thousandths of a cpu that the pod wants; None where it says nothing. Raises ValueError for no amount."""
    return _amount(annotations, CPU_USAGE, milli_value, "cpu")


def _amount(annotations: Mapping[str, str], name: str, read: Callable[[str], int], noun: str) -> int | None:
    text = annotations.get(name)
    amount = None if text is None else read(text)
    if amount is not None and amount < 0:
        raise ValueError(f'"{text}" is negative; an amount of {noun} is 0 or more')
    return amount


def memory_limit_bytes(pod: Pod) -> int | None:
    """How much memory a pod may use before a container is killed for it; None for any amount.

    What it uses is used by its first container. A limit of the whole pod holds as well.
    """
    limits = [container.resources.limits for container in pod.spec.containers[:1]]
    if pod.spec.resources is not None:
        limits.append(pod.spec.resources.limits)
    return min(
        (whole_value(limit.get(MEMORY, 0)) for limit in limits if whole_value(limit.get(MEMORY, 0))), default=None
    )
