"""The options that several subcommands share, and the types of their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

if TYPE_CHECKING:
    from podium.framework.settings.feature_gates import FeatureGates


class Duration(click.ParamType[int]):
    """A duration as Go writes it, of 0 or more; a bare number counts seconds. Its value is in nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text, or fail with what is wrong with it."""
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
        """Read the text, or fail with what is wrong with it."""
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


class FeatureGatesText(click.ParamType["FeatureGates"]):
    """Feature gates as Kubernetes' commands take them: `NonPreemptingPriority=false`, with commas between several."""

    name = "feature gates"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FeatureGates:
        """Read the text, or fail with what is wrong with it."""
        from podium.api.errors import InputError
        from podium.framework.settings.feature_gates import FeatureGates, read_feature_gates

        if isinstance(value, FeatureGates):
            return value
        try:
            return read_feature_gates(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


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

feature_gates_option = click.option(
    "--feature-gates",
    metavar="GATES",
    type=FeatureGatesText(),
    default="",
    help="What is switched off: NonPreemptingPriority=false lets no preemption policy count.",
)
