"""The options of the commands that play a cluster in virtual time, which get them as one `RunOptions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.options import (
    Duration,
    Time,
    config_option,
    feature_gates_option,
    ignore_extenders_option,
)

if TYPE_CHECKING:
    from podium.sim.run_options import RunOptions

Answer = TypeVar("Answer")

_TIMES = (
    click.option("--until", type=Duration(), help="When to stop, after the start; not the scenario's own end."),
    click.option("--start", type=Time(), help="The time of the start; without it, the newest time in the files."),
    click.option("--start-delay", type=Duration(), default=0, help="How long a bound pod takes to start."),
    click.option("--bind-delay", type=Duration(), default=0, help="How long a binding takes."),
    click.option(
        "--termination",
        type=Duration(),
        help="How long a deleted pod takes to end, at most its grace period; without it, as long as in the "
        "recording that is played, or all of that.",
    ),
)
# By its name, each limit of a simulation (`podium.sim.limits`).
_LIMITS = {
    "objects": "How many objects made in the run may exist at once",
    "events": "How many events may happen",
    "calls": "How often components may be called upon",
}


def run_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """When a run starts and stops, what takes how long in it, its feature gates and limits, as ``options``."""

    @wraps(command)
    def with_options(*arguments: Any, **given: Any) -> Answer:
        from podium.sim.limits import Limits
        from podium.sim.run_options import RunOptions

        options = RunOptions(
            start_ns=given.pop("start"),
            until_ns=given.pop("until"),
            start_delay_ns=given.pop("start_delay"),
            bind_delay_ns=given.pop("bind_delay"),
            termination_ns=given.pop("termination"),
            feature_gates=given.pop("feature_gates"),
            limits=Limits.raised(**{name: given.pop(f"max_{name}") for name in _LIMITS}),
            ignore_extenders=given.pop("ignore_extenders"),
        )
        return command(*arguments, options=options, **given)

    decorated: Callable[..., Answer] = with_options
    limits = (
        click.option(f"--max-{name}", type=click.IntRange(min=1), metavar="N", help=f"{what}, if not as usual.")
        for name, what in _LIMITS.items()
    )
    for option in reversed((*_TIMES, ignore_extenders_option, feature_gates_option, *limits)):
        decorated = option(decorated)
    return decorated


def single_run_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """As `run_options`, of a command that plays one run: its seed and its scheduler's configuration as well."""

    @wraps(command)
    def with_options(*arguments: Any, options: RunOptions, seed: int, config: str | None, **given: Any) -> Answer:
        from podium.framework.settings.configuration import load_configuration

        configuration = load_configuration(config) if config else None
        return command(*arguments, options=replace(options, seed=seed, configuration=configuration), **given)

    decorated = config_option(run_options(with_options))
    return click.option(
        "--seed", type=int, default=0, show_default=True, help="Chooses uids, and between equal nodes."
    )(decorated)
