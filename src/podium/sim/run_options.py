"""What a run is told beside its objects."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.errors import InputError
from podium.api.times import parse_duration, parse_time
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.scheduling.attempts import OnAttempt
from podium.sim.limits import Limits

Duration = str | int | float
"""Text such as "90s" or "1h30m", or seconds."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run is told beside its objects; times in nanoseconds.

    `start_ns` None stands for the newest time in the objects, `until_ns` None for the scenario's end, `configuration`
    None for that of a default kube-scheduler, and `priority_cutoff` None for that of the scenario's autoscaler. A
    configuration with extenders is refused unless they are to be ignored. Schedulers draw among equals by `draw_seed`,
    by `seed` where that is None; `on_attempt` is shown each pod right before their attempt at it. A deleted pod takes
    `termination_ns` to end, at most its grace period; None stands for what a recording among the objects says, and for
    all of that. With `tells_placements` the result says why pods are where they are (`podium.sim.placement_log`).
    """

    seed: int = 0
    start_ns: int | None = None
    until_ns: int | None = None
    start_delay_ns: int = 0
    bind_delay_ns: int = 0
    termination_ns: int | None = None
    configuration: Configuration | None = None
    feature_gates: FeatureGates = field(default_factory=FeatureGates)
    limits: Limits = field(default_factory=Limits)
    ignore_extenders: bool = False
    priority_cutoff: int | None = None
    tells_placements: bool = False
    draw_seed: int | None = None
    on_attempt: OnAttempt | None = None

    @property
    def scheduler_seed(self) -> int:
        """By what schedulers draw among equals."""
        return self.seed if self.draw_seed is None else self.draw_seed


def run_options(  # noqa: PLR0913 - each is an option that people set on its own
    *,
    until: Duration | None = None,
    seed: int = 0,
    start: str | None = None,
    start_delay: Duration = 0,
    bind_delay: Duration = 0,
    termination: Duration | None = None,
    limits: Limits | None = None,
    priority_cutoff: int | None = None,
) -> RunOptions:
    """The options of a run as people write them: see `simulate`. Raises InputError for what is no time or duration."""
    return RunOptions(
        seed=seed,
        start_ns=None if start is None else _start(start),
        until_ns=None if until is None else duration_ns_of("until", until),
        start_delay_ns=duration_ns_of("start_delay", start_delay),
        bind_delay_ns=duration_ns_of("bind_delay", bind_delay),
        termination_ns=None if termination is None else duration_ns_of("termination", termination),
        limits=limits or Limits(),
        priority_cutoff=priority_cutoff,
    )


def duration_ns_of(name: str, duration: Duration) -> int:
    """A duration as people write it. Raises InputError, with the name of what it is for, for one that is none."""
    try:
        duration_ns = parse_duration(duration)
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if duration_ns < 0:
        raise InputError(f"{name}: is negative; write 0s or more")
    return duration_ns


def _start(start: str) -> int:
    try:
        return parse_time(start)
    except ValueError as error:
        raise InputError(f"start: {error}") from None
