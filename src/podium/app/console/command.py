"""The command `podium`: its subcommands, which are imported on demand, and its exit codes.

Exit codes: 0 done, 1 an error in the input or in the command line, 2 findings that `--fail-on` names, 130 interrupted.
kubectl runs it as kubectl-podium, and kubectl_complete-podium for completions (source: k8s.io/kubectl, pkg/cmd/plugin).
"""

from __future__ import annotations

import errno
import gc
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import IO, Any

import click

from podium.api.errors import PodiumError, escape
from podium.app.console.progress import ProgressBar, command_begins, is_watched
from podium.app.using.client import answer_command

_LONGEST_ERROR = 2_000
_LONGEST_NAME = 60
_LONGEST_HELP = 200
KUBECTL_PLUGIN = "kubectl podium"
"""The name of the command if kubectl runs it."""
_TRACEBACK = "podium.traceback"
_STARTING = "starting"
SUBCOMMANDS = {
    "explain": ("podium.app.explaining.command:explain", "Explain what would happen to a pod now, and why."),
    "simulate": ("podium.app.simulating.command:simulate", "Simulate a cluster in virtual time."),
    "plan": ("podium.app.planning.command:plan", "Predict the impact of a change, an outage or a drain on workloads."),
    "use": ("podium.app.using.session:use", "Read a cluster once for the next questions."),
    "up": ("podium.app.serving.command:up", "Run a control plane for kubectl and other clients."),
    "ui": ("podium.app.live.command:ui", "Show a cluster in a browser, and what is wrong in it."),
    "ledger": ("podium.app.accounting.command:ledger", "Report which pods were disrupted, why, and at what cost."),
    "sweep": ("podium.app.sweeping.command:sweep", "Run a simulation many times, and compare the results."),
    "snapshot": ("podium.app.snapshots.command:snapshot", "Save the state of a cluster to a file."),
    "record": ("podium.app.snapshots.command:record", "Record the events of a cluster to a file."),
    "delete": ("podium.app.deleting.command:delete", "Delete pods within their disruption budgets."),
    "scheduler": ("podium.app.live.command:scheduler", "Schedule the pods of a cluster, as kube-scheduler does."),
    "reschedule": ("podium.app.rescheduling.command:reschedule", "Move running pods to better places."),
    "exporter": ("podium.app.live.command:exporter", "Serve metrics on which failures a cluster can take."),
    "admission": ("podium.app.live.command:admission", "Warn of pods without a node at admission (webhook)."),
    "mcp": ("podium.app.mcp.command:mcp", "Answer an assistant's questions about a cluster (MCP)."),
    "examples": ("podium.app.examples.command:examples", "Write the examples of the documents into a folder."),
    "schema": ("podium.app.schemas.command:schema", "Print the JSON Schema of an answer, or of a Scenario."),
    "bench": ("podium.app.bench.command:bench", "Measure how fast decisions are made."),
}
"""Where each subcommand is, and what it does; help lists them without importing them."""

FOR_KUBECTL = ("delete",)
"""The subcommands of `kubectl podium` alone: they change a cluster by hand, as kubectl's own do."""

FOR_DEVELOPERS = ("examples", "schema", "bench")
"""The last subcommands, which help lists apart."""

LOADED_FIRST = {
    "explain": ("podium.app.cluster", "podium.app.explaining.workload"),
    "simulate": ("podium.app.simulating.text",),
    # Not the simulator, which half of the questions do without.
    "plan": ("podium.app.cluster", "podium.app.planning.answer"),
    "ledger": ("podium.app.accounting.account",),
    "sweep": ("podium.app.sweeping.sweep", "podium.app.sweeping.sweep_result"),
    "snapshot": ("podium.app.snapshots.cluster",),
    "record": ("podium.app.recording.recording",),
    "delete": ("podium.app.deleting.deletion",),
    "reschedule": ("podium.app.rescheduling.offline", "podium.app.console.reading"),
    "examples": ("podium.app.examples.command",),
}
"""The slow modules of each subcommand, which are imported under a progress bar on a terminal.

`up` and `scheduler` keep running and report their own progress. `bench` and `schema` need none of them.
"""


