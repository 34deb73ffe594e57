"""How much a simulation may take: objects, events and work, so that a small file does not exhaust the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from podium.api.errors import PodiumError
from podium.api.meta import Kubernetes
from podium.api.times import format_duration
from podium.api.workloads import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from podium.driver.call_count import CallCount
from podium.driver.component import Component
from podium.sim.history import History

_Replicated = Deployment | ReplicaSet | ReplicationController | StatefulSet


class LimitError(PodiumError):
    """A simulation has reached one of its limits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a simulation; each can be raised.

    ``objects`` is how many objects made in the run may exist at once, ``events`` how many may happen, and ``calls`` how
    often components may be called upon. An object takes some 7 kB, an event 200 bytes, a call some 10 microseconds.
    """

    objects: int = 500_000
    events: int = 5_000_000
    calls: int = 30_000_000

    @classmethod
    def raised(cls, objects: int | None, events: int | None, calls: int | None) -> Limits:
        """The usual limits with those that are given in their place. Raises LimitError for one below 1."""
        given = {"objects": objects, "events": events, "calls": calls}
        return cls(**{name: most for name, most in given.items() if most is not None})

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise LimitError(f"the limit of {field.name} is {getattr(self, field.name)}; it must be 1 or more")


class Meter(CallCount):
    """What a simulation has taken so far. Its methods raise LimitError where that is more than the limits allow."""

    def __init__(self, limits: Limits, history: History, elapsed_ns: Callable[[], int]) -> None:
        """`elapsed_ns` tells how much time has passed since the start."""
        super().__init__(limits.calls)
        self._limits = limits
        self._history = history
        self._elapsed_ns = elapsed_ns
        self._objects: set[str] = set()
        history.watch_number(self._check_all)

    def wanted(self, object_: Kubernetes) -> None:
        """An object was written that may ask for pods; more than may exist are not waited for."""
        pods = pods_wanted(object_)
        if pods > self._limits.objects:
            raise self._reached("objects", self._limits.objects, f"{object_.kind} {object_.key} wants {pods:,} pods")

    def made(self, uid: str, what: str, by: str) -> None:
        """An object was made in the run; ``what`` is its kind and key, ``by`` who made it."""
        self._objects.add(uid)
        if len(self._objects) > self._limits.objects:
            raise self._reached("objects", self._limits.objects, f"{by or 'the scenario'} makes {what}")

    def gone(self, uid: str) -> None:
        """An object is no more."""
        self._objects.discard(uid)

    def check(self, components: Sequence[Component]) -> None:
        """These components are about to be called upon: one call too many, or after one event too many."""
        limits = self._limits
        if self.calls > limits.calls:
            name = components[len(components) + limits.calls - self.calls].name
            raise self._reached("calls", limits.calls, f"{name} is called upon once more")
        if self._history.happened > limits.events:
            name = components[0].name
            raise self._reached("events", limits.events, f"there is one more event before {name} acts")

    def _check_all(self) -> None:
        self.unchecked = 0

    def _reached(self, limit: str, most: int, problem: str) -> LimitError:
        return LimitError(
            f"at +{format_duration(self._elapsed_ns())} {problem}, which is beyond the limit of {most:,} {limit}; "
            f"--max-{limit} raises it, and an earlier end (--until) may do without"
        )


def pods_wanted(object_: Kubernetes) -> int:
    """How many pods a workload asks for at once; 0 for what asks for none, or for as many as there are nodes."""
    if isinstance(object_, Job):
        most = object_.spec.parallelism
        return most if object_.spec.completions is None else min(most, object_.spec.completions)
    if isinstance(object_, _Replicated):
        return object_.spec.replicas
    return 0
