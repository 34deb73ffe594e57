"""The options that several subcommands share, the types of their values, and the options of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

if TYPE_CHECKING:
    from podium.api.versions.choice import ReleaseChoice
    from podium.sim.run_options import RunOptions

Answer = TypeVar("Answer")


class Duration(click.ParamType[int]):
    """A duration as Go writes it, of 0 or more; a bare number counts seconds. Its value is in nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from podium.api.times import parse_duration

        if isinstance(value, int):
            return value
        try:
            duration_ns = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if duration_ns < 0:
            self.fail(f"{value} is negative; write 0s or more", param, ctx)
        return duration_ns


class Time(click.ParamType[int]):
    """A time as in RFC 3339. Its value is in nanoseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from podium.api.times import parse_time

        if isinstance(value, int):
            return value
        try:
            return parse_time(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


ledger_age_option = click.option(
    "--ledger-age",
    type=Duration(),
    default="2160h",
    show_default=True,
    metavar="DURATION",
    help="For how long disruptions are kept there; 0: however old they are.",
)


validate_option = click.option(
    "--validate",
    "validation",
    type=click.Choice(["strict", "warn", "ignore"]),
    help="What becomes of unknown fields, and of what kube-apiserver would refuse: errors, warnings, or nothing. "
    "Without it, unknown fields are errors in pods and templates that no cluster has stored, and all else is told.",
)


HTML = "html"
_FORMS = ("text", "json", "yaml")


def _readable(_: click.Context, __: click.Parameter, form: str) -> str:
    """The form, unless it is a picture for nobody but a terminal: that is told before anything takes its time."""
    if form == HTML and sys.stdout.isatty():
        raise click.UsageError("-o html is for a browser, not for a terminal; put > answer.html behind the command")
    return form


def output_option_of(
    forms: tuple[str, ...], what: str = "How the answer is printed."
) -> Callable[[Decorated], Decorated]:
    """The option that says in which of these forms the answer is printed, as text without it."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default="text",
        show_default=True,
        callback=_readable,
        help=what,
    )


output_option = output_option_of(_FORMS)

picture_output_option = output_option_of((*_FORMS, HTML))
"""That of a command whose answer can be seen as a picture, too."""

config_option = click.option(
    "--config", metavar="FILE", help="A KubeSchedulerConfiguration; without it, that of a default kube-scheduler."
)

ignore_extenders_option = click.option(
    "--ignore-extenders",
    is_flag=True,
    help="Decide without the extenders of the configuration, which Podium does not call.",
)


def release_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add the version that decides and its feature gates; the command gets them as ``release``."""

    @wraps(command)
    def with_release(*arguments: Any, kubernetes_version: str, feature_gates: str, **given: Any) -> Answer:
        return command(*arguments, release=_choice(kubernetes_version, feature_gates), **given)

    decorated = click.option(
        "--feature-gates",
        metavar="GATES",
        default="",
        help="Feature gates of that version, such as NodeDeclaredFeatures=false. NonPreemptingPriority=false lets no "
        "preemption policy count.",
    )(with_release)
    return click.option(
        "--kubernetes-version",
        metavar="VERSION",
        default="",
        help="Decide as kube-scheduler of this version, 1.31 to 1.37, or a patch level such as 1.34.1; without it, of "
        "the cluster's version, or 1.36.",
    )(decorated)


def _choice(version: str, gates: str) -> ReleaseChoice:
    from podium.api.errors import InputError
    from podium.api.versions.choice import read_choice

    try:
        return read_choice(version, gates)
    except InputError as error:
        raise click.UsageError(str(error)) from None


_TIMES: dict[str, tuple[click.ParamType[int], int | None, str]] = {
    "until": (Duration(), None, "When to stop, after the start; not the scenario's own end."),
    "start": (Time(), None, "The time of the start; without it, the newest time in the files."),
    "start-delay": (Duration(), 0, "How long a bound pod takes to start."),
    "bind-delay": (Duration(), 0, "How long a binding takes."),
    "latency": (
        Duration(),
        None,
        "How long a scheduler's request takes; a controller's takes twice as long; not the scenario's own. 5ms if "
        "neither says so, and 0 for plans.",
    ),
    "termination": (
        Duration(),
        None,
        "How long a deleted pod takes to end, at most its grace period; without it, as long as in the recording that "
        "is played, or all of that.",
    ),
}
"""The times of a run (`podium.sim.run_options`): their types, defaults and help texts."""

_LIMITS = {
    "objects": "How many objects made in the run may exist at once",
    "events": "How many events may happen",
    "calls": "How often components may be called upon",
}
"""The limits of a simulation (`podium.sim.run_options`)."""

_RUN_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    *(
        click.option(f"--{name}", f"{name.replace('-', '_')}_ns", type=type_, default=default, help=what)
        for name, (type_, default, what) in _TIMES.items()
    ),
    ignore_extenders_option,
    release_options,
    *(
        click.option(f"--max-{name}", type=click.IntRange(min=1), metavar="N", help=f"{what}, if not as usual.")
        for name, what in _LIMITS.items()
    ),
)


def run_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add the options of a run; the command gets them as ``options``."""

    @wraps(command)
    def with_options(*arguments: Any, **given: Any) -> Answer:
        from podium.sim.run_options import RunOptions, SimulationLimits

        times = [f"{name.replace('-', '_')}_ns" for name in _TIMES]
        found = {name: given.pop(name) for name in (*times, "release", "ignore_extenders")}
        limits = SimulationLimits.raised(**{name: given.pop(f"max_{name}") for name in _LIMITS})
        return command(*arguments, options=RunOptions(**found, limits=limits), **given)

    decorated: Callable[..., Answer] = with_options
    for option in reversed(_RUN_OPTIONS):
        decorated = option(decorated)
    return decorated


def single_run_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Add the options of a command that plays one run: `run_options`, its seed and its scheduler's configuration."""

    @wraps(command)
    def with_options(*arguments: Any, options: RunOptions, seed: int, config: str | None, **given: Any) -> Answer:
        from podium.framework.settings.configuration import load_configuration

        configuration = load_configuration(config) if config else None
        return command(*arguments, options=replace(options, seed=seed, configuration=configuration), **given)

    decorated = config_option(run_options(with_options))
    return click.option(
        "--seed", type=int, default=0, show_default=True, help="Chooses uids, and between equal nodes."
    )(decorated)
