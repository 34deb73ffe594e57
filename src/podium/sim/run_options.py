"""Options and limits of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from podium.api.errors import InputError, PodiumError
from podium.api.meta import Kubernetes
from podium.api.times import format_duration, parse_nonnegative_duration, parse_time
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice
from podium.api.workloads import pods_wanted
from podium.runtime.runtime import CallCount, Component

if TYPE_CHECKING:
    from podium.controllers.scheduling.attempts import OnAttempt
    from podium.framework.settings.configuration import Configuration
    from podium.sim.history import EventHistory


class LimitError(PodiumError):
    """A simulation reached one of its limits."""


@dataclass(frozen=True, slots=True)
class SimulationLimits:
    """The limits of a simulation; each can be raised.

    ``objects`` bounds the objects created in the run that exist at once, ``events`` the events, ``calls`` the calls of
    components. An object takes about 7 kB, an event 200 bytes, a call 10 microseconds.
    """

    objects: int = 500_000
    events: int = 5_000_000
    calls: int = 30_000_000

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 1:
                raise LimitError(f"the limit of {each.name} is {getattr(self, each.name)}; it must be 1 or more")


_EVENTS_PER_CALL = 1_000
"""More events than a call of a component makes on average."""


class LimitMeter(CallCount):
    """Counts what a simulation takes. Its methods raise LimitError beyond the limits."""

    def __init__(self, limits: SimulationLimits, history: EventHistory, elapsed_ns: Callable[[], int]) -> None:
        """`elapsed_ns` returns the time since the start."""
        super().__init__(0)
        self._limits = limits
        self._history = history
        self._elapsed_ns = elapsed_ns
        self._objects: set[str] = set()

    def on_write(self, object_: Kubernetes) -> None:
        """Check the number of pods that a written object asks for."""
        pods = pods_wanted(object_)
        if pods is not None and pods > self._limits.objects:
            raise self._reached("objects", self._limits.objects, f"{object_.kind} {object_.key} wants {pods:,} pods")

    def made(self, uid: str, what: str, by: str) -> None:
        """Count a created object; ``what`` is its kind and key, ``by`` its author."""
        self._objects.add(uid)
        if len(self._objects) > self._limits.objects:
            raise self._reached("objects", self._limits.objects, f"{by or 'the scenario'} makes {what}")

    def on_delete(self, uid: str) -> None:
        """Stop counting a deleted object."""
        self._objects.discard(uid)

    def check(self, components: Sequence[Component]) -> None:
        """Check the limits before these components are called."""
        limits = self._limits
        if self.calls > limits.calls:
            name = components[len(components) + limits.calls - self.calls].name
            raise self._reached("calls", limits.calls, f"{name} would be called once more")
        left = limits.events - self._history.happened
        if left < 0:
            name = components[0].name
            raise self._reached("events", limits.events, f"one more event happened before {name} acted")
        # No need to count the events before each of the next calls.
        self.unchecked = min(limits.calls, self.calls + left // _EVENTS_PER_CALL)

    def _reached(self, limit: str, most: int, problem: str) -> LimitError:
        return LimitError(
            f"at +{format_duration(self._elapsed_ns())} {problem}, which is beyond the limit of {most:,} {limit}; "
            f"raise it with --max-{limit}, or end the run earlier with --until"
        )


Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run; times in nanoseconds.

    `start_ns` defaults to the newest time in the objects, `until_ns` to the scenario's end, `configuration` to
    kube-scheduler's default, `release` to the objects' version, `priority_cutoff` to the scenario's autoscaler. A
    configuration with extenders is refused unless `ignore_extenders`. Schedulers draw among equals by `draw_seed`
    (default `seed`); `on_attempt` is called before each attempt. A deleted pod takes `termination_ns` to end, at most
    its grace period; the default is that of a recording, else the whole period. Requests take `latency_ns`
    (`podium.sim.latencies`), drawn by `draw_seed` if set; the default is the scenario's, else `usual_latency_ns`. With
    `records_placements` the result has the reasons for placements (`podium.sim.placement_log`). `components` are
    further ones; a rescheduler replaces the scenario's. Objects that state no creation time are `assumed_age_ns` old.
    """

    seed: int = 0
    start_ns: int | None = None
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0
    latency_ns: int | None = None
    usual_latency_ns: int = 0
    termination_ns: int | None = None
    configuration: Configuration | None = None
    release: ReleaseChoice = CLUSTER_RELEASE
    limits: SimulationLimits = field(default_factory=SimulationLimits)
    ignore_extenders: bool = False
    priority_cutoff: int | None = None
    records_placements: bool = False
    draw_seed: int | None = None
    on_attempt: OnAttempt | None = None
    components: tuple[Component, ...] = ()
    assumed_age_ns: int = 0

    @property
    def scheduler_seed(self) -> int:
        """Return the seed by which schedulers draw among equals."""
        return self.seed if self.draw_seed is None else self.draw_seed


class RunArguments(TypedDict, total=False):
    """The arguments of a run, for `podium.simulate`, `podium.plan` and `podium.sweep`; durations are text or seconds.

    The run starts at `start` (RFC 3339; default: the newest time in the objects). It ends `until` after the start,
    which overrides the scenario's, or when nothing is left to do. A pod starts `start_delay` after it is bound, and a
    binding takes `bind_delay`. Requests take `latency` (`podium.sim.latencies`; default: the scenario's). A deleted pod
    takes `termination` to end, at most its grace period (default: that of a recording, or the whole period). The
    scenario's autoscaler ignores pods below `priority_cutoff`.
    """

    until: Duration | None
    start: str | None
    start_delay: Duration
    bind_delay: Duration
    latency: Duration | None
    termination: Duration | None
    limits: SimulationLimits | None
    priority_cutoff: int | None


class SeededRunArguments(RunArguments, total=False):
    """The arguments of one run; `seed` chooses uids, and between equal nodes."""

    seed: int


DURATIONS = ("until", "start_delay", "bind_delay", "latency", "termination")
"""The arguments that are durations; `RunOptions` has them in nanoseconds."""


def run_options(**given: Unpack[SeededRunArguments]) -> RunOptions:
    """Return the options of a run. Raises InputError for invalid times and durations."""
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in (name for name in DURATIONS if name in found):
        found[f"{name}_ns"] = duration_ns_of(name, found.pop(name))
    if "start" in found:
        try:
            found["start_ns"] = parse_time(found.pop("start"))
        except ValueError as error:
            raise InputError(f"start: {error}") from None
    return RunOptions(**found)


def duration_ns_of(name: str, duration: Duration) -> int:
    """Return a duration in nanoseconds. Raises InputError with the option's name if it is invalid."""
    try:
        return parse_nonnegative_duration(duration)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