def option(names: str, what: str, **settings: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds an option: its names and perhaps its parameter's, with blanks, and its help text."""
    return click.option(*names.split(), help=what, **settings)


class CommandFailure(click.ClickException):
    """An error in the input: one line on standard error, exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"podium: error: {escape(self.message, _LONGEST_ERROR)}", file=file, err=file is None)


class _FormattedHelp(click.Command):
    """The base of commands and groups: help is laid out with rich on a terminal, and is plain text elsewhere."""

    def get_help(self, ctx: click.Context) -> str:
        if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            return super().get_help(ctx)
        from podium.app.console.rich_help import rich_help

        return rich_help(self, ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog: text is wrapped, and indented lines, which are command lines, stay as they are."""
        for paragraph in inspect.cleandoc(self.epilog or "").split("\n\n"):
            lines = paragraph.removeprefix("\b\n").splitlines()
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(" ".join(line for line in lines if not line.startswith(" ")))
                for line in lines:
                    if line.startswith(" "):
                        formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Command(_FormattedHelp):
    """A command, with a progress bar from the start."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; on a terminal, show a progress bar from the start."""
        if is_watched():
            with ProgressBar(_STARTING):
                # The subcommand of `podium plan drain` is `plan`.
                command = ctx
                while command.parent is not None and command.parent.parent is not None:
                    command = command.parent
                modules = LOADED_FIRST.get(command.info_name or "", ())
                # The bar's own module is first: its thread would get little CPU time during the other imports.
                for module in ("rich.progress", *modules) if modules else ():
                    import_module(module)
        return super().invoke(ctx)


class Group(_FormattedHelp, click.Group):
    """A group of commands, which turns errors of the input into failures."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands with their whole first sentences, which click cuts short."""
        with formatter.section("Commands"):
            names = self.list_commands(ctx)
            formatter.write_dl([(name, self.commands[name].get_short_help_str(_LONGEST_HELP)) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PodiumError as error:
            if ctx.find_root().meta.get(_TRACEBACK):
                from traceback import format_exception

                for line in "".join(format_exception(error)).splitlines():
                    click.echo(escape(line, _LONGEST_ERROR), err=True)
            raise CommandFailure(str(error)) from None
        except OSError as error:
            # A closed pipe is not an error: click exits quietly.
            if error.errno == errno.EPIPE:
                raise
            raise CommandFailure(f"{error.filename or 'output'}: {error.strerror or error}") from None


class LazyGroup(Group):
    """A group that knows its subcommands by name and line of help, and imports the one that is run.

    Wrong usage ends with 1, as other errors do: 2 is for findings.
    """

    def make_context(self, *args: Any, **given: Any) -> click.Context:
        with _usage_errors_end_with_1():
            return super().make_context(*args, **given)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the subcommand's options and run it."""
        with _usage_errors_end_with_1():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; `help COMMAND` and `version` mean the options of these names."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, ["--version"] if args[:1] == ["version"] else args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        is_plugin = ctx.find_root().info_name == KUBECTL_PLUGIN
        return [name for name in SUBCOMMANDS if is_plugin or name not in FOR_KUBECTL]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands, those for developers apart."""
        for title, is_apart in (("Commands", False), ("For developers", True)):
            with formatter.section(title):
                names = [name for name in self.list_commands(ctx) if (name in FOR_DEVELOPERS) is is_apart]
                formatter.write_dl([(name, SUBCOMMANDS[name][1]) for name in names])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a stub with the help line of a subcommand; None for an unknown one."""
        is_known = cmd_name in self.list_commands(ctx)
        return click.Command(cmd_name, short_help=SUBCOMMANDS[cmd_name][1]) if is_known else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import and return the subcommand to run. Raises UsageError with a suggestion for an unknown one."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from podium.api.errors import suggestion

            hint = f"use {KUBECTL_PLUGIN} {args[0]}" if args[0] in FOR_KUBECTL else suggestion(args[0], known)
            raise click.UsageError(f"There is no command {escape(args[0], _LONGEST_NAME)!r}; {hint}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        module, _, attribute = SUBCOMMANDS[name][0].partition(":")
        with nullcontext() if ctx.resilient_parsing else ProgressBar(_STARTING):
            return name, getattr(import_module(module), attribute), rest


@contextmanager
def _usage_errors_end_with_1() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.exit_code = 1  # type: ignore[misc]  # click declares a ClassVar and reads it of the error
        raise


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from podium.api.versions.release import own_version

        version = own_version()
        if not version:
            raise CommandFailure("this copy is not installed, and so has no version")
        click.echo(f"podium {version}")
        ctx.exit()


def _trace(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    ctx.find_root().meta[_TRACEBACK] = wanted


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_EPILOG = """
\b
Example:
  podium explain web -f cluster.json

podium help COMMAND, podium version: the same as --help and --version.

Completion: for bash, add to ~/.bashrc the line eval "$(_PODIUM_COMPLETE=bash_source podium)"; zsh_source and
fish_source are there too.
"""


@click.group(cls=LazyGroup, context_settings=_SETTINGS, epilog=_EPILOG)
@option("--version", "Show the version and exit.", is_flag=True, expose_value=False, is_eager=True, callback=_version)
@option(
    "--traceback",
    "Show tracebacks of errors, also of those in plugins.",
    is_flag=True,
    expose_value=False,
    callback=_trace,
)
def podium() -> None:
    """Explain which pods run, wait and are disrupted in a Kubernetes cluster, and why.

    Decisions are those of kube-scheduler v1.36, made from manifests or a dump of a cluster; nothing is changed there.
    """


# Cobra's ShellCompDirectiveNoFileComp, and its ShellCompDirectiveDefault.
_NO_FILES, _FILES = 4, 0


def kubectl_plugin() -> None:
    """Run the command line under kubectl's name; without files it reads the cluster of the current context."""
    main(name=KUBECTL_PLUGIN)


def kubectl_completion() -> None:
    """Print the completions of the last argument, a line each, and whether files are possible, as cobra expects."""
    from click.shell_completion import ShellComplete

    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(podium, {}, KUBECTL_PLUGIN, "").get_completions(before, incomplete)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    # The value of an option may be a file's name, too.
    takes_value = bool(before) and before[-1].startswith("-")
    takes_files = takes_value or any(item.type in ("file", "dir") for item in found)
    click.echo(f":{_FILES if takes_files else _NO_FILES}")


def main(args: Sequence[str] | None = None, name: str = "podium") -> None:
    """Run the command line and exit; ``name`` is what its help calls it."""
    command_begins()
    words = sys.argv[1:] if args is None else args
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names and bars are shown as well as the terminal's encoding can.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = answer_command(words) if name == "podium" else None
        if code is None:
            code = podium.main(words, prog_name=name, standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    # Python would examine all objects for cycles at exit; the process ends anyway.
    gc.freeze()
    sys.exit(code)
