"""`podium use`: a session, which answers questions without reading the cluster again."""

from __future__ import annotations

import os
import sys
from contextlib import chdir
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
import msgspec

from podium.app.console.command import LOADED_FIRST, Command, CommandFailure, option
from podium.app.console.options import Duration, Source, source_options, validate_option
from podium.app.using import client

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.app.using.session import UseOptions

_EPILOG = """
\b
Example: read a snapshot once, and ask about it
  podium use cluster.podium
  podium explain deploy/web
  podium plan pending
  podium use --stop
"""
_KUBECONFIG = "KUBECONFIG"
# Imported before the first question, beside what the commands import first.
_MODULES = ("podium.app.planning.command", "podium.app.planning.plans", "podium.app.explaining.text", "rich.progress")


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("names", metavar="[FILE]...", nargs=-1)
@source_options
@validate_option
@option("--idle idle_ns", "End after this time unasked.", type=Duration(), default="1h", show_default=True)
@option(
    "--max-age max_age_ns",
    "Read a live cluster again before a question if it was read longer ago. Answers state when it was read.",
    type=Duration(),
    default="5m",
    show_default=True,
)
@option("--stop", "End the session.", is_flag=True)
def use(
    *, names: tuple[str, ...], source: Source, validation: Validation | None, idle_ns: int, max_age_ns: int, stop: bool
) -> None:
    """Use a cluster for the next questions: read it once, and answer from memory.

    A process of yours keeps the cluster, of files, a snapshot or a context. podium explain and podium plan ask it if
    their command line names no cluster. If the files or Podium change, it starts again by itself. Without arguments
    the command says which cluster is used.
    """
    from podium.app.using.session import UseOptions

    source = replace(source, files=(*names, *source.files))
    if stop:
        click.echo("ended" if client.send({"stop": True}) is not None else "no cluster is used")
    elif source.files or source.cluster is not None:
        if "-" in source.all_files:
            raise click.UsageError("standard input cannot be read again; give a file")
        about = _start(
            UseOptions(source, validation, idle_ns, max_age_ns, os.getcwd(), os.environ.get(_KUBECONFIG, ""))
        )
        click.echo(f"using {about} of {_named(source)}; podium use --stop ends that")
    else:
        reply = client.send({})
        if reply is None:
            click.echo("no cluster is used; podium use FILE or podium use --context NAME")
        elif reply.get("why"):
            click.echo(f"a cluster is used that the next question reads again: {reply['why']}")
        else:
            click.echo(f"using {reply.get('about')}")


def _named(source: Source) -> str:
    context = [] if source.cluster is None else [f"context {source.cluster.context or '(current)'}"]
    return ", ".join([*context, *source.all_files])


def use_again(given: dict[str, Any]) -> None:
    """Start an outdated session again. Raises SystemExit after an error, which is shown."""
    from podium.api.errors import PodiumError
    from podium.app.using.session import UseOptions

    try:
        found = msgspec.convert(given, UseOptions)
        # The same cluster as before, whatever this client's environment says.
        os.environ[_KUBECONFIG] = found.kubeconfig
        with chdir(found.folder):
            _start(found)
    except (PodiumError, OSError, click.ClickException) as error:
        problem = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        CommandFailure(problem).show()
        sys.exit(1)


def _start(use: UseOptions) -> str:
    """Read the cluster, and leave a process that serves it; return a description. Raises PodiumError."""
    from podium.app.cluster import Cluster
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.planning.questions.pending import pending_answer
    from podium.app.using.session import SessionServer, stamps_of

    path = client.socket_path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if not client.is_private(path):
        raise CommandFailure(f"{os.path.dirname(path)} is not a folder that only you may enter")
    files = stamps_of(use.source.all_files)
    cluster = Cluster(read_shown(use.source, use.validation))
    if use.source.cluster is not None:
        # The current context may be another one when the cluster is read again.
        named = replace(use.source.cluster, context=cluster.read.snapshots[0].context)
        use = replace(use, source=replace(use.source, cluster=named))
    with ProgressBar("preparing"):
        for module in (*LOADED_FIRST["explain"], *LOADED_FIRST["plan"], *_MODULES):
            import_module(module)
        # The first decisions build the columns and fill the caches that all others share.
        pending_answer(cluster, "", lambda *_: None)
    client.send({"stop": True})
    if os.path.exists(path):
        os.unlink(path)
    mask = os.umask(0o177)
    session = SessionServer(use, cluster, files)
    os.umask(mask)
    if os.fork() == 0:
        _detach()
        session.serve()
        os._exit(0)
    session.server_close()
    return f"{cluster!r}".strip("<>").removeprefix("Cluster: ")


def _detach() -> None:
    """Leave the terminal: nothing of the process that has started the session is kept."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
