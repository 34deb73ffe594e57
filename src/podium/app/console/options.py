"""The options that several subcommands share: types, sources of objects, and the options of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from podium.api.errors import InputError
from podium.app.console.command import KUBECTL_PLUGIN, option
from podium.app.using import client, completion

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

if TYPE_CHECKING:
    from podium.api.versions.choice import ReleaseChoice
    from podium.app.inputs import DecisionSettings
    from podium.sim.run_options import RunOptions

Decorator = Callable[[Decorated], Decorated]


def adding(parameter: str, value_of: Callable[[dict[str, Any]], Any], *options: Callable[..., Any]) -> Decorator[Any]:
    """Return a decorator that adds options to a command, which gets one parameter made from them.

    ``value_of`` removes the values of the options from the given ones, and returns the parameter's value.
    """

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def with_parameter(*arguments: Any, **given: Any) -> Any:
            value = value_of(given)
            return command(*arguments, **given, **{parameter: value})

        decorated: Callable[..., Any] = with_parameter
        for add in reversed(options):
            decorated = add(decorated)
        return decorated

    return decorate


class Time(click.ParamType[int]):
    """A time as in RFC 3339. Its value is in nanoseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return self.parsed(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def parsed(self, text: str) -> int:
        """Return the value of a text. Raises ValueError."""
        from podium.api.times import parse_time

        return parse_time(text)


class Duration(Time):
    """A duration as Go writes it, of 0 or more; a bare number counts seconds. Its value is in nanoseconds."""

    name = "duration"

    def parsed(self, text: str) -> int:
        from podium.api.times import parse_nonnegative_duration

        return parse_nonnegative_duration(text)


ledger_age_option = option(
    "--ledger-age ledger_age_ns",
    "How long the ledger keeps disruptions; 0: forever.",
    type=Duration(),
    default="2160h",
    show_default=True,
    metavar="DURATION",
)


validate_option = option(
    "--validate validation",
    "Treat unknown fields, and values that kube-apiserver refuses, as errors (strict) or as warnings (warn), or "
    "ignore them. Without it, unknown fields are errors in pods and templates that no cluster has stored; all else is "
    "a warning.",
    type=click.Choice(["strict", "warn", "ignore"]),
    metavar="HOW",
)


def _namespace_of(ctx: click.Context, _: click.Parameter, value: str) -> str:
    """Return the namespace that is given, or else that of the context whose cluster is read, as kubectl does."""
    context, kubeconfig = ctx.params.get("context"), ctx.params.get("kubeconfig")
    is_current = not ctx.params.get("files") and is_asked_by_kubectl()
    if ctx.get_parameter_source("namespace") is ParameterSource.DEFAULT and (context or kubeconfig or is_current):
        from podium.client.kubeconfig import find_access

        # Without an access, reading the cluster fails.
        with suppress(InputError):
            return find_access(os.environ, kubeconfig or "", context or "").namespace or value
    return value


namespace_option = option(
    "-n --namespace",
    "The namespace of a TARGET given without one; without it, that of the context, or default.",
    shell_complete=completion.namespaces,
    default="default",
    callback=_namespace_of,
)

HTML = "html"
OPENS = "podium.opens"
"""In the context's meta: whether HTML is shown in the browser."""
_FORMS = ("text", "json", "yaml")


def output_option_of(forms: tuple[str, ...], what: str = "How the answer is printed.") -> Decorator[Any]:
    """Return the options for the form of the answer: one of ``forms``, text by default; and `--open` for HTML."""
    form_option = option(
        "-o --output form",
        f"{what} One of {', '.join(forms)}.",
        type=click.Choice(forms),
        metavar="FORM",
        default="text",
        show_default=True,
    )
    if HTML not in forms:
        return form_option
    return adding(
        "form",
        _form_of,
        form_option,
        option("--open opens", "Show the answer in the browser, as HTML.", is_flag=True),
    )


def _form_of(given: dict[str, Any]) -> str:
    """Return the form. Raises UsageError for HTML on a terminal, before any work starts."""
    form, opens = str(given.pop("form")), given.pop("opens")
    click.get_current_context().meta[OPENS] = opens
    if opens and form not in (_FORMS[0], HTML):
        raise click.UsageError(f"--open shows HTML, and -o {form} is another form")
    if form == HTML and not opens and given.get("answer_file") is None and sys.stdout.isatty():
        problem = "-o html is for a browser, not for a terminal; use --open, or append > answer.html to the command"
        raise click.UsageError(problem)
    return HTML if opens else form


output_option = output_option_of(_FORMS)

picture_output_option = output_option_of((*_FORMS, HTML))
"""The same for a command whose answer has a picture, too."""

config_option = option(
    "--config", "A KubeSchedulerConfiguration; without it, that of a default kube-scheduler.", metavar="FILE"
)

ignore_extenders_option = option(
    "--ignore-extenders", "Decide without the extenders of the configuration, which Podium does not call.", is_flag=True
)


def _release_of(given: dict[str, Any]) -> ReleaseChoice:
    from podium.api.errors import InputError
    from podium.api.versions.choice import read_choice

    try:
        return read_choice(given.pop("kubernetes_version"), given.pop("feature_gates"))
    except InputError as error:
        raise click.UsageError(str(error)) from None


release_options = adding(
    "release",
    _release_of,
    option(
        "--kubernetes-version",
        "Decide as kube-scheduler of this version, 1.31 to 1.37, or a patch level such as 1.34.1; without it, of "
        "the cluster's version, or 1.36.",
        metavar="VERSION",
        default="",
    ),
    option(
        "--feature-gates",
        "Feature gates of that version, such as NodeDeclaredFeatures=false. NonPreemptingPriority=false "
        "ignores all preemption policies.",
        metavar="GATES",
        default="",
    ),
)
"""Add the version that decides and its feature gates; the command gets them as ``release``."""


def _settings_of(given: dict[str, Any]) -> DecisionSettings:
    from podium.app.inputs import DecisionSettings
    from podium.framework.settings.configuration import load_configuration

    config = given.pop("config")
    configuration = load_configuration(config) if config else None
    return DecisionSettings(configuration, given.pop("release"), given.pop("ignore_extenders"))


settings_options = adding("settings", _settings_of, config_option, ignore_extenders_option, release_options)
"""Add the options that say how schedulers decide; the command gets them as ``settings``."""

_TIMES: dict[str, tuple[click.ParamType[int], int | None, str]] = {
    "until": (Duration(), None, "When to stop, after the start; overrides the scenario's end."),
    "start": (Time(), None, "The time of the start; without it, the newest time in the files."),
    "start-delay": (Duration(), 0, "How long a bound pod takes to start."),
    "bind-delay": (Duration(), 0, "How long a binding takes."),
    "latency": (
        Duration(),
        None,
        "How long a scheduler's request takes; a controller's takes twice as long. Overrides the scenario's; "
        "default: 5ms, and 0 for plans.",
    ),
    "termination": (
        Duration(),
        None,
        "How long a deleted pod takes to end, at most its grace period; default: as in the recording that is "
        "played, or the whole period.",
    ),
}
"""The times of a run (`podium.sim.run_options`): their types, defaults and help texts."""

_LIMITS = {
    "objects": "The maximum number of objects created in the run that exist at once",
    "events": "The maximum number of events",
    "calls": "The maximum number of calls of components",
}
"""The limits of a simulation (`podium.sim.run_options`)."""


def _run_options_of(given: dict[str, Any]) -> RunOptions:
    from podium.sim.run_options import RunOptions, SimulationLimits

    times = [f"{name.replace('-', '_')}_ns" for name in _TIMES]
    found = {name: given.pop(name) for name in (*times, "release", "ignore_extenders")}
    limits = {name: most for name in _LIMITS if (most := given.pop(f"max_{name}")) is not None}
    return RunOptions(**found, limits=SimulationLimits(**limits))


def _single_run_options_of(given: dict[str, Any]) -> RunOptions:
    from podium.framework.settings.configuration import load_configuration

    config = given.pop("config")
    options: RunOptions = given.pop("options")
    return replace(options, seed=given.pop("seed"), configuration=load_configuration(config) if config else None)


run_options = adding(
    "options",
    _run_options_of,
    *(
        option(f"--{name} {name.replace('-', '_')}_ns", what, type=type_, default=default)
        for name, (type_, default, what) in _TIMES.items()
    ),
    ignore_extenders_option,
    release_options,
    *(
        option(f"--max-{name}", f"{what}, instead of the default.", type=click.IntRange(min=1), metavar="N")
        for name, what in _LIMITS.items()
    ),
)
"""Add the options of a run; the command gets them as ``options``."""

single_run_options = adding(
    "options",
    _single_run_options_of,
    option("--seed", "The seed of uids and of choices between equal nodes.", type=int, default=0, show_default=True),
    config_option,
    run_options,
)
"""Add the options of a command that plays one run: `run_options`, its seed and its scheduler's configuration."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """A cluster, by a context of a kubeconfig; "" is the current one, and the usual files."""

    context: str = ""
    kubeconfig: str = ""
    allows_exec_plugins: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Files in order, and a cluster that is read before them; None for none.

    The objects of `overrides` take the place of those of the same kind and name (`podium.api.input.documents`).
    """

    files: tuple[str, ...] = ()
    cluster: ClusterSource | None = None
    allows_exec_plugins: bool = False
    overrides: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise NotForSessionError in the process of a session, which answers about its own cluster alone."""
        if client.answering is not None and (self.files or self.cluster is not None):
            raise client.NotForSessionError

    @property
    def all_files(self) -> tuple[str, ...]:
        return (*self.files, *self.overrides)

    def or_current_cluster(self) -> Source:
        """Return this source, or the cluster of the current context if nothing is named."""
        if self.files or self.cluster is not None:
            return self
        return replace(self, cluster=ClusterSource(allows_exec_plugins=self.allows_exec_plugins))

    def needed(self, otherwise: str = "or a cluster with --context") -> Source:
        """Return this source, or the current cluster if kubectl runs the command and nothing is named.

        In the process of a session nothing is needed. Raises UsageError, which names the alternatives to files.
        """
        if self.files or self.cluster is not None or client.answering is not None:
            return self
        if is_asked_by_kubectl():
            return self.or_current_cluster()
        raise click.UsageError(f"Nothing to read: give files with -f, {otherwise}.")


def is_asked_by_kubectl() -> bool:
    """Return whether kubectl runs the command, so that the current cluster is meant if nothing is named."""
    return click.get_current_context().find_root().info_name == KUBECTL_PLUGIN


_CLUSTER_OPTIONS = (
    option(
        "--context",
        "Read the objects from the cluster of this context of the kubeconfig; nothing is changed there.",
        shell_complete=completion.contexts,
        metavar="NAME",
    ),
    option(
        "--kubeconfig",
        "The kubeconfig; default: KUBECONFIG, or ~/.kube/config. Without --context, its current context is read.",
        metavar="FILE",
    ),
    option(
        "--allow-exec-plugins allows_exec_plugins",
        "Run the program that the kubeconfig names for credentials.",
        is_flag=True,
    ),
)
_FILES = option(
    "-f --filename --cluster files",
    "The cluster: manifests, YAML or JSON, gzipped or not, or a snapshot; a file, a directory with its folders, "
    "or - for standard input. May be repeated.",
    metavar="FILE",
    multiple=True,
)
_OVERRIDES = option(
    "--override overrides",
    "Manifests as with -f, read after all others: each object replaces the one of its kind and name. May be repeated.",
    metavar="FILE",
    multiple=True,
)


def _cluster_of(given: dict[str, Any]) -> ClusterSource | None:
    """Remove the cluster from the options and return it; None if they name none."""
    context, kubeconfig = given.pop("context"), given.pop("kubeconfig")
    allows_exec_plugins = given.pop("allows_exec_plugins")
    if context is None and kubeconfig is None:
        return None
    return ClusterSource(context or "", kubeconfig or "", allows_exec_plugins)


def _current_cluster_of(given: dict[str, Any]) -> ClusterSource:
    # Before `_cluster_of` takes it.
    current = ClusterSource(allows_exec_plugins=given["allows_exec_plugins"])
    return _cluster_of(given) or current


def _source_of(given: dict[str, Any]) -> Source:
    allows_exec_plugins = given["allows_exec_plugins"]
    return Source(given.pop("files"), _cluster_of(given), allows_exec_plugins, given.pop("overrides", ()))


cluster_options = adding("cluster", _current_cluster_of, *_CLUSTER_OPTIONS)
"""Add the options that name a cluster; the command gets them as ``cluster``, a ClusterSource."""

optional_cluster_options = adding(
    "cluster",
    lambda given: _current_cluster_of(given) if given["allows_exec_plugins"] else _cluster_of(given),
    *_CLUSTER_OPTIONS,
)
"""The same for a command that does without a cluster, too: None if none is named, and no program may be run."""

source_options = adding("source", _source_of, _FILES, *_CLUSTER_OPTIONS, _OVERRIDES)
"""Add the options that name files and a cluster; the command gets them as ``source``, which may be empty."""

original_source_options = adding("source", _source_of, _FILES, *_CLUSTER_OPTIONS)
"""The same for a command that takes objects as they are: none takes the place of another."""
